//! The repeat rules: when a case has been measured often enough.
//!
//! Main function: [`is_settled`]. Invariant: it depends on the rule and the throughputs alone.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Repeat, RepeatRule};

/// Whether a case needs more trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The rule is met.
    Yes,
    /// More trials are needed.
    No,
    /// The rule is not met after the most trials allowed.
    GaveUp,
}

/// Judges the throughputs of a case's valid trials, in any unit. Without any, the answer is [`Settled::No`].
pub fn is_settled(rule: &Repeat, throughputs: &[f64]) -> Settled {
    let count = u32::try_from(throughputs.len()).unwrap_or(u32::MAX);
    let is_met = match rule.rule {
        RepeatRule::Fixed => true,
        RepeatRule::Interval => interval_half_width(throughputs).is_some_and(|share| share <= rule.within),
        RepeatRule::StandardError => standard_error(throughputs).is_some_and(|share| share < rule.within),
    };
    if count >= rule.least && is_met {
        Settled::Yes
    } else if count >= rule.most {
        Settled::GaveUp
    } else {
        Settled::No
    }
}

/// Half-width of the 95 % t-interval over the mean; none for fewer than two values or a mean that is not above zero.
pub fn interval_half_width(values: &[f64]) -> Option<f64> {
    let (mean, sum_of_squares, count) = moments(values)?;
    if values.len() < 2 {
        return None;
    }
    let deviation = (sum_of_squares / (count - 1.0)).sqrt();
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(0.975);
    Some(t * deviation / count.sqrt() / mean)
}

/// Standard error over the mean with the population's standard deviation, as Ruottinen 2015 (section 4.4) has it;
/// none without values or for a mean that is not above zero.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let (mean, sum_of_squares, count) = moments(values)?;
    Some((sum_of_squares / count).sqrt() / count.sqrt() / mean)
}

/// Mean, sum of squared deviations, count.
fn moments(values: &[f64]) -> Option<(f64, f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let sum_of_squares = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean.is_finite() && mean > 0.0).then_some((mean, sum_of_squares, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 5] = [95.0, 102.0, 110.0, 88.0, 105.0];

    fn repeat(rule: RepeatRule, within: f64) -> Repeat {
        Repeat { rule, within, least: 5, most: 8, discard_first: false }
    }

    #[test]
    fn both_bounds_agree_with_values_computed_elsewhere() {
        assert!((standard_error(&VALUES).unwrap() - 0.034525353003264134).abs() < 1e-12);
        assert!((interval_half_width(&VALUES).unwrap() - 0.10717221962357319).abs() < 1e-9);
    }

    #[test]
    fn the_rule_decides_and_the_least_and_most_trials_bound_it() {
        assert_eq!(is_settled(&repeat(RepeatRule::StandardError, 0.05), &VALUES), Settled::Yes);
        assert_eq!(is_settled(&repeat(RepeatRule::StandardError, 0.03), &VALUES), Settled::No);
        assert_eq!(is_settled(&repeat(RepeatRule::Interval, 0.05), &VALUES), Settled::No);
        assert_eq!(is_settled(&repeat(RepeatRule::Interval, 0.11), &VALUES), Settled::Yes);
        assert_eq!(is_settled(&repeat(RepeatRule::Interval, 0.11), &VALUES[..4]), Settled::No);
        assert_eq!(is_settled(&repeat(RepeatRule::Fixed, 0.05), &VALUES[..4]), Settled::No);
        assert_eq!(is_settled(&repeat(RepeatRule::Fixed, 0.05), &VALUES), Settled::Yes);
        let many = [&VALUES[..], &VALUES[..3]].concat();
        assert_eq!(is_settled(&repeat(RepeatRule::Interval, 0.01), &many), Settled::GaveUp);
    }

    #[test]
    fn a_case_without_throughput_never_settles() {
        assert_eq!(is_settled(&repeat(RepeatRule::Interval, 0.05), &[]), Settled::No);
        assert_eq!(is_settled(&repeat(RepeatRule::Interval, 0.05), &[0.0; 8]), Settled::GaveUp);
        assert_eq!(is_settled(&repeat(RepeatRule::StandardError, 0.05), &[0.0; 5]), Settled::No);
    }
}
