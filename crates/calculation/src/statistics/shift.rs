//! The shift between two groups of values, with an interval that needs no distribution: Hodges and Lehmann (1963).
//!
//! Main function: [`shift`]. Invariants: the interval's ends are differences of two values, and it holds 0 exactly where the
//! Mann-Whitney test at the same level does not distinguish the groups (without ties); and the differences, which are as many as there are
//! pairs, are never stored, so that memory and work grow with the number of values.

use super::student::normal_quantile;
use super::summary::Interval;

/// Largest number of pairs for which the ranks of the interval's ends are counted exactly; above, the normal approximation is good to a
/// fraction of a rank.
const PAIRS_EXACT: usize = 400;

/// Returns the median of all differences a - b, and the interval of the shift at a confidence in (0, 1). The interval is `None` when
/// there are too few values for the confidence; the whole is `None` when a group is empty.
pub fn shift(a: &[f64], b: &[f64], confidence: f64) -> Option<(f64, Option<Interval>)> {
    let differences = Differences::of(a, b)?;
    let interval = rank_of_end(a.len(), b.len(), (1.0 - confidence) / 2.0)
        .map(|rank| Interval { low: differences.at(rank - 1), high: differences.at(differences.count() - rank) });
    Some((differences.median(), interval))
}

/// Returns the median of all differences a - b; `None` when a group is empty.
pub fn median_difference(a: &[f64], b: &[f64]) -> Option<f64> {
    Differences::of(a, b).map(|differences| differences.median())
}

/// All differences of a value of one group and a value of the other, at least one, by their index in ascending order.
struct Differences {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Differences {
    fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let ordered = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values
        };
        (!a.is_empty() && !b.is_empty()).then(|| Differences { a: ordered(a), b: ordered(b) })
    }

    fn count(&self) -> usize {
        self.a.len() * self.b.len()
    }

    fn median(&self) -> f64 {
        let middle = self.count() / 2;
        if self.count() % 2 == 1 { self.at(middle) } else { (self.at(middle - 1) + self.at(middle)) / 2.0 }
    }

    /// Returns the difference at an index of the ascending order, from 0. Floating-point numbers in their order are whole numbers, and bisecting those finds the
    /// smallest number that enough differences do not exceed: itself a difference, to the last bit.
    fn at(&self, place: usize) -> f64 {
        let (mut low, mut high) =
            (ordinal(self.a[0] - self.b[self.b.len() - 1]), ordinal(self.a[self.a.len() - 1] - self.b[0]));
        while low < high {
            let middle = low.midpoint(high);
            if self.at_most(number(middle)) > place { high = middle } else { low = middle + 1 }
        }
        number(low)
    }

    /// Returns the number of differences that are at most `most`. Rounding keeps their order: a larger a never gives a smaller difference, so that one pass
    /// over both groups counts them.
    fn at_most(&self, most: f64) -> usize {
        let (mut first, mut count) = (0, 0);
        for x in &self.a {
            while first < self.b.len() && (x - self.b[first]).total_cmp(&most).is_gt() {
                first += 1;
            }
            count += self.b.len() - first;
        }
        count
    }
}

