//! Compares the query plans that databases reported: which layouts have the same plan and which differ.
//!
//! Main function: [`plans_of`]. Invariant: two plans are the same if they differ only in names of tables and in numbers.

use std::collections::BTreeMap;

use super::instrument::Instrument;
use crate::finding::Note;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::{show_level, show_levels};
use crate::trial::{Levels, Settings};

/// The plans of a query in cases that differ only in their layout and clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Plans {
    /// The levels of the other factors, including the query if it is one.
    pub levels: Levels,
    /// The kind of operation, which distinguishes the queries of a case.
    pub kind: String,
    /// The layouts with the lines of their plans, in the order of the study.
    pub by_layout: Vec<(String, Vec<String>)>,
    /// The number of the shape of each plan: layouts with the same number have the same plan.
    shapes: Vec<usize>,
    /// The first layout's plan, without names of tables and numbers.
    shape: Vec<String>,
}

impl Plans {
    /// Returns whether all layouts have the same plan.
    pub fn are_alike(&self) -> bool {
        self.shapes.iter().all(|shape| *shape == 0)
    }

    /// Returns a sentence: `workload.query = Q1.2: the plan differs between layouts: wide (qos: ref by PRIMARY); star, ...`.
    pub fn sentence(&self) -> String {
        let query = if self.levels.contains_key("workload.query") || self.levels.is_empty() {
            String::new()
        } else {
            format!(", {}", self.kind)
        };
        let at =
            if self.levels.is_empty() { self.kind.clone() } else { format!("{}{query}", show_levels(&self.levels)) };
        if self.by_layout.len() == 1 {
            return format!("{at}: {} ({})", self.by_layout[0].0, first_line(&self.by_layout[0].1));
        }
        if self.are_alike() {
            return format!("{at}: the same plan in all layouts ({})", first_line(&self.by_layout[0].1));
        }
        let count = self.shapes.iter().max().map_or(0, |most| most + 1);
        let groups = (0..count).map(|shape| {
            let of_shape = || self.by_layout.iter().zip(&self.shapes).filter(move |(_, own)| **own == shape);
            let names: Vec<&str> = of_shape().map(|((layout, _), _)| layout.as_str()).collect();
            let lines = of_shape().next().map_or(&[][..], |((_, lines), _)| lines);
            format!("{} ({})", names.join(", "), first_line(lines))
        });
        format!("{at}: the plan differs between layouts: {}", groups.collect::<Vec<_>>().join("; "))
    }
}

/// Returns the sentences of all plans. Cases of a question whose plan is the same in the only layout stand together, with the first one's plan.
pub fn sentences(plans: &[Plans]) -> Vec<String> {
    let mut together: Vec<Vec<&Plans>> = Vec::new();
    for own in plans {
        let is_same = |first: &&Plans| {
            let is_alone = own.by_layout.len() == 1 && first.by_layout.len() == 1;
            is_alone
                && (&own.kind, &own.shape, &own.by_layout[0].0) == (&first.kind, &first.shape, &first.by_layout[0].0)
        };
        match together.iter_mut().find(|group| group.first().is_some_and(is_same)) {
            Some(group) => group.push(own),
            None => together.push(vec![own]),
        }
    }
    let sentence = |group: Vec<&Plans>| match group[..] {
        [only] => only.sentence(),
        _ => {
            let (layout, lines) = &group[0].by_layout[0];
            let levels: Vec<&Levels> = group.iter().map(|plans| &plans.levels).collect();
            format!("{}: {layout} ({}) at {}", group[0].kind, first_line(lines), show_all(&levels))
        }
    };
    together.into_iter().map(sentence).collect()
}

/// Returns the levels of several cases: each setting with all its levels, if the cases are all combinations of these, or else case by case.
fn show_all(cases: &[&Levels]) -> String {
    let mut by_setting: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (setting, level) in cases.iter().copied().flatten() {
        let (known, level) = (by_setting.entry(setting).or_default(), show_level(level));
        if !known.contains(&level) {
            known.push(level);
        }
    }
    if by_setting.values().map(Vec::len).product::<usize>() != cases.len() {
        return cases.iter().map(|levels| show_levels(levels)).collect::<Vec<_>>().join("; ");
    }
    let of_setting = |(setting, levels): (&str, Vec<String>)| format!("{setting} = {}", levels.join(" and "));
    by_setting.into_iter().map(of_setting).collect::<Vec<_>>().join(", ")
}

/// The report on plans.
pub const INSTRUMENT: Instrument =
    Instrument { notes: |groups| note(groups).into_iter().collect(), ..Instrument::SILENT };

/// Returns a note on the queries whose plans differ between layouts; `None` if no plans were kept for several layouts.
fn note(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let plans = plans_of(groups);
    let of_several = || plans.iter().filter(|plans| plans.by_layout.len() > 1);
    let differ: Vec<&Plans> = of_several().filter(|plans| !plans.are_alike()).collect();
    let name = |plans: &&Plans| match plans.levels.get("workload.query") {
        Some(query) => show_level(query),
        None => plans.kind.clone(),
    };
    let queries: Vec<String> = differ.iter().map(name).collect();
    match (of_several().count(), differ.len()) {
        (0, _) => None,
        (queries, 0) => Some(Note::PlansAlike { queries }),
        (all, _) => Some(Note::PlansDiffer { queries, all }),
    }
}

