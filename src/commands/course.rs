//! The course of a run: what became of its trials so far, and which ones follow.
//!
//! Main type: [`Course`]. A trial that was lost with an agent is driven once more, and nothing of the lost attempt counts. Invariant: a trial is attempted a
//! bounded number of times; the last attempt counts, whatever became of it.

use std::collections::{BTreeMap, VecDeque};

use crate::measurement::Measurement;
use crate::reason::Reason;
use crate::study::plan::{self, Outcomes};
use crate::study::repeat::Settled;
use crate::study::{Study, goal};
use crate::trial::Trial;

/// Number of attempts at a trial that may be lost before one counts.
const LOST_MOST: u32 = 3;

/// What became of the trials of a run so far.
pub struct Course {
    /// Whether earlier trials of this run were read.
    pub is_resumed: bool,
    /// Outcomes of the trials.
    pub outcomes: Outcomes,
    /// The trials themselves, if a search goes on from them.
    searched: Vec<Measurement>,
    attempts: Attempts,
}

impl Course {
    /// Takes up what is known from earlier trials of the run.
    pub fn of(study: &Study, finished: Vec<Measurement>) -> Self {
        let outcomes = finished.iter().map(outcome_of).collect();
        let (is_resumed, attempts) = (!finished.is_empty(), Attempts::of(&finished));
        Course { is_resumed, outcomes, searched: if study.goal.is_some() { finished } else { Vec::new() }, attempts }
    }

    /// Returns the trials of a round; `None` if nothing is left to do.
    pub fn open_round(&self, study: &Study, round: u32) -> Option<VecDeque<Trial>> {
        let trials = match &study.goal {
            Some(goal) => goal::open_round(study, goal, round, &self.searched),
            None => plan::open_round(study, round, &self.outcomes),
        };
        let is_over = trials.is_empty() && (study.goal.is_some() || self.left(study, round) == 0);
        (!is_over).then(|| trials.into())
    }

    /// Returns the smallest number of trials that are still needed.
    pub fn left(&self, study: &Study, round: u32) -> u64 {
        if let Some(goal) = &study.goal {
            return goal::open_round(study, goal, round, &self.searched).len() as u64;
        }
        let least = study.repeat.least + plan::first_counted_round(study);
        let of_case = |standing: &plan::Standing| {
            let done =
                standing.values.len() as u32 + standing.invalid + plan::first_counted_round(study).min(round + 1);
            match standing.settled {
                Settled::No => u64::from(least.saturating_sub(done).max(1)),
                Settled::Yes | Settled::GaveUp => 0,
            }
        };
        let begun = plan::rounds_begun(study, &self.outcomes).max(round + 1);
        plan::standings(study, begun, &self.outcomes).iter().map(of_case).sum()
    }

    /// Returns whether this was an attempt that was lost and is made once more; it is marked as such then.
    pub fn is_lost(&mut self, measurement: &mut Measurement) -> bool {
        self.attempts.is_lost(measurement)
    }

    /// Takes in what became of a trial.
    pub fn take_in(&mut self, study: &Study, measurement: &Measurement) {
        self.outcomes.extend([outcome_of(measurement)]);
        if study.goal.is_some() {
            self.searched.push(measurement.clone());
        }
    }
}

fn outcome_of(measurement: &Measurement) -> (String, Option<f64>) {
    (measurement.trial.id.clone(), measurement.is_valid().then(|| measurement.settles_by()))
}

/// The attempts that were lost so far, by case and round of the trial.
#[derive(Debug, Default)]
struct Attempts(BTreeMap<(String, u32), u32>);

impl Attempts {
    /// Returns the lost attempts among the measurements of a run.
    fn of(measurements: &[Measurement]) -> Self {
        let mut lost = Attempts::default();
        for measurement in measurements.iter().filter(|measurement| measurement.trial.lost_attempt.is_some()) {
            *lost.of_trial(measurement) += 1;
        }
        lost
    }

    fn of_trial(&mut self, measurement: &Measurement) -> &mut u32 {
        self.0.entry((measurement.trial.case.id.clone(), measurement.trial.round)).or_default()
    }

    fn is_lost(&mut self, measurement: &mut Measurement) -> bool {
        let has_lost = measurement.invalid_because.iter().any(|reason| matches!(reason, Reason::AgentLost { .. }));
        let lost = self.of_trial(measurement);
        if !has_lost || *lost >= LOST_MOST {
            return false;
        }
        *lost += 1;
        measurement.trial = measurement.trial.lost(*lost);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Case, Trial};

    #[test]
    fn a_trial_is_attempted_a_bounded_number_of_times_also_in_a_run_that_goes_on() {
        let trial = Trial::new(Case::new(Default::default(), Default::default()), 2, 7);
        let measured = |why: Option<Reason>| Measurement {
            invalid_because: why.into_iter().collect(),
            ..Measurement::unmeasured(&trial)
        };
        let reason = Reason::AgentLost { agent: 1, of: 2, host: None, why: "it was killed".to_owned() };
        let mut attempts = Attempts::default();
        let mut stored = Vec::new();
        for _ in 0..2 {
            let mut lost = measured(Some(reason.clone()));
            assert!(attempts.is_lost(&mut lost));
            stored.push(lost);
        }
        assert_eq!(stored.iter().map(|lost| lost.trial.lost_attempt).collect::<Vec<_>>(), [Some(1), Some(2)]);
        assert!(stored[0].trial.id != stored[1].trial.id && stored[0].trial.id != trial.id);
        assert!(!attempts.is_lost(&mut measured(Some(Reason::RecorderNotStopped {}))), "another reason");
        let mut resumed = Attempts::of(&stored);
        assert!(resumed.is_lost(&mut measured(Some(reason.clone()))));
        let mut last = measured(Some(reason));
        assert!(!resumed.is_lost(&mut last) && last.trial == trial, "the fourth attempt counts");
    }
}
