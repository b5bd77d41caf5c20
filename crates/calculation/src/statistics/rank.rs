//! Rank statistics: comparisons that do not depend on the distribution of values, and sizes of a difference that outliers hardly affect.
//!
//! Invariant: only the order of values decides U, p and delta; ties count half.

use super::shift::median_difference;
use super::student::normal_probability;
use super::summary::median;

/// The outcome of a Mann-Whitney test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs in which a's value is the larger, ties counted half.
    pub u: f64,
    /// Two-sided p of the test.
    pub p: f64,
    /// Whether p was counted exactly; otherwise it is the normal approximation with corrections for ties and continuity.
    pub exact: bool,
}

/// Largest number of pairs for which p is counted exactly.
const PAIRS_EXACT: usize = 2500;

/// Computes the Mann-Whitney test of two groups; `None` when one is empty.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let u = pairs_won(a, b);
    let doubled = doubled_ranks(a, b);
    if a.len() * b.len() <= PAIRS_EXACT {
        return Some(MannWhitney { u, p: exact_p(&doubled, a.len()), exact: true });
    }
    let (na, nb, n) = (a.len() as f64, b.len() as f64, doubled.len() as f64);
    let spread: f64 = doubled.iter().map(|rank| (*rank as f64 / 2.0 - (n + 1.0) / 2.0).powi(2)).sum();
    let variance = na * nb * spread / (n * (n - 1.0));
    let distance = ((u - na * nb / 2.0).abs() - 0.5).max(0.0);
    let p = if variance > 0.0 { (2.0 * normal_probability(-distance / variance.sqrt())).min(1.0) } else { 1.0 };
    Some(MannWhitney { u, p, exact: false })
}

/// Returns Cliff's delta: the share of pairs in which a's value is larger less the share in which it is smaller, -1..1; `None` when
/// a group is empty.
pub fn cliffs_delta(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() { None } else { Some(2.0 * pairs_won(a, b) / (a.len() * b.len()) as f64 - 1.0) }
}

/// Returns the Hodges-Lehmann shift: the median of all differences a - b; `None` when a group is empty.
pub fn hodges_lehmann(a: &[f64], b: &[f64]) -> Option<f64> {
    median_difference(a, b)
}

/// Returns the median of a over the median of b; `None` when a group is empty or b's median is zero.
pub fn ratio_of_medians(a: &[f64], b: &[f64]) -> Option<f64> {
    Some(median(a)? / median(b).filter(|centre| *centre != 0.0)?)
}

fn pairs_won(a: &[f64], b: &[f64]) -> f64 {
    let mut sorted = b.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Halves add up without rounding, whatever their order.
    let won = |x: &f64| {
        let below = sorted.partition_point(|y| y < x);
        let upto = sorted.partition_point(|y| y <= x);
        (below + upto) as f64 / 2.0
    };
    a.iter().map(won).sum()
}

/// Returns twice the mid-rank of every value, a's first: whole numbers even with ties.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let mut sorted: Vec<f64> = a.iter().chain(b).copied().collect();
    sorted.sort_by(f64::total_cmp);
    let rank_of = |value: f64| {
        let below = sorted.partition_point(|other| *other < value);
        let upto = sorted.partition_point(|other| *other <= value);
        below + upto + 1
    };
    a.iter().chain(b).map(|value| rank_of(*value)).collect()
}

/// Returns the exact p: counts, over all ways to draw `size` of the ranks, the sums that are at least as far from the expected sum as the one
/// observed. Counts are kept as shares, so they do not overflow.
fn exact_p(doubled: &[usize], size: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    let observed: usize = doubled[..size].iter().sum();
    let mut ways = vec![vec![0.0_f64; total + 1]; size + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in doubled.iter().enumerate() {
        for drawn in (1..=size.min(seen + 1)).rev() {
            for sum in (*rank..=total).rev() {
                let added = ways[drawn - 1][sum - rank];
                ways[drawn][sum] += added;
            }
        }
    }
    let all: f64 = ways[size].iter().sum();
    // Distances are compared in units of 1/n of a doubled rank, where they are whole numbers.
    let distance = |sum: usize| (sum * doubled.len()).abs_diff(total * size);
    let far: f64 = (0..=total).filter(|sum| distance(*sum) >= distance(observed)).map(|sum| ways[size][sum]).sum();
    far / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_without_any_difference_are_not_told_apart() {
        let test = mann_whitney(&[1.0, 1.0, 1.0], &[1.0, 1.0]).unwrap();
        assert_eq!((test.u, test.p, test.exact), (3.0, 1.0, true));
        assert_eq!(cliffs_delta(&[1.0, 2.0], &[1.0, 2.0]), Some(0.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!((hodges_lehmann(&[], &[1.0]), ratio_of_medians(&[1.0], &[0.0])), (None, None));
    }

    #[test]
    fn the_approximation_for_many_values_is_close_to_the_exact_count() {
        let a: Vec<f64> = (0..50).map(|i| f64::from(i * 37 % 101)).collect();
        let b: Vec<f64> = (0..50).map(|i| f64::from(i * 53 % 103) + 9.5).collect();
        let exact = mann_whitney(&a, &b).unwrap();
        let (a_more, b_more) = ([&a[..], &[50.25]].concat(), [&b[..], &[50.75]].concat());
        let approximate = mann_whitney(&a_more, &b_more).unwrap();
        assert!(exact.exact && !approximate.exact);
        assert!((exact.p - approximate.p).abs() < 0.02, "{exact:?} {approximate:?}");
    }
}
