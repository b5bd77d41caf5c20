//! Standard errors of the observations: as given, pooled where they come from few trials, or taken as proportional.
//!
//! Main function: [`errors_of`]. Invariant: errors given without a number of trials are used as they are, and errors estimated
//! from trials state their degrees of freedom.

use super::matrix::{Matrix, solve};
use super::note::FitNote;
use super::problem::Sigma;
use crate::queueing::points::Point;
use crate::queueing::queue::Target;

/// Returns the standard errors of the points' figures, or values to which they are taken to be proportional.
pub fn errors_of(figures: &[(&Point, f64)], target: Target, notes: &mut Vec<FitNote>) -> (Vec<f64>, Sigma) {
    let own = |(point, _): &(&Point, f64)| match target {
        Target::Mean => point.se_s,
        Target::Quantile(wanted) => {
            point.quantiles.iter().find(|seen| (seen.quantile - wanted).abs() < 1e-9).and_then(|seen| seen.se_s)
        }
    };
    if let Some(pooled) = pooled(figures, own) {
        notes.push(FitNote::ErrorsPooled { freedom: pooled.freedom });
        return (pooled.errors, Sigma::Estimated(pooled.freedom));
    }
    if let Some(errors) = figures.iter().map(own).collect::<Option<Vec<f64>>>() {
        let fewest = figures.iter().filter_map(|(point, _)| point.trials).min();
        let sigma = fewest.map_or(Sigma::Known, |fewest| Sigma::Estimated(f64::from(fewest.max(2) - 1)));
        return (errors, sigma);
    }
    let relative = |(point, value): &(&Point, f64)| Some(point.se_s? / point.mean_s? * value);
    if let Some(errors) = figures.iter().map(relative).collect::<Option<Vec<f64>>>() {
        notes.push(FitNote::ErrorsOfMean { target: target.to_string() });
        return (errors, Sigma::Unknown);
    }
    notes.push(FitNote::ErrorsUnknown {});
    (vec![1.0; figures.len()], Sigma::Unknown)
}

/// Smallest number of points with trials that show a trend of their errors.
const POOLED_LEAST: usize = 3;
/// Smallest number of points, and of degrees of freedom in all, for which the trend is a parabola; with fewer it is a line.
const PARABOLA_LEAST: (usize, f64) = (6, 12.0);
/// Number of trials from which errors are good enough without pooling.
const TRIALS_MANY: u32 = 200;

/// Errors along a trend.
struct Pooled {
    errors: Vec<f64>,
    /// Degrees of freedom of each error.
    freedom: f64,
}

/// Variance of one trial's figure at a rate, as estimated from its trials.
struct Spread {
    rate_per_s: f64,
    variance: f64,
    trials: u32,
}

impl Spread {
    fn freedom(&self) -> f64 {
        f64::from(self.trials - 1)
    }
}

/// Pools the errors of points that come from several trials, and keeps those of other points; `None` where a point has no error,
/// where there are too few points, and where there are trials enough.
fn pooled(figures: &[(&Point, f64)], own: impl Fn(&(&Point, f64)) -> Option<f64>) -> Option<Pooled> {
    let errors: Vec<f64> = figures.iter().map(&own).collect::<Option<_>>()?;
    let spread = |(figure, error): (&(&Point, f64), &f64)| {
        let trials = figure.0.trials.filter(|trials| *trials >= 2)?;
        Some(Spread { rate_per_s: figure.0.arrival_rate_per_s?, variance: error * error * f64::from(trials), trials })
    };
    let spreads: Vec<Option<Spread>> = figures.iter().zip(&errors).map(spread).collect();
    let seen: Vec<&Spread> = spreads.iter().flatten().collect();
    if seen.iter().all(|spread| spread.trials >= TRIALS_MANY) {
        return None;
    }
    let (pool, freedom) = pool(&seen)?;
    let errors = spreads.iter().zip(errors).map(|(spread, error)| spread.as_ref().map_or(error, &pool)).collect();
    Some(Pooled { errors, freedom })
}

