//! The best of several: which of them a comparison does not distinguish from the best one, and the comparison of two, each at its best.
//!
//! Main function: [`not_told_apart`], the multiple comparisons with the best of Hsu (1996, chapter 4). Main type: [`BestRatio`]. Invariant:
//! conclusions hold in at least 95 of 100 cases, however many there are to choose from and whether or not they differ.

use super::ratio::{RatioEstimate, TrialValue, matched_ratio};
use super::student::{normal_probability, t_quantile};
use super::summary::Interval;

/// The difference of two quantities on a scale on which errors are about normal: the logarithm of their ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The estimate.
    pub value: f64,
    /// Its standard error, at least 0.
    pub error: f64,
    /// Degrees of freedom of the standard error, above 0.
    pub df: f64,
}

/// Largest number of cases of an alternative that may be its best one: cases far from the best change nothing but the computing time.
const CASES_MOST: usize = 12;
/// Numbers of steps over the normal part and over the spread's part of the probability of a maximum: both integrands fall off so fast at
/// both ends that the plain sum is good to four digits.
const NORMAL_STEPS: i32 = 24;
const SPREAD_STEPS: i32 = 24;
/// Range of the normal part, in standard deviations.
const NORMAL_REACH: f64 = 6.0;
/// Largest number of steps of the search for a quantile, which ends earlier where it is exact.
const SEARCH_STEPS: u32 = 40;
/// Number of quantiles that are kept for members with the same trials and degrees of freedom.
const QUANTILES_KEPT: usize = 64;
/// Largest error of a probability that counts as exact.
const EXACT: f64 = 1e-5;

impl From<RatioEstimate> for Difference {
    fn from(ratio: RatioEstimate) -> Self {
        Difference { value: ratio.ratio.ln(), error: ratio.log_se, df: ratio.df }
    }
}

/// The ratio of two alternatives, each at its best case.
#[derive(Debug, Clone, PartialEq)]
pub struct BestRatio {
    /// The ratio of the cases with the best geometric means.
    pub chosen: RatioEstimate,
    more_is_better: bool,
    /// The ratios of every case of the first alternative (rows) to every case of the second.
    all: Vec<Vec<RatioEstimate>>,
}

impl From<RatioEstimate> for BestRatio {
    /// Compares two alternatives that have one case each.
    fn from(only: RatioEstimate) -> Self {
        BestRatio { chosen: only, more_is_better: true, all: vec![vec![only]] }
    }
}

impl BestRatio {
    /// Compares two alternatives by the trials of their cases. `None` where the cases with the best geometric means have no ratio; other cases without
    /// a ratio are left out, and so are those beyond the best `CASES_MOST` of a side.
    pub fn of(of: &[&[TrialValue]], to: &[&[TrialValue]], more_is_better: bool) -> Option<Self> {
        let (of, to) = (&of[..of.len().min(CASES_MOST)], &to[..to.len().min(CASES_MOST)]);
        let chosen = matched_ratio(&[(of.first()?, to.first()?)])?;
        let enough = |sides: &[&[TrialValue]]| -> Vec<usize> {
            let has_ratio = |place: &usize| matched_ratio(&[(sides[*place], sides[0])]).is_some() || *place == 0;
            (0..sides.len()).filter(has_ratio).collect()
        };
        let (rows, columns) = (enough(of), enough(to));
        let row = |a: &usize| columns.iter().map(|b| matched_ratio(&[(of[*a], to[*b])])).collect::<Option<Vec<_>>>();
        let all = rows.iter().map(row).collect::<Option<Vec<_>>>()?;
        Some(BestRatio { chosen, more_is_better, all })
    }

