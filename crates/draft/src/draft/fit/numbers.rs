//! Fits distributions to the values with which calls were made.
//!
//! Main function: [`fit_numbers`]. Invariant: a named distribution is returned only if the values do not contradict it (Kolmogorov's test, 1 %).

use std::collections::HashMap;

use crate::trial::Fill;

/// The fewest values to which a distribution is fitted.
pub const VALUES_LEAST: usize = 20;
/// The most distinct values that are listed one by one.
const LISTED_MOST: usize = 20;
/// The number of parts into which quantiles divide the values.
const PARTS: usize = 20;
/// The value of Kolmogorov's statistic, times the square root of the number of values, that one sample in a hundred exceeds.
const KOLMOGOROV_1_PERCENT: f64 = 1.628;

/// Returns a fill for a parameter that had these values. `range` is the range of the column, if known.
pub fn fit_numbers(values: &[f64], range: Option<(f64, f64)>) -> Option<Fill> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    if low == high {
        return Some(Fill::Number(low));
    }
    let mut counts: HashMap<u64, usize> = HashMap::new();
    sorted.iter().for_each(|value| *counts.entry(value.to_bits()).or_default() += 1);
    if counts.len() <= LISTED_MOST && sorted.len() >= 5 * counts.len() {
        return Some(weighted(&counts, sorted.len(), None));
    }
    if sorted.len() < VALUES_LEAST {
        return Some(Fill::Uniform(low, high));
    }
    let is_whole = sorted.iter().all(|value| value.fract() == 0.0 && value.abs() < 9e15);
    for (low, high) in range.into_iter().filter(|(from, to)| *from <= low && high <= *to).chain([(low, high)]) {
        if is_whole && fits(&sorted, 1.0, |value| (value - low + 1.0) / (high - low + 1.0)) {
            return Some(Fill::Uniform(low, high));
        }
        if !is_whole && fits(&sorted, 0.0, |value| (value - low) / (high - low)) {
            return Some(Fill::Uniform(low, high));
        }
        if is_whole && let Some(exponent) = zipf(&sorted, low, high) {
            return Some(Fill::Zipf(low as i64, high as i64, exponent));
        }
    }
    // Values much more frequent than the average are listed by themselves; the others keep their spread.
    let average = sorted.len() as f64 / counts.len() as f64;
    let is_frequent = |count: usize| count as f64 > 5.0 * average && count * 100 >= sorted.len();
    let mut frequent: Vec<(u64, usize)> =
        counts.iter().filter(|(_, count)| is_frequent(**count)).map(|(value, count)| (*value, *count)).collect();
    frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    frequent.truncate(LISTED_MOST);
    let rest: Vec<f64> =
        sorted.iter().copied().filter(|value| !frequent.iter().any(|(other, _)| *other == value.to_bits())).collect();
    if frequent.is_empty() || rest.len() < 2 {
        return Some(Fill::Quantiles(quantiles(&sorted, is_whole)));
    }
    let listed = frequent.into_iter().collect();
    Some(weighted(&listed, sorted.len(), Some(Fill::Quantiles(quantiles(&rest, is_whole)))))
}

/// Returns a fill of values with their shares in percent, and of a fill for the remaining share.
fn weighted(counts: &HashMap<u64, usize>, total: usize, rest: Option<Fill>) -> Fill {
    let percent = |count: usize| (1e5 * count as f64 / total as f64).round() / 1e3;
    let mut listed: Vec<(f64, usize)> = counts.iter().map(|(bits, count)| (f64::from_bits(*bits), *count)).collect();
    listed.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.total_cmp(&b.0)));
    let others = total - listed.iter().map(|(_, count)| count).sum::<usize>();
    let listed = listed.into_iter().map(|(value, count)| (Fill::Number(value), percent(count)));
    Fill::Weighted(
        listed
            .chain(rest.filter(|_| others > 0).map(|rest| (rest, percent(others))))
            .filter(|(_, share)| *share > 0.0)
            .collect(),
    )
}

/// Returns bounds that divide sorted values into parts of equal size.
pub fn quantiles(sorted: &[f64], is_whole: bool) -> Vec<f64> {
    let last = sorted.len().saturating_sub(1);
    let parts = PARTS.min(last).max(1);
    let rounded = |value: f64| {
        if is_whole || value == 0.0 {
            return value;
        }
        // Six digits are as precise as a sample can be.
        let scale = 10_f64.powf(5.0 - value.abs().log10().floor());
        (value * scale).round() / scale
    };
    (0..=parts).filter_map(|part| sorted.get(part * last / parts)).map(|value| rounded(*value)).collect()
}

/// Returns whether sorted values are consistent with a distribution, by Kolmogorov's test. `step` is the distance between neighbouring values, 0 for fractions.
fn fits(sorted: &[f64], step: f64, cumulative: impl Fn(f64) -> f64) -> bool {
    let count = sorted.len() as f64;
    let (mut largest, mut place) = (0.0_f64, 0);
    while let Some(value) = sorted.get(place) {
        let before = place as f64 / count;
        place += sorted[place..].iter().take_while(|other| *other == value).count();
        let until = place as f64 / count;
        largest = largest.max((until - cumulative(*value)).abs()).max((before - cumulative(value - step)).abs());
    }
    largest * count.sqrt() < KOLMOGOROV_1_PERCENT
}

