//! Families of comparisons: p-values adjusted for how many questions were asked at once.
//!
//! Invariant: adjusted values are in the order of the given ones, at most 1, and never below them.

/// Bonferroni's adjustment: keeps the probability of any false finding in the family below the level, as do intervals that are each
/// at the level over the size of the family.
pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    p.iter().map(|one| (one * p.len() as f64).min(1.0)).collect()
}

/// Holm's step-down adjustment (1979): keeps the probability of any false finding in the family below the level.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let count = p.len();
    let mut adjusted = vec![0.0; count];
    let mut highest = 0.0_f64;
    for (rank, index) in ascending(p).into_iter().enumerate() {
        highest = highest.max(p[index] * (count - rank) as f64).min(1.0);
        adjusted[index] = highest;
    }
    adjusted
}

/// The adjustment of Benjamini and Hochberg (1995): keeps the expected share of false findings below the level.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let count = p.len();
    let mut adjusted = vec![0.0; count];
    let mut lowest = 1.0_f64;
    for (rank, index) in ascending(p).into_iter().enumerate().rev() {
        lowest = lowest.min(p[index] * count as f64 / (rank + 1) as f64);
        adjusted[index] = lowest;
    }
    adjusted
}

/// Returns the indexes of the values, smallest value first.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn adjusting_never_lowers_a_p_and_holm_is_the_stricter(p in prop::collection::vec(0.0f64..=1.0, 0..20)) {
            let (bonferroni, holm, bh) = (bonferroni(&p), holm(&p), benjamini_hochberg(&p));
            for index in 0..p.len() {
                prop_assert!(p[index] <= bh[index] + 1e-15 && bh[index] <= holm[index] + 1e-15 && holm[index] <= 1.0);
                prop_assert!(holm[index] <= bonferroni[index] + 1e-15 && bonferroni[index] <= 1.0);
            }
        }
    }
}
