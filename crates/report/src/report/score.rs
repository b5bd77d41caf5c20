//! Evaluates scores: the JSON document of `score`, and its text for a terminal.
//!
//! Main type: [`ScoreFinding`]. Invariant: the verdict takes an alternative only if its total is certainly the highest; values without
//! repeats lead to no choice.

mod note;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::finding::{Found, Verdict};
use crate::report::terminal::listed;
use crate::scoring::{
    Evidence, LISTED_MAX, Reversal, ScoreError, Scores, Uncertainty, Weighting, break_even, first_between, reversals,
    spans, uncertainty,
};
use crate::units::show_number;

pub use note::ScoreNote;

/// Totals that differ by less than this are equal.
const SAME: f64 = 1e-9;

/// The complete result of a scoring.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreFinding {
    /// The weight of writing relative to reading.
    pub write_weight: f64,
    /// The unit with equal weight in reading: `query` or `case`.
    pub query_weighting: &'static str,
    /// The verdict on the alternatives.
    pub verdict: Verdict,
    /// The alternatives, in the order of the evidence.
    pub alternatives: Vec<AlternativeFinding>,
    /// The names of the alternatives, the highest total first.
    pub ranking: Vec<String>,
    /// The ranking with the other weighting of reading: every case weighted equally instead of every query, or vice versa.
    pub ranking_other_weighting: Vec<String>,
    /// The weights at which two alternatives change places.
    pub break_even: Vec<BreakEvenFinding>,
    /// The range of weights in which the first alternative stays first; null means no upper limit.
    pub first_between: (f64, Option<f64>),
    /// The rankings over all weights.
    pub rankings: Vec<SpanFinding>,
    /// The alternatives whose removal changes the order of the others.
    pub reversals: Vec<ReversalFinding>,
    /// Notes that qualify the result.
    pub notes: Vec<ScoreNote>,
}

/// The points of one alternative.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlternativeFinding {
    /// The name of the alternative.
    pub name: String,
    /// Points for writing, 0..10.
    pub writing: f64,
    /// Points for reading, 0..10.
    pub reading: f64,
    /// Points per query.
    pub queries: BTreeMap<String, f64>,
    /// The weighted points for writing plus the points for reading.
    pub total: f64,
    /// The interval of the total, at 95 % or more; null if a value rests on a single trial.
    pub total_ci95: Option<[f64; 2]>,
    /// The difference of the total from the highest total of the others, simultaneous for all alternatives at 95 %; null if a value rests on a single trial.
    pub from_best_ci95: Option<[f64; 2]>,
}

/// A weight at which two alternatives change places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BreakEvenFinding {
    /// The alternative that is ahead above the weight.
    pub a: String,
    /// The alternative that is ahead below the weight.
    pub b: String,
    /// The weight of writing.
    pub write_weight: f64,
}

/// A ranking with the range of weights in which it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpanFinding {
    /// The lower end of the range.
    pub from: f64,
    /// The upper end of the range; null means no limit.
    pub to: Option<f64>,
    /// The names in the order of the ranking.
    pub ranking: Vec<String>,
}

/// The effect of removing an alternative on the order of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReversalFinding {
    /// The alternative that is removed.
    pub removed: String,
    /// The order of the others before the removal.
    pub before: Vec<String>,
    /// The order of the others after the removal.
    pub after: Vec<String>,
}

/// Scores evidence. `notes` precede the notes of the scoring itself.
///
/// # Errors
/// As [`Evidence::check`].
pub fn score(
    evidence: &Evidence,
    weighting: Weighting,
    write_weight: f64,
    notes: Vec<ScoreNote>,
) -> Result<ScoreFinding, ScoreError> {
    let scores = evidence.scores(weighting)?;
    let (other, name) = match weighting {
        Weighting::ByQuery => (Weighting::ByCase, "query"),
        Weighting::ByCase => (Weighting::ByQuery, "case"),
    };
    let other = evidence.scores(other)?;
    let sure = uncertainty(evidence, weighting, write_weight);
    let mut notes = notes;
    if sure.is_none() {
        notes.push(ScoreNote::SingleTrials {});
    }
    let count = evidence.alternatives.len();
    if count > LISTED_MAX {
        notes.push(ScoreNote::Many { count, listed: LISTED_MAX });
    }
    let names = |places: &[usize]| scores.names(places);
    let finding = ScoreFinding {
        write_weight,
        query_weighting: name,
        verdict: verdict(&scores, write_weight, sure.as_ref()),
        alternatives: alternatives(&scores, write_weight, sure.as_ref()),
        ranking: names(&scores.ranking(write_weight)),
        ranking_other_weighting: other.names(&other.ranking(write_weight)),
        break_even: break_even(&scores)
            .iter()
            .map(|change| BreakEvenFinding {
                a: scores.alternatives[change.above].clone(),
                b: scores.alternatives[change.below].clone(),
                write_weight: change.write_weight,
            })
            .collect(),
        first_between: first_between(&scores, write_weight),
        rankings: spans(&scores)
            .iter()
            .map(|span| SpanFinding { from: span.from, to: span.to, ranking: names(&span.ranking) })
            .collect(),
        reversals: reversals(evidence, weighting, write_weight)?
            .into_iter()
            .map(|Reversal { removed, before, after }| ReversalFinding { removed, before, after })
            .collect(),
        notes,
    };
    Ok(finding)
}

