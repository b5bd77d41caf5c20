//! Reports conflicts between transactions: operations that were sent again because of them, and what nodes of a cluster refused or interrupted.
//!
//! Main functions: `conflicts`, from the trials of a case to a finding; [`rows`], the rows of a table. Invariant: what the database does not count is not reported as zero.

use crate::finding::{ConflictsFinding, Findings};
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::units::show_number;

/// Headings of [`rows`].
pub const HEADINGS: [&str; 4] = ["Case", "conflict", "times", "of operations"];

/// What stands in the place of a message in the row of the nodes' own counters.
const BETWEEN_NODES: &str = "the nodes' own count: a transaction was refused, or interrupted and perhaps carried out later, because another node had changed the same rows first";

/// The report on conflicts.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.conflicts = conflicts(group),
    tables: |findings| {
        vec![TextTable { title: "Conflicts", headings: &HEADINGS, rows: rows(findings), ..TextTable::default() }]
    },
    ..Instrument::SILENT
};

/// Returns the conflicts of a case; `None` where there were none and nobody counted them.
fn conflicts(group: &CaseTrials<'_>) -> Option<ConflictsFinding> {
    let mut finding = ConflictsFinding::default();
    for trial in group.valid() {
        finding.scheduled += trial.operations.values().map(|seen| seen.scheduled).sum::<u64>();
        let Some(seen) = &trial.conflicts else { continue };
        for (message, count) in &seen.sent_again {
            *finding.sent_again.entry(message.clone()).or_default() += count;
        }
        finding.between_nodes = match (finding.between_nodes, seen.between_nodes) {
            (Some(sum), Some(count)) => Some(sum + count),
            (sum, count) => sum.or(count),
        };
    }
    (!finding.sent_again.is_empty() || finding.between_nodes.is_some()).then_some(finding)
}

/// Returns a row for each reason for which operations of a case were sent again, and one for what its nodes counted, if they counted any.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (case, found) in findings.cases.iter().filter_map(|case| Some((case, case.conflicts.as_ref()?))) {
        let mut row = |message: &str, count: u64| {
            let all = show_number(found.scheduled as f64);
            rows.push(vec![show_levels(&case.levels), message.to_owned(), show_number(count as f64), all]);
        };
        found.sent_again.iter().for_each(|(message, count)| row(&format!("sent again: {message}"), *count));
        found.between_nodes.iter().filter(|count| **count > 0).for_each(|count| row(BETWEEN_NODES, *count));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{ConflictsMeasurement, Measurement};
    use crate::trial::{Case, Levels, Settings, Trial};

    #[test]
    fn what_was_sent_again_is_added_up_and_what_nobody_counted_is_left_out() {
        let trial = |conflicts| {
            let trial = Trial::new(Case::new(Levels::new(), Settings::default()), 0, 1);
            Measurement { conflicts, ..Measurement::unmeasured(&trial) }
        };
        let seen = |count, between_nodes| {
            Some(ConflictsMeasurement { sent_again: [("deadlock".to_owned(), count)].into(), between_nodes })
        };
        let of = |trials: &[Measurement]| {
            let case = &trials[0].trial.case;
            conflicts(&CaseTrials { case, discarded: None, trials: trials.iter().collect() })
        };
        assert_eq!(of(&[trial(None)]), None);
        let found = of(&[trial(seen(3, None)), trial(seen(4, Some(5)))]).unwrap();
        assert_eq!((found.sent_again["deadlock"], found.between_nodes), (7, Some(5)));
        assert_eq!(of(&[trial(seen(1, None))]).unwrap().between_nodes, None);
    }
}
