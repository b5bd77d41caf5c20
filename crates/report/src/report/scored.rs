//! Takes the evidence for scoring from runs: the throughput of operations that write, and the times of operations that read, per alternative.
//!
//! Main function: [`evidence`]. Invariant: a case counts only if every alternative has a valid trial of it; omissions are reported in
//! notes.

use crate::imported::TimeKind;
use crate::measurement::Measurement;
use crate::report::analyse::{group, kind_name};
use crate::report::case_trials::CaseTrials;
use crate::report::factors::{QUERY, show_level, show_levels};
use crate::report::score::ScoreNote;
use crate::scoring::{Evidence, Measured};
use crate::study::{Study, goal};
use crate::trial::{Arrivals, Levels};

/// The factor of the alternatives, and the operations that write and read.
#[derive(Debug, Clone, PartialEq)]
pub struct Roles {
    /// The factor whose levels are the alternatives.
    pub factor: String,
    /// The factor whose levels are the queries. `None` stands for `workload.query` if it was varied, with its level `Q1.2` as case 2 of query
    /// `Q1`; otherwise each kind of operation is a query.
    pub query: Option<String>,
    /// The kinds of operation that write.
    pub writes: Vec<String>,
    /// The kinds of operation that read.
    pub reads: Vec<String>,
}

impl Default for Roles {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Roles {
            factor: "layout.name".to_owned(),
            query: None,
            writes: names(&["insert", "write", "update", "delete", "read-modify-write"]),
            reads: names(&["read", "select", "scan", "query"]),
        }
    }
}

/// The parts of a run that are scored.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a> {
    /// The name of the run.
    pub name: &'a str,
    /// The study of the run.
    pub study: &'a Study,
    /// The trials of the run.
    pub measurements: &'a [Measurement],
}

/// A value of a trial, with its alternative and case.
struct Found {
    is_write: bool,
    query: String,
    case: String,
    alternative: String,
    value: f64,
}

