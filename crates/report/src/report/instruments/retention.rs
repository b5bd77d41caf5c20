//! Reports what it costs to throw old readings away while others come in: how long it took, whether it kept up, and the response times of the other operations meanwhile.
//!
//! Main functions: `retention`, from the trials of a case to a finding; `verdicts`, its interpretation; [`steps`] and [`operations`], the rows of tables. Invariant: a case whose readings all stay has
//! nothing to show.

use crate::finding::{Findings, Found, RetentionFinding, Verdict};
use crate::measurement::Measurement;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::report::instruments::evolution::{self, Kinds, operations_of, show_meanwhile};
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::units::{show_number, show_seconds};

/// The changes in the order in which they are reported, with their names in a sentence.
const ORDER: Kinds = &[("delete", "deleted"), ("drop", "dropped"), ("add", "added")];

/// Headings of [`steps`].
pub const STEPS: [&str; 8] =
    ["Case", "change", "n", "mean", "longest", "rows each", "part of the time", "behind at the end"];

/// The report on retention.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.retention = retention(&group.valid().collect::<Vec<_>>(), group),
    verdicts: |said| said.groups.iter().filter_map(verdict).collect(),
    tables: |findings| {
        let (title, headings) =
            ("Operations intended while readings were thrown away, and outside", &evolution::OPERATIONS[..]);
        vec![
            TextTable { title: "Old readings", headings: &STEPS, rows: steps(findings), ..TextTable::default() },
            TextTable { title, headings, rows: operations(findings), ..TextTable::default() },
        ]
    },
    ..Instrument::SILENT
};

/// Returns the finding on the retention of a case's valid trials; `None` where all readings stay.
fn retention(valid: &[&Measurement], group: &CaseTrials<'_>) -> Option<RetentionFinding> {
    let of = |trial: &&Measurement| trial.retention.clone();
    let meanwhile = evolution::evolution(valid, &group.trials, |trial| Some(&trial.retention.as_ref()?.meanwhile))?;
    let settings = group.case.settings.retention.as_ref()?;
    let mut finding = RetentionFinding { meanwhile, ..RetentionFinding::default() };
    finding.by = serde_json::to_value(settings.by).ok()?.as_str()?.to_owned();
    finding.step_s = settings.step_ns as f64 / 1e9;
    let (mut rows, mut took_s) = (0, 0.0);
    for retention in valid.iter().filter_map(of) {
        finding.steps += retention.steps;
        rows += retention.retired;
        took_s += retention.took_s;
        finding.behind_s = finding.behind_s.max(retention.behind_s);
    }
    let measured_s: f64 = valid.iter().map(|trial| trial.measured_s).sum();
    finding.busy = if measured_s > 0.0 { (took_s / measured_s).min(1.0) } else { 0.0 };
    finding.rows = finding.meanwhile.changes.contains_key("delete").then_some(rows);
    Some(finding)
}

/// Returns the change by which a case retires readings.
fn retiring(finding: &RetentionFinding) -> Option<(&'static str, &'static str, &crate::finding::ChangeFinding)> {
    ORDER[..2].iter().find_map(|(what, words)| Some((*what, *words, finding.meanwhile.changes.get(*what)?)))
}

/// Returns the verdict on a case whose readings do not all stay.
fn verdict(group: &CaseTrials<'_>) -> Option<Verdict> {
    let valid: Vec<&Measurement> = group.valid().collect();
    let finding = retention(&valid, group).filter(|_| !valid.is_empty())?;
    let (_, words, change) = retiring(&finding)?;
    let label = show_levels(&group.case.levels);
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let step = show_seconds(finding.step_s);
    let of = match finding.rows {
        Some(rows) => {
            let each = rows as f64 / finding.steps.max(1) as f64;
            format!("steps of {step} ({} readings on average) are {words}", show_number(each.round()))
        }
        None => format!("partitions of {step} are {words}"),
    };
    let first = format!(
        "{label}{of} in {} on average, at the longest in {} ({} times)",
        show_seconds(change.mean_s),
        show_seconds(change.max_s),
        show_number(finding.steps as f64)
    );
    let subject = if finding.rows.is_some() { "while readings were" } else { "while partitions were" };
    let meanwhile =
        show_meanwhile(&finding.meanwhile, &valid, |trial| Some(&trial.retention.as_ref()?.meanwhile), ORDER);
    let mut parts: Vec<String> = meanwhile.map(|told| format!("{subject} {told}")).into_iter().collect();
    parts.push(match finding.behind_s {
        0.0 => "it kept up with what came in".to_owned(),
        behind_s => format!(
            "it did not keep up: at the end {} of the data's time were due and still there",
            show_seconds(behind_s)
        ),
    });
    let found = Found::Retention {
        levels: group.case.levels.clone(),
        steps: finding.steps,
        step_took_s: (change.count > 0).then_some(change.mean_s),
        behind_s: finding.behind_s,
    };
    Some(Verdict::new(found, first).and(parts.join("; ")))
}

/// Returns a row for each kind of change of each case.
pub fn steps(findings: &Findings) -> Vec<Vec<String>> {
    let mut table = Vec::new();
    for case in &findings.cases {
        let Some(finding) = &case.retention else { continue };
        let known = ORDER.iter().filter_map(|(what, _)| Some((*what, finding.meanwhile.changes.get(*what)?)));
        for (what, change) in known {
            let rows = finding.rows.filter(|_| what == "delete").map(|rows| rows as f64 / finding.steps.max(1) as f64);
            let is_retiring = what != "add";
            let or_none = |text: String| if is_retiring { text } else { "-".to_owned() };
            table.push(vec![
                show_levels(&case.levels),
                what.to_owned(),
                show_number(change.count as f64),
                show_seconds(change.mean_s),
                show_seconds(change.max_s),
                rows.map_or("-".to_owned(), |rows| show_number(rows.round())),
                or_none(format!("{:.0} %", 100.0 * finding.busy)),
                or_none(show_seconds(finding.behind_s)),
            ]);
        }
    }
    table
}

/// Returns rows for each kind of operation of each case: while readings were thrown away, and outside.
pub fn operations(findings: &Findings) -> Vec<Vec<String>> {
    let cases = findings.cases.iter();
    let told = cases.filter_map(|case| Some((show_levels(&case.levels), &case.retention.as_ref()?.meanwhile)));
    operations_of(told, ORDER)
}
