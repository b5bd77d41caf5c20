//! Reads the questions of the workload `questions`.
//!
//! Main function: [`read_questions`]. Invariant: a question that was read has a unique name and what its kind needs; whether the record type has its columns is
//! checked where cases are built.

use super::query::keep_chosen;
use super::series::nanoseconds;
use crate::fault::fault;
use crate::question::{Ask, Figure, Places, Question};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Node;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// A question of `workload.questions`.
pub static QUESTION: Part = Part {
    name: "workload.questions",
    help: "A question about sources and times, stated once and asked in every layout. Each execution concerns a source and a span of its own.",
    settings: &[
        Setting::new(
            "name",
            Kind::Text,
            Absent::Means("what it asks"),
            "The name of the question, by which its operations are reported.",
        ),
        Setting::new(
            "ask",
            Kind::Listed(|| Ask::NAMES.map(|(name, _)| name).to_vec()),
            Absent::Refused,
            "What is asked: the readings in a span (`range`), the newest reading (`newest`), number and figures of the readings in a span (`aggregate`), \
             the same in buckets of time (`buckets`), the sources with the largest figures (`top`), or the readings above a bound (`above`).",
        ),
        Setting::new(
            "of",
            Kind::Texts,
            Absent::Means("none: the number of readings, or their times"),
            "The columns to read or to aggregate. `top` and `above` take one.",
        ),
        Setting::new(
            "sources",
            Kind::OneOf(&["one", "all"]),
            Absent::Means("`\"one\"`; `\"all\"` for `top`"),
            "Whether each execution concerns one source or all of them.",
        ),
        Setting::new(
            "span",
            Kind::Duration(Span::AboveZero),
            Absent::Means("all times there are"),
            "The length of the span of time. Not for `newest`.",
        ),
        Setting::new(
            "places",
            Kind::Listed(|| Places::NAMES.map(|(name, _)| name).to_vec()),
            Absent::Means("`\"recent\"`"),
            "Where spans lie: they end with the newest records (`newest`), recent ones are more frequent (`recent`; how far they lie behind is exponentially \
             distributed, with a tenth of the whole time as mean), or all are equally frequent (`uniform`).",
        ),
        Setting::new(
            "bucket",
            Kind::Duration(Span::AboveZero),
            Absent::Means("none: `buckets` needs it"),
            "The length of a bucket.",
        ),
        Setting::new(
            "above",
            Kind::Number(-1e15, 1e15),
            Absent::Means("none: `above` needs it"),
            "The bound above which readings are asked for.",
        ),
        Setting::new(
            "figures",
            Kind::Texts,
            Absent::Means("`[\"sum\", \"mean\", \"min\", \"max\"]`, without `sum` for `buckets`"),
            "The figures of each column that `aggregate` and `buckets` ask for: `mean`, `sum`, `min`, `max`, `first` and `last` by time, or quantiles such as `p50` and `p99.9`, \
             which are values of readings.",
        ),
        Setting::new("most", Kind::Whole(1, 100_000), Absent::Means("`10`"), "Number of sources that `top` asks for."),
        Setting::new(
            "by",
            Kind::Listed(|| Figure::RANKS.map(|(name, _)| name).to_vec()),
            Absent::Means("`\"mean\"`"),
            "The figure by which `top` ranks the sources.",
        ),
        Setting::new(
            "weight",
            Kind::Number(1e-6, 1e6),
            Absent::Means("`1`"),
            "How often it is asked, relative to the other questions.",
        ),
    ],
};

/// Reads the questions of `[workload]`: the one that `workload.question` names, or else all; empty if there are none.
pub fn read_questions(workload: &Section, errors: &mut Errors) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    for node in workload.list("questions", errors) {
        let Some(question) = read_question(node, errors) else { continue };
        if questions.iter().any(|other| other.name == question.name) {
            let name = &question.name;
            let message =
                fault!("two questions of workload.questions are called \"{name}\""; "give each a name of its own");
            errors.push(node.place, message);
        }
        questions.push(question);
    }
    keep_chosen(&mut questions, |question| &question.name, (workload, "question", "questions"), errors);
    questions
}

fn read_question(node: &Node, errors: &mut Errors) -> Option<Question> {
    let section = Section::of_node(node, QUESTION.name, &QUESTION, errors)?;
    let Some(name) = section.text("ask", errors) else {
        if section.get("ask").is_none() {
            let remedy = "write what it asks, as in { ask = \"newest\" }";
            errors.push(section.place, fault!("a question of {} asks nothing", QUESTION.name; "{remedy}"));
        }
        return None;
    };
    let ask = named(&Ask::NAMES, name)?;
    let question = Question {
        name: section.find("name", errors).unwrap_or_else(|| name.to_owned()),
        ask,
        of: section.texts("of", errors),
        all_sources: section.text("sources", errors).map_or(ask == Ask::Top, |sources| sources == "all"),
        span_ns: section.find("span", errors).map(nanoseconds),
        bucket_ns: section.find("bucket", errors).map_or(0, nanoseconds),
        above: section.find("above", errors).unwrap_or(0.0),
        most: if ask == Ask::Top { section.find("most", errors).unwrap_or(10) } else { 0 },
        by: section.text("by", errors).and_then(|by| named(&Figure::RANKS, by)).unwrap_or_default(),
        figures: read_figures(&section, errors),
        places: section.text("places", errors).and_then(|places| named(&Places::NAMES, places)).unwrap_or_default(),
        weight: section.find("weight", errors).unwrap_or(1.0),
    };
    check(&section, &question, name, errors);
    Some(question)
}

