//! Medians of rounds, with their intervals.

use loadline::statistics::order::quantile_interval;
use loadline::statistics::{Interval, summary};

use super::process::Usage;

/// The ratios of a figure between two sides, round by round.
pub fn ratios(ours: &[Usage], others: &[Usage], figure: fn(&Usage) -> f64) -> Vec<f64> {
    ours.iter().zip(others).map(|(a, b)| figure(a) / figure(b)).collect()
}

/// The median of a figure over the rounds.
pub fn median_of(sides: &[Usage], figure: fn(&Usage) -> f64) -> f64 {
    median(&sides.iter().map(figure).collect::<Vec<_>>())
}

/// The median with its 95 % interval; with the smallest and largest value where there are too few for one.
pub fn show(ratios: &[f64]) -> String {
    let extremes = || Interval {
        low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        high: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    let interval = quantile_interval(ratios, 0.5, 0.95).unwrap_or_else(extremes);
    format!("{:.2} [{:.2}, {:.2}]", median(ratios), interval.low, interval.high)
}

/// The median; not a number where there are no values.
pub fn median(values: &[f64]) -> f64 {
    summary::median(values).unwrap_or(f64::NAN)
}

/// A number from an environment variable.
pub fn from_environment(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