/// Formats the first line of a plan, where the database begins, and the number of further tables.
fn first_line(lines: &[String]) -> String {
    match lines {
        [] => "none told".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first}; then {} more", rest.len()),
    }
}

/// Returns the plans of all queries; if several cases differ only in clients, or there are several trials, the plan of the first.
pub fn plans_of(groups: &[CaseTrials<'_>]) -> Vec<Plans> {
    let mut found: Vec<Plans> = Vec::new();
    for group in groups {
        let Some(trial) = group.valid().find(|trial| !trial.plans.is_empty()) else { continue };
        let mut levels = group.case.levels.clone();
        levels.retain(|setting, _| setting != "layout.name" && !setting.starts_with("load."));
        let layout = &group.case.settings.layout.name;
        for (kind, lines) in &trial.plans {
            let place =
                found.iter().position(|plans| plans.levels == levels && plans.kind == *kind).unwrap_or_else(|| {
                    let (by_layout, shapes, shape) = (Vec::new(), Vec::new(), Vec::new());
                    found.push(Plans { levels: levels.clone(), kind: kind.clone(), by_layout, shapes, shape });
                    found.len() - 1
                });
            if !found[place].by_layout.iter().any(|(known, _)| known == layout) {
                found[place].by_layout.push((layout.clone(), lines.clone()));
            }
        }
    }
    let table = groups.first().map_or("", |group| table_of(&group.case.settings));
    for plans in &mut found {
        let mut numbers: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for (_, lines) in &plans.by_layout {
            let shape: Vec<String> = lines.iter().map(|line| shape_of(line, table)).collect();
            let next = numbers.len();
            if next == 0 {
                plans.shape.clone_from(&shape);
            }
            plans.shapes.push(*numbers.entry(shape).or_insert(next));
        }
    }
    found
}

fn table_of(settings: &Settings) -> &str {
    &settings.record.table
}

/// Returns a line without numbers and without words that begin with the name of the table.
fn shape_of(line: &str, table: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut shape = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(length.max(first.len_utf8()));
        let is_name = !table.is_empty() && word.starts_with(table);
        if !is_name && !word.starts_with(|c: char| c.is_ascii_digit()) {
            shape.push_str(word);
        }
        rest = behind;
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_compared_without_names_of_tables_and_numbers() {
        let shape = |line| shape_of(line, "qos");
        assert_eq!(shape("qos_values: ALL, about 2032000 rows"), shape("qos: ALL, about 17 rows"));
        assert_ne!(shape("qos: ALL, about 17 rows"), shape("qos: ref by PRIMARY, about 17 rows"));
        assert_eq!(shape("SCAN qos_main"), shape("SCAN qos"));
    }

    #[test]
    fn layouts_with_the_same_plan_stand_together() {
        let lines = |text: &str| vec![text.to_owned()];
        let plans = Plans {
            levels: [("workload.query".to_owned(), "Q2.1".into())].into(),
            kind: "query-1".to_owned(),
            by_layout: vec![
                ("wide".to_owned(), lines("qos: ALL")),
                ("star".to_owned(), lines("qos_values: ALL")),
                ("star-hot".to_owned(), vec!["qos_main: ref".to_owned(), "qos_secondary: eq_ref".to_owned()]),
            ],
            shapes: vec![0, 0, 1],
            shape: Vec::new(),
        };
        let expected = "workload.query = Q2.1: the plan differs between layouts: wide, star (qos: ALL); star-hot (qos_main: ref; \
                        then 1 more)";
        assert_eq!(plans.sentence(), expected);
        assert!(!plans.are_alike());
    }

    #[test]
    fn cases_with_the_same_plan_in_the_only_layout_stand_together() {
        let plans = |kind: &str, index: &str, rows: u64, plan: &str| Plans {
            levels: [("index".to_owned(), index.into()), ("rows".to_owned(), rows.into())].into(),
            kind: kind.to_owned(),
            by_layout: vec![("wide".to_owned(), vec![format!("{plan}, about {rows} rows")])],
            shapes: vec![0],
            shape: vec![plan.to_owned()],
        };
        let all = [
            plans("curve", "source", 10, "SEARCH"),
            plans("worst", "source", 10, "SCAN"),
            plans("curve", "source", 20, "SEARCH"),
            plans("worst", "source", 20, "SEARCH"),
            plans("worst", "none", 20, "SCAN"),
        ];
        let expected = [
            "curve: wide (SEARCH, about 10 rows) at index = source, rows = 10 and 20",
            "worst: wide (SCAN, about 10 rows) at index = source, rows = 10; index = none, rows = 20",
            "index = source, rows = 20, worst: wide (SEARCH, about 20 rows)",
        ];
        assert_eq!(sentences(&all), expected);
    }
}