/// Reads the figures that a question names; empty where it names none.
fn read_figures(section: &Section, errors: &mut Errors) -> Vec<Figure> {
    let Some(node) = section.get("figures") else { return Vec::new() };
    let names = section.texts("figures", errors);
    let place = node.place;
    if names.is_empty() {
        errors.push(place, fault!("workload.questions, figures is empty"; "name one, or leave it out"));
    }
    let mut figures = Vec::new();
    for name in &names {
        match Figure::named(name) {
            None => errors.push(
                place,
                fault!("workload.questions, figures has \"{name}\""; "possible: mean, sum, min, max, first, last, and quantiles as p50 or p99.9"),
            ),
            Some(figure) if figures.contains(&figure) => {
                errors.push(place, fault!("workload.questions, figures has \"{name}\" twice"; "leave one out"));
            }
            Some(figure) => figures.push(figure),
        }
    }
    figures
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Refuses what a kind of question needs and does not have, or has and does not need.
fn check(section: &Section, question: &Question, asked: &str, errors: &mut Errors) {
    let place = section.place;
    let mut refuse = |message: String| errors.push(place, format!("workload.questions, ask = \"{asked}\": {message}"));
    let needs = [
        ("bucket", Ask::Buckets, "write the length of a bucket, as in bucket = \"1m\""),
        ("above", Ask::Above, "write the bound, as in above = 100"),
    ];
    for (key, ask, remedy) in needs {
        if question.ask == ask && section.get(key).is_none() {
            refuse(format!("{key} is missing; {remedy}"));
        }
    }
    let only: [(&str, &[Ask]); 6] = [
        ("bucket", &[Ask::Buckets]),
        ("above", &[Ask::Above]),
        ("most", &[Ask::Top]),
        ("by", &[Ask::Top]),
        ("figures", &[Ask::Aggregate, Ask::Buckets]),
        ("span", &[Ask::Range, Ask::Aggregate, Ask::Buckets, Ask::Top, Ask::Above]),
    ];
    for (key, asks) in only {
        if section.get(key).is_some() && !asks.contains(&question.ask) {
            refuse(format!("{key} is not for it; leave it out"));
        }
    }
    if matches!(question.ask, Ask::Top | Ask::Above) && question.of.len() != 1 {
        refuse(format!("of has {} columns; name one", question.of.len()));
    }
    if question.ask == Ask::Top && !question.all_sources {
        refuse("sources is \"one\"; it ranks all sources, leave it out".to_owned());
    }
    if let (Ask::Buckets, Some(span_ns)) = (question.ask, question.span_ns)
        && span_ns < question.bucket_ns
    {
        refuse("span is shorter than bucket; write a longer one".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::WORKLOAD;
    use super::*;
    use crate::written::place::Source;
    use crate::written::tree::Table;

    fn read(question: &str) -> Result<Question, String> {
        let mut errors = Errors::default();
        let text = format!("[workload]\nquestions = [ {{ {question} }} ]\n");
        let root = Table::parse(&text, &mut errors);
        let workload = Section::open(&root, &WORKLOAD, &mut errors);
        let questions = read_questions(&workload, &mut errors);
        let source = Source { file: "s.toml".to_owned(), arguments: Vec::new() };
        errors.into_result(&source).map_err(|errors| errors.to_string())?;
        questions.into_iter().next().ok_or_else(|| "there is no question".to_owned())
    }

    #[test]
    fn a_question_that_names_no_figures_asks_for_the_usual_ones() {
        let figures = |question: &str| read(question).unwrap().figures().to_vec();
        assert_eq!(figures("ask = \"aggregate\""), Figure::OF_AGGREGATES);
        assert_eq!(figures("ask = \"buckets\", bucket = \"1m\""), Figure::OF_BUCKETS);
        let named = figures("ask = \"aggregate\", figures = [\"p95\", \"first\", \"sum\"]");
        assert_eq!(named, [Figure::Quantile(950_000), Figure::First, Figure::Sum]);
    }

    #[test]
    fn what_a_question_cannot_have_is_refused_with_place_value_and_remedy() {
        for (question, says) in [
            ("ask = \"aggregate\", figures = [\"median\"]", "figures has \"median\"; possible: mean, sum"),
            ("ask = \"aggregate\", figures = [\"p100\"]", "figures has \"p100\""),
            ("ask = \"aggregate\", figures = [\"p95\", \"p95.0\"]", "figures has \"p95.0\" twice; leave one out"),
            ("ask = \"aggregate\", figures = []", "figures is empty; name one, or leave it out"),
            ("ask = \"newest\", figures = [\"last\"]", "ask = \"newest\": figures is not for it; leave it out"),
            ("ask = \"top\", of = [\"a\"], by = \"p95\"", "by"),
            ("ask = \"buckets\"", "ask = \"buckets\": bucket is missing"),
            ("ask = \"above\", of = [\"a\", \"b\"], above = 1", "of has 2 columns; name one"),
        ] {
            let said = read(question).unwrap_err();
            assert!(said.contains(says) && said.contains("s.toml:2"), "{question}: {said}");
        }
    }
}
