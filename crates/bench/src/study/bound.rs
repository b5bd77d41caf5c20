//! The bound that a search for the load line looks for, and the number of trials that it takes.

use super::{Goal, Study};
use crate::queueing::load_line::{Bound, TrialLength, trials_most};
use crate::trial::{Length, Settings};

/// Minimum number of operations that the first trial should have.
const OPERATIONS_LEAST: f64 = 50.0;
/// Minimum and maximum number of trials that confirm a line, whatever `[repeat]` says: ten are needed to exclude that three in ten are lost.
const CONFIRMATIONS: (u32, u32) = (10, 30);
/// Maximum number of trials that the search of a rehearsal may take: about half a minute of the shortest ones.
const REHEARSED_MOST: usize = 50;

/// Returns the bound that is searched for in a case.
pub fn bound_of(study: &Study, goal: &Goal, settings: &Settings) -> Bound {
    let replay = settings.load.replay.map(|replay| replay.own_rate_per_s());
    let least = match settings.load.length {
        Length::Seconds(seconds) => OPERATIONS_LEAST / seconds,
        Length::Operations(_) | Length::OperationsPerClient(_) => 1.0,
    };
    Bound {
        quantile: goal.quantile,
        below_s: goal.below_s,
        within: goal.within,
        confirmations: confirmations(study) as usize,
        trials_most: if study.quick { REHEARSED_MOST } else { trials_most(confirmations(study) as usize) },
        start_per_s: study
            .base
            .load
            .rate_per_s
            .or(replay)
            .unwrap_or((1.0 / goal.below_s).clamp(1.0, 1000.0).max(least)),
        length: match settings.load.length {
            _ if let Some(seconds) = settings.load.replay.and_then(|replay| replay.least_s) => {
                TrialLength::Seconds(seconds)
            }
            Length::Seconds(seconds) => TrialLength::Seconds(seconds),
            Length::Operations(operations) => TrialLength::Operations(operations as f64),
            Length::OperationsPerClient(each) => {
                TrialLength::Operations(each as f64 * f64::from(settings.load.clients))
            }
        },
    }
}

/// Returns the number of trials that confirm a line.
pub fn confirmations(study: &Study) -> u32 {
    study.repeat.least.clamp(CONFIRMATIONS.0, CONFIRMATIONS.1)
}

/// Returns the number of trials of a search: the minimum for a line, and the maximum.
pub fn trials(study: &Study, goal: &Goal) -> (u64, u64) {
    let bound = bound_of(study, goal, &study.base);
    (bound.confirmations as u64 + 3, bound.trials_most as u64)
}
