//! The model of case + round: trials of a round share the state of the machine at that time, and a ratio of cases should not depend on it.
//!
//! Main function: [`contrast`]. The logarithm of a value is its case's level, plus the effect of its round, plus noise. The effects of rounds are
//! taken as random with a variance estimated from the trials, so that a trial counts also where its round has no partner for it:
//! little where rounds differ, fully where they do not. Invariant: with a trial of every case in every round it is the paired t-test.

use std::collections::BTreeMap;

use super::summary::mean;

/// The value of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialValue {
    /// The trial's round and its position in the order of execution; `None` where rounds have no meaning.
    pub place: Option<(u32, u64)>,
    /// The value.
    pub value: f64,
}

/// The trials of one case and the power with which its mean enters the ratio: above 0 for the numerator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell<'a> {
    /// Power of the case's mean.
    pub weight: f64,
    /// The case's trials.
    pub trials: &'a [TrialValue],
}

/// Smallest number of rounds with both sides: with fewer, a paired interval is wider than an unpaired one for want of degrees of freedom.
pub const ROUNDS_LEAST: usize = 5;
/// Largest ratio of the variance of rounds to that of trials within a round: beyond, a round without partners counts nothing to any digit shown.
const SHARED_MOST: f64 = 1e4;

/// A weighted sum of the cases' mean logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// The sum.
    pub log: f64,
    /// Standard error of the sum, with rounds as the unit.
    pub log_se: f64,
    /// Degrees of freedom of that standard error.
    pub df: f64,
    /// Rounds in which both sides have a trial.
    pub rounds: usize,
}

/// The logarithms of one round, each with the index of its cell.
type Round = Vec<(usize, f64)>;

