//! The noise of a study's cases, and the resulting intervals of their means: one model for the rule that stops a case and for the
//! interval that is shown.
//!
//! Main function: [`means`]. Each case's own variance is drawn towards that of all cases, by as much as its scatter is explained by the
//! number of trials (empirical Bayes, after Smyth 2004); a part of the noise that all trials of a round share makes the cases' variances dependent,
//! and similarity of successive trials makes the trials dependent. Invariant: with a single case and nothing chosen it is the t-interval.

use std::collections::BTreeMap;

use statrs::function::gamma::digamma;

use super::student::{normal_quantile, t_quantile};
use super::summary::{Interval, mean, t_interval};

/// The values of a case's trials, each with its round, in the order of rounds.
pub type Series = Vec<(u32, f64)>;

/// Whether the number of trials was decided by their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// No: the number was fixed in advance.
    Fixed,
    /// Yes: cases whose trials happened to agree ended first, so that their observed spread is too small.
    Chosen,
}

/// Where the number of trials was chosen: probability with which the assumed variance is below the true one. A case whose trials agree by
/// chance ends early, so that its observed variance would be too small.
const BELIEVED: f64 = 0.1;
/// Degrees of freedom from which a correlation of successive trials can be estimated.
const CORRELATION_DF_LEAST: f64 = 9.0;
/// Largest correlation that is assumed: beyond it, the trials say nothing about the mean.
const CORRELATION_MOST: f64 = 0.9;
/// Degrees of freedom that represent certain knowledge.
const CERTAIN_DF: f64 = 1e4;

/// The mean of a case and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseMean {
    /// Arithmetic mean.
    pub mean: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// Half the interval, as a share of the mean.
    pub half_width: f64,
}

/// The relative standard error of a case's mean, with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseError {
    /// The standard error as a share of the mean; for a mean logarithm, the standard error itself.
    pub share: f64,
    /// Degrees of freedom.
    pub df: f64,
}

/// The relative deviations of a case's trials from their mean, by round.
struct Deviations {
    all: Series,
    squares: f64,
}

impl Deviations {
    fn of(all: Series) -> Option<Self> {
        let squares = all.iter().map(|(_, deviation)| deviation.powi(2)).sum();
        (all.len() >= 2).then_some(Deviations { all, squares })
    }

    fn from_mean(series: &Series) -> Option<Self> {
        let centre = centre(series).filter(|centre| *centre > 0.0)?;
        Deviations::of(series.iter().map(|(round, value)| (*round, value / centre - 1.0)).collect())
    }

    fn of_logarithms(series: &Series) -> Option<Self> {
        let logs: Series = series.iter().map(|(round, value)| (*round, value.ln())).collect();
        let centre = centre(&logs).filter(|centre| centre.is_finite())?;
        Deviations::of(logs.into_iter().map(|(round, log)| (round, log - centre)).collect())
    }

    fn df(&self) -> f64 {
        self.all.len() as f64 - 1.0
    }
}

/// Returns the means of a study's cases with 95 % intervals; `None` for a case with fewer than two trials or a mean that is not above 0.
pub fn means(cases: &[Series], stopping: Stopping) -> Vec<Option<CaseMean>> {
    let errors = pooled(cases.iter().map(Deviations::from_mean).collect(), stopping);
    let of_case = |(series, error): (&Series, Option<CaseError>)| {
        let (mean, error) = (centre(series)?, error?);
        let half_width = if error.share > 0.0 { t_quantile(0.975, error.df) * error.share } else { 0.0 };
        let half = half_width * mean;
        Some(CaseMean { mean, interval: Interval { low: mean - half, high: mean + half }, half_width })
    };
    cases.iter().zip(errors).map(of_case).collect()
}

/// Returns the 95 % intervals of the means of figures that may be 0: those of [`means`], but for a case that was never above 0 the interval of its
/// own trials alone, because it has no noise in proportion to its mean. `None` below two trials.
pub fn intervals(cases: &[Series], stopping: Stopping) -> Vec<Option<Interval>> {
    let own = |series: &Series| t_interval(&series.iter().map(|(_, value)| *value).collect::<Vec<_>>(), 0.95);
    let found = means(cases, stopping);
    cases.iter().zip(found).map(|(series, found)| found.map(|found| found.interval).or_else(|| own(series))).collect()
}

