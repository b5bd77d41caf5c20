//! The time limit of a run: `--budget`.
//!
//! Main type: [`Budget`]. Invariant: what ends or continues depends only on time and the repeat rule, never on what would be found.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Failure, Refusal};
use crate::study::plan;
use crate::study::{RepeatRule, Study};
use crate::units::{parse_duration, show_seconds};

/// Number of recent trials from which the duration of the next one is estimated: an earlier one may have filled tables.
const LOOKED_AT: usize = 10;
/// Largest number of trials of a case if time alone ends a run.
const TRIALS_MOST: u32 = 1_000;

/// The remaining time of a run.
pub struct Budget {
    given: Option<Duration>,
    begun: Instant,
    trial_begun: Option<Instant>,
    last: VecDeque<Duration>,
    is_used_up: bool,
}

impl Budget {
    /// Reads the time of the command line; without one, the time is unlimited.
    ///
    /// # Errors
    /// Fails if the text is no duration or the duration is zero.
    pub fn read(text: Option<&str>) -> Result<Self, Failure> {
        let given = text.map(parse_duration).transpose();
        let given = given.map_err(|fault| Failure::refused(fault.about("--budget")))?;
        if given.is_some_and(|given| given.is_zero()) {
            return Err(Failure::refused(Refusal::at("--budget", "no time is no run", "write as in --budget 10m")));
        }
        let begun = Instant::now();
        Ok(Budget { given, begun, trial_begun: None, last: VecDeque::new(), is_used_up: false })
    }

    /// Returns the study with the run's plan: with a budget, unsettled cases go on as long as there is time. A study with a fixed number of trials
    /// (`repeat.rule = "fixed"`, or equal smallest and largest numbers) keeps that number, and a search ends by itself.
    pub fn planned(&self, study: &Study) -> Study {
        let mut planned = study.clone();
        let repeat = &mut planned.repeat;
        let is_open = repeat.rule != RepeatRule::Fixed && repeat.least < repeat.most && study.goal.is_none();
        if self.given.is_some() && is_open {
            repeat.most = repeat.most.max(TRIALS_MOST);
        }
        planned
    }

    /// Returns whether another trial would end in time, judged by the last ones. The first trial always begins.
    pub fn begins(&mut self) -> bool {
        let now = Instant::now();
        if let Some(begun) = self.trial_begun.replace(now) {
            self.last.push_back(now - begun);
            if self.last.len() > LOOKED_AT {
                self.last.pop_front();
            }
        }
        let expected = self.last.iter().max().copied().unwrap_or_default();
        self.is_used_up =
            self.given.is_some_and(|given| !self.last.is_empty() && self.begun.elapsed() + expected > given);
        !self.is_used_up
    }

    /// Returns the closing note if the time ended the run; `None` otherwise.
    pub fn said(&self, study: &Study, outcomes: &plan::Outcomes, directory: &str) -> Option<String> {
        let given = self.given.filter(|_| self.is_used_up)?;
        let of = format!("note: the budget of {} ended the run", show_seconds(given.as_secs_f64()));
        let go_on = format!("go on with the same command and --resume {directory}");
        if study.goal.is_some() {
            return Some(format!("{of} while it was searching; {go_on}"));
        }
        let standings = plan::standings(study, plan::rounds_begun(study, outcomes), outcomes);
        let settled = standings.iter().filter(|one| one.settled == crate::study::repeat::Settled::Yes).count();
        Some(format!("{of}; {settled} of {} cases are settled; {go_on}", standings.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_begins_while_the_last_ones_tell_that_it_ends_in_time() {
        let mut budget = Budget::read(Some("400ms")).unwrap();
        let mut trials = 0;
        while budget.begins() && trials < 100 {
            trials += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
        // Eight fit, and fewer if this machine is busy; the one that would end too late is not begun.
        assert!((1..=7).contains(&trials) && budget.is_used_up, "{trials}");
        assert!(budget.begun.elapsed() < Duration::from_secs(20));
        let mut endless = Budget::read(None).unwrap();
        assert!((0..50).all(|_| endless.begins()));
        assert!(Budget::read(Some("0s")).is_err() && Budget::read(Some("soon")).is_err());
    }
}
