//! Ratios of means between alternatives, alone or as the geometric mean over matched cases.
//!
//! Main type: [`RatioEstimate`]. Everything is one weighted sum of logarithms of case means, `sum of w ln(mean)`; its
//! exponential is the ratio. Invariant: trials are resampled within their case only, so cases stay matched.

use super::bootstrap::{bca, expanded};
use super::random::Random;
use super::student::{t_quantile, two_sided_p};
use super::summary::{Interval, mean, sample_sd};
use super::t_test::Summary;

/// The trials of one case and the power with which its mean enters the ratio: above 0 for the numerator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell<'a> {
    /// Power of the case's mean.
    pub weight: f64,
    /// One value per trial.
    pub trials: &'a [f64],
}

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalMethod {
    /// t-interval of the logarithm: where a case has few trials, which a bootstrap would take as all there are.
    LogT,
    /// Fieller's interval over pairs: all ratios that the paired t-test does not refuse.
    Fieller,
    /// Bias-corrected and accelerated bootstrap over trials.
    Bootstrap,
}

/// A ratio with what is known about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioEstimate {
    /// The ratio.
    pub ratio: f64,
    /// Its interval, at 95 % unless another confidence was asked for.
    pub interval: Interval,
    /// How the interval was made.
    pub method: IntervalMethod,
    /// Two-sided p of the ratio being 1: Welch's test on the logarithm.
    pub p: f64,
    /// Trials in the numerator.
    pub n_of: usize,
    /// Trials in the denominator.
    pub n_to: usize,
}

/// From this many trials in every case on, intervals are made by the bootstrap, widened for what it does not know of few values
/// ([`expanded`]). Below, too few different resamples exist for its tails.
pub const BOOTSTRAP_TRIALS_LEAST: usize = 10;
/// Resamples of a bootstrap.
pub(super) const RESAMPLES: usize = 4000;

