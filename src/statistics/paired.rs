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
/// `p` is that of the paired t-test on the logarithm: each pair's influence on it is a / mean(a) - b / mean(b) (delta method).
/// With ten pairs or more the interval is a bootstrap over pairs, below that the t-interval of the logarithm.
/// None below two pairs or when a mean is not above 0.
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64, confidence: f64) -> Option<RatioEstimate> {
    let (of, to): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (mean_of, mean_to) = (mean(&of).filter(|mean| *mean > 0.0)?, mean(&to).filter(|mean| *mean > 0.0)?);
    let log_ratio = (mean_of / mean_to).ln();
    let influences: Vec<f64> = pairs.iter().map(|(a, b)| a / mean_of - b / mean_to).collect();
    let count = pairs.len() as f64;
    let error = sample_sd(&influences)? / count.sqrt();
    let half = t_quantile(0.5 + confidence / 2.0, count - 1.0) * error;
    let few = pairs.len() < BOOTSTRAP_TRIALS_LEAST;
    let asked = expanded(confidence, count - 1.0, (count / (count - 1.0)).sqrt());
    let resampled = if few { None } else { bootstrap(pairs, log_ratio, &influences, seed, asked) };
    let (method, interval) = match resampled {
        Some(interval) => (IntervalMethod::Bootstrap, interval),
        None => (IntervalMethod::LogT, Interval { low: log_ratio - half, high: log_ratio + half }),
    };
    let p = match error > 0.0 {
        true => two_sided_p(log_ratio / error, count - 1.0),
        false => f64::from(u8::from(log_ratio == 0.0)),
    };
    let interval = Interval { low: interval.low.exp(), high: interval.high.exp() };
    Some(RatioEstimate { ratio: log_ratio.exp(), interval, method, p, n_of: pairs.len(), n_to: pairs.len() })
}

/// The t statistic of [`paired_ratio`] and its degrees of freedom; none where that has no spread.
pub fn paired_t(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (of, to): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (mean_of, mean_to) = (mean(&of).filter(|mean| *mean > 0.0)?, mean(&to).filter(|mean| *mean > 0.0)?);
    let influences: Vec<f64> = pairs.iter().map(|(a, b)| a / mean_of - b / mean_to).collect();
    let error = sample_sd(&influences).filter(|sd| *sd > 0.0)? / (pairs.len() as f64).sqrt();
    Some(((mean_of / mean_to).ln() / error, pairs.len() as f64 - 1.0))
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
    fn single_pairs_and_means_of_zero_have_no_ratio() {
        assert_eq!(paired_ratio(&[(1.0, 2.0)], 1, 0.95), None);
        assert_eq!(paired_ratio(&[(1.0, 0.0), (1.0, 0.0)], 1, 0.95), None);
        let still = paired_ratio(&[(2.0, 1.0), (2.0, 1.0)], 1, 0.95).unwrap();
        assert_eq!((still.ratio, still.p), (2.0, 0.0));
        assert_eq!(paired_t(&[(2.0, 1.0), (2.0, 1.0)]), None);
    }
}