fn alternatives(scores: &Scores, write_weight: f64, sure: Option<&Uncertainty>) -> Vec<AlternativeFinding> {
    let totals = scores.totals(write_weight);
    let alternative = |(place, name): (usize, &String)| AlternativeFinding {
        name: name.clone(),
        writing: scores.writing[place],
        reading: scores.reading[place],
        queries: scores.queries.iter().map(|(query, points)| (query.clone(), points[place])).collect(),
        total: totals[place],
        total_ci95: sure.map(|sure| sure.totals_ci95[place]),
        from_best_ci95: sure.map(|sure| sure.from_best_ci95[place]),
    };
    scores.alternatives.iter().enumerate().map(alternative).collect()
}

/// Returns the verdict: `take star; its total is above the next one's by 1.93 [1.20, 2.66], and the highest for any write weight between 0.10 and 3.20`.
fn verdict(scores: &Scores, write_weight: f64, sure: Option<&Uncertainty>) -> Verdict {
    let (ranking, totals) = (scores.ranking(write_weight), scores.totals(write_weight));
    let (first, second) = (ranking[0], ranking[1]);
    let name = scores.alternatives[first].clone();
    let lead = totals[first] - totals[second];
    let lead_ci95 = sure.map(|sure| sure.from_best_ci95[first]);
    let first_between = first_between(scores, write_weight);
    let found = |is_rival: &dyn Fn(usize) -> bool, is_decided| {
        let may_be = ranking.iter().filter(|place| **place == first || is_rival(**place));
        let may_be = may_be.map(|place| scores.alternatives[*place].clone()).collect();
        Found::Choice { may_be, lead, lead_ci95, first_between, is_decided }
    };
    let undecided = |found: Found, why: String| Verdict::new(found, "no choice").because(why);
    if lead < SAME {
        let found = found(&|place| totals[first] - totals[place] < SAME, false);
        let same = scores
            .names(&ranking.iter().copied().filter(|place| totals[first] - totals[*place] < SAME).collect::<Vec<_>>());
        return undecided(found, format!("{} have the same total; choose by another weight", same.join(" and ")));
    }
    let range = match (first_between.0 > 0.0, first_between) {
        (false, (_, None)) => "for any write weight".to_owned(),
        (true, (low, None)) => format!("for any write weight above {low:.2}"),
        (false, (_, Some(high))) => format!("for any write weight below {high:.2}"),
        (true, (low, Some(high))) => format!("for any write weight between {low:.2} and {high:.2}"),
    };
    let Some(sure) = sure else {
        let why = format!(
            "a value rests on a single trial; the highest total is that of {name}, {range}: repeat every case to know whether that is chance"
        );
        return undecided(found(&|_| true, false), why);
    };
    let [least, most] = sure.from_best_ci95[first];
    let shown = format!("{lead:.2} [{least:.2}, {most:.2}]");
    if least > 0.0 {
        let evidence = format!("its total is above the next one's by {shown}, and the highest {range}");
        return Verdict::new(found(&|_| false, true), format!("take {name}")).and(evidence);
    }
    let is_rival = |place: usize| sure.from_best_ci95[place][1] >= 0.0;
    let rivals = scores.names(&ranking.iter().copied().filter(|place| is_rival(*place)).collect::<Vec<_>>());
    let rivals = rivals.join(", ");
    let why = format!(
        "the trials do not tell which of {rivals} is the best; the total of {name} is above the next one's by {shown}: measure more"
    );
    undecided(found(&is_rival, false), why)
}

