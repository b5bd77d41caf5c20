//! Records on their way through a recorder: whether all arrived, how many a second, and how much was left to be written at the end.
//!
//! Main functions: [`recorded`], from the trials of a case to a finding; [`rows`], of its table. Invariant: without `[recorder]` there
//! is nothing to show, and what is wrong with any trial is shown.

use crate::finding::{Estimate, Findings, RecordedFinding};
use crate::measurement::{Measurement, RecordedMeasurement};
use crate::report::analyse::estimate;
use crate::report::factors::show_levels;
use crate::units::{show_bytes, show_number, show_seconds};

/// Headings of [`rows`].
pub const HEADINGS: [&str; 7] =
    ["Case", "acknowledged", "stored once, in order", "stored/s", "buffer at the end", "CPUs", "memory at most"];

/// What the trials of a case say; none where nothing was kept.
pub fn recorded(valid: &[&Measurement], all: &[&Measurement]) -> Option<RecordedFinding> {
    let kept: Vec<&RecordedMeasurement> = all.iter().filter_map(|trial| trial.recorded.as_ref()).collect();
    if kept.is_empty() {
        return None;
    }
    let sum = |pick: fn(&RecordedMeasurement) -> u64| kept.iter().map(|one| pick(one)).sum();
    let most = |pick: fn(&RecordedMeasurement) -> u64| kept.iter().map(|one| pick(one)).max().unwrap_or(0);
    let each = |pick: fn(&RecordedMeasurement) -> f64| {
        valid.iter().filter_map(|trial| trial.recorded.as_ref()).map(pick).collect::<Vec<f64>>()
    };
    let cpus: Vec<f64> =
        valid.iter().filter_map(|trial| trial.resources.as_ref()).map(|used| used.mean.recorder_cpu).collect();
    Some(RecordedFinding {
        acknowledged: sum(|one| one.acknowledged),
        missing: sum(|one| one.missing),
        surplus: sum(|one| one.surplus),
        out_of_order: sum(|one| one.out_of_order),
        quarantined: sum(|one| one.quarantined),
        stored_per_s: estimate(&each(|one| one.stored_per_s)),
        buffer_s: estimate(&each(|one| one.buffer_s)),
        spooled_max: most(|one| one.spooled_max),
        recorder_cpu: estimate(&cpus).mean.unwrap_or(0.0),
        memory_max_bytes: most(|one| one.memory_max_bytes),
    })
}

/// A row for each case.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let of_cases = findings.cases.iter().filter_map(|case| Some((case, case.recorded.as_ref()?)));
    let row = |(case, recorded): (&crate::finding::CaseFinding, &RecordedFinding)| {
        let has_recorder = recorded.memory_max_bytes > 0;
        let or_none = |text: String| if has_recorder { text } else { "-".to_owned() };
        vec![
            show_levels(&case.levels),
            show_number(recorded.acknowledged as f64),
            verdict(recorded),
            show(&recorded.stored_per_s, show_number),
            show(&recorded.buffer_s, show_seconds),
            or_none(format!("{:.2}", recorded.recorder_cpu)),
            or_none(show_bytes(recorded.memory_max_bytes as f64)),
        ]
    };
    of_cases.map(row).collect()
}

/// Whether the promise was kept.
fn verdict(recorded: &RecordedFinding) -> String {
    let wrong = [
        (recorded.missing, "missing"),
        (recorded.surplus, "too many"),
        (recorded.out_of_order, "out of order"),
        (recorded.quarantined, "quarantined"),
    ];
    let wrong: Vec<String> =
        wrong.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if wrong.is_empty() { "all".to_owned() } else { wrong.join(", ") }
}

/// Mean and interval.
fn show(estimate: &Estimate, unit: impl Fn(f64) -> String) -> String {
    let mean = estimate.mean.map_or("-".to_owned(), &unit);
    match estimate.ci95 {
        Some([low, high]) => format!("{mean} [{}, {}]", unit(low.max(0.0)), unit(high)),
        None => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Case, Levels, Settings, Trial};

    fn trial(stored_per_s: f64, missing: u64) -> Measurement {
        let trial = Trial::new(Case::new(Levels::new(), Settings::default()), 0, 1);
        let recorded = RecordedMeasurement { acknowledged: 10, stored_per_s, missing, ..Default::default() };
        Measurement { recorded: Some(recorded), ..Measurement::unmeasured(&trial) }
    }

    #[test]
    fn what_is_missing_in_an_invalid_trial_is_told_and_its_figures_are_not() {
        let (good, bad) = (trial(100.0, 0), trial(900.0, 2));
        let finding = recorded(&[&good], &[&good, &bad]).unwrap();
        assert_eq!((finding.acknowledged, finding.missing, finding.stored_per_s.mean), (20, 2, Some(100.0)));
        assert_eq!(verdict(&finding), "2 missing");
        assert_eq!(verdict(&recorded(&[&good], &[&good]).unwrap()), "all");
        let mut without = trial(1.0, 0);
        without.recorded = None;
        assert_eq!(recorded(&[&without], &[&without]), None);
    }
}