    /// Returns the interval of the ratio of the best to the best at a confidence in (0, 1). The first is certainly above a value where some case of
    /// it is certainly above that value times every case of the second. The trials choose which case that is, so each of k cases has to be
    /// as certain as one of k comparisons (Bonferroni); no choice is made among the cases of the second, so they cost nothing.
    pub fn interval_at(&self, confidence: f64) -> Interval {
        let columns = self.all.first().map_or(0, Vec::len);
        let at = |choices: usize| 1.0 - (1.0 - confidence) / choices.max(1) as f64;
        let by_row = |pick: &dyn Fn(&RatioEstimate) -> f64, inner: fn(f64, f64) -> f64, outer: fn(f64, f64) -> f64| {
            let rows = self.all.iter().filter_map(|row| row.iter().map(pick).reduce(inner));
            rows.reduce(outer).unwrap_or(f64::NAN)
        };
        let by_column =
            |pick: &dyn Fn(&RatioEstimate) -> f64, inner: fn(f64, f64) -> f64, outer: fn(f64, f64) -> f64| {
                let column = |place| self.all.iter().map(|row: &Vec<RatioEstimate>| pick(&row[place])).reduce(inner);
                (0..columns).filter_map(column).reduce(outer).unwrap_or(f64::NAN)
            };
        let (of_rows, of_columns) = (at(self.all.len()), at(columns));
        let (low, high) = if self.more_is_better {
            let low = by_row(&|one| one.interval_at(of_rows).low, f64::min, f64::max);
            (low, by_column(&|one| one.interval_at(of_columns).high, f64::max, f64::min))
        } else {
            let low = by_column(&|one| one.interval_at(of_columns).low, f64::min, f64::max);
            (low, by_row(&|one| one.interval_at(of_rows).high, f64::max, f64::min))
        };
        // Another case than the chosen one may be certain, with an end on the far side of the chosen cases' ratio.
        Interval { low: low.min(self.chosen.ratio), high: high.max(self.chosen.ratio) }
    }
}

/// Returns for each of `trials.len()` members whether it may be the largest at this confidence in (0, 1): no other is certainly larger. `trials`
/// has the number of trials of each; `difference(a, b)` is how much larger a is than b, `None` where that is not known, and then neither is
/// distinguished from the other.
pub fn not_told_apart(
    trials: &[usize],
    confidence: f64,
    difference: impl Fn(usize, usize) -> Option<Difference>,
) -> Vec<bool> {
    // Quantiles found so far, by shares and degrees of freedom: where all members have equally many trials, they are the same for all.
    let mut quantiles: Vec<(Vec<Share>, f64, f64)> = Vec::new();
    let mut may_be = |member: usize| {
        let rivals: Vec<(usize, Difference)> = (0..trials.len())
            .filter(|rival| *rival != member)
            .filter_map(|rival| Some((rival, difference(rival, member)?)))
            .collect();
        let is_within = |quantile: f64| rivals.iter().all(|(_, found)| found.value <= quantile * found.error);
        let df = rivals.iter().map(|(_, found)| found.df).fold(f64::INFINITY, f64::min);
        let (one, bonferroni) = bracket(rivals.len(), df, confidence);
        // Most members need only the ends of the bracket of the quantile.
        if is_within(one) || !is_within(bonferroni) {
            return is_within(one);
        }
        // Every comparison contains the member's own error; its part is the larger, the fewer trials the member has.
        let share = |rival: usize| (trials[rival] as f64 / (trials[rival] + trials[member]).max(1) as f64).sqrt();
        let shares = counted(rivals.iter().map(|(rival, _)| share(*rival)).collect());
        let known = quantiles.iter().find(|(of, at, _)| *of == shares && *at == df).map(|(.., quantile)| *quantile);
        let quantile = known.unwrap_or_else(|| {
            let quantile = quantile_of(&shares, df, confidence);
            quantiles.truncate(QUANTILES_KEPT - 1);
            quantiles.insert(0, (shares, df, quantile));
            quantile
        });
        is_within(quantile)
    };
    (0..trials.len()).map(&mut may_be).collect()
}

