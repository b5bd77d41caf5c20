//! Practical equivalence from summaries: two one-sided tests (Schuirmann 1987) of a ratio of means against a margin.
//!
//! Main function: [`equivalence_p`]. Invariant: the absence of a difference is never taken for equality, which needs evidence of its own.

use super::student::two_sided_p;
use super::t_test::Summary;

/// Returns the p of "the ratio of a's mean to b's lies outside 1 ± `margin`": the larger of the two one-sided p of Welch's test of
/// mean(a) - ratio × mean(b) at both ends of the margin. Below half the level, the interval of the ratio at confidence
/// 1 - level lies within the margin. `None` below two values a side, when neither varies, or when b's mean is not above 0.
pub fn equivalence_p(a: Summary, b: Summary, margin: f64) -> Option<f64> {
    if a.n < 2 || b.n < 2 || b.mean <= 0.0 {
        return None;
    }
    let one_sided = |ratio: f64, is_lower: bool| {
        let (va, vb) = (a.sd.powi(2) / a.n as f64, (ratio * b.sd).powi(2) / b.n as f64);
        if va + vb <= 0.0 {
            return None;
        }
        let t = (a.mean - ratio * b.mean) / (va + vb).sqrt();
        let df = (va + vb).powi(2) / (va.powi(2) / (a.n - 1) as f64 + vb.powi(2) / (b.n - 1) as f64);
        let beyond = two_sided_p(t, df) / 2.0;
        Some(if (t > 0.0) == is_lower { beyond } else { 1.0 - beyond })
    };
    Some(one_sided(1.0 - margin, true)?.max(one_sided(1.0 + margin, false)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(mean: f64, sd: f64, n: u64) -> Summary {
        Summary { mean, sd, n }
    }

    #[test]
    fn equal_means_are_equal_only_when_they_are_known_well_enough() {
        let close = |sd| equivalence_p(summary(100.0, sd, 10), summary(100.0, sd, 10), 0.05).unwrap();
        assert!(close(1.0) < 1e-6 && close(20.0) > 0.2, "{} {}", close(1.0), close(20.0));
        // 104 of 100 is barely within 5 %, and uncertain; 110 is not within it.
        assert!(equivalence_p(summary(104.0, 3.0, 10), summary(100.0, 3.0, 10), 0.05).unwrap() > 0.05);
        assert!(equivalence_p(summary(110.0, 1.0, 10), summary(100.0, 1.0, 10), 0.05).unwrap() > 0.999);
    }

    #[test]
    fn the_margin_reaches_as_far_down_as_up() {
        let p = |mean| equivalence_p(summary(mean, 2.0, 12), summary(100.0, 2.0, 12), 0.05).unwrap();
        assert!((p(96.0) - p(104.0)).abs() < 0.02, "{} {}", p(96.0), p(104.0));
    }

    #[test]
    fn what_does_not_vary_or_is_too_small_has_no_answer() {
        let still = summary(1.0, 0.0, 5);
        assert_eq!(equivalence_p(still, still, 0.05), None);
        assert_eq!(equivalence_p(summary(1.0, 1.0, 1), still, 0.05), None);
        assert_eq!(equivalence_p(summary(1.0, 1.0, 5), summary(0.0, 1.0, 5), 0.05), None);
    }
}