/// Returns the index of a number among all floating-point numbers, as [`f64::total_cmp`] orders them.
fn ordinal(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the number at an index.
fn number(ordinal: u64) -> f64 {
    f64::from_bits(if ordinal >> 63 == 1 { ordinal & !(1 << 63) } else { !ordinal })
}

/// Returns the 1-based rank, from either end of the ordered differences, of the interval's end: the largest k for which U < k has a
/// probability of at most `tail`. `None` when even the outermost differences are not certain enough.
fn rank_of_end(a: usize, b: usize, tail: f64) -> Option<usize> {
    let pairs = a * b;
    if pairs > PAIRS_EXACT {
        let (m, n) = (a as f64, b as f64);
        let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
        let rank = (m * n / 2.0 + normal_quantile(tail) * deviation).floor();
        return (rank >= 1.0).then_some(rank as usize);
    }
    let shares = null_distribution(a, b);
    let mut below = 0.0;
    let mut rank = 0;
    for share in shares {
        below += share;
        if below > tail {
            break;
        }
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

/// Returns the probabilities of U = 0, 1, ... when both groups come from the same distribution without ties: of the orders of a + b
/// values, U counts the pairs in which a's value is the larger. The largest value is a's (it wins b pairs) or b's.
fn null_distribution(a: usize, b: usize) -> Vec<f64> {
    // ways[n][u] for the current number of a's; shares instead of counts, so that nothing overflows.
    let mut ways: Vec<Vec<f64>> = vec![vec![1.0]; b + 1];
    for m in 1..=a {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for n in 1..=b {
            let (from_a, from_b) = (m as f64 / (m + n) as f64, n as f64 / (m + n) as f64);
            let mut row = vec![0.0; m * n + 1];
            for (u, share) in ways[n].iter().enumerate() {
                row[u + n] += from_a * share;
            }
            for (u, share) in next[n - 1].iter().enumerate() {
                row[u] += from_b * share;
            }
            next.push(row);
        }
        ways = next;
    }
    ways.swap_remove(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::rank::mann_whitney;
    use proptest::prelude::*;

    #[test]
    fn the_ends_stand_at_the_ranks_of_published_tables() {
        // Critical values of U at two-sided 5 %: 5 + 5 give 2, 6 + 6 give 5, 10 + 10 give 23; the end is one further in.
        for (size, critical) in [(5, 2), (6, 5), (10, 23), (20, 127)] {
            assert_eq!(rank_of_end(size, size, 0.025), Some(critical + 1), "{size}");
        }
        assert_eq!(rank_of_end(3, 3, 0.025), None, "three values a side are never certain at 95 %");
    }

    #[test]
    fn the_approximation_joins_the_exact_ranks() {
        // 21 + 20 is beyond the exact count; neighbours differ by about six ranks.
        let (exact, next) = (rank_of_end(20, 20, 0.025).unwrap(), rank_of_end(21, 20, 0.025).unwrap());
        assert!((4..=9).contains(&(next - exact)), "{exact} {next}");
    }

    #[test]
    fn a_shift_of_all_values_is_found() {
        let b: Vec<f64> = (0..9).map(|place| f64::from(place * place)).collect();
        let a: Vec<f64> = b.iter().map(|value| value + 3.5).collect();
        let (centre, interval) = shift(&a, &b, 0.95).unwrap();
        assert_eq!(centre, 3.5);
        assert!(interval.unwrap().low < 3.5 && interval.unwrap().high > 3.5);
        assert_eq!(shift(&[], &b, 0.95), None);
        assert_eq!(shift(&[1.0, 2.0], &[1.0], 0.95), Some((0.5, None)));
    }

    proptest! {
        #[test]
        fn each_difference_is_the_one_that_sorting_all_of_them_gives(
            a in prop::collection::vec(prop_oneof![-1e9f64..1e9, 0.0f64..1e-3, Just(0.25)], 1..12),
            b in prop::collection::vec(prop_oneof![-1e9f64..1e9, 0.0f64..1e-3, Just(0.25)], 1..12),
        ) {
            let mut sorted: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x - y)).collect();
            sorted.sort_by(f64::total_cmp);
            let differences = Differences::of(&a, &b).unwrap();
            let found: Vec<f64> = (0..sorted.len()).map(|place| differences.at(place)).collect();
            prop_assert_eq!(found, sorted);
        }

        #[test]
        fn the_interval_and_the_exact_test_agree(a in prop::collection::vec(0.0f64..1.0, 5..9), b in prop::collection::vec(0.3f64..1.3, 5..9)) {
            let interval = shift(&a, &b, 0.95).unwrap().1.unwrap();
            let is_told_apart = mann_whitney(&a, &b).unwrap().p <= 0.05;
            prop_assert_eq!(is_told_apart, interval.low > 0.0 || interval.high < 0.0);
        }
    }
}
