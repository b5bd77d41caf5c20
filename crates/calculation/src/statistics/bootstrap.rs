//! The bias-corrected and accelerated bootstrap interval (Efron 1987; Efron and Tibshirani 1993, chapter 14).
//!
//! Resampling is left to the caller, who knows what a trial is. Invariant: the interval does not depend on the order of replicates.

use super::student::{normal_probability, normal_quantile};
use super::summary::Interval;

/// A bootstrap interval and the corrections that led to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bca {
    /// The interval.
    pub interval: Interval,
    /// Bias correction z0: how far the estimate lies from the median of the replicates, in normal units.
    pub bias: f64,
    /// Acceleration a: how the standard error changes with the estimate.
    pub acceleration: f64,
    /// Shares of the replicates at which the interval's ends were read.
    pub shares: [f64; 2],
}

/// Share of the estimate below which differences are rounding.
const ROUNDING: f64 = 1e-12;

/// Returns the interval of an estimate from replicates of it.
///
/// `influences` is the influence of each single value on the estimate: (mean of the jackknife - the estimate without the
/// value) for one sample; with several samples each divided by its own sample's size times (size - 1). Only their
/// proportions matter. `None` without replicates or when one is not finite.
pub fn bca(replicates: &[f64], estimate: f64, influences: &[f64], confidence: f64) -> Option<Bca> {
    if replicates.is_empty() || replicates.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = replicates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let margin = estimate.abs() * ROUNDING;
    let below = sorted.partition_point(|value| *value < estimate - margin) as f64;
    let upto = sorted.partition_point(|value| *value <= estimate + margin) as f64;
    let count = sorted.len() as f64;
    // An estimate outside all replicates would make the correction infinite.
    let share = ((below + upto) / 2.0 / count).clamp(0.5 / count, 1.0 - 0.5 / count);
    let bias = normal_quantile(share);
    let squares: f64 = influences.iter().map(|influence| influence.powi(2)).sum();
    let cubes: f64 = influences.iter().map(|influence| influence.powi(3)).sum();
    let acceleration = if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 };
    let corrected = |tail: f64| {
        let shifted = bias + normal_quantile(tail);
        normal_probability(bias + shifted / (1.0 - acceleration * shifted))
    };
    let shares = [corrected((1.0 - confidence) / 2.0), corrected((1.0 + confidence) / 2.0)];
    let interval = Interval { low: sorted_quantile(&sorted, shares[0]), high: sorted_quantile(&sorted, shares[1]) };
    Some(Bca { interval, bias, acceleration, shares })
}

/// Returns the quantile of ascending values by linear interpolation (Hyndman and Fan 1996, type 7); not a number when empty.
pub fn sorted_quantile(sorted: &[f64], quantile: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = quantile.clamp(0.0, 1.0) * last as f64;
    let lower = place.floor() as usize;
    let upper = (lower + 1).min(last);
    sorted[lower] + (sorted[upper] - sorted[lower]) * (place - lower as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_between_neighbours() {
        assert_eq!(sorted_quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(sorted_quantile(&[5.0], 0.1), 5.0);
        assert!(sorted_quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn symmetric_replicates_without_skew_give_the_plain_percentiles() {
        let replicates: Vec<f64> = (0..=1000).map(f64::from).collect();
        let interval = bca(&replicates, 500.0, &[-1.0, 1.0], 0.95).unwrap().interval;
        assert!((interval.low - 25.0).abs() < 0.01 && (interval.high - 975.0).abs() < 0.01, "{interval:?}");
    }

    #[test]
    fn nothing_is_said_without_replicates_or_with_broken_ones() {
        assert_eq!(bca(&[], 1.0, &[1.0], 0.95), None);
        assert_eq!(bca(&[1.0, f64::NAN], 1.0, &[1.0], 0.95), None);
        let still = bca(&[2.0, 2.0], 2.0, &[0.0, 0.0], 0.95).unwrap();
        assert_eq!(still.interval, Interval { low: 2.0, high: 2.0 });
    }
}
