//! The repeat rules: when a case has been measured often enough.
//!
//! Main functions: [`are_settled`], by which both a run and a report decide, and [`stopping`]. Invariant: they depend
//! only on the rule and the trials' values, and a case is settled by `interval` exactly if the interval that is shown
//! for it is within the bound.

use super::{Repeat, RepeatRule, Study};
use crate::statistics::noise::{Series, Stopping, means};
use crate::statistics::standard_error_share;

/// Whether a case needs more trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The rule is met.
    Yes,
    /// More trials are needed.
    No,
    /// The rule is not met after the maximum number of trials.
    GaveUp,
}

/// Returns which of a study's cases meet the rule, by the values of their valid trials. All cases are judged together, because the noise of one is
/// estimated from the others too: a settled case can become open again if later trials of others show more noise.
pub fn are_settled(rule: &Repeat, cases: &[Series]) -> Vec<bool> {
    let is_enough = |case: &Series| case.len() as u64 >= u64::from(rule.least);
    match rule.rule {
        RepeatRule::Fixed => cases.iter().map(is_enough).collect(),
        RepeatRule::Interval => {
            let found = means(cases, Stopping::Chosen);
            let is_within = |mean: crate::statistics::noise::CaseMean| mean.half_width <= rule.within;
            cases.iter().zip(found).map(|(case, found)| is_enough(case) && found.is_some_and(is_within)).collect()
        }
        RepeatRule::StandardError => {
            let share = |case: &Series| standard_error_share(&case.iter().map(|(_, value)| *value).collect::<Vec<_>>());
            cases.iter().map(|case| is_enough(case) && share(case).is_some_and(|share| share < rule.within)).collect()
        }
    }
}

/// Returns whether the values of a study's trials decided how many there are.
pub fn stopping(study: &Study) -> Stopping {
    let repeat = &study.repeat;
    let is_fixed = repeat.rule == RepeatRule::Fixed || repeat.least >= repeat.most || study.goal.is_some();
    if is_fixed { Stopping::Fixed } else { Stopping::Chosen }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 5] = [95.0, 102.0, 110.0, 88.0, 105.0];

    fn repeat(rule: RepeatRule, within: f64) -> Repeat {
        Repeat { rule, within, least: 5, most: 8, discard_first: false }
    }

    fn series(values: &[f64]) -> Series {
        values.iter().enumerate().map(|(round, value)| (round as u32, *value)).collect()
    }

    fn is_settled(rule: &Repeat, values: &[f64]) -> bool {
        are_settled(rule, &[series(values)])[0]
    }

    #[test]
    fn the_rule_decides_and_the_least_trials_bound_it() {
        // Standard error 3.45 % of the mean by the population formula.
        assert!(is_settled(&repeat(RepeatRule::StandardError, 0.05), &VALUES));
        assert!(!is_settled(&repeat(RepeatRule::StandardError, 0.03), &VALUES));
        assert!(!is_settled(&repeat(RepeatRule::Fixed, 0.05), &VALUES[..4]));
        assert!(is_settled(&repeat(RepeatRule::Fixed, 0.05), &VALUES));
        let calm = VALUES.map(|value| 100.0 + (value - 100.0) / 10.0);
        assert!(is_settled(&repeat(RepeatRule::Interval, 0.05), &calm));
        assert!(!is_settled(&repeat(RepeatRule::Interval, 0.05), &calm[..4]));
    }

    #[test]
    fn a_case_alone_is_not_believed_to_be_as_calm_as_its_few_trials() {
        // The t-interval's half-width is 10.7 % of the mean; one in ten samples is that calm or calmer at 1.9 times that noise.
        assert!(!is_settled(&repeat(RepeatRule::Interval, 0.11), &VALUES));
        assert!(is_settled(&repeat(RepeatRule::Interval, 0.22), &VALUES));
    }

    #[test]
    fn a_calm_case_among_noisy_ones_is_open_until_it_is_known_to_be_calm() {
        let calm = VALUES.map(|value| 100.0 + (value - 100.0) / 5.0);
        let other = |shift: usize| {
            series(&[0, 1, 2, 3, 4].map(|at| VALUES[(at * 2 + shift) % 5] * (1.0 + 0.1 * ((at + shift) % 3) as f64)))
        };
        let among: Vec<Series> = std::iter::once(series(&calm)).chain((0..6).map(other)).collect();
        let rule = repeat(RepeatRule::Interval, 0.05);
        assert!(is_settled(&rule, &calm) && !are_settled(&rule, &among)[0]);
    }

    #[test]
    fn a_case_without_throughput_never_settles() {
        assert!(!is_settled(&repeat(RepeatRule::Interval, 0.05), &[]));
        assert!(!is_settled(&repeat(RepeatRule::Interval, 0.05), &[0.0; 8]));
        assert!(!is_settled(&repeat(RepeatRule::StandardError, 0.05), &[0.0; 5]));
    }
}