/// The weighted ratio of case means with its 95 % interval. None when a case has fewer than two trials or a mean that is not
/// above 0.
pub fn weighted_ratio(cells: &[Cell<'_>], seed: u64) -> Option<RatioEstimate> {
    weighted_ratio_at(cells, seed, 0.95)
}

/// [`weighted_ratio`] with an interval of another confidence in (0, 1).
pub fn weighted_ratio_at(cells: &[Cell<'_>], seed: u64, confidence: f64) -> Option<RatioEstimate> {
    let log_ratio = log_ratio(cells.iter().map(|cell| (cell.weight, mean(cell.trials))))?;
    let (variance, df) = log_variance(cells)?;
    let half = t_quantile(0.5 + confidence / 2.0, df) * variance.sqrt();
    let few = cells.iter().any(|cell| cell.trials.len() < BOOTSTRAP_TRIALS_LEAST);
    // What a bootstrap takes for the variance: each case's with divisor n.
    let shrunk: f64 = cells.iter().map(|cell| plugin_variance(cell)).sum();
    let inflation = if shrunk > 0.0 { (variance / shrunk).sqrt() } else { 1.0 };
    let asked = expanded(confidence, df, inflation);
    let resampled = if few { None } else { bootstrap(cells, log_ratio, seed, asked) };
    let (method, log_interval) = match resampled {
        Some(interval) => (IntervalMethod::Bootstrap, interval),
        None => (IntervalMethod::LogT, Interval { low: log_ratio - half, high: log_ratio + half }),
    };
    let p = match variance > 0.0 {
        true => two_sided_p(log_ratio / variance.sqrt(), df),
        false => f64::from(u8::from(log_ratio == 0.0)),
    };
    let trials = |of: bool| cells.iter().filter(|cell| (cell.weight > 0.0) == of).map(|cell| cell.trials.len()).sum();
    Some(RatioEstimate {
        ratio: log_ratio.exp(),
        interval: Interval { low: log_interval.low.exp(), high: log_interval.high.exp() },
        method,
        p,
        n_of: trials(true),
        n_to: trials(false),
    })
}

/// The geometric mean of the ratios of matched cases, each pair (numerator, denominator) weighing the same. None without
/// pairs, and as [`weighted_ratio`].
pub fn matched_ratio(pairs: &[(&[f64], &[f64])], seed: u64) -> Option<RatioEstimate> {
    if pairs.is_empty() {
        return None;
    }
    let weight = 1.0 / pairs.len() as f64;
    let cells: Vec<Cell<'_>> =
        pairs.iter().flat_map(|(of, to)| [Cell { weight, trials: of }, Cell { weight: -weight, trials: to }]).collect();
    weighted_ratio(&cells, seed)
}

/// [`fieller_of`] the two samples' summaries.
pub fn fieller(of: &[f64], to: &[f64]) -> Option<(f64, Interval)> {
    fieller_of(Summary::of(of)?, Summary::of(to)?)
}

/// The ratio of two means with Fieller's 95 % interval, in the form of Kalibera and Jones (2013, section 7): from the
/// half-widths of the two means' own intervals. None below two values a side, or when the denominator's interval
/// reaches 0, because the ratio then has no bounded interval.
pub fn fieller_of(of: Summary, to: Summary) -> Option<(f64, Interval)> {
    if of.n < 2 || to.n < 2 {
        return None;
    }
    let half = |side: Summary| t_quantile(0.975, side.n as f64 - 1.0) * side.sd / (side.n as f64).sqrt();
    let (half_of, half_to) = (half(of), half(to));
    let below = to.mean.powi(2) - half_to.powi(2);
    if below <= 0.0 {
        return None;
    }
    let product = of.mean * to.mean;
    let root = (product.powi(2) - below * (of.mean.powi(2) - half_of.powi(2))).max(0.0).sqrt();
    Some((of.mean / to.mean, Interval { low: (product - root) / below, high: (product + root) / below }))
}

fn log_ratio(means: impl Iterator<Item = (f64, Option<f64>)>) -> Option<f64> {
    let mut sum = 0.0;
    for (weight, mean) in means {
        sum += weight * mean.filter(|mean| *mean > 0.0)?.ln();
    }
    Some(sum)
}

/// A case's part of the logarithm's variance, with divisor n; 0 without values.
fn plugin_variance(cell: &Cell<'_>) -> f64 {
    let relative = sample_sd(cell.trials).zip(mean(cell.trials)).map_or(0.0, |(sd, mean)| cell.weight * sd / mean);
    let n = cell.trials.len() as f64;
    relative.powi(2) * (n - 1.0) / n.powi(2)
}

/// Variance of the logarithm by the delta method, and its degrees of freedom after Welch and Satterthwaite.
fn log_variance(cells: &[Cell<'_>]) -> Option<(f64, f64)> {
    let (mut variance, mut fourth, mut df_all) = (0.0, 0.0, 0.0);
    for cell in cells {
        let n = cell.trials.len() as f64;
        let part = (cell.weight * sample_sd(cell.trials)? / mean(cell.trials)?).powi(2) / n;
        variance += part;
        fourth += part.powi(2) / (n - 1.0);
        df_all += n - 1.0;
    }
    let df: f64 = if fourth > 0.0 { variance.powi(2) / fourth } else { df_all };
    (df > 0.0 && variance.is_finite()).then_some((variance, df))
}

/// The bootstrap interval of the logarithm; none when a resample has no mean above 0.
fn bootstrap(cells: &[Cell<'_>], estimate: f64, seed: u64, confidence: f64) -> Option<Interval> {
    let mut random = Random::new(seed);
    let mut resampled_mean = |trials: &[f64]| {
        let sum: f64 = (0..trials.len()).map(|_| trials[random.below(trials.len())]).sum();
        Some(sum / trials.len() as f64)
    };
    let mut replicates = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        replicates.push(log_ratio(cells.iter().map(|cell| (cell.weight, resampled_mean(cell.trials))))?);
    }
    // How the logarithm answers to one trial: w (x - mean) / (n mean), the derivative that the jackknife approximates.
    let influences: Vec<f64> = cells
        .iter()
        .flat_map(|cell| {
            let (centre, n) = (mean(cell.trials).unwrap_or(1.0), cell.trials.len() as f64);
            cell.trials.iter().map(move |value| cell.weight * (value - centre) / (n * centre))
        })
        .collect();
    bca(&replicates, estimate, &influences, confidence).map(|bca| bca.interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Roughly normal values: sums of twelve uniform ones.
    fn normal(random: &mut Random, mean: f64, sd: f64, n: usize) -> Vec<f64> {
        (0..n).map(|_| mean + sd * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)).collect()
    }

    /// How often intervals of a true ratio of 1.25 miss it, of 400.
    fn misses(n: usize) -> u32 {
        let mut random = Random::new(n as u64);
        let missed = (0..400).filter(|seed| {
            let (of, to) = (normal(&mut random, 125.0, 10.0, n), normal(&mut random, 100.0, 10.0, n));
            let interval = matched_ratio(&[(&of, &to)], *seed).unwrap().interval;
            !(interval.low..=interval.high).contains(&1.25)
        });
        missed.count() as u32
    }

    #[test]
    fn intervals_miss_the_true_ratio_about_five_times_in_a_hundred() {
        // 400 intervals at 95 % miss 20 times; 6..=40 is more than three standard deviations either way.
        for n in [3, 5, 12] {
            let missed = misses(n);
            assert!((6..=40).contains(&missed), "{missed} of 400 missed with n = {n}");
        }
    }

    #[test]
    fn matched_cases_cancel_what_they_share() {
        // The load changes the level a hundredfold; the ratio is 2 at each.
        let pairs: Vec<(Vec<f64>, Vec<f64>)> = [1.0, 10.0, 100.0]
            .iter()
            .map(|load| (vec![2.0 * load, 2.02 * load, 1.98 * load], vec![*load, 1.01 * load, 0.99 * load]))
            .collect();
        let pairs: Vec<(&[f64], &[f64])> = pairs.iter().map(|(of, to)| (&of[..], &to[..])).collect();
        let estimate = matched_ratio(&pairs, 1).unwrap();
        assert!((estimate.ratio - 2.0).abs() < 1e-9 && estimate.interval.high < 2.05, "{estimate:?}");
        assert_eq!((estimate.n_of, estimate.n_to, estimate.method), (9, 9, IntervalMethod::LogT));
    }

    #[test]
    fn equal_seeds_give_equal_bootstrap_intervals() {
        let mut random = Random::new(5);
        let (of, to) = (normal(&mut random, 10.0, 1.0, 12), normal(&mut random, 9.0, 1.0, 12));
        let (first, second) = (matched_ratio(&[(&of, &to)], 7), matched_ratio(&[(&of, &to)], 7));
        assert_eq!(first, second);
        assert_eq!(first.unwrap().method, IntervalMethod::Bootstrap);
        assert_ne!(first, matched_ratio(&[(&of, &to)], 8));
    }

    #[test]
    fn nothing_is_said_from_single_trials_or_means_of_zero() {
        assert_eq!(matched_ratio(&[], 1), None);
        assert_eq!(matched_ratio(&[(&[1.0], &[1.0, 2.0])], 1), None);
        assert_eq!(matched_ratio(&[(&[1.0, 2.0], &[0.0, 0.0])], 1), None);
        assert_eq!(fieller(&[1.0, 2.0], &[1.0, -1.0]), None);
    }
}
