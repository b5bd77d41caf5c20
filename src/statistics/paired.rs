//! The ratio of two means whose values come in pairs: trials of the same round share what the machine did at that time, and
//! the ratio of the means need not answer for it.
//!
//! Main function: [`paired_ratio`]. Invariant: a factor that both values of a pair share cancels, whatever it is.

use super::bootstrap::{bca, expanded};
use super::random::Random;
use super::ratio::{BOOTSTRAP_TRIALS_LEAST, IntervalMethod, RESAMPLES, RatioEstimate};
use super::student::{t_quantile, two_sided_p};
use super::summary::{Interval, mean, sample_sd};

/// The ratio of the mean of the first values to the mean of the second ones, with an interval of a confidence in (0, 1).
/// `p` is that of the paired t-test of the differences: alternatives that differ in nothing have differences that are spread
/// evenly around 0 however skewed the values are, which is not so for the logarithm of the ratio. With ten pairs or more
/// the interval is a bootstrap over pairs, below that Fieller's. None below two pairs, when a mean is not above 0, or when
/// the second mean is not known to be above 0.
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64, confidence: f64) -> Option<RatioEstimate> {
    let (of, to): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (mean_of, mean_to) = (mean(&of).filter(|mean| *mean > 0.0)?, mean(&to).filter(|mean| *mean > 0.0)?);
    let log_ratio = (mean_of / mean_to).ln();
    let count = pairs.len() as f64;
    let few = pairs.len() < BOOTSTRAP_TRIALS_LEAST;
    let asked = expanded(confidence, count - 1.0, (count / (count - 1.0)).sqrt());
    let influences: Vec<f64> = pairs.iter().map(|(a, b)| a / mean_of - b / mean_to).collect();
    let resampled = if few { None } else { bootstrap(pairs, log_ratio, &influences, seed, asked) };
    let (method, interval) = match resampled {
        Some(found) => (IntervalMethod::Bootstrap, Interval { low: found.low.exp(), high: found.high.exp() }),
        None => (IntervalMethod::Fieller, fieller(&of, &to, confidence)?),
    };
    let p = match paired_t(pairs) {
        Some((t, df)) => two_sided_p(t, df),
        None => f64::from(u8::from(mean_of == mean_to)),
    };
    Some(RatioEstimate { ratio: mean_of / mean_to, interval, method, p, n_of: pairs.len(), n_to: pairs.len() })
}

