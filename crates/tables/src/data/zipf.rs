//! Zipf-distributed ranks in constant memory and constant expected time.
//!
//! Rejection-inversion of W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6(3), 1996: a point under the hat h(x) = x^-s, drawn by inverting its integral H, is rounded
//! to a rank and kept when it lies under that rank's bar.

use crate::random::Stream;

/// Ranks 1 to `ranks`; rank k has a probability proportional to k^-exponent.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// H(3/2) - 1, where the area of rank 1 begins.
    area_first: f64,
    /// H(ranks + 1/2), where the area of the last rank ends.
    area_last: f64,
    /// A point this close below its rank is kept without checking the bar.
    sure: f64,
}

impl Zipf {
    /// Creates a distribution over at least one rank, with an exponent above 0.
    pub(super) fn new(ranks: u64, exponent: f64) -> Self {
        let ranks = ranks.max(1) as f64;
        let mut zipf = Zipf { ranks, exponent, area_first: 0.0, area_last: 0.0, sure: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(ranks + 0.5);
        zipf.sure = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// Returns the next rank, in `1..=ranks`.
    pub(super) fn rank(&self, stream: &mut Stream) -> u64 {
        loop {
            let area = self.area_last + stream.unit() * (self.area_first - self.area_last);
            let point = self.area_inverse(area);
            let rank = (point + 0.5).floor().clamp(1.0, self.ranks);
            if rank - point <= self.sure || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    /// Returns h(x) = x^-s.
    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// Returns H(x) = (x^(1-s) - 1) / (1-s), which is ln x for s = 1; written so that it stays exact close to s = 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        if power.abs() > 1e-8 { log * power.exp_m1() / power } else { log * (1.0 + power / 2.0) }
    }

    /// Returns the inverse of H.
    fn area_inverse(&self, area: f64) -> f64 {
        let scaled = ((1.0 - self.exponent) * area).max(-1.0);
        let log = if scaled.abs() > 1e-8 { area * scaled.ln_1p() / scaled } else { area * (1.0 - scaled / 2.0) };
        log.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns Pearson's chi-square of drawn ranks against the exact probabilities, with the degrees of freedom; ranks with
    /// fewer than ten expected are merged.
    fn chi_square(ranks: u64, exponent: f64, draws: u32) -> (f64, f64) {
        let zipf = Zipf::new(ranks, exponent);
        let mut stream = Stream::new(42, ranks, 0);
        let mut counts = vec![0_u32; ranks as usize];
        for _ in 0..draws {
            counts[zipf.rank(&mut stream) as usize - 1] += 1;
        }
        let weights: Vec<f64> = (1..=ranks).map(|rank| (rank as f64).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        let (mut chi2, mut bins, mut expected, mut seen) = (0.0, 0, 0.0, 0.0);
        for (weight, count) in weights.iter().zip(&counts) {
            expected += weight / sum * f64::from(draws);
            seen += f64::from(*count);
            if expected >= 10.0 {
                chi2 += (seen - expected) * (seen - expected) / expected;
                bins += 1;
                (expected, seen) = (0.0, 0.0);
            }
        }
        (chi2, f64::from(bins - 1))
    }

    #[test]
    fn ranks_follow_the_exact_probabilities() {
        for (ranks, exponent) in [(10, 0.5), (100, 0.99), (1000, 1.0), (1000, 1.000_000_001), (50, 2.5), (2, 1.0)] {
            let (chi2, freedom) = chi_square(ranks, exponent, 200_000);
            // Chi-square is close to normal with this mean and variance; four and a half standard deviations.
            let bound = freedom + 4.5 * (2.0 * freedom).sqrt() + 5.0;
            assert!(chi2 < bound, "ranks {ranks}, exponent {exponent}: chi-square {chi2} with {freedom} degrees");
        }
    }

    #[test]
    fn a_wrong_exponent_would_be_noticed() {
        let zipf = Zipf::new(100, 0.99);
        let mut stream = Stream::new(1, 1, 1);
        let draws = 200_000;
        let first = (0..draws).filter(|_| zipf.rank(&mut stream) == 1).count() as f64 / f64::from(draws);
        let probability = |exponent: f64| 1.0 / (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum::<f64>();
        let error = (probability(0.99) * (1.0 - probability(0.99)) / f64::from(draws)).sqrt();
        assert!((first - probability(0.99)).abs() < 4.0 * error);
        assert!((first - probability(0.90)).abs() > 4.0 * error);
    }

    #[test]
    fn one_rank_and_very_many_ranks_work() {
        let mut stream = Stream::new(1, 1, 1);
        let one = Zipf::new(1, 0.99);
        assert!((0..100).all(|_| one.rank(&mut stream) == 1));
        let ranks = 1 << 60;
        let many = Zipf::new(ranks, 0.99);
        let drawn: Vec<_> = (0..1000).map(|_| many.rank(&mut stream)).collect();
        assert!(drawn.iter().all(|rank| (1..=ranks).contains(rank)));
        assert!(drawn.iter().any(|rank| *rank > 1 << 40), "the tail is reached");
    }
}
