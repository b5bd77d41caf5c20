//! Recognises cases that had hardly begun when they were measured: a longer `load.warmup` would change their figures.
//!
//! Main function: [`is_cold`]. Invariant: only closed loops are judged, whose clients have the next operation ready as soon as one is done.

use crate::finding::Note;
use crate::measurement::Measurement;
use crate::report::case_trials::CaseTrials;
use crate::trial::Arrivals;

/// The number of parts of the measured phase; the first, of at least one interval (a tenth of a second or longer), is compared with the rest.
const FIRST_PART: usize = 5;
/// The first part is slow if its operations per second are below this share of the rest.
const SLOW_SHARE: f64 = 0.5;
/// The number of standard deviations of a Poisson count by which the first part must be below that share.
const SURE_SD: f64 = 3.0;

/// Returns whether more than half of a case's valid trials had hardly begun: they completed fewer operations than there are clients, or in the
/// first fifth (or tenth of a second) fewer than half as many operations per second as in the rest.
pub fn is_cold(group: &CaseTrials<'_>) -> bool {
    let load = &group.case.settings.load;
    let trials: Vec<&Measurement> = group.valid().collect();
    let is_spoken_of = load.arrivals == Arrivals::Closed && trials.iter().all(|trial| trial.imported.is_none());
    let cold = trials.iter().filter(|trial| has_hardly_begun(trial, load.clients) || has_slow_start(trial)).count();
    is_spoken_of && 2 * cold > trials.len()
}

/// Returns the note that names such cases.
pub fn note(groups: &[CaseTrials<'_>]) -> Option<Note> {
    let cases: Vec<_> = groups.iter().filter(|group| is_cold(group)).map(|group| group.case.levels.clone()).collect();
    (!cases.is_empty()).then_some(Note::Cold { cases })
}

fn has_hardly_begun(trial: &Measurement, clients: u32) -> bool {
    trial.completed() < u64::from(clients)
}

/// Returns whether the first part is slow. Trials with schema changes or events are exempt: these slow the load whenever they occur.
fn has_slow_start(trial: &Measurement) -> bool {
    let count = (trial.series.len() / FIRST_PART).max(1);
    if count >= trial.series.len() || trial.evolution.is_some() || trial.retention.is_some() || trial.events.is_some() {
        return false;
    }
    let (first, rest) = trial.series.split_at(count);
    let done = |part: &[crate::measurement::IntervalMeasurement]| -> f64 {
        part.iter().map(|interval| interval.completed as f64).sum()
    };
    let first_s = first.last().map_or(0.0, |interval| interval.end_s);
    let rest_s = rest.last().map_or(0.0, |interval| interval.end_s) - first_s;
    let half = SLOW_SHARE * done(rest) / rest_s * first_s;
    rest_s > 0.0 && done(first) < half - SURE_SD * half.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{IntervalMeasurement, OperationMeasurement};
    use crate::trial::{Case, Settings, Trial};

    /// Returns whether a case is cold whose trials completed these numbers of operations in their intervals.
    fn is_cold_with(trials: &[&[u64]], clients: u32) -> bool {
        let mut settings = Settings::default();
        settings.load.clients = clients;
        let case = Case::new(Default::default(), settings);
        let measured = |counts: &&[u64]| {
            let interval = |(place, completed): (usize, &u64)| IntervalMeasurement {
                end_s: 0.1 * (place + 1) as f64,
                completed: *completed,
                ..Default::default()
            };
            let completed = counts.iter().sum();
            let insert = OperationMeasurement { scheduled: completed, completed, ..Default::default() };
            Measurement {
                operations: [("insert".to_owned(), Box::new(insert))].into(),
                series: counts.iter().enumerate().map(interval).collect(),
                ..Measurement::unmeasured(&Trial::new(case.clone(), 0, 0))
            }
        };
        let trials: Vec<Measurement> = trials.iter().map(measured).collect();
        is_cold(&CaseTrials { case: &case, discarded: None, trials: trials.iter().collect() })
    }

    #[test]
    fn a_beginning_is_told_from_what_lasts() {
        let (warm, cold, hardly): (&[u64], &[u64], &[u64]) =
            (&[95, 100, 105, 100, 100], &[20, 100, 100, 100, 100], &[0, 0, 0, 0, 30]);
        assert!(is_cold_with(&[cold, cold, warm], 4) && !is_cold_with(&[cold, warm], 4));
        assert!(is_cold_with(&[&[2, 83, 2264, 3723]], 64), "InnoDB behind the making of 64 tables");
        assert!(is_cold_with(&[hardly], 64), "half of the clients never had an answer");
        assert!(!is_cold_with(&[&[1, 5, 4, 5, 5]], 4), "few operations may be few by chance");
        assert!(!is_cold_with(&[warm, warm], 400) && !is_cold_with(&[&[500]], 4));
        assert!(!is_cold_with(&[], 4), "nothing was measured");
    }
}
