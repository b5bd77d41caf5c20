//! Repetition at two levels, after Kalibera and Jones (2013), "Rigorous benchmarking in reasonable time": iterations
//! within executions. It shows where the variation comes from and how many iterations an execution is worth.
//!
//! Invariant: the interval rests on the means of executions, never on single iterations.

use super::student::t_quantile;
use super::summary::{Interval, mean, sample_sd};

/// Variance split by level, and the interval of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoLevel {
    /// Mean of all iterations.
    pub mean: f64,
    /// S1²: mean of the variances within executions.
    pub within_variance: f64,
    /// S2²: variance of the executions' means.
    pub between_variance: f64,
    /// T2²: the variance added by executions; below 0 when they add nothing.
    pub added_variance: f64,
    /// The 95 % interval of the mean.
    pub interval: Interval,
}

/// Analyses executions with the same number of iterations each. `None` below two executions or two iterations, or when
/// their numbers differ.
pub fn two_level(executions: &[Vec<f64>]) -> Option<TwoLevel> {
    let iterations = executions.first()?.len();
    if executions.len() < 2 || executions.iter().any(|execution| execution.len() != iterations) {
        return None;
    }
    let means: Vec<f64> = executions.iter().filter_map(|execution| mean(execution)).collect();
    let variances: Option<Vec<f64>> =
        executions.iter().map(|execution| sample_sd(execution).map(|sd| sd.powi(2))).collect();
    let (within_variance, between_variance) = (mean(&variances?)?, sample_sd(&means)?.powi(2));
    let count = executions.len() as f64;
    let half = t_quantile(0.975, count - 1.0) * (between_variance / count).sqrt();
    let centre = mean(&means)?;
    Some(TwoLevel {
        mean: centre,
        within_variance,
        between_variance,
        added_variance: between_variance - within_variance / iterations as f64,
        interval: Interval { low: centre - half, high: centre + half },
    })
}

impl TwoLevel {
    /// Returns the iterations per execution that give the narrowest interval for the time spent, before rounding up: an iteration
    /// costs `iteration_s`, starting an execution `execution_s`. `None` when executions add no variance: then one
    /// execution with all iterations is best.
    pub fn best_iterations(&self, iteration_s: f64, execution_s: f64) -> Option<f64> {
        if self.added_variance <= 0.0 || iteration_s <= 0.0 {
            return None;
        }
        Some((execution_s / iteration_s * self.within_variance / self.added_variance).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_or_single_executions_are_refused() {
        assert_eq!(two_level(&[]), None);
        assert_eq!(two_level(&[vec![1.0, 2.0]]), None);
        assert_eq!(two_level(&[vec![1.0, 2.0], vec![1.0]]), None);
        assert_eq!(two_level(&[vec![1.0], vec![2.0]]), None);
    }

    #[test]
    fn executions_that_add_nothing_ask_for_no_more_executions() {
        let same = two_level(&[vec![1.0, 3.0], vec![3.0, 1.0]]).unwrap();
        assert_eq!(same.best_iterations(1.0, 20.0), None);
    }
}
