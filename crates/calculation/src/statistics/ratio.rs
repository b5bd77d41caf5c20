//! Ratios between alternatives, alone or as the geometric mean over matched cases.
//!
//! Main type: [`RatioEstimate`]. Everything is one weighted sum of the mean logarithms of cases, `sum of w mean(ln value)`; its
//! exponential is the ratio. Invariant: ratio, interval and p come from the same logarithm, standard error and degrees of freedom, so
//! that they never disagree.

use super::noise::CaseError;
use super::rounds;
pub use super::rounds::{Cell, TrialValue};
use super::student::{t_quantile, two_sided_p};
use super::summary::{Interval, mean, sample_sd};
use super::t_test::Summary;

/// A ratio with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioEstimate {
    /// The ratio.
    pub ratio: f64,
    /// Standard error of its logarithm.
    pub log_se: f64,
    /// Degrees of freedom of that standard error.
    pub df: f64,
    /// 95 % interval of the ratio.
    pub interval: Interval,
    /// Two-sided p of the hypothesis that the ratio is 1.
    pub p: f64,
    /// Number of rounds in which both sides were measured, where the effect that a round's trials share was removed; `None` otherwise.
    pub rounds: Option<usize>,
    /// Number of trials in the numerator.
    pub n_of: usize,
    /// Number of trials in the denominator.
    pub n_to: usize,
}

impl RatioEstimate {
    /// Creates the estimate from a logarithm, its standard error and the degrees of freedom of that error.
    pub fn of_log(log: f64, log_se: f64, df: f64, (n_of, n_to): (usize, usize)) -> Self {
        let p = if log_se > 0.0 { two_sided_p(log / log_se, df) } else { f64::from(u8::from(log == 0.0)) };
        let (ratio, rounds) = (log.exp(), None);
        let still = Interval { low: ratio, high: ratio };
        let unbounded = RatioEstimate { ratio, log_se, df, interval: still, p, rounds, n_of, n_to };
        RatioEstimate { interval: unbounded.interval_at(0.95), ..unbounded }
    }

    /// Returns the t-interval of the ratio at a confidence in (0, 1), such as 1 - 0.05 / m for m comparisons that are judged together.
    pub fn interval_at(&self, confidence: f64) -> Interval {
        let half = if self.log_se > 0.0 { t_quantile(0.5 + confidence / 2.0, self.df) * self.log_se } else { 0.0 };
        Interval { low: self.ratio * (-half).exp(), high: self.ratio * half.exp() }
    }
}

/// Returns the ratio of two cases whose trials are independent, such as those of two runs, each with the error that the noise of its
/// own study gives ([`super::noise::log_errors`]).
pub fn apart_ratio(
    (of, of_error): (&[TrialValue], CaseError),
    (to, to_error): (&[TrialValue], CaseError),
) -> Option<RatioEstimate> {
    let log = |trials: &[TrialValue]| mean(&trials.iter().map(|trial| trial.value.ln()).collect::<Vec<_>>());
    let parts = [of_error, to_error].map(|error| (error.share.powi(2), error.df));
    let variance: f64 = parts.iter().map(|(part, _)| part).sum();
    let fourth: f64 = parts.iter().map(|(part, df)| part * part / df).sum();
    let df = if fourth > 0.0 { variance * variance / fourth } else { of_error.df + to_error.df };
    Some(RatioEstimate::of_log(log(of)? - log(to)?, variance.sqrt(), df, (of.len(), to.len())))
}

/// Returns whether the trials of a case can be part of a ratio: at least two of them, and all above 0.
pub fn is_comparable(trials: &[TrialValue]) -> bool {
    trials.len() >= 2 && trials.iter().all(|trial| trial.value > 0.0 && trial.value.is_finite())
}