/// The geometric mean of ratios of which each is one round's, with the 95 % t-interval of its logarithm: alternatives that differ in
/// nothing have logarithms that are spread evenly around 0. None below two ratios or when one is not above 0.
pub fn geometric_ratio(ratios: &[f64]) -> Option<RatioEstimate> {
    if !ratios.iter().all(|ratio| *ratio > 0.0) {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let (centre, count) = (mean(&logs)?, logs.len() as f64);
    let error = sample_sd(&logs)? / count.sqrt();
    let half = t_quantile(0.975, count - 1.0) * error;
    let p = match error > 0.0 {
        true => two_sided_p(centre / error, count - 1.0),
        false => f64::from(u8::from(centre == 0.0)),
    };
    let interval = Interval { low: (centre - half).exp(), high: (centre + half).exp() };
    let n = logs.len();
    Some(RatioEstimate { ratio: centre.exp(), interval, method: IntervalMethod::LogT, p, n_of: n, n_to: n })
}

/// The t statistic of the differences and its degrees of freedom; none below two pairs or where they do not vary.
pub fn paired_t(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let error = sample_sd(&differences).filter(|sd| *sd > 0.0)? / (pairs.len() as f64).sqrt();
    Some((mean(&differences)? / error, pairs.len() as f64 - 1.0))
}

/// All ratios r for which the paired t-test does not refuse that mean(a) = r mean(b): between the roots of
/// (mean(a) - r mean(b))² = t² (var(a) - 2 r cov(a, b) + r² var(b)) / n. None below two pairs, or when b's mean is not known to
/// be above 0, because the ratio then has no bounded interval.
fn fieller(of: &[f64], to: &[f64], confidence: f64) -> Option<Interval> {
    let count = of.len() as f64;
    let (mean_of, mean_to) = (mean(of)?, mean(to)?);
    let scale = t_quantile(0.5 + confidence / 2.0, count - 1.0).powi(2) / count;
    let covariance =
        of.iter().zip(to).map(|(a, b)| (a - mean_of) * (b - mean_to)).sum::<f64>() / (count - 1.0).max(1.0);
    let square = mean_to.powi(2) - scale * sample_sd(to)?.powi(2);
    let linear = mean_of * mean_to - scale * covariance;
    let constant = mean_of.powi(2) - scale * sample_sd(of)?.powi(2);
    if square <= 0.0 {
        return None;
    }
    let root = (linear.powi(2) - square * constant).max(0.0).sqrt();
    Some(Interval { low: (linear - root) / square, high: (linear + root) / square })
}

/// The bootstrap interval of the logarithm, whole pairs resampled; none when a resample has no mean above 0.
fn bootstrap(pairs: &[(f64, f64)], estimate: f64, influences: &[f64], seed: u64, confidence: f64) -> Option<Interval> {
    let mut random = Random::new(seed);
    let mut replicates = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (mut of, mut to) = (0.0, 0.0);
        for _ in 0..pairs.len() {
            let (a, b) = pairs[random.below(pairs.len())];
            of += a;
            to += b;
        }
        if of <= 0.0 || to <= 0.0 {
            return None;
        }
        replicates.push((of / to).ln());
    }
    bca(&replicates, estimate, influences, confidence).map(|bca| bca.interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::matched_ratio;

    /// Pairs of a true ratio of `ratio`, each pair under a drift of its own that spans a factor of two.
    fn drifting(random: &mut Random, ratio: f64, count: usize) -> Vec<(f64, f64)> {
        let noise = |random: &mut Random| 1.0 + 0.02 * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0);
        (0..count)
            .map(|place| {
                let drift = 1.0 + place as f64 / count as f64;
                (1000.0 * ratio * drift * noise(random), 1000.0 * drift * noise(random))
            })
            .collect()
    }

    #[test]
    fn what_a_pair_shares_does_not_widen_the_interval() {
        let pairs = drifting(&mut Random::new(3), 1.1, 12);
        let (of, to): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (paired, apart) = (paired_ratio(&pairs, 1, 0.95).unwrap(), matched_ratio(&[(&of, &to)], 1).unwrap());
        assert!((paired.ratio - apart.ratio).abs() < 1e-12, "both are the ratio of the means");
        assert!(paired.interval.half_width() < 0.2 * apart.interval.half_width(), "{paired:?} {apart:?}");
        assert!(paired.p < 1e-4 && apart.p > 0.05, "{paired:?} {apart:?}");
    }

    #[test]
    fn intervals_of_drifting_pairs_miss_the_true_ratio_about_five_times_in_a_hundred() {
        for count in [5, 8, 12] {
            let mut random = Random::new(count as u64);
            let missed = (0..400).filter(|seed| {
                let interval = paired_ratio(&drifting(&mut random, 1.25, count), *seed, 0.95).unwrap().interval;
                !(interval.low..=interval.high).contains(&1.25)
            });
            // 400 intervals at 95 % miss 20 times; more than three standard deviations either way.
            let missed = missed.count();
            assert!((6..=40).contains(&missed), "{missed} of 400 missed with {count} pairs");
        }
    }

    #[test]
    fn equal_alternatives_are_told_apart_as_seldom_when_values_are_skewed() {
        let mut random = Random::new(9);
        // The exponential of a normal value: a few are many times the usual one.
        let mut value = || ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0).exp();
        let told = (0..1000).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..12).map(|_| (value(), value())).collect();
            paired_t(&pairs).is_some_and(|(t, df)| two_sided_p(t, df) < 0.05)
        });
        // 50 expected; heavy tails make a t-test a little too careful.
        let told = told.count();
        assert!((15..=73).contains(&told), "{told} of 1000");
    }

    #[test]
    fn the_interval_of_few_pairs_ends_where_the_test_begins_to_refuse() {
        let pairs = drifting(&mut Random::new(6), 1.1, 6);
        let interval = paired_ratio(&pairs, 1, 0.95).unwrap().interval;
        for end in [interval.low, interval.high] {
            let scaled: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*a, end * b)).collect();
            let (t, df) = paired_t(&scaled).unwrap();
            assert!((two_sided_p(t, df) - 0.05).abs() < 1e-6, "{end}");
        }
    }

    #[test]
    fn single_pairs_and_means_of_zero_have_no_ratio() {
        assert_eq!(paired_ratio(&[(1.0, 2.0)], 1, 0.95), None);
        assert_eq!(paired_ratio(&[(1.0, 0.0), (1.0, 0.0)], 1, 0.95), None);
        let still = paired_ratio(&[(2.0, 1.0), (2.0, 1.0)], 1, 0.95).unwrap();
        assert_eq!((still.ratio, still.p), (2.0, 0.0));
        assert_eq!(paired_t(&[(2.0, 1.0), (2.0, 1.0)]), None);
    }

    #[test]
    fn the_geometric_mean_of_rounds_has_the_t_interval_of_its_logarithm() {
        // Logarithms 0.1, 0.2 and 0.3: mean 0.2, standard error 0.1 / sqrt(3), t(0.975, 2) = 4.302653.
        let ratios: Vec<f64> = [0.1_f64, 0.2, 0.3].iter().map(|log| log.exp()).collect();
        let found = geometric_ratio(&ratios).unwrap();
        let half = 4.302_652_73 * 0.1 / 3.0_f64.sqrt();
        assert!((found.ratio - 0.2_f64.exp()).abs() < 1e-12);
        assert!((found.interval.low - (0.2 - half).exp()).abs() < 1e-6, "{:?}", found.interval);
        assert!((found.interval.high - (0.2 + half).exp()).abs() < 1e-6, "{:?}", found.interval);
        assert!((found.p - 0.074_18).abs() < 1e-4, "t = 3.464 with 2 degrees: {}", found.p);
        assert!(geometric_ratio(&[1.2]).is_none() && geometric_ratio(&[1.2, 0.0]).is_none());
        assert_eq!(geometric_ratio(&[1.0, 1.0]).unwrap().p, 1.0);
    }
}
