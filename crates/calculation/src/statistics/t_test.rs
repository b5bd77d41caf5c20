//! Two-sample t-tests, from values or from published summaries: Welch's, and the pooled one that the papers use.
//!
//! Invariant: the test of values equals the test of their summaries.

use super::student::two_sided_p;
use super::summary::{mean, sample_sd};

/// The summary of a group of values, as in a paper's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation, at least 0.
    pub sd: f64,
    /// Number of values, at least 2.
    pub n: u64,
}

impl Summary {
    /// Summarises values; `None` below two.
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Summary { mean: mean(values)?, sd: sample_sd(values)?, n: values.len() as u64 })
    }

    /// Returns the squared standard error of the mean.
    fn variance_of_mean(&self) -> f64 {
        self.sd.powi(2) / self.n as f64
    }
}

/// The outcome of a t-test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// Difference of means, a - b, over its standard error.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Computes Welch's test: variances may differ; degrees of freedom after Welch and Satterthwaite. `None` below two values a group or
/// when neither group varies.
pub fn welch(a: Summary, b: Summary) -> Option<TTest> {
    let (va, vb) = (a.variance_of_mean(), b.variance_of_mean());
    if a.n < 2 || b.n < 2 || va + vb <= 0.0 {
        return None;
    }
    let t = (a.mean - b.mean) / (va + vb).sqrt();
    let df = (va + vb).powi(2) / (va.powi(2) / (a.n - 1) as f64 + vb.powi(2) / (b.n - 1) as f64);
    Some(TTest { t, df, p: two_sided_p(t, df) })
}

/// Computes the pooled test: variances are taken to be equal. `None` below two values a group or when neither group varies.
pub fn pooled(a: Summary, b: Summary) -> Option<TTest> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let (na, nb) = (a.n as f64, b.n as f64);
    let df = na + nb - 2.0;
    let variance = ((na - 1.0) * a.sd.powi(2) + (nb - 1.0) * b.sd.powi(2)) / df;
    if variance <= 0.0 {
        return None;
    }
    let t = (a.mean - b.mean) / (variance * (1.0 / na + 1.0 / nb)).sqrt();
    Some(TTest { t, df, p: two_sided_p(t, df) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_do_not_vary_or_are_too_small_have_no_test() {
        let still = Summary { mean: 1.0, sd: 0.0, n: 5 };
        assert_eq!((welch(still, still), pooled(still, still)), (None, None));
        let single = Summary { mean: 1.0, sd: 1.0, n: 1 };
        assert_eq!((welch(single, still), pooled(still, single)), (None, None));
        assert_eq!(Summary::of(&[1.0]), None);
    }

    #[test]
    fn groups_of_equal_size_and_spread_get_the_same_answer_from_both_tests() {
        let (a, b) = (Summary { mean: 10.0, sd: 2.0, n: 12 }, Summary { mean: 8.0, sd: 2.0, n: 12 });
        let (welch, pooled) = (welch(a, b).unwrap(), pooled(a, b).unwrap());
        assert!((welch.t - pooled.t).abs() < 1e-12 && (welch.p - pooled.p).abs() < 1e-12);
        assert!((welch.df - 22.0).abs() < 1e-9);
    }
}
