//! Intervals of quantiles from order statistics: free of any assumption about the distribution.
//!
//! Invariant: the ranks stay within 1..=n; an interval that would need more values than there are is refused.

use statrs::function::gamma::ln_gamma;

use super::summary::Interval;

/// The 1-based ranks whose values enclose a quantile, and the probability with which they do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileRanks {
    /// Rank of the lower end.
    pub low: usize,
    /// Rank of the upper end.
    pub high: usize,
    /// Probability that the quantile lies between them, at least the confidence asked for up to rounding of ranks.
    pub coverage: f64,
}

/// Ranks of a distribution-free interval of the `quantile` (0..1) of `n` independent values: the number of values below
/// the quantile is binomial. None when n is too small for the confidence.
pub fn quantile_ranks(n: usize, quantile: f64, confidence: f64) -> Option<QuantileRanks> {
    if n == 0 || !(quantile > 0.0 && quantile < 1.0) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    let (mut below, mut low, mut high) = (0.0, None, None);
    let mut cumulative = Vec::with_capacity(n + 1);
    for count in 0..=n {
        below += binomial_probability(n, count, quantile);
        cumulative.push(below);
        if low.is_none() && below >= tail {
            low = Some(count);
        }
        if below >= 1.0 - tail {
            high = Some(count + 1);
            break;
        }
    }
    let (low, high) = (low?, high?);
    if low == 0 || high > n {
        return None;
    }
    Some(QuantileRanks { low, high, coverage: cumulative[high - 1] - cumulative[low - 1] })
}

/// The interval itself; none when there are too few values for the confidence.
pub fn quantile_interval(values: &[f64], quantile: f64, confidence: f64) -> Option<Interval> {
    let ranks = quantile_ranks(values.len(), quantile, confidence)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Interval { low: sorted[ranks.low - 1], high: sorted[ranks.high - 1] })
}

fn binomial_probability(n: usize, count: usize, probability: f64) -> f64 {
    let (n, k) = (n as f64, count as f64);
    let ways = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    (ways + k * probability.ln() + (n - k) * (1.0 - probability).ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_values_for_an_extreme_quantile_are_refused() {
        assert_eq!(quantile_ranks(100, 0.99, 0.95), None);
        assert_eq!(quantile_ranks(5, 0.5, 0.95), None);
        assert!(quantile_ranks(6, 0.5, 0.95).is_some());
        assert_eq!(quantile_interval(&[], 0.5, 0.95), None);
    }

    #[test]
    fn the_interval_holds_the_values_of_its_ranks() {
        let values: Vec<f64> = (1..=40).rev().map(f64::from).collect();
        assert_eq!(quantile_interval(&values, 0.5, 0.95), Some(Interval { low: 14.0, high: 27.0 }));
    }
}