/// Returns the standard errors of the mean logarithms of a study's cases; `None` for a case with fewer than two trials or one that is not above 0.
pub fn log_errors(cases: &[Series], stopping: Stopping) -> Vec<Option<CaseError>> {
    pooled(cases.iter().map(Deviations::of_logarithms).collect(), stopping)
}

fn pooled(cases: Vec<Option<Deviations>>, stopping: Stopping) -> Vec<Option<CaseError>> {
    let pool = Pool::of(&cases.iter().flatten().collect::<Vec<_>>(), stopping);
    let of_case = |case: &Deviations| {
        let (variance, df) = pool.variance(case);
        let believed = if stopping == Stopping::Chosen { believed(df) } else { 1.0 };
        CaseError { share: (variance * believed * pool.inflation / case.all.len() as f64).sqrt(), df }
    };
    cases.iter().map(|case| case.as_ref().map(of_case)).collect()
}

fn centre(series: &Series) -> Option<f64> {
    mean(&series.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

/// The noise of all cases together, as knowledge about each.
struct Pool {
    variance: f64,
    /// Weight of that knowledge, in degrees of freedom beside a case's own.
    prior_df: f64,
    /// Degrees of freedom of the pooled variance.
    df: f64,
    /// Factor by which the variance of a mean is larger because successive trials are alike.
    inflation: f64,
}

impl Pool {
    fn of(cases: &[&Deviations], stopping: Stopping) -> Pool {
        let squares: f64 = cases.iter().map(|case| case.squares).sum();
        let df_all: f64 = cases.iter().map(|case| case.df()).sum();
        let variance = squares / df_all;
        if cases.len() < 2 || squares <= 0.0 {
            return Pool { variance, prior_df: 0.0, df: df_all, inflation: inflation(cases, squares, df_all) };
        }
        let count = cases.len() as f64;
        let shared = shared(cases, squares, df_all, stopping);
        // The variances of two cases correlate by the square of the share that their trials have in common.
        let df = df_all / count / (1.0 / count + (1.0 - 1.0 / count) * shared.powi(2));
        let prior = Prior::of(cases, variance, shared);
        Pool { variance: prior.variance, prior_df: prior.df.min(df), df, inflation: inflation(cases, squares, df) }
    }

    /// Returns the variance of a case's relative deviations, and its degrees of freedom.
    fn variance(&self, case: &Deviations) -> (f64, f64) {
        let own = case.df();
        if self.prior_df == 0.0 {
            return (case.squares / own, own);
        }
        let df = own + self.prior_df;
        ((self.prior_df * self.variance + case.squares) / df, df.min(self.df.max(own)))
    }
}

/// Returns the share of the variance that the trials of a round have in common: the excess of the rounds' mean squares over the rest. Where the
/// number of trials was chosen, an upper bound of it: rounds that happened to be alike make all cases end early.
fn shared(cases: &[&Deviations], squares: f64, df_all: f64, stopping: Stopping) -> f64 {
    let mut rounds: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (round, deviation) in cases.iter().flat_map(|case| &case.all) {
        let (count, sum) = rounds.entry(*round).or_default();
        (*count, *sum) = (*count + 1.0, *sum + deviation);
    }
    let df = rounds.len() as f64 - 1.0;
    if df < 1.0 {
        return 0.0;
    }
    let of_rounds: f64 = rounds.values().map(|(count, sum)| sum * sum / count).sum();
    let count: f64 = rounds.values().map(|(count, _)| count).sum();
    let counts_squared: f64 = rounds.values().map(|(count, _)| count * count).sum();
    let a_round = (count - counts_squared / count) / df;
    let rest = (squares - of_rounds).max(0.0) / (df_all - df).max(1.0);
    let believed = if stopping == Stopping::Chosen { believed(df) } else { 1.0 };
    let between = (of_rounds / df * believed - rest).max(0.0) / a_round;
    if between > 0.0 { between / (between + rest) } else { 0.0 }
}

/// Knowledge about a case's variance before its own trials.
struct Prior {
    variance: f64,
    df: f64,
}

impl Prior {
    /// Estimates the prior by the moments of ln s² (Smyth 2004, section 6.2). Where cases differ in noise, Smyth's variance is that of a usual case, and the
    /// mean over all cases is that of the noisiest; but cases without a slow trial so far look calm too. So the prior lies half way between them.
    fn of(cases: &[&Deviations], variance: f64, shared: f64) -> Prior {
        let half = |case: &Deviations| case.df() / 2.0;
        // A case that never varied has no logarithm; it counts as a case of very little noise.
        let logs: Vec<f64> = cases
            .iter()
            .map(|case| (case.squares / case.df()).max(1e-12).ln() + half(case).ln() - digamma(half(case)))
            .collect();
        let centre = mean(&logs).unwrap_or(0.0);
        let scatter = logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / (logs.len() as f64 - 1.0);
        let expected = cases.iter().map(|case| trigamma(half(case))).sum::<f64>() / cases.len() as f64;
        let excess = scatter - expected * (1.0 - shared.powi(2));
        // trigamma falls from infinity to 0: bisection finds where it equals the excess.
        let (mut low, mut high) = (1e-3_f64, CERTAIN_DF / 2.0);
        if excess <= trigamma(high) {
            return Prior { variance, df: CERTAIN_DF };
        }
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if trigamma(middle) > excess { low = middle } else { high = middle }
        }
        let usual = (centre + digamma(low) - low.ln()).exp();
        Prior { variance: (usual * variance).sqrt(), df: 2.0 * low }
    }
}

/// Returns the second derivative of ln Γ: by its asymptotic series (Abramowitz and Stegun 6.4.12), after stepping up to where the series holds.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    sum + 1.0 / x + y / 2.0 + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y / 42.0))
}