/// Returns the bracket of the quantile of the largest of several t statistics: the quantile of one comparison, and Bonferroni's.
fn bracket(rivals: usize, df: f64, probability: f64) -> (f64, f64) {
    (t_quantile(probability, df), t_quantile(1.0 - (1.0 - probability) / rivals.max(1) as f64, df))
}

/// Returns the quantile of the largest of several t statistics (Dunnett 1955, one-sided), each of which compares another member with
/// the same one: the statistics a and b correlate by `shares[a] * shares[b]`, each share in [0, 1). It lies between the t quantile of
/// one comparison and that of Bonferroni.
pub fn dunnett_quantile(shares: &[f64], df: f64, probability: f64) -> f64 {
    quantile_of(&counted(shares.to_vec()), df, probability)
}

/// A share of an error, and how many statistics have it.
type Share = (f64, i32);

/// Each share once, with how many statistics have it, the smallest first: cases mostly have as many trials as others.
fn counted(mut shares: Vec<f64>) -> Vec<Share> {
    shares.sort_by(f64::total_cmp);
    shares.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as i32)).collect()
}

/// Returns [`dunnett_quantile`] for shares with the number of statistics that have each.
fn quantile_of(shares: &[Share], df: f64, probability: f64) -> f64 {
    let rivals = shares.iter().map(|(_, count)| *count as usize).sum();
    let (mut low, mut high) = bracket(rivals, df, probability);
    if rivals < 2 || low.is_nan() {
        return low;
    }
    let spread = spreads(df);
    let above = |at: f64| probability_below(at, shares, &spread) - probability;
    let (mut at_low, mut at_high) = (above(low), above(high));
    // The secant method within the bracket; an end that stays gets half its weight (the Illinois rule), so that both move.
    for _ in 0..SEARCH_STEPS {
        let middle = high - at_high * (high - low) / (at_high - at_low);
        if !middle.is_finite() || high - low < EXACT {
            break;
        }
        let at_middle = above(middle);
        if at_middle.abs() < EXACT {
            return middle;
        }
        if at_middle < 0.0 {
            (low, at_low) = (middle, at_middle);
            at_high /= 2.0;
        } else {
            (high, at_high) = (middle, at_middle);
            at_low /= 2.0;
        }
    }
    high
}

/// Returns the probability that all statistics stay below a value: integrated over the estimated spread, and over the error that all share.
fn probability_below(at: f64, shares: &[Share], spreads: &[(f64, f64)]) -> f64 {
    let step = 2.0 * NORMAL_REACH / f64::from(NORMAL_STEPS);
    let shared: Vec<(f64, f64)> = (0..=NORMAL_STEPS)
        .map(|place| f64::from(place) * step - NORMAL_REACH)
        .map(|z| (z, step * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()))
        .collect();
    let all_below = |spread: f64, z: f64| -> f64 {
        let below = |(share, count): &Share| {
            normal_probability((at * spread + share * z) / (1.0 - share * share).sqrt()).powi(*count)
        };
        shares.iter().map(below).product()
    };
    let over_shared = |spread: f64| -> f64 { shared.iter().map(|(z, weight)| weight * all_below(spread, *z)).sum() };
    spreads.iter().map(|(spread, weight)| weight * over_shared(*spread)).sum()
}