/// Returns the evidence from runs, and notes on omissions.
///
/// # Errors
/// A sentence with a remedy, if no run has the factor, or no operation writes or reads.
pub fn evidence(runs: &[Scored<'_>], roles: &Roles) -> Result<(Evidence, Vec<ScoreNote>), String> {
    let (mut found, mut notes, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    let mut alternatives: Vec<String> = Vec::new();
    for run in runs {
        let study = goal::unfold(run.study, run.measurements);
        let groups = group(&study, run.measurements);
        for group in &groups {
            let Some(level) = group.case.levels.get(&roles.factor) else { continue };
            let alternative = show_level(level);
            if !alternatives.contains(&alternative) {
                alternatives.push(alternative.clone());
            }
            take(run, runs.len() > 1, group, &alternative, roles, &mut found, &mut kinds);
            if group.case.settings.load.arrivals != Arrivals::Closed
                && group.valid().any(|trial| has(trial, &roles.writes))
            {
                note(&mut notes, ScoreNote::OpenLoop { run: run.name.to_owned() });
            }
        }
    }
    if alternatives.is_empty() {
        let factors: Vec<&str> =
            runs.iter().flat_map(|run| &run.study.factors).map(|factor| factor.setting.as_str()).collect();
        let known = if factors.is_empty() { "no factor".to_owned() } else { factors.join(", ") };
        return Err(format!("--factor: no case has a level of {}; the runs have {known}", roles.factor));
    }
    let mut evidence = Evidence { alternatives, ..Evidence::default() };
    for one in found {
        let cases = if one.is_write { &mut evidence.writing } else { &mut evidence.reading };
        let place =
            cases.iter().position(|known| known.query == one.query && known.case == one.case).unwrap_or(cases.len());
        if place == cases.len() {
            let values = vec![Vec::new(); evidence.alternatives.len()];
            cases.push(Measured { query: one.query, case: one.case, values });
        }
        if let Some(which) = evidence.alternatives.iter().position(|known| *known == one.alternative) {
            cases[place].values[which].push(one.value);
        }
    }
    drop_incomplete(&mut evidence, &mut notes);
    for (cases, what, option) in
        [(&evidence.writing, "write", "--write-operations"), (&evidence.reading, "read", "--read-operations")]
    {
        if cases.is_empty() {
            let known: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
            let left_out = if notes.is_empty() { String::new() } else { format!(" ({})", show(&notes)) };
            return Err(format!(
                "there is nothing to score of operations that {what}{left_out}; the runs have {}: give a run that has some, or name \
                 them with {option}",
                if known.is_empty() { "no valid trial".to_owned() } else { known.join(", ") }
            ));
        }
    }
    Ok((evidence, notes))
}

fn has(trial: &Measurement, kinds: &[String]) -> bool {
    trial.operations.keys().any(|kind| kinds.contains(kind))
}

fn note(notes: &mut Vec<ScoreNote>, note: ScoreNote) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

fn show(notes: &[ScoreNote]) -> String {
    notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Adds the values of a case's valid trials.
fn take(
    run: &Scored<'_>,
    several_runs: bool,
    group: &CaseTrials<'_>,
    alternative: &str,
    roles: &Roles,
    found: &mut Vec<Found>,
    kinds: &mut Vec<String>,
) {
    let mut rest: Levels = group.case.levels.clone();
    rest.remove(&roles.factor);
    let query = match &roles.query {
        Some(factor) => rest.remove(factor).map(|level| show_level(&level)),
        None => published_query(&mut rest),
    };
    let mut case = if rest.is_empty() { String::new() } else { show_levels(&rest) };
    if several_runs {
        case = if case.is_empty() { run.name.to_owned() } else { format!("{}: {case}", run.name) };
    }
    for trial in group.valid() {
        for kind in trial.operations.keys().filter(|kind| !kinds.contains(kind)).cloned().collect::<Vec<_>>() {
            kinds.push(kind);
        }
        let place = |is_write: bool, query: String, case: String, value: f64| Found {
            is_write,
            query,
            case,
            alternative: alternative.to_owned(),
            value,
        };
        let is_closed = group.case.settings.load.arrivals == Arrivals::Closed;
        if let Some(per_s) = written_per_s(trial, roles).filter(|_| is_closed) {
            found.push(place(true, String::new(), case.clone(), per_s));
        }
        for (kind, time_s) in read_times(trial, roles) {
            // If levels are the queries, several kinds of operation are cases of each.
            let (query, case) = match &query {
                Some(level) if trial.operations.len() > 1 => {
                    (level.clone(), format!("{case} {kind}").trim().to_owned())
                }
                Some(level) => (level.clone(), case.clone()),
                None => (kind, case.clone()),
            };
            found.push(place(false, query, case, time_s));
        }
    }
}

/// Returns the query to which a level of `workload.query` belongs: `Q1.2` is a case of query `Q1`, as the source numbers them; a level
/// without a number behind a point is a query of its own.
fn published_query(rest: &mut Levels) -> Option<String> {
    let level = show_level(rest.get(QUERY)?);
    match level.split_once('.') {
        Some((query, case)) if !query.is_empty() && case.starts_with(|first: char| first.is_ascii_digit()) => {
            Some(query.to_owned())
        }
        _ => {
            rest.remove(QUERY);
            Some(level)
        }
    }
}

/// Returns the records written per second, or the operations if their numbers of records are unknown; `None` without writing.
fn written_per_s(trial: &Measurement, roles: &Roles) -> Option<f64> {
    let writes =
        || trial.operations.iter().filter(|(kind, _)| is_role(kind, &roles.writes)).map(|(_, operation)| operation);
    let records = trial.imported.as_ref().is_none_or(|from| from.records_known);
    let count: u64 = writes().map(|operation| if records { operation.records } else { operation.completed }).sum();
    (count > 0 && trial.measured_s > 0.0).then(|| count as f64 / trial.measured_s)
}

/// Returns the mean time of each kind of operation that reads, in seconds: in a closed loop it is proportional to the execution time per
/// client, which the paper scores. Response times are used, or residence times if another tool states no others.
fn read_times(trial: &Measurement, roles: &Roles) -> Vec<(String, f64)> {
    let reads = trial.operations.iter().filter(|(kind, _)| is_role(kind, &roles.reads));
    let mean_s = |operation: &crate::measurement::OperationMeasurement| {
        [TimeKind::ResponseTime, TimeKind::ResidenceTime].into_iter().find_map(|kind| operation.mean_s(kind))
    };
    reads
        .filter_map(|(kind, operation)| {
            Some((kind_name(&trial.trial.case, kind), mean_s(operation).filter(|mean_s| *mean_s > 0.0)?))
        })
        .collect()
}

/// Returns whether a kind of operation has one of these names, or is one of several of that name, as `query-1` is of `query`.
fn is_role(kind: &str, names: &[String]) -> bool {
    let numbered = |name: &String| {
        kind.strip_prefix(name.as_str())
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
    };
    names.iter().any(|name| name == kind || numbered(name))
}

/// Removes the cases that some alternative lacks, with a note.
fn drop_incomplete(evidence: &mut Evidence, notes: &mut Vec<ScoreNote>) {
    let alternatives = evidence.alternatives.clone();
    for (cases, what) in [(&mut evidence.writing, "writing"), (&mut evidence.reading, "reading")] {
        cases.retain(|measured| {
            let without: Vec<String> = alternatives
                .iter()
                .zip(&measured.values)
                .filter(|(_, trials)| trials.is_empty())
                .map(|(alternative, _)| alternative.clone())
                .collect();
            let is_whole = without.is_empty();
            if !is_whole {
                let name: Vec<&str> = [measured.query.as_str(), measured.case.as_str()]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .collect();
                note(notes, ScoreNote::CaseLeftOut { of: what, case: name.join(", "), without });
            }
            is_whole
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_queries_are_cases_of_what_stands_before_their_number() {
        let query = |level: &str| {
            let mut levels: Levels = [(QUERY.to_owned(), level.into())].into();
            (published_query(&mut levels), levels.len())
        };
        assert_eq!(query("Q1.2-straight"), (Some("Q1".to_owned()), 1));
        assert_eq!(query("slow ones"), (Some("slow ones".to_owned()), 0));
        assert_eq!(query("ul.delay"), (Some("ul.delay".to_owned()), 0));
        assert_eq!(published_query(&mut Levels::new()), None);
    }
}