/// Returns the maximum-likelihood exponent of a Zipf distribution whose most frequent value is the least; `None` if the values contradict it.
fn zipf(sorted: &[f64], low: f64, high: f64) -> Option<f64> {
    let ranks = high - low + 1.0;
    let logs: f64 = sorted.iter().map(|value| (value - low + 1.0).ln()).sum();
    let count = sorted.len() as f64;
    let likelihood = |exponent: f64| -exponent * logs - count * harmonic(ranks, exponent).ln();
    let (mut from, mut to) = (0.01, 4.0);
    // The likelihood has one peak: its second derivative is minus a variance.
    for _ in 0..60 {
        let (left, right) = (from + (to - from) / 3.0, to - (to - from) / 3.0);
        if likelihood(left) < likelihood(right) { from = left } else { to = right }
    }
    let exponent = f64::midpoint(from, to);
    let whole = harmonic(ranks, exponent);
    let is_fit = fits(sorted, 1.0, |value| harmonic((value - low + 1.0).floor(), exponent) / whole);
    (is_fit && exponent > 0.05).then_some((exponent * 1e3).round() / 1e3)
}

/// Returns the sum of k^-s over the ranks: the first terms one by one, the rest by the integral from midpoint to midpoint.
fn harmonic(ranks: f64, exponent: f64) -> f64 {
    const SUMMED: u32 = 100;
    let summed = f64::from(SUMMED).min(ranks);
    let first: f64 = (1..=summed as u32).map(|rank| f64::from(rank).powf(-exponent)).sum();
    if ranks <= summed {
        return first;
    }
    let (from, to) = (summed + 0.5, ranks + 0.5);
    let power = 1.0 - exponent;
    first + if power.abs() < 1e-9 { (to / from).ln() } else { (to.powf(power) - from.powf(power)) / power }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn drawn(count: usize, seed: u64, draw: impl Fn(&mut Stream) -> f64) -> Vec<f64> {
        let mut stream = Stream::seeded(seed);
        (0..count).map(|_| draw(&mut stream)).collect()
    }

    #[test]
    fn uniform_values_are_seen_to_be_uniform_over_the_column() {
        for seed in 0..20 {
            let values = drawn(1000, seed, |stream| 1.0 + stream.below(100_000) as f64);
            assert_eq!(
                fit_numbers(&values, Some((1.0, 100_000.0))),
                Some(Fill::Uniform(1.0, 100_000.0)),
                "seed {seed}"
            );
        }
        let values = drawn(500, 9, |stream| 2.0 + stream.unit());
        assert!(matches!(fit_numbers(&values, None), Some(Fill::Uniform(low, high)) if low > 1.99 && high < 3.01));
    }

    #[test]
    fn the_exponent_of_zipf_is_found_again() {
        // Ranks come from inverting the exact distribution, a method other than the generator's.
        let (ranks, exponent) = (10_000_u32, 0.9);
        let weights: Vec<f64> = (1..=ranks)
            .scan(0.0, |sum, rank| {
                *sum += f64::from(rank).powf(-exponent);
                Some(*sum)
            })
            .collect();
        let whole = weights[weights.len() - 1];
        for seed in 0..10 {
            let draw = |stream: &mut Stream| {
                let point = whole * stream.unit();
                1.0 + weights.partition_point(|sum| *sum < point) as f64
            };
            let values = drawn(2000, seed, draw);
            let Some(Fill::Zipf(1, 10_000, found)) = fit_numbers(&values, Some((1.0, 10_000.0))) else {
                panic!("seed {seed}: {:?}", fit_numbers(&values, Some((1.0, 10_000.0))));
            };
            assert!((found - exponent).abs() < 0.06, "seed {seed}: {found}");
        }
        assert!((harmonic(10_000.0, 0.9) / whole - 1.0).abs() < 1e-4);
    }

    #[test]
    fn few_values_are_listed_and_one_is_a_number() {
        assert_eq!(fit_numbers(&[7.0; 50], None), Some(Fill::Number(7.0)));
        let values: Vec<f64> = (0..100).map(|number| if number % 4 == 0 { 1.0 } else { 2.0 }).collect();
        let expected = vec![(Fill::Number(2.0), 75.0), (Fill::Number(1.0), 25.0)];
        assert_eq!(fit_numbers(&values, None), Some(Fill::Weighted(expected)));
        assert_eq!(fit_numbers(&[], None), None);
        assert_eq!(fit_numbers(&[1.0, 5.0], None), Some(Fill::Uniform(1.0, 5.0)));
    }

    #[test]
    fn what_has_no_name_keeps_its_frequent_values_and_its_quantiles() {
        // A hot value in the middle, and the rest with a rising density.
        let values =
            drawn(2000, 3, |stream| if stream.below(10) < 3 { 500.0 } else { (1000.0 * stream.unit().sqrt()).floor() });
        let Some(Fill::Weighted(choices)) = fit_numbers(&values, Some((0.0, 1000.0))) else { panic!() };
        assert_eq!(choices[0].0, Fill::Number(500.0));
        assert!((choices[0].1 - 30.0).abs() < 4.0, "{}", choices[0].1);
        let Fill::Quantiles(bounds) = &choices[1].0 else { panic!("{choices:?}") };
        assert!((bounds[10] - 707.0).abs() < 40.0, "the median of the rest: {bounds:?}");
    }
}
