//! Standard errors of the observations: as given, pooled where they come from few trials, or taken as proportional.
//!
//! Main function: [`errors_of`]. Invariant: errors given without a number of trials are used as they are.

use super::matrix::{Matrix, solve};
use super::problem::Sigma;
use crate::queueing::points::Point;
use crate::queueing::queue::Target;

/// Standard errors, or what they are taken to be proportional to, of the figures of points.
pub fn errors_of(figures: &[(&Point, f64)], target: Target, notes: &mut Vec<String>) -> (Vec<f64>, Sigma) {
    let own = |(point, _): &(&Point, f64)| match target {
        Target::Mean => point.se_s,
        Target::Quantile(wanted) => {
            point.quantiles.iter().find(|seen| (seen.quantile - wanted).abs() < 1e-9).and_then(|seen| seen.se_s)
        }
    };
    if let Some(errors) = figures.iter().map(own).collect::<Option<Vec<f64>>>() {
        let trials: Option<Vec<u32>> = figures.iter().map(|(point, _)| point.trials).collect();
        let rates: Option<Vec<f64>> = figures.iter().map(|(point, _)| point.arrival_rate_per_s).collect();
        let pooled = trials.zip(rates).and_then(|(trials, rates)| pool(&rates, &errors, &trials));
        if pooled.is_some() {
            notes.push("standard errors from few trials are pooled over the points, along their trend".to_owned());
        }
        return (pooled.unwrap_or(errors), Sigma::Known);
    }
    let relative = |(point, value): &(&Point, f64)| Some(point.se_s? / point.mean_s? * value);
    if let Some(errors) = figures.iter().map(relative).collect::<Option<Vec<f64>>>() {
        notes.push(format!(
            "standard errors of {target} are not known; they are taken as proportional to those of the mean, and estimated \
             from the residuals, so the fit itself is not tested"
        ));
        return (errors, Sigma::Unknown);
    }
    notes.push(
        "not every point has a standard error: all weigh the same, so the slowest decide, and the fit itself is not tested; \
         give se_s for all to change that"
            .to_owned(),
    );
    (vec![1.0; figures.len()], Sigma::Unknown)
}

/// Points from which a trend of their errors can be told.
const POOLED_LEAST: usize = 6;
/// From here on errors are good enough as they are.
const TRIALS_MANY: u32 = 200;

/// Errors estimated from few trials are uncertain, and of times with long tails the low ones come with low means, which would
/// then weigh too much. So each variance is drawn towards the trend of all, by as much as its scatter is explained by the
/// number of trials (empirical Bayes, after Smyth 2004). The trend is a parabola of ln s² over -ln(1 - 0.9 of the share of the
/// highest rate), as queues have it; it does not depend on the means. `None` with too few points, and with trials enough.
fn pool(rates: &[f64], errors: &[f64], trials: &[u32]) -> Option<Vec<f64>> {
    let fewest = *trials.iter().min()?;
    if rates.len() < POOLED_LEAST || !(3..TRIALS_MANY).contains(&fewest) {
        return None;
    }
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let base = |rate: f64| {
        let x = -(-0.9 * rate / highest).ln_1p();
        [1.0, x, x * x]
    };
    // Per trial, so that points of different numbers of trials share a trend; ln s² is low by 1 / df in the mean.
    let ln_variance = |index: usize| {
        let count = f64::from(trials[index]);
        (errors[index] * errors[index] * count).ln() + 1.0 / (count - 1.0)
    };
    let mut normal: Matrix = vec![vec![0.0; 3]; 3];
    let mut right = [0.0; 3];
    for (index, rate) in rates.iter().enumerate() {
        let (terms, weight) = (base(*rate), f64::from(trials[index] - 1));
        for row in 0..3 {
            right[row] += weight * terms[row] * ln_variance(index);
            (0..3).for_each(|column| normal[row][column] += weight * terms[row] * terms[column]);
        }
    }
    let trend = solve(&normal, &right)?;
    let along = |rate: f64| base(rate).iter().zip(&trend).map(|(a, b)| a * b).sum::<f64>();
    let scatter = |index: usize| (ln_variance(index) - along(rates[index])).powi(2);
    let observed = (0..rates.len()).map(scatter).sum::<f64>() / (rates.len() - 3) as f64;
    // Variance of ln s² with df degrees of freedom: trigamma(df / 2), near 2 / (df - 1).
    let expected = |index: usize| 2.0 / (f64::from(trials[index]) - 2.0).max(1.0);
    let mean_expected = (0..rates.len()).map(expected).sum::<f64>() / rates.len() as f64;
    let real = (observed - mean_expected).max(0.0);
    let pooled = |index: usize| {
        let own = real / (real + expected(index));
        let ln_pooled = along(rates[index]) + own * (ln_variance(index) - along(rates[index]));
        (ln_pooled.exp() / f64::from(trials[index])).sqrt()
    };
    Some((0..rates.len()).map(pooled).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_follow_a_trend_are_kept_and_one_that_strays_by_chance_is_drawn_to_it() {
        let values: Vec<f64> = (1..=8).map(f64::from).collect();
        let mut errors: Vec<f64> = values.iter().map(|value| 0.01 / (10.0 - value).powi(2)).collect();
        errors[3] *= 1.3;
        let pooled = pool(&values, &errors, &[10; 8]).unwrap();
        assert!(pooled[3] < 0.9 * errors[3], "{pooled:?}");
        for (pooled, error) in pooled.iter().zip(&errors).skip(4) {
            assert!((pooled / error - 1.0).abs() < 0.2, "{pooled} {error}");
        }
    }

    #[test]
    fn a_scatter_beyond_chance_is_believed() {
        let values: Vec<f64> = (1..=8).map(f64::from).collect();
        let errors: Vec<f64> = (0..8).map(|index| if index % 2 == 0 { 0.01 } else { 1.0 }).collect();
        let pooled = pool(&values, &errors, &[150; 8]).unwrap();
        assert!(pooled.iter().zip(&errors).all(|(pooled, error)| (pooled / error - 1.0).abs() < 0.1), "{pooled:?}");
        assert_eq!(pool(&values, &errors, &[1000; 8]), None);
        assert_eq!(pool(&values[..4], &errors[..4], &[10; 4]), None);
    }
}
