//! Whether a series of values changes its distribution on the way: the first step of E-divisive (Matteson and James 2014).
//!
//! Main function: [`change_point`]. Invariant: its p counts the series itself among the shuffled ones, so that it is never 0.

use super::random::Random;

/// The split of a series that divides it best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Values before the change.
    pub before: usize,
    /// Values up to the end of the stretch that was compared with those before.
    pub end: usize,
    /// Scaled energy distance Q of the two stretches.
    pub distance: f64,
}

/// Each side of a split has at least two values, for its own distances.
const SIDE_LEAST: usize = 2;

/// The split with the largest Q over all beginnings and ends of the second stretch (Matteson and James 2014, eq. 6 and 7, with
/// exponent 1); none below four values.
pub fn best_split(values: &[f64]) -> Option<Split> {
    let mut best: Option<Split> = None;
    for before in SIDE_LEAST..values.len() {
        let first = &values[..before];
        let within_first = distances_within(first);
        let (mut across, mut within) = (0.0, 0.0);
        for end in before + 1..=values.len() {
            let added = values[end - 1];
            across += first.iter().map(|value| (value - added).abs()).sum::<f64>();
            within += values[before..end - 1].iter().map(|value| (value - added).abs()).sum::<f64>();
            let (m, n) = (before as f64, (end - before) as f64);
            if end - before < SIDE_LEAST {
                continue;
            }
            let pairs = |count: f64| count * (count - 1.0) / 2.0;
            let energy = 2.0 * across / (m * n) - within_first / pairs(m) - within / pairs(n);
            let distance = m * n / (m + n) * energy;
            if best.is_none_or(|known| distance > known.distance) {
                best = Some(Split { before, end, distance });
            }
        }
    }
    best
}

fn distances_within(values: &[f64]) -> f64 {
    values
        .iter()
        .enumerate()
        .map(|(place, value)| values[..place].iter().map(|other| (value - other).abs()).sum::<f64>())
        .sum()
}

/// The best split with its p from `shuffles` random orders of the series: how likely so large a Q is when the order means
/// nothing. None below four values.
pub fn change_point(values: &[f64], shuffles: u32, seed: u64) -> Option<(Split, f64)> {
    let found = best_split(values)?;
    let mut random = Random::new(seed);
    let mut shuffled = values.to_vec();
    let mut as_large = 1_u32;
    for _ in 0..shuffles {
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, random.below(last + 1));
        }
        as_large += u32::from(best_split(&shuffled).is_some_and(|split| split.distance >= found.distance));
    }
    Some((found, f64::from(as_large) / f64::from(shuffles + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_where_it_is() {
        let values: Vec<f64> =
            (0..20).map(|place| if place < 8 { 10.0 } else { 12.0 } + 0.1 * f64::from(place % 3)).collect();
        let (split, p) = change_point(&values, 199, 1).unwrap();
        assert_eq!((split.before, split.end, p), (8, 20, 0.005));
    }

    #[test]
    fn noise_without_a_step_is_called_one_in_about_five_of_a_hundred_series() {
        let mut random = Random::new(2);
        let is_found = |seed: u64| {
            let values: Vec<f64> = (0..12).map(|_| random.unit()).collect();
            change_point(&values, 99, seed).unwrap().1 <= 0.05
        };
        let found = (0..200).map(is_found).filter(|found| *found).count();
        assert!((1..=20).contains(&found), "{found} of 200");
    }

    #[test]
    fn too_short_a_series_has_no_split() {
        assert_eq!(best_split(&[1.0, 2.0, 3.0]), None);
        assert_eq!(change_point(&[], 9, 1), None);
    }
}
