//! Rounds the bounds of fills so that they reveal no single values.
//!
//! Main function: [`rounded`].

use crate::trial::{Fill, TimeBlocks, Times};

/// The number of digits kept of a bound.
const DIGITS: i32 = 3;
/// The widest range of whole numbers that is kept unrounded: its few values each occur in many rows.
const NARROW: f64 = 1_000.0;
const HOUR_US: i64 = 3_600_000_000;
const SECOND_US: i64 = 1_000_000;

/// Returns the fill with its bounds rounded to three digits, and times to hours. Counts, lengths, steps and queries stay as they are.
pub fn rounded(fill: Fill) -> Fill {
    match fill {
        Fill::Uniform(low, high) if high - low > NARROW || low.fract() != 0.0 => {
            Fill::Uniform(number(low), number(high))
        }
        Fill::Normal(mean, deviation) => Fill::Normal(number(mean), number(deviation)),
        Fill::Drift(low, high, step) => Fill::Drift(number(low), number(high).max(number(low) + step), step),
        Fill::Zipf(low, high, exponent) if high.saturating_sub(low) as f64 > NARROW => {
            Fill::Zipf(number(low as f64) as i64, number(high as f64) as i64, (exponent * 1e2).round() / 1e2)
        }
        Fill::Quantiles(bounds) => Fill::Quantiles(bounds.into_iter().map(number).collect()),
        Fill::Times(times) => Fill::Times(hours(times)),
        // The number of keys does not depend on the first one.
        Fill::Sequence(first, step) => Fill::Sequence(number(first as f64) as i64, step),
        Fill::Blocks(first, step, times) => Fill::Blocks(number(first as f64) as i64, step, times),
        Fill::Cycle(first, step, count) => Fill::Cycle(number(first as f64) as i64, step, count),
        Fill::TextOf(letters, of) => Fill::TextOf(letters, Box::new(rounded(*of))),
        Fill::TimeBlocks(blocks) => {
            let first_us = blocks.first_us.div_euclid(HOUR_US) * HOUR_US;
            Fill::TimeBlocks(TimeBlocks { first_us, ..blocks })
        }
        Fill::Weighted(choices) => {
            let one = |fill| match fill {
                // One of several numbers is a value of rows; a single number is a constant of the statement.
                Fill::Number(value) => Fill::Number(number(value)),
                fill => rounded(fill),
            };
            Fill::Weighted(choices.into_iter().map(|(fill, weight)| (one(fill), weight)).collect())
        }
        Fill::Plus(place, more) => Fill::Plus(place, Box::new(rounded(*more))),
        Fill::Array(count, element) => Fill::Array(count, Box::new(rounded(*element))),
        fill => fill,
    }
}

/// Rounds times to hours; times within a few hours of each other to seconds, because hours would make them equal.
fn hours(times: Times) -> Times {
    let span =
        times.bounds_us.last().zip(times.bounds_us.first()).map_or(0, |(last, first)| last.saturating_sub(*first));
    let unit = if span > 48 * HOUR_US { HOUR_US } else { SECOND_US };
    let bounds_us = times.bounds_us.iter().map(|us| us.div_euclid(unit) * unit).collect();
    Times { bounds_us, ..times }
}

/// Rounds a number to three digits.
pub fn number(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    if scale.is_finite() && scale > 0.0 { (value * scale).round() / scale } else { value }
}