/// Formats the difference of a total from the highest of the others: `[-2.66, -1.20]`.
pub fn from_best(one: &AlternativeFinding) -> String {
    one.from_best_ci95.map_or("-".to_owned(), |[low, high]| format!("[{low:.2}, {high:.2}]"))
}

/// Returns the text for a terminal.
pub fn terminal(finding: &ScoreFinding, table: impl Fn(Vec<Vec<String>>) -> String) -> String {
    let points = |value: f64| format!("{value:.2}");
    let has_intervals = finding.alternatives.iter().any(|one| one.from_best_ci95.is_some());
    let weight = show_number(finding.write_weight);
    let mut heading = vec![
        "alternative".to_owned(),
        "writing".to_owned(),
        format!("× {weight}"),
        "reading".to_owned(),
        "total".to_owned(),
    ];
    if has_intervals {
        heading.push("from the best other".to_owned());
    }
    let mut rows = vec![heading];
    for name in &finding.ranking {
        let Some(one) = finding.alternatives.iter().find(|one| one.name == *name) else { continue };
        let mut row = vec![
            one.name.clone(),
            points(one.writing),
            points(one.writing * finding.write_weight),
            points(one.reading),
            points(one.total),
        ];
        if has_intervals {
            row.push(from_best(one));
        }
        rows.push(row);
    }
    let mut text = format!(
        "Points (at most 10 each; every {} weighs the same in reading)\n\n{}",
        finding.query_weighting,
        table(rows)
    );
    let names = finding.alternatives.iter().map(|one| one.name.clone());
    let mut queries = vec![["query".to_owned()].into_iter().chain(names).collect::<Vec<_>>()];
    for query in finding.alternatives.first().into_iter().flat_map(|one| one.queries.keys()) {
        let each = finding
            .alternatives
            .iter()
            .map(|one| one.queries.get(query).map_or("-".to_owned(), |value| points(*value)));
        queries.push([query.clone()].into_iter().chain(each).collect());
    }
    text.push_str(&format!("\n{}\n{}\n", table(queries), finding.verdict));
    if finding.rankings.len() > 1 {
        text.push_str("\nRanking by write weight\n");
        for span in &finding.rankings {
            text.push_str(&format!("  {:<16} {}\n", show_span(span, &finding.rankings), span.ranking.join(" > ")));
        }
    }
    let notes = remarks(finding);
    if !notes.is_empty() {
        text.push_str("\nNotes\n");
    }
    for note in notes {
        text.push_str(&listed(&note));
    }
    text
}

/// Formats `0.10 to 0.61`, `above 0.61` or `any`, with enough digits to distinguish the weights at which places change.
pub fn show_span(span: &SpanFinding, all: &[SpanFinding]) -> String {
    let digits = digits(all);
    match (span.from > 0.0, span.to) {
        (false, None) => "any".to_owned(),
        (true, None) => format!("above {:.digits$}", span.from),
        (false, Some(to)) => format!("below {to:.digits$}"),
        (true, Some(to)) => format!("{:.digits$} to {to:.digits$}", span.from),
    }
}

/// Returns the number of decimals, at most six, that distinguish the ends of these spans.
fn digits(all: &[SpanFinding]) -> usize {
    let ends: Vec<f64> = all.iter().filter_map(|span| span.to).collect();
    let are_told_apart = |digits: &usize| {
        let shown: Vec<String> = ends.iter().map(|end| format!("{end:.digits$}")).collect();
        shown.windows(2).all(|pair| pair[0] != pair[1])
    };
    (2..6).find(are_told_apart).unwrap_or(6)
}

/// Returns the remarks that qualify the choice, as sentences: other weighting, reversals, notes.
pub fn remarks(finding: &ScoreFinding) -> Vec<String> {
    let mut remarks = Vec::new();
    if finding.ranking_other_weighting != finding.ranking {
        let other = if finding.query_weighting == "query" { "case" } else { "query" };
        remarks.push(format!(
            "when every {other} weighs the same in reading, the ranking is {}",
            finding.ranking_other_weighting.join(" > ")
        ));
    }
    for reversal in &finding.reversals {
        remarks.push(format!(
            "rank reversal: without {} the others are ranked {} instead of {}, because points are relative to the best and the \
             worst that took part",
            reversal.removed,
            reversal.after.join(" > "),
            reversal.before.join(" > ")
        ));
    }
    remarks.extend(finding.notes.iter().map(ToString::to_string));
    remarks
}