/// Fits a trend to the errors. Errors estimated from few trials are uncertain, and for times with long tails the low errors come with low means, which
/// would then weigh too much. So the variances of single trials follow a trend over the rates, as in queues: a trial's variance falls
/// with the number of its operations, and ln of variance times rate is a line (a parabola where there are trials enough) over
/// -ln(1 - 0.9 of the share of the highest rate). It is fitted by the likelihood of variances, which are chi² over their degrees of
/// freedom, and does not depend on the means. Each error gets the degrees of freedom of the error that the trend determines least.
/// Scatter about the trend beyond chance is kept in part (after Smyth 2004).
fn pool(seen: &[&Spread]) -> Option<(impl Fn(&Spread) -> f64, f64)> {
    let total: f64 = seen.iter().map(|spread| spread.freedom()).sum();
    let terms = if seen.len() >= PARABOLA_LEAST.0 && total >= PARABOLA_LEAST.1 { 3 } else { 2 };
    if seen.len() < POOLED_LEAST {
        return None;
    }
    let highest = seen.iter().map(|spread| spread.rate_per_s).fold(0.0, f64::max);
    let base = move |rate: f64| {
        let x = -(-0.9 * rate / highest).ln_1p();
        [1.0, x, x * x]
    };
    let (trend, normal) = trend(seen, terms, &base)?;
    let freedom = |spread: &&Spread| {
        let base = &base(spread.rate_per_s)[..terms];
        Some(1.0 / base.iter().zip(solve(&normal, base)?).map(|(a, b)| a * b).sum::<f64>())
    };
    let freedom = seen.iter().filter_map(freedom).fold(total, f64::min);
    let along = move |rate: f64| base(rate).iter().zip(&trend).map(|(a, b)| a * b).sum::<f64>() - rate.ln();
    let real = scatter_beyond_chance(seen, terms, &along);
    let error = move |spread: &Spread| {
        let (expected, freedom) = (along(spread.rate_per_s), spread.freedom());
        let own = real / (real + variance_of_ln(freedom)) * (spread.variance.ln() + 1.0 / freedom - expected);
        ((expected + own).exp() / f64::from(spread.trials)).sqrt()
    };
    Some((error, freedom))
}

/// Fits the terms of ln of variance times rate by Fisher's scoring of the likelihood of variances. Returns them with their normal equations.
fn trend(seen: &[&Spread], terms: usize, base: &dyn Fn(f64) -> [f64; 3]) -> Option<(Vec<f64>, Matrix)> {
    let mut found = vec![0.0; terms];
    let mut normal = Matrix::new();
    for step in 0..SCORING_STEPS {
        normal = vec![vec![0.0; terms]; terms];
        let mut right = vec![0.0; terms];
        for spread in seen {
            let (base, freedom) = (base(spread.rate_per_s), spread.freedom());
            let apart =
                (spread.variance * spread.rate_per_s).ln() - base.iter().zip(&found).map(|(a, b)| a * b).sum::<f64>();
            // The first step uses logarithms, which lead near from everywhere; the others use the likelihood.
            let apart = if step == 0 { apart } else { apart.exp_m1().min(3.0) };
            for row in 0..terms {
                right[row] += freedom * base[row] * apart;
                (0..terms).for_each(|column| normal[row][column] += freedom * base[row] * base[column]);
            }
        }
        let change = solve(&normal, &right)?;
        found.iter_mut().zip(&change).for_each(|(value, change)| *value += change);
    }
    found.iter().all(|value| value.is_finite()).then_some((found, normal))
}

const SCORING_STEPS: usize = 30;

