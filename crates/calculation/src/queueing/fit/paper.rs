//! The procedure of Kihl et al. 2011, section 6.1: mu from the lowest arrival rate, delta by fitting the curve.
//!
//! Main type: [`PaperFit`]. Invariant: the naive form takes the lowest arrival rate to be zero as the paper does; the corrected
//! form does not.

use serde::Serialize;

use super::problem::{Observation, Problem};
use crate::queueing::family::Parameter;
use crate::queueing::mm1::estimate_mu_per_s;

/// One form of the procedure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PaperEstimate {
    /// Service rate, per second.
    pub mu_per_s: f64,
    /// Constant delay in seconds.
    pub delta_s: f64,
    /// Root mean square of the relative residuals.
    pub relative_error_rms: f64,
}

/// The result of the paper's procedure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PaperFit {
    /// Lowest arrival rate, per second.
    pub low_rate_per_s: f64,
    /// r0: the mean response time at that rate, in seconds.
    pub low_mean_s: f64,
    /// As in the paper: mu = 1 / (r0 - delta).
    pub naive: Option<PaperEstimate>,
    /// Corrected for the low arrival rate: mu = lambda0 + 1 / (r0 - delta).
    pub corrected: Option<PaperEstimate>,
}

/// Applies the procedure to mean response times; `None` for fewer than two points. A form is `None` when no delta between 0
/// and r0 gives a capacity above all arrival rates.
pub fn fit_as_in_the_paper(observations: &[Observation]) -> Option<PaperFit> {
    let low = observations.iter().min_by(|a, b| a.load.total_cmp(&b.load)).filter(|_| observations.len() >= 2)?;
    let (low_rate_per_s, low_mean_s) = (low.load, low.value);
    let estimate = |taken_for_per_s: f64| estimate(observations, low_mean_s, taken_for_per_s);
    Some(PaperFit { low_rate_per_s, low_mean_s, naive: estimate(0.0), corrected: estimate(low_rate_per_s) })
}

fn estimate(observations: &[Observation], low_mean_s: f64, low_rate_per_s: f64) -> Option<PaperEstimate> {
    let curve = |values: &[f64], seen: &Observation| {
        let mu_per_s = estimate_mu_per_s(low_mean_s, values[0], low_rate_per_s)?;
        (mu_per_s > seen.load).then(|| values[0] + 1.0 / (mu_per_s - seen.load))
    };
    let delta = [Parameter { name: "delta_s", low: 0.0, high: low_mean_s, is_logarithmic: false }];
    let starts = (0..1000).map(|step| vec![low_mean_s * f64::from(step) / 1000.0]).collect();
    let problem = Problem { parameters: &delta, observations: observations.to_vec(), curve: &curve, starts };
    let best = problem.solve()?;
    let delta_s = best.values[0];
    let mu_per_s = estimate_mu_per_s(low_mean_s, delta_s, low_rate_per_s)?;
    Some(PaperEstimate { mu_per_s, delta_s, relative_error_rms: problem.relative_error_rms(&best.values) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corrected_form_recovers_what_the_naive_one_biases() {
        let point = |load: f64| Observation { load, workers: None, value: 0.0016 + 1.0 / (1000.0 - load), se: 1e-5 };
        let observations: Vec<Observation> = [50.0, 200.0, 400.0, 600.0, 800.0].map(point).to_vec();
        let paper = fit_as_in_the_paper(&observations).unwrap();
        let (naive, corrected) = (paper.naive.unwrap(), paper.corrected.unwrap());
        assert!((corrected.mu_per_s / 1000.0 - 1.0).abs() < 1e-6 && (corrected.delta_s / 0.0016 - 1.0).abs() < 1e-6);
        assert!((naive.mu_per_s / 1000.0 - 1.0).abs() > 1e-3 && naive.relative_error_rms > 1e-3, "{naive:?}");
        assert!(fit_as_in_the_paper(&observations[..1]).is_none());
    }
}
