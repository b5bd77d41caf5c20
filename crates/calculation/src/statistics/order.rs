//! Intervals of quantiles from order statistics: free of any assumption about the distribution.
//!
//! Invariant: the ranks stay within 1..=n; an interval that would need more values than there are is `None`.

use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;

use super::summary::Interval;

/// The 1-based ranks whose values enclose a quantile, and the probability that they do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileRanks {
    /// Rank of the lower end.
    pub low: usize,
    /// Rank of the upper end.
    pub high: usize,
    /// Probability that the quantile lies between them, at least the requested confidence up to rounding of ranks.
    pub coverage: f64,
}

/// Returns the ranks of a distribution-free interval of the `quantile` (0..1) of `n` independent values: the number of values below
/// the quantile is binomial. `None` when n is too small for the confidence.
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

/// Returns the interval itself; `None` when there are too few values for the confidence.
pub fn quantile_interval(values: &[f64], quantile: f64, confidence: f64) -> Option<Interval> {
    let ranks = quantile_ranks(values.len(), quantile, confidence)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Interval { low: sorted[ranks.low - 1], high: sorted[ranks.high - 1] })
}

/// Returns the upper end of the one-sided interval of a probability: an event seen `count` times in `n` has at most this probability, with that confidence (Clopper and Pearson
/// 1934). For a count of 0 this is 1 - (1 - confidence)^(1/n), about 3/n at 95 %: the rule of three. 1 where `n` is 0.
pub fn share_at_most(n: u64, count: u64, confidence: f64) -> f64 {
    if count >= n {
        return 1.0;
    }
    let (a, b) = (count as f64 + 1.0, (n - count) as f64);
    // The probability at which so few events have a probability of 1 - confidence; found by bisection.
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if beta_reg(a, b, middle) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Number of bisections after which no number is left between the two ends.
const HALVINGS: u32 = 60;

fn binomial_probability(n: usize, count: usize, probability: f64) -> f64 {
    let (n, k) = (n as f64, count as f64);
    let ways = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    (ways + k * probability.ln() + (n - k) * (1.0 - probability).ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_happened_has_at_most_about_three_of_n() {
        for n in [1, 10, 100, 300, 10_000] {
            let exact = 1.0 - 0.05_f64.powf(1.0 / n as f64);
            assert!((share_at_most(n, 0, 0.95) - exact).abs() < 1e-9, "{n}");
        }
        assert!((share_at_most(300, 0, 0.95) - 0.01).abs() < 1e-4);
        // Computed with exact integers for the binomial sum, and bisection.
        assert!((share_at_most(50, 3, 0.95) - 0.147_837_176).abs() < 1e-8, "{}", share_at_most(50, 3, 0.95));
        assert_eq!((share_at_most(5, 5, 0.95), share_at_most(0, 0, 0.95)), (1.0, 1.0));
    }

    #[test]
    fn so_few_happen_with_a_probability_of_what_is_left() {
        for (n, count) in [(20, 1), (50, 3), (100, 17)] {
            let share = share_at_most(n, count, 0.95);
            let so_few: f64 = (0..=count).map(|each| binomial_probability(n as usize, each as usize, share)).sum();
            assert!((so_few - 0.05).abs() < 1e-9, "{n} {count}: {so_few}");
        }
    }

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
