//! The arrival rate at which a quantile is kept, as far as measured points support a model.
//!
//! Main function: [`held_rate`], pure. Invariant: the rate is below the lowest measured rate that exceeded the bound; where there is such a rate, the result
//! keeps the bound by the measurements on both sides, whatever the model says.

use super::points::Point;

/// Largest held rate, as a multiple of the highest measured rate.
pub const BEYOND_MOST: f64 = 1.1;
/// Throughput as a share of the arrival rate, below which a point is overloaded, whatever its quantile is.
const KEPT_UP: f64 = 0.98;
/// Standard errors above a measured quantile that its true value is below in 95 of 100 cases.
const ONE_SIDED_95: f64 = 1.645;

/// A rate that may be held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// The limit of the rate.
    pub by: HeldBy,
}

/// The limit of a held rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeldBy {
    /// The model's own limit, which the measured rates support.
    Model,
    /// The measurements: at this rate the quantile was above the bound, or may have been, and the model's limit is nearer to it.
    Measured(f64),
    /// The highest measured rate, given here: the model's limit is further above it than the measurements support.
    Highest(f64),
}

/// The reason why no rate can be held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NotHeld {
    /// No point has the quantile.
    Unmeasured,
    /// The bound was already exceeded at the lowest measured rate, or may have been: the rate, and the quantile there in seconds (infinite
    /// where it was overloaded).
    Lowest(f64, f64),
}

/// Returns the rate that keeps a quantile below a bound in seconds: at most what the model allows, and at most what the points allow. Between the
/// highest rate that kept the bound and the lowest one that did not, the inverse of the quantile falls along a line or above it (in M/M/1 with a
/// delay it is above it), so that the line errs on the safe side.
///
/// # Errors
/// The reason why there is no such rate.
pub fn held_rate(points: &[Point], quantile: f64, bound_s: f64, model_per_s: f64) -> Result<Held, NotHeld> {
    let mut seen: Vec<(f64, f64, f64)> = points.iter().filter_map(|point| measured(point, quantile)).collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(highest) = seen.last() else { return Err(NotHeld::Unmeasured) };
    let Some(place) = seen.iter().position(|(_, _, most_s)| *most_s > bound_s) else {
        let reach = highest.0 * BEYOND_MOST;
        let by = if model_per_s <= reach { HeldBy::Model } else { HeldBy::Highest(highest.0) };
        return Ok(Held { rate_per_s: model_per_s.min(reach), by });
    };
    let above = seen[place];
    let Some(below) = place.checked_sub(1).map(|place| seen[place]) else {
        return Err(NotHeld::Lowest(above.0, if above.1 > bound_s { above.1 } else { above.2 }));
    };
    let inverse = |time_s: f64| if time_s.is_finite() { 1.0 / time_s } else { 0.0 };
    let share = (inverse(below.2) - inverse(bound_s)) / (inverse(below.2) - inverse(above.2));
    let measured_per_s = below.0 + share * (above.0 - below.0);
    if model_per_s <= measured_per_s {
        return Ok(Held { rate_per_s: model_per_s, by: HeldBy::Model });
    }
    Ok(Held { rate_per_s: measured_per_s, by: HeldBy::Measured(above.0) })
}