/// Returns the weighted ratio of cases. Where trials were interleaved by rounds, the effect that a round's trials share is removed ([`rounds`]); otherwise
/// the cases are independent samples, as in Welch's test. `None` when a case has fewer than two trials or a trial that is not above 0.
pub fn weighted_ratio(cells: &[Cell<'_>]) -> Option<RatioEstimate> {
    if cells.is_empty() || !cells.iter().all(|cell| is_comparable(cell.trials)) {
        return None;
    }
    let trials = |of: bool| cells.iter().filter(|cell| (cell.weight > 0.0) == of).map(|cell| cell.trials.len()).sum();
    let counts = (trials(true), trials(false));
    if let Some(found) = rounds::contrast(cells) {
        let estimate = RatioEstimate::of_log(found.log, found.log_se, found.df, counts);
        return Some(RatioEstimate { rounds: Some(found.rounds), ..estimate });
    }
    let (log, log_se, df) = welch(cells)?;
    Some(RatioEstimate::of_log(log, log_se, df, counts))
}

/// Returns the geometric mean of the ratios of matched cases, with equal weights for all pairs (numerator, denominator). `None` without
/// pairs, and where [`weighted_ratio`] is `None`.
pub fn matched_ratio(pairs: &[(&[TrialValue], &[TrialValue])]) -> Option<RatioEstimate> {
    let weight = 1.0 / pairs.len() as f64;
    let cells: Vec<Cell<'_>> =
        pairs.iter().flat_map(|(of, to)| [Cell { weight, trials: of }, Cell { weight: -weight, trials: to }]).collect();
    weighted_ratio(&cells)
}

/// Returns the geometric mean of ratios, each of which comes from one trial. `None` below two ratios or when one is not above 0.
pub fn geometric_ratio(ratios: &[f64]) -> Option<RatioEstimate> {
    if !ratios.iter().all(|ratio| *ratio > 0.0) {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let (centre, count) = (mean(&logs)?, logs.len());
    Some(RatioEstimate::of_log(centre, sample_sd(&logs)? / (count as f64).sqrt(), count as f64 - 1.0, (count, count)))
}

/// Returns [`fieller_of`] the two samples' summaries.
pub fn fieller(of: &[f64], to: &[f64]) -> Option<(f64, Interval)> {
    fieller_of(Summary::of(of)?, Summary::of(to)?)
}

/// Returns the ratio of two means with Fieller's 95 % interval, in the form of Kalibera and Jones (2013, section 7): from the
/// half-widths of the two means' own intervals. `None` below two values a side, or when the denominator's interval
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

/// Returns the logarithm, its standard error, and the degrees of freedom after Welch and Satterthwaite.
fn welch(cells: &[Cell<'_>]) -> Option<(f64, f64, f64)> {
    let (mut log, mut variance, mut fourth, mut df_all) = (0.0, 0.0, 0.0, 0.0);
    for cell in cells {
        let logs: Vec<f64> = cell.trials.iter().map(|trial| trial.value.ln()).collect();
        let n = logs.len() as f64;
        let part: f64 = (cell.weight * sample_sd(&logs)?).powi(2) / n;
        log += cell.weight * mean(&logs)?;
        variance += part;
        fourth += part.powi(2) / (n - 1.0);
        df_all += n - 1.0;
    }
    let df: f64 = if fourth > 0.0 { variance.powi(2) / fourth } else { df_all };
    Some((log, variance.sqrt(), df))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    fn values(values: impl IntoIterator<Item = f64>) -> Vec<TrialValue> {
        values.into_iter().map(|value| TrialValue { place: None, value }).collect()
    }

    /// Returns roughly normal values: sums of twelve uniform ones.
    fn normal(random: &mut Random, mean: f64, sd: f64, n: usize) -> Vec<TrialValue> {
        values((0..n).map(|_| mean + sd * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)))
    }

    #[test]
    fn intervals_miss_the_true_ratio_about_five_times_in_a_hundred() {
        // 1,000 intervals at 95 % miss 50 times; 27..=73 is 3.3 standard deviations either way. Twelve trials had a bootstrap before.
        for n in [3, 5, 10, 12] {
            let mut random = Random::new(n as u64);
            let missed = (0..1000).filter(|_| {
                let (of, to) = (normal(&mut random, 125.0, 10.0, n), normal(&mut random, 100.0, 8.0, n));
                let interval = matched_ratio(&[(&of, &to)]).unwrap().interval;
                !(interval.low..=interval.high).contains(&1.25)
            });
            let missed = missed.count();
            assert!((27..=73).contains(&missed), "{missed} of 1000 missed with n = {n}");
        }
    }

    #[test]
    fn matched_cases_cancel_what_they_share() {
        // The load changes the level a hundredfold; the ratio is 2 at each.
        let sides =
            |load: f64| (values([2.0 * load, 2.02 * load, 1.98 * load]), values([load, 1.01 * load, 0.99 * load]));
        let pairs: Vec<_> = [1.0, 10.0, 100.0].map(sides).into();
        let pairs: Vec<(&[TrialValue], &[TrialValue])> = pairs.iter().map(|(of, to)| (&of[..], &to[..])).collect();
        let estimate = matched_ratio(&pairs).unwrap();
        assert!((estimate.ratio - 2.0).abs() < 1e-9 && estimate.interval.high < 2.05, "{estimate:?}");
        assert_eq!((estimate.n_of, estimate.n_to, estimate.rounds), (9, 9, None));
    }

    #[test]
    fn interval_and_p_change_sides_together_at_every_confidence() {
        let mut random = Random::new(5);
        for _ in 0..50 {
            let (of, to) = (normal(&mut random, 10.0, 1.0, 6), normal(&mut random, 9.0, 1.0, 8));
            let found = matched_ratio(&[(&of, &to)]).unwrap();
            assert_eq!(found.interval, found.interval_at(0.95));
            let at_p = found.interval_at(1.0 - found.p);
            let end = if found.ratio > 1.0 { at_p.low } else { at_p.high };
            assert!((end - 1.0).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn the_geometric_mean_of_ratios_has_the_t_interval_of_its_logarithm() {
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

    #[test]
    fn nothing_is_said_from_single_trials_or_values_of_zero() {
        let two = values([1.0, 2.0]);
        assert_eq!(matched_ratio(&[]), None);
        assert_eq!(matched_ratio(&[(&values([1.0]), &two)]), None);
        assert_eq!(matched_ratio(&[(&two, &values([0.0, 1.0]))]), None);
        assert_eq!(fieller(&[1.0, 2.0], &[1.0, -1.0]), None);
        let still = matched_ratio(&[(&values([2.0, 2.0]), &values([1.0, 1.0]))]).unwrap();
        assert_eq!((still.ratio, still.p, still.interval), (2.0, 0.0, Interval { low: 2.0, high: 2.0 }));
    }
}