/// Returns the scatter of variances about their trend (variance of ln s²) beyond chance; 0 where chance explains it. The scatter
/// must be above what chance gives by two of its standard deviations.
fn scatter_beyond_chance(seen: &[&Spread], terms: usize, along: &dyn Fn(f64) -> f64) -> f64 {
    if seen.len() <= terms {
        return 0.0;
    }
    let left = (seen.len() - terms) as f64;
    let apart = |spread: &&Spread| spread.variance.ln() + 1.0 / spread.freedom() - along(spread.rate_per_s);
    let observed = seen.iter().map(|spread| apart(spread).powi(2)).sum::<f64>() / left;
    let expected = seen.iter().map(|spread| variance_of_ln(spread.freedom())).sum::<f64>() / seen.len() as f64;
    // ln s² has longer tails than a normal value: its square varies by about three times the square of its mean.
    if observed > expected * (1.0 + 2.0 * (3.0 / left).sqrt()) { observed - expected } else { 0.0 }
}

/// Returns the variance of ln s² with these degrees of freedom: the trigamma function of their half, by its series from 6 on.
fn variance_of_ln(freedom: f64) -> f64 {
    let mut x = freedom / 2.0;
    let mut sum = 0.0;
    while x < 6.0 {
        sum += x.powi(-2);
        x += 1.0;
    }
    sum + 1.0 / x + 0.5 / (x * x) + 1.0 / (6.0 * x.powi(3)) - 1.0 / (30.0 * x.powi(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of_points(rates: &[f64], errors: &[f64], trials: u32) -> Option<Pooled> {
        let point = |(rate, error): (&f64, &f64)| {
            let (arrival_rate_per_s, se_s) = (Some(*rate), Some(*error));
            Point { arrival_rate_per_s, se_s, trials: Some(trials), ..Point::default() }
        };
        let points: Vec<Point> = rates.iter().zip(errors).map(point).collect();
        let figures: Vec<(&Point, f64)> = points.iter().map(|point| (point, 1.0)).collect();
        pooled(&figures, |(point, _)| point.se_s)
    }

    #[test]
    fn errors_that_follow_a_trend_are_kept_and_one_that_strays_by_chance_is_drawn_to_it() {
        let rates: Vec<f64> = (1..=8).map(f64::from).collect();
        let mut errors: Vec<f64> = rates.iter().map(|rate| 0.01 / (10.0 - rate).powi(2)).collect();
        errors[3] *= 1.3;
        let Pooled { errors: pooled, freedom } = errors_of_points(&rates, &errors, 10).unwrap();
        // 72 of all over three terms are 24 on average; the ends of the trend are less certain, but more so than from 10 trials alone.
        assert!((9.0..24.0).contains(&freedom), "{freedom}");
        assert!(pooled[3] < 0.9 * errors[3], "{pooled:?}");
        for (pooled, error) in pooled.iter().zip(&errors).skip(4) {
            assert!((pooled / error - 1.0).abs() < 0.2, "{pooled} {error}");
        }
    }

    #[test]
    fn a_scatter_beyond_chance_is_believed() {
        let rates: Vec<f64> = (1..=8).map(f64::from).collect();
        let errors: Vec<f64> = (0..8).map(|index| if index % 2 == 0 { 0.01 } else { 1.0 }).collect();
        let pooled = errors_of_points(&rates, &errors, 150).unwrap().errors;
        assert!(pooled.iter().zip(&errors).all(|(pooled, error)| (pooled / error - 1.0).abs() < 0.1), "{pooled:?}");
        assert!(errors_of_points(&rates, &errors, 1000).is_none());
        assert!(errors_of_points(&rates[..2], &errors[..2], 10).is_none());
    }

    #[test]
    fn the_variance_of_a_logarithm_agrees_with_the_trigamma_function() {
        // pi² / 6 at 1, pi² / 2 at one half.
        let square = std::f64::consts::PI.powi(2);
        assert!((variance_of_ln(2.0) - square / 6.0).abs() < 1e-6);
        assert!((variance_of_ln(1.0) - square / 2.0).abs() < 1e-6);
    }
}