/// Returns how far a quantile at a rate between two others is from the interpolation between them, along lines of the inverse quantile: root mean square
/// of the relative errors, or `None` where fewer than two rates lie between others.
pub fn interpolation_error(points: &[Point], quantile: f64) -> Option<f64> {
    let mut seen: Vec<(f64, f64, f64)> = points.iter().filter_map(|point| measured(point, quantile)).collect();
    seen.retain(|(_, value_s, _)| value_s.is_finite());
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    let error = |three: &[(f64, f64, f64)]| {
        let share = (three[1].0 - three[0].0) / (three[2].0 - three[0].0);
        let inverse = 1.0 / three[0].1 + share * (1.0 / three[2].1 - 1.0 / three[0].1);
        (1.0 / inverse / three[1].1 - 1.0).powi(2)
    };
    let squares: Vec<f64> = seen.windows(3).map(error).collect();
    (squares.len() > 1).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// Returns a point's rate, its quantile, and an upper bound on the true quantile, in seconds; infinite where it was overloaded.
fn measured(point: &Point, quantile: f64) -> Option<(f64, f64, f64)> {
    let rate = point.arrival_rate_per_s?;
    if point.throughput_per_s.is_some_and(|throughput| throughput < KEPT_UP * rate) {
        return Some((rate, f64::INFINITY, f64::INFINITY));
    }
    let seen = point.quantiles.iter().find(|seen| (seen.quantile - quantile).abs() < 1e-9)?;
    Some((rate, seen.value_s, seen.value_s + ONE_SIDED_95 * seen.se_s.unwrap_or(0.0)))
}

/// Interpolates the mean at any rate from the measured means, in seconds: along lines of the inverse mean. For comparison with observations,
/// not for promises.
pub fn measured_mean_s(points: &[Point]) -> impl Fn(f64) -> f64 + Send + 'static {
    let mean = |point: &Point| Some((point.arrival_rate_per_s?, point.mean_s.filter(|mean_s| *mean_s > 0.0)?));
    let mut means: Vec<(f64, f64)> = points.iter().filter_map(mean).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    move |rate_per_s| {
        let place = means.partition_point(|(rate, _)| *rate < rate_per_s).clamp(1, means.len().max(2) - 1);
        match (means.get(place - 1), means.get(place)) {
            (Some((low, low_s)), Some((high, high_s))) if high > low => {
                let share = ((rate_per_s - low) / (high - low)).max(0.0);
                let inverse = 1.0 / low_s + share * (1.0 / high_s - 1.0 / low_s);
                if inverse > 0.0 { 1.0 / inverse } else { f64::INFINITY }
            }
            (Some((_, only_s)), _) => *only_s,
            _ => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::QuantilePoint;

    fn point(rate: f64, p99_s: f64) -> Point {
        let quantiles = vec![QuantilePoint { quantile: 0.99, value_s: p99_s, se_s: None }];
        Point { arrival_rate_per_s: Some(rate), throughput_per_s: Some(rate), quantiles, ..Point::default() }
    }

    fn held(points: &[Point], bound_s: f64, model_per_s: f64) -> Result<Held, NotHeld> {
        held_rate(points, 0.99, bound_s, model_per_s)
    }

    #[test]
    fn a_bound_that_the_lowest_rate_exceeded_holds_no_rate_whatever_the_model_says() {
        let points = [point(20.0, 0.135), point(40.0, 0.2)];
        assert_eq!(held(&points, 0.1, 36.96), Err(NotHeld::Lowest(20.0, 0.135)));
        assert_eq!(held(&[], 0.1, 36.96), Err(NotHeld::Unmeasured));
    }

    #[test]
    fn between_two_measured_rates_the_measured_quantiles_bound_the_model() {
        let points = [point(20.0, 0.05), point(40.0, 0.2)];
        // 1/q falls from 20 to 5 over 20/s; it is 10 two thirds of the way.
        let Held { rate_per_s, by } = held(&points, 0.1, 39.0).unwrap();
        assert!((rate_per_s - (20.0 + 20.0 * 2.0 / 3.0)).abs() < 1e-9 && by == HeldBy::Measured(40.0));
        assert_eq!(held(&points, 0.1, 25.0), Ok(Held { rate_per_s: 25.0, by: HeldBy::Model }));
        // Overload counts as exceeded, even where the completed operations were quick; a higher rate that kept the bound again does not help.
        let overloaded = Point { throughput_per_s: Some(30.0), ..point(40.0, 0.01) };
        let points = [point(20.0, 0.05), overloaded, point(60.0, 0.06)];
        let Held { rate_per_s, .. } = held(&points, 0.1, 70.0).unwrap();
        assert!((rate_per_s - 30.0).abs() < 1e-9, "{rate_per_s}");
    }

    #[test]
    fn beyond_the_highest_rate_measured_nothing_bears_the_model_out_for_long() {
        let points = [point(20.0, 0.05), point(40.0, 0.06)];
        let Held { rate_per_s, by } = held(&points, 0.1, 400.0).unwrap();
        assert!((rate_per_s - 44.0).abs() < 1e-9 && by == HeldBy::Highest(40.0));
        // A quantile whose true value may be above the bound does not keep it.
        let mut unsure = point(40.0, 0.09);
        unsure.quantiles[0].se_s = Some(0.01);
        for points in
            [vec![point(20.0, 0.05), unsure.clone()], vec![point(20.0, 0.05), unsure.clone(), point(50.0, 0.2)]]
        {
            let Held { rate_per_s, by } = held(&points, 0.1, 400.0).unwrap();
            assert!((38.0..40.0).contains(&rate_per_s) && by == HeldBy::Measured(40.0), "{rate_per_s}");
        }
        assert!(matches!(held(&[unsure], 0.1, 400.0), Err(NotHeld::Lowest(_, most_s)) if most_s > 0.1));
    }

    #[test]
    fn what_neighbours_let_expect_is_compared_with_what_was_measured() {
        let mm1 = |rate: f64| point(rate, 4.6 / (1000.0 - rate));
        let points: Vec<Point> = [100.0, 300.0, 500.0, 900.0].map(mm1).into();
        assert!(interpolation_error(&points, 0.99).unwrap() < 1e-9, "exact in M/M/1");
        assert_eq!(interpolation_error(&points[..3], 0.99), None);
        let mut jump = points.clone();
        jump[1].quantiles[0].value_s *= 3.0;
        assert!(interpolation_error(&jump, 0.99).unwrap() > 0.5);
    }

    #[test]
    fn the_mean_lies_between_those_measured() {
        let with = |rate, mean_s| Point { mean_s: Some(mean_s), ..point(rate, 1.0) };
        let mean_s = measured_mean_s(&[with(20.0, 0.1), with(10.0, 0.05)]);
        assert!((mean_s(15.0) - 1.0 / 15.0).abs() < 1e-12);
        assert_eq!((mean_s(1.0), mean_s(20.0)), (0.05, 0.1));
        assert!(mean_s(25.0) > 0.1 && mean_s(100.0).is_infinite());
    }
}