/// Returns the factor from a variance to its upper bound: df over the [`BELIEVED`] quantile of χ² (Wilson and Hilferty 1931, which
/// errs to the careful side below four degrees of freedom).
fn believed(df: f64) -> f64 {
    let ninth = 2.0 / (9.0 * df);
    (1.0 - ninth + normal_quantile(BELIEVED) * ninth.sqrt()).max(0.05).powi(-3)
}

/// Returns the variance inflation by the correlation r of a case's successive trials, pooled over the cases and corrected for removing the mean
/// (Kendall 1954): (1 + r) / (1 - r), as for a process that remembers its last value. Never below 1.
fn inflation(cases: &[&Deviations], squares: f64, df: f64) -> f64 {
    let trials = cases.iter().map(|case| case.all.len()).sum::<usize>() as f64 / cases.len().max(1) as f64;
    if df < CORRELATION_DF_LEAST || trials < 5.0 || squares <= 0.0 {
        return 1.0;
    }
    let successive = |case: &&Deviations| -> f64 {
        let next = |pair: &[(u32, f64)]| if pair[0].0 + 1 == pair[1].0 { pair[0].1 * pair[1].1 } else { 0.0 };
        case.all.windows(2).map(next).sum()
    };
    let seen = cases.iter().map(successive).sum::<f64>() / squares;
    let correlation = ((seen * trials + 1.0) / (trials - 3.0)).clamp(0.0, CORRELATION_MOST);
    ((1.0 + correlation) / (1.0 - correlation)).min(trials)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    /// Cases of a mean of 100, each with this relative noise.
    fn cases(random: &mut Random, noise: &[f64], trials: u32) -> Vec<Series> {
        noise
            .iter()
            .map(|noise| (0..trials).map(|round| (round, 100.0 * (1.0 + noise * normal(random)))).collect())
            .collect()
    }

    #[test]
    fn a_figure_that_was_nothing_in_every_trial_has_an_interval_of_its_own() {
        let mut random = Random::new(4);
        let mut all = cases(&mut random, &[0.1, 0.1], 5);
        all.push((0..5).map(|round| (round, 0.0)).collect());
        all.push(vec![(0, 1.0)]);
        let (found, noisy) = (intervals(&all, Stopping::Fixed), means(&all, Stopping::Fixed));
        assert_eq!(found[0], noisy[0].map(|found| found.interval));
        assert_eq!((noisy[2], found[2]), (None, Some(Interval { low: 0.0, high: 0.0 })));
        assert_eq!(found[3], None, "one trial has no interval");
    }

    fn covers(found: &CaseMean) -> bool {
        (found.interval.low..=found.interval.high).contains(&100.0)
    }

    #[test]
    fn a_single_case_has_its_t_interval() {
        let series = cases(&mut Random::new(1), &[0.05], 6);
        let values: Vec<f64> = series[0].iter().map(|(_, value)| *value).collect();
        let (found, expected) = (means(&series, Stopping::Fixed)[0].unwrap(), t_interval(&values, 0.95).unwrap());
        assert!((found.interval.low - expected.low).abs() < 1e-9 && (found.interval.high - expected.high).abs() < 1e-9);
        assert!((found.half_width - expected.half_width() / found.mean).abs() < 1e-12);
    }

    #[test]
    fn intervals_from_the_noise_of_all_cases_hold_95_of_100_and_are_narrower() {
        for noise in [vec![0.05; 8], (0..8).map(|case| 0.01 * 1.5_f64.powi(case)).collect()] {
            let mut random = Random::new(3);
            let (mut held, mut pooled, mut alone) = (0, 0.0, 0.0);
            for _ in 0..250 {
                let series = cases(&mut random, &noise, 4);
                for (case, found) in series.iter().zip(means(&series, Stopping::Fixed)) {
                    let found = found.unwrap();
                    held += u32::from(covers(&found));
                    pooled += found.half_width;
                    alone += means(std::slice::from_ref(case), Stopping::Fixed)[0].unwrap().half_width;
                }
            }
            // 1,900 of 2,000; 3.3 standard deviations are 32. Where noise differs, calm cases are taken for somewhat noisier.
            assert!(held >= 1868, "{held} of 2000 hold");
            assert!(pooled < 0.95 * alone, "{pooled} {alone}");
        }
    }

    #[test]
    fn noise_that_differs_between_cases_is_left_to_each() {
        let series = cases(&mut Random::new(5), &[0.001, 0.002, 0.2, 0.4, 0.001, 0.3], 30);
        for (case, found) in series.iter().zip(means(&series, Stopping::Fixed)) {
            let alone = means(std::slice::from_ref(case), Stopping::Fixed)[0].unwrap().half_width;
            // The calmest case has a noise of a thousandth beside one of two fifths.
            let found = found.unwrap().half_width;
            assert!((0.75..3.0).contains(&(found / alone)), "{found} {alone}");
        }
    }

    #[test]
    fn rounds_that_all_cases_share_are_no_further_evidence() {
        let mut random = Random::new(7);
        let shared: Vec<f64> = (0..6).map(|_| normal(&mut random)).collect();
        let series: Vec<Series> = (0..10)
            .map(|_| {
                (0..6).map(|round| (round, 100.0 + 5.0 * shared[round as usize] + 0.1 * normal(&mut random))).collect()
            })
            .collect();
        let one = means(&series[..1], Stopping::Fixed)[0].unwrap();
        let all = means(&series, Stopping::Fixed)[0].unwrap();
        assert!((all.half_width / one.half_width - 1.0).abs() < 0.1, "{all:?} {one:?}");
    }

    #[test]
    fn successive_trials_that_are_alike_count_for_less() {
        let mut random = Random::new(9);
        let mut last = 0.0;
        let series: Series = (0..60)
            .map(|round| {
                last = 0.8 * last + 0.6 * normal(&mut random);
                (round, 100.0 + last)
            })
            .collect();
        let values: Vec<f64> = series.iter().map(|(_, value)| *value).collect();
        let found = means(&[series], Stopping::Fixed)[0].unwrap().interval.half_width();
        let naive = t_interval(&values, 0.95).unwrap().half_width();
        // A correlation of 0.8 makes the mean vary by a factor of 3 more, in standard deviations.
        assert!((1.5..4.4).contains(&(found / naive)), "{found} {naive}");
    }

    #[test]
    fn known_values_of_the_functions_behind_it() {
        assert!((trigamma(1.0) - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-9);
        assert!((trigamma(2.5) - 0.490_357_756_1).abs() < 1e-8);
        // χ² quantiles at 10 %: 2.833 with 7 degrees, 14.041 with 22, 82.358 with 100.
        for (df, quantile) in [(7.0, 2.833), (22.0, 14.041), (100.0, 82.358)] {
            assert!((believed(df) * quantile / df - 1.0).abs() < 0.005, "{df}: {}", believed(df));
        }
    }

    #[test]
    fn cases_without_two_trials_or_a_mean_above_zero_have_no_interval() {
        let found =
            means(&[vec![(0, 1.0)], vec![], vec![(0, 0.0), (1, 0.0)], vec![(0, 2.0), (1, 2.0)]], Stopping::Chosen);
        assert_eq!(found[..3], [None, None, None]);
        assert_eq!(found[3].unwrap().half_width, 0.0);
    }
}