/// Returns the weighted sum; `None` where trials were not interleaved by rounds, or fewer than [`ROUNDS_LEAST`] rounds have both sides. The
/// decision depends on when trials were executed and never on their values, so that it cannot favour a result.
pub fn contrast(cells: &[Cell<'_>]) -> Option<Contrast> {
    let rounds = interleaved(cells)?;
    let has = |round: &Round, sign: f64| round.iter().any(|(cell, _)| cells[*cell].weight * sign > 0.0);
    let shared = rounds.iter().filter(|round| has(round, 1.0) && has(round, -1.0)).count();
    if shared < ROUNDS_LEAST {
        return None;
    }
    let weights: Vec<f64> = cells.iter().map(|cell| cell.weight).collect();
    let model = Model { shared: shared_variance(&rounds, cells.len()), rounds };
    let (levels, solved) = (model.solve(&model.right()), model.solve(&weights));
    let log = weights.iter().zip(&levels).map(|(weight, level)| weight * level).sum();
    let (mut squares, mut expected, mut expected_squares) = (0.0, 0.0, 0.0);
    for round in &model.rounds {
        let taken = model.taken(round.len()) * round.iter().map(|(cell, _)| solved[*cell]).sum::<f64>();
        let (mut error, mut alone, mut together) = (0.0, 0.0, 0.0);
        for (cell, value) in round {
            let share = solved[*cell] - taken;
            error += share * (value - levels[*cell]);
            alone += share * share;
            together += share;
        }
        let variance = alone + model.shared * together * together;
        squares += error * error;
        expected += variance;
        expected_squares += variance * variance;
    }
    // Rounds with little information count little; where all rounds are alike, this is their number.
    let effective = expected * expected / expected_squares;
    let variance = squares * effective / (effective - 1.0);
    Some(Contrast { log, log_se: variance.sqrt(), df: effective - 1.0, rounds: shared })
}

/// Returns the values of two cases in the rounds that both have; `None` where [`contrast`] returns `None` for them.
pub fn shared_values(of: &[TrialValue], to: &[TrialValue]) -> Option<Vec<(f64, f64)>> {
    let rounds = interleaved(&[Cell { weight: 1.0, trials: of }, Cell { weight: -1.0, trials: to }])?;
    let both: Vec<(f64, f64)> = rounds
        .iter()
        .filter(|round| round.len() == 2)
        .map(|round| {
            let of_cell = |wanted| round.iter().find(|(cell, _)| *cell == wanted).map_or(0.0, |(_, log)| log.exp());
            (of_cell(0), of_cell(1))
        })
        .collect();
    (both.len() >= ROUNDS_LEAST).then_some(both)
}

/// Groups the trials by round; `None` where a trial has no position, a case has two trials in a round, or rounds were not executed one after the
/// other: a round is then not a moment that its trials share.
fn interleaved(cells: &[Cell<'_>]) -> Option<Vec<Round>> {
    let mut rounds: BTreeMap<u32, (Round, u64, u64)> = BTreeMap::new();
    for (number, cell) in cells.iter().enumerate() {
        for trial in cell.trials {
            let (round, at) = trial.place?;
            let (trials, first, last) = rounds.entry(round).or_insert((Round::new(), at, at));
            // Cells are processed one after the other: a second trial of this cell would be the last of the round.
            if trials.last().is_some_and(|(other, _)| *other == number) {
                return None;
            }
            trials.push((number, trial.value.ln()));
            (*first, *last) = ((*first).min(at), (*last).max(at));
        }
    }
    let rounds: Vec<(Round, u64, u64)> = rounds.into_values().collect();
    let in_order = rounds.windows(2).all(|pair| pair[0].2 < pair[1].1);
    in_order.then(|| rounds.into_iter().map(|(round, ..)| round).collect())
}

/// Returns the variance of rounds in proportion to that of the noise within them: the excess of the spread of the cases' trials over the
/// residuals of case + round.
fn shared_variance(rounds: &[Round], cells: usize) -> f64 {
    let fixed = Model { shared: SHARED_MOST, rounds: rounds.to_vec() };
    let levels = fixed.solve(&fixed.right());
    let (mut count, mut residuals) = (0, 0.0);
    for round in rounds {
        let errors: Vec<f64> = round.iter().map(|(cell, value)| value - levels[*cell]).collect();
        let centre = mean(&errors).unwrap_or(0.0);
        residuals += errors.iter().map(|error| (error - centre).powi(2)).sum::<f64>();
        count += round.len();
    }
    let df = count as f64 - cells as f64 - rounds.len() as f64 + 1.0;
    let mut of_cell: Vec<Vec<f64>> = vec![Vec::new(); cells];
    rounds.iter().flatten().for_each(|(cell, value)| of_cell[*cell].push(*value));
    let spread: f64 = of_cell
        .iter()
        .map(|values| {
            let centre = mean(values).unwrap_or(0.0);
            values.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
        })
        .sum();
    let (within, across) = (residuals / df, spread / (count - cells) as f64);
    if within.is_finite() && df > 0.0 && across <= (1.0 + SHARED_MOST) * within {
        (across / within - 1.0).max(0.0)
    } else if across > 0.0 {
        SHARED_MOST
    } else {
        0.0
    }
}

/// Generalised least squares with a variance of `shared` that the trials of a round have in common, in units of the noise's variance.
struct Model {
    shared: f64,
    rounds: Vec<Round>,
}

impl Model {
    /// Returns the part of a round's sum that is subtracted from each of its trials.
    fn taken(&self, trials: usize) -> f64 {
        self.shared / (1.0 + self.shared * trials as f64)
    }

    /// Returns the right side of the normal equations for the cases' levels.
    fn right(&self) -> Vec<f64> {
        let cells = self.rounds.iter().flatten().map(|(cell, _)| cell + 1).max().unwrap_or(0);
        let mut out = vec![0.0; cells];
        for round in &self.rounds {
            let taken = self.taken(round.len()) * round.iter().map(|(_, value)| value).sum::<f64>();
            round.iter().for_each(|(cell, value)| out[*cell] += value - taken);
        }
        out
    }

    /// Returns the matrix of the normal equations times a vector.
    fn times(&self, vector: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; vector.len()];
        for round in &self.rounds {
            let taken = self.taken(round.len()) * round.iter().map(|(cell, _)| vector[*cell]).sum::<f64>();
            round.iter().for_each(|(cell, _)| out[*cell] += vector[*cell] - taken);
        }
        out
    }

    /// Solves the normal equations by conjugate gradients, which end after as many steps as there are cases, except for rounding.
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let mut found = vec![0.0; right.len()];
        let mut rest = right.to_vec();
        let mut direction = rest.clone();
        let mut square = dot(&rest, &rest);
        let enough = square * 1e-26;
        for _ in 0..4 * right.len() {
            if square <= enough {
                break;
            }
            let ahead = self.times(&direction);
            let step = square / dot(&direction, &ahead);
            for place in 0..right.len() {
                found[place] += step * direction[place];
                rest[place] -= step * ahead[place];
            }
            let next = dot(&rest, &rest);
            direction.iter_mut().zip(&rest).for_each(|(old, rest)| *old = rest + next / square * *old);
            square = next;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;
    use crate::statistics::ratio::{RatioEstimate, matched_ratio};
    use crate::statistics::summary::sample_sd;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    /// Creates trials of these rounds; `offset` is the position within the round.
    fn trials(
        rounds: impl IntoIterator<Item = u32>,
        offset: u64,
        mut value: impl FnMut(u32) -> f64,
    ) -> Vec<TrialValue> {
        let trial =
            |round: u32| TrialValue { place: Some((round, u64::from(round) * 2 + offset)), value: value(round) };
        rounds.into_iter().map(trial).collect()
    }

    /// Creates two cases with a true ratio of 1.25, the first of which ended earlier, on a machine that drifts.
    fn drifting(random: &mut Random, (first, second): (u32, u32), drift: f64, noise: f64) -> [Vec<TrialValue>; 2] {
        let shared: Vec<f64> = (0..second).map(|_| drift * normal(random)).collect();
        let mut value = |level: f64, round: u32| (level + shared[round as usize] + noise * normal(random)).exp();
        let of = trials(0..first, 0, |round| value(1.25_f64.ln(), round));
        [of, trials(0..second, 1, |round| value(0.0, round))]
    }

    fn estimate([of, to]: &[Vec<TrialValue>; 2]) -> RatioEstimate {
        matched_ratio(&[(of, to)]).unwrap()
    }

    fn without_places(trials: &[TrialValue]) -> Vec<TrialValue> {
        trials.iter().map(|trial| TrialValue { place: None, ..*trial }).collect()
    }

    #[test]
    fn with_all_rounds_shared_it_is_the_paired_t_test_of_the_logarithms() {
        let sides = drifting(&mut Random::new(3), (8, 8), 0.3, 0.02);
        let differences: Vec<f64> = sides[0].iter().zip(&sides[1]).map(|(a, b)| (a.value / b.value).ln()).collect();
        let found = estimate(&sides);
        assert!((found.ratio.ln() - mean(&differences).unwrap()).abs() < 1e-9, "{found:?}");
        assert!((found.log_se / (sample_sd(&differences).unwrap() / 8.0_f64.sqrt()) - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.df - 7.0).abs() < 1e-6 && found.rounds == Some(8), "{found:?}");
    }

    #[test]
    fn trials_without_a_partner_count_where_rounds_do_not_differ() {
        let mut random = Random::new(8);
        let (mut with, mut without) = (0.0, 0.0);
        for _ in 0..200 {
            let sides = drifting(&mut random, (5, 12), 0.0, 0.05);
            let (found, of_pairs) = (estimate(&sides), estimate(&[sides[0].clone(), sides[1][..5].to_vec()]));
            assert_eq!((found.n_of, found.n_to, found.rounds), (5, 12, Some(5)));
            with += found.interval.half_width();
            without += of_pairs.interval.half_width();
        }
        // Seven more trials of one side reduce the variance to 0.71, if it were known that rounds do not differ.
        assert!(with < 0.92 * without, "{with} {without}");
        let drifting = drifting(&mut Random::new(8), (6, 12), 0.5, 0.001);
        let of_pairs = estimate(&[drifting[0].clone(), drifting[1][..6].to_vec()]);
        let found = estimate(&drifting);
        assert!(
            (found.ratio / of_pairs.ratio - 1.0).abs() < 1e-3,
            "a drift counts for nothing: {found:?} {of_pairs:?}"
        );
    }

    #[test]
    fn intervals_miss_five_times_in_a_hundred_where_cases_ended_at_different_rounds() {
        for (seed, drift) in [(1, 0.0), (2, 0.03), (3, 0.3)] {
            let mut random = Random::new(seed);
            let missed = (0..1000).filter(|_| {
                let interval = estimate(&drifting(&mut random, (6, 11), drift, 0.05)).interval;
                !(interval.low..=interval.high).contains(&1.25)
            });
            let missed = missed.count();
            // 50 expected; 3.3 standard deviations either way.
            assert!((27..=73).contains(&missed), "{missed} of 1000 missed under a drift of {drift}");
        }
    }

    #[test]
    fn equal_alternatives_are_told_apart_as_seldom_when_values_are_skewed() {
        let mut random = Random::new(9);
        // The exponential of a normal value: a few values are many times the usual one.
        let told = (0..1000).filter(|_| {
            let [of, to] = [0, 1].map(|offset| trials(0..12, offset, |_| normal(&mut random).exp()));
            estimate(&[of, to]).p < 0.05
        });
        let told = told.count();
        assert!((27..=73).contains(&told), "{told} of 1000");
    }

    #[test]
    fn what_a_round_shares_does_not_widen_the_interval() {
        let sides = drifting(&mut Random::new(3), (12, 12), 0.3, 0.02);
        let (paired, apart) = (estimate(&sides), estimate(&[without_places(&sides[0]), without_places(&sides[1])]));
        assert!(paired.interval.half_width() < 0.2 * apart.interval.half_width(), "{paired:?} {apart:?}");
        assert!(paired.p < 1e-4 && apart.rounds.is_none(), "{paired:?} {apart:?}");
    }

    #[test]
    fn matched_cases_share_the_drift_of_their_rounds() {
        let mut random = Random::new(12);
        let pairs: Vec<[Vec<TrialValue>; 2]> = (0..4).map(|_| drifting(&mut random, (6, 9), 0.0, 0.05)).collect();
        // Positions of the four pairs in one order of execution.
        let placed = |trials: &[TrialValue], pair: usize| -> Vec<TrialValue> {
            let place = |(round, at): (u32, u64)| (round, u64::from(round) * 8 + pair as u64 * 2 + at % 2);
            trials.iter().map(|trial| TrialValue { place: trial.place.map(place), ..*trial }).collect()
        };
        let pairs: Vec<[Vec<TrialValue>; 2]> =
            pairs.iter().enumerate().map(|(number, [of, to])| [placed(of, number), placed(to, number)]).collect();
        let matched: Vec<(&[TrialValue], &[TrialValue])> = pairs.iter().map(|[of, to]| (&of[..], &to[..])).collect();
        let found = matched_ratio(&matched).unwrap();
        assert_eq!((found.n_of, found.n_to, found.rounds), (24, 36, Some(6)));
        assert!((found.ratio - 1.25).abs() < 0.1 && found.log_se < 0.03, "{found:?}");
    }

    #[test]
    fn rounds_that_are_few_or_were_executed_apart_are_no_rounds() {
        let one = |_| 1.0;
        let cells = |of: &[TrialValue], to: &[TrialValue]| matched_ratio(&[(of, to)]).unwrap().rounds;
        assert_eq!(cells(&trials(0..4, 0, one), &trials(0..8, 1, one)), None);
        assert_eq!(cells(&trials(0..8, 0, one), &trials(0..8, 1, one)), Some(8));
        let mut later = trials(0..8, 1, one);
        later.iter_mut().for_each(|trial| trial.place = trial.place.map(|(round, at)| (round, at + 100)));
        assert_eq!(cells(&trials(0..8, 0, one), &later), None);
        let mut unplaced = trials(0..8, 1, one);
        unplaced[3].place = None;
        assert_eq!(cells(&trials(0..8, 0, one), &unplaced), None);
        let (of, to) = (trials([0, 1, 2, 3, 4, 5], 0, f64::from), trials([0, 2, 3, 4, 5, 6], 1, one));
        assert_eq!(shared_values(&of, &to).unwrap().len(), 5);
    }
}
