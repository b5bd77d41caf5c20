//! Tests whether the level of a series changes: the largest cumulated sum of its distances from its mean, against the same series in
//! random orders.
//!
//! Main function: [`change_point`]. Invariants: its p counts the series itself among the shuffled ones, so that it is never 0; and its
//! work grows with the length of the series, not with a power of it.

use super::random::Random;

/// The split of a series whose two sides differ most in level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Number of values before the change.
    pub before: usize,
    /// Distance of the sum of the values before the change from its expectation by the mean, in standard deviations of a random order.
    pub distance: f64,
}

/// Smallest number of values on each side of a split.
const SIDE_LEAST: usize = 2;

/// Returns the split with the largest cumulated sum of distances from the mean, each over its standard deviation in a random order, so that a
/// change near an end is seen too; `None` below four values.
pub fn best_split(values: &[f64]) -> Option<Split> {
    best_of(&distances(values))
}

/// Returns the values less their mean. Ranks would find the same changes and place them nearer to the middle than they are.
fn distances(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

fn best_of(distances: &[f64]) -> Option<Split> {
    let count = distances.len() as f64;
    let variance = distances.iter().map(|apart| apart * apart).sum::<f64>() / (count - 1.0);
    let mut sum = 0.0;
    let mut best: Option<Split> = None;
    for (place, apart) in distances.iter().enumerate().take(distances.len().saturating_sub(SIDE_LEAST)) {
        sum += apart;
        let before = place + 1;
        let (m, n) = (before as f64, count - before as f64);
        let spread = (variance * m * n / count).sqrt();
        let distance = if spread > 0.0 { f64::abs(sum) / spread } else { 0.0 };
        if before >= SIDE_LEAST && best.is_none_or(|known| distance > known.distance) {
            best = Some(Split { before, distance });
        }
    }
    best
}

/// Returns the best split with its p from `shuffles` random orders of the series: the probability of so large a distance if the order has no
/// meaning. `None` below four values.
pub fn change_point(values: &[f64], shuffles: u32, seed: u64) -> Option<(Split, f64)> {
    let mut shuffled = distances(values);
    let found = best_of(&shuffled)?;
    let mut random = Random::new(seed);
    let mut as_large = 1_u32;
    for _ in 0..shuffles {
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, random.below(last + 1));
        }
        // Sums in different orders differ by rounding.
        as_large += u32::from(best_of(&shuffled).is_some_and(|split| split.distance >= found.distance * (1.0 - 1e-12)));
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
        assert_eq!((split.before, p), (8, 0.005));
    }

    #[test]
    fn of_ranks_the_distance_is_that_of_the_rank_sum_test() {
        // Ranks 1 to 5 before 6 to 10: U = 0, z = 12.5 / sqrt(25 * 11 / 12) (Wilcoxon).
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let found = best_split(&values).unwrap();
        assert_eq!(found.before, 5);
        assert!((found.distance - 12.5 / (25.0 * 11.0 / 12.0_f64).sqrt()).abs() < 1e-12, "{found:?}");
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
    fn equal_values_have_no_step() {
        assert_eq!(change_point(&[1.0; 9], 19, 1).unwrap().1, 1.0);
    }

    #[test]
    fn twenty_thousand_values_are_no_more_work_than_they_are_long() {
        // With work of the third power, 19 random orders of this series would take days.
        let values: Vec<f64> =
            (0..20_000).map(|place| f64::from(place % 97) + if place < 9_000 { 0.0 } else { 20.0 }).collect();
        let (split, p) = change_point(&values, 19, 3).unwrap();
        assert!(split.before.abs_diff(9_000) < 100 && p == 0.05, "{split:?} {p}");
    }

    #[test]
    fn too_short_a_series_has_no_split() {
        assert_eq!(best_split(&[1.0, 2.0, 3.0]), None);
        assert_eq!(change_point(&[], 9, 1), None);
    }
}