/// Returns the values of a standard deviation estimated with these degrees of freedom, as multiples of the true one, with weights that sum to 1.
/// The steps are even in its logarithm x, whose density goes with exp(df (x - exp(2 x) / 2)).
fn spreads(df: f64) -> Vec<(f64, f64)> {
    let deviation = 1.0 / (2.0 * df).sqrt();
    // Below the centre the density falls off as exp(df x), which for few degrees of freedom reaches far.
    let (from, to) = (-(8.0 * deviation).max(20.0 / df), 8.0 * deviation.min(0.6));
    let step = (to - from) / f64::from(SPREAD_STEPS);
    let at = |place: i32| from + f64::from(place) * step;
    let density = |x: f64| (df * (x - (2.0 * x).exp() / 2.0 + 0.5)).exp();
    let sum: f64 = (0..=SPREAD_STEPS).map(|place| density(at(place))).sum();
    (0..=SPREAD_STEPS).map(|place| (at(place).exp(), density(at(place)) / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    /// Returns a roughly normal number with mean 0 and standard deviation 1.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn quantiles_are_those_of_dunnetts_table() {
        // Dunnett 1955, table 1a: one-sided, 95 %, equal numbers of trials.
        let half = 0.5_f64.sqrt();
        for (rivals, df, expected) in [
            (1, 5.0, 2.02),
            (2, 5.0, 2.44),
            (5, 5.0, 2.98),
            (9, 5.0, 3.30),
            (2, 10.0, 2.15),
            (5, 10.0, 2.56),
            (5, 20.0, 2.39),
            (9, 20.0, 2.60),
            (5, 120.0, 2.26),
            (9, 1e7, 2.42),
        ] {
            let found = dunnett_quantile(&vec![half; rivals], df, 0.95);
            assert!((found - expected).abs() < 0.0101, "{rivals} rivals, df {df}: {found} instead of {expected}");
        }
    }

    #[test]
    fn quantiles_lie_between_one_comparison_and_bonferroni() {
        for df in [2.0, 4.0, 30.0] {
            for shares in [vec![0.0, 0.0, 0.0], vec![0.2, 0.9, 0.5], vec![0.999, 0.999, 0.999]] {
                let found = dunnett_quantile(&shares, df, 0.95);
                let (one, bonferroni) = (t_quantile(0.95, df), t_quantile(1.0 - 0.05 / 3.0, df));
                assert!(one <= found && found <= bonferroni, "{shares:?}, df {df}: {found}");
            }
        }
        assert!(dunnett_quantile(&[0.5], 0.0, 0.95).is_nan());
    }

    #[test]
    fn the_best_is_among_the_answer_in_95_of_100_cases_whether_or_not_they_differ() {
        let count = 300;
        for means in [[0.0; 5], [0.0, 0.0, 0.0, 0.0, -1.0], [0.0, -0.5, -1.0, -1.5, -2.0]] {
            let mut random = Random::new(5);
            let trials = [5, 8, 6, 7, 5];
            let held = (0..count).filter(|_| {
                let values: Vec<Vec<f64>> = (0..5)
                    .map(|member| (0..trials[member]).map(|_| means[member] + normal(&mut random)).collect())
                    .collect();
                let centre: Vec<f64> = values.iter().map(|own| own.iter().sum::<f64>() / own.len() as f64).collect();
                let squares =
                    |(own, centre): (&Vec<f64>, &f64)| -> f64 { own.iter().map(|v| (v - centre).powi(2)).sum() };
                let df = (trials.iter().sum::<usize>() - 5) as f64;
                let variance = values.iter().zip(&centre).map(squares).sum::<f64>() / df;
                let difference = |a: usize, b: usize| {
                    let error = (variance * (1.0 / trials[a] as f64 + 1.0 / trials[b] as f64)).sqrt();
                    Some(Difference { value: centre[a] - centre[b], error, df })
                };
                not_told_apart(&trials, 0.95, difference)[0]
            });
            // 95 % of 300 less three standard deviations.
            let held = held.count();
            assert!(held >= 274, "{held} of {count} hold the best of {means:?}");
        }
    }

    /// Returns how often alternatives whose best cases are equally fast are distinguished, in `count` runs of `rounds` rounds.
    fn told_apart(of: &[f64], to: &[f64], noise: f64, rounds: u32, count: u32, random: &mut Random) -> u32 {
        let told = (0..count).filter(|_| {
            let shared: Vec<f64> = (0..rounds).map(|_| 0.1 * normal(random)).collect();
            let mut trials = |levels: &[f64], first: u64| -> Vec<Vec<TrialValue>> {
                let trial = |place: u64, level: f64, round: u32, random: &mut Random| TrialValue {
                    place: Some((round, u64::from(round) * 20 + first + place)),
                    value: level * (shared[round as usize] + noise * normal(random)).exp(),
                };
                let case = |(place, level): (usize, &f64)| {
                    (0..rounds).map(|round| trial(place as u64, *level, round, random)).collect::<Vec<_>>()
                };
                let mut cases: Vec<Vec<TrialValue>> = levels.iter().enumerate().map(case).collect();
                let mean = |case: &Vec<TrialValue>| case.iter().map(|trial| trial.value.ln()).sum::<f64>();
                cases.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
                cases
            };
            let (of, to) = (trials(of, 0), trials(to, 10));
            let (of, to): (Vec<&[TrialValue]>, Vec<&[TrialValue]>) =
                (of.iter().map(|case| &case[..]).collect(), to.iter().map(|case| &case[..]).collect());
            let interval = BestRatio::of(&of, &to, true).unwrap().interval_at(0.95);
            interval.low > 1.0 || interval.high < 1.0
        });
        told.count() as u32
    }

    #[test]
    fn alternatives_with_equal_bests_are_seldom_told_apart_whatever_their_curves_are() {
        let (flat, peaked) = ([1.0; 4], [0.6, 0.85, 1.0, 0.8]);
        let mut random = Random::new(3);
        for (of, to) in
            [(&flat[..], &peaked[..]), (&flat[..], &flat[..]), (&peaked[..], &peaked[..]), (&flat[..1], &flat[..])]
        {
            for (noise, rounds) in [(0.05, 8), (0.2, 5)] {
                let told = told_apart(of, to, noise, rounds, 100, &mut random);
                // 5 % of 100 and three standard deviations.
                assert!(told <= 11, "{told} of 100 at {noise}: {of:?} {to:?}");
            }
        }
        let faster: Vec<f64> = peaked.iter().map(|speed| 1.3 * speed).collect();
        let told = told_apart(&faster, &peaked, 0.05, 6, 40, &mut random);
        assert!(told >= 36, "a difference of 30 % is found in {told} of 40");
    }

    #[test]
    fn the_least_time_is_the_best_where_less_is_better() {
        let trials = |values: [f64; 3]| values.map(|value| TrialValue { place: None, value });
        let (fast, slow, slowest) = (trials([1.0, 1.01, 0.99]), trials([2.0, 2.02, 1.98]), trials([3.0, 3.03, 2.97]));
        let found = BestRatio::of(&[&fast, &slowest], &[&slow, &slowest], false).unwrap();
        let interval = found.interval_at(0.95);
        assert!((found.chosen.ratio - 0.5).abs() < 0.01 && interval.low > 0.45 && interval.high < 0.55, "{interval:?}");
        let only = BestRatio::from(found.chosen);
        assert_eq!(only.interval_at(0.95), found.chosen.interval_at(0.95));
        assert!(BestRatio::of(&[&fast[..1]], &[&slow], false).is_none());
    }

    #[test]
    fn what_is_certainly_smaller_is_left_out_and_what_is_not_known_stays() {
        let values = [1.0, 0.9, 0.2];
        let difference = |a: usize, b: usize| Some(Difference { value: values[a] - values[b], error: 0.1, df: 20.0 });
        assert_eq!(not_told_apart(&[5, 5, 5], 0.95, difference), [true, true, false]);
        assert_eq!(not_told_apart(&[5, 5, 1], 0.95, |a, b| difference(a, b).filter(|_| a != 2 && b != 2)), [true; 3]);
        assert_eq!(not_told_apart(&[1], 0.95, |_, _| None), [true]);
        assert!(not_told_apart(&[], 0.95, |_, _| None).is_empty());
        // Values that do not vary: the larger one is certain.
        let still = |a: usize, b: usize| Some(Difference { value: values[a] - values[b], error: 0.0, df: 4.0 });
        assert_eq!(not_told_apart(&[3, 3, 3], 0.95, still), [true, false, false]);
    }
}
