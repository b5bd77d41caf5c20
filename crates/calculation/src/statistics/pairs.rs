//! Comparison of many cases, each with each other: the figures of a case are computed once, rather than once for each of its pairs.
//!
//! Main type: [`Case`]. Invariant: a comparison equals that of [`matched_ratio`], except for rounding.

use super::best::Difference;
use super::ratio::{TrialValue, is_comparable, matched_ratio};
use super::rounds::ROUNDS_LEAST;
use super::summary::{mean, sample_sd};

/// The trials of a case with the figures that comparisons need.
#[derive(Debug, Clone)]
pub struct Case<'a> {
    trials: &'a [TrialValue],
    /// Round, position in the order of execution, and logarithm, by round; `None` where a trial has no position or a round has several trials.
    by_round: Option<Vec<(u32, u64, f64)>>,
    /// Mean of the logarithms and the variance of that mean; `None` where the case cannot be part of a ratio.
    alone: Option<(f64, f64)>,
}

impl<'a> Case<'a> {
    /// Computes the figures of a case.
    pub fn new(trials: &'a [TrialValue]) -> Self {
        let placed = |trial: &TrialValue| trial.place.map(|(round, at)| (round, at, trial.value.ln()));
        let mut by_round: Option<Vec<(u32, u64, f64)>> = trials.iter().map(placed).collect();
        by_round.iter_mut().for_each(|all| all.sort_by_key(|(round, ..)| *round));
        let by_round = by_round.filter(|all| all.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let logs: Vec<f64> = trials.iter().map(|trial| trial.value.ln()).collect();
        let alone = || Some((mean(&logs)?, sample_sd(&logs)?.powi(2) / logs.len() as f64));
        Case { trials, by_round, alone: is_comparable(trials).then(alone).flatten() }
    }

    /// Returns by how much this case is larger than another; `None` where one of them cannot be part of a ratio.
    pub fn over(&self, other: &Case<'_>) -> Option<Difference> {
        let ((of, of_part), (to, to_part)) = (self.alone?, other.alone?);
        if let (Some(own), Some(others)) = (&self.by_round, &other.by_round) {
            let is_same = own.len() == others.len() && own.iter().zip(others).all(|(a, b)| a.0 == b.0);
            if is_same && own.len() >= ROUNDS_LEAST && are_in_order(own, others) {
                return Some(by_round(own, others));
            }
            if !is_same {
                return matched_ratio(&[(self.trials, other.trials)]).map(Difference::from);
            }
        }
        // After Welch and Satterthwaite.
        let [own_df, other_df] = [self, other].map(|case| case.trials.len() as f64 - 1.0);
        let variance = of_part + to_part;
        let fourth = of_part * of_part / own_df + to_part * to_part / other_df;
        let df = if fourth > 0.0 { variance * variance / fourth } else { own_df + other_df };
        Some(Difference { value: of - to, error: variance.sqrt(), df })
    }
}

/// Returns whether each round that two cases share ended before the next one began.
fn are_in_order(of: &[(u32, u64, f64)], to: &[(u32, u64, f64)]) -> bool {
    let (ends, begins) = (of.iter().zip(to), of.iter().zip(to).skip(1));
    ends.zip(begins).all(|((a, b), (c, d))| a.1.max(b.1) < c.1.min(d.1))
}

/// Computes the paired t-test, to which the model of case and round reduces where both cases have a trial in every round.
fn by_round(of: &[(u32, u64, f64)], to: &[(u32, u64, f64)]) -> Difference {
    let differences = || of.iter().zip(to).map(|(a, b)| a.2 - b.2);
    let count = of.len() as f64;
    let value = differences().sum::<f64>() / count;
    let squares: f64 = differences().map(|difference| (difference - value).powi(2)).sum();
    Difference { value, error: (squares / (count - 1.0) / count).sqrt(), df: count - 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    #[test]
    fn a_pair_is_compared_as_every_ratio_is() {
        let mut random = Random::new(9);
        // Interleaved rounds; fewer of them; one after the other; rounds that one case partly lacks; without rounds.
        type Place = fn(u32, u64) -> Option<(u32, u64)>;
        let places: [Place; 4] = [
            |round, case| Some((round, 2 * u64::from(round) + case)),
            |round, case| Some((round, 100 * case + u64::from(round))),
            |round, case| Some((if case == 1 && round > 6 { round + 1 } else { round }, 3 * u64::from(round) + case)),
            |_, _| None,
        ];
        for place in places {
            for (own, others) in [(10, 10), (8, 10), (3, 3), (2, 9)] {
                let mut trials = |case: u64, count: u32| -> Vec<TrialValue> {
                    let value = |random: &mut Random| 100.0 * (0.1 * random.unit() + 0.05 * case as f64).exp();
                    let trial = |round| TrialValue { place: place(round, case), value: value(&mut random) };
                    // Not in the order of their rounds.
                    (0..count).rev().map(trial).collect()
                };
                let (of, to) = (trials(0, own), trials(1, others));
                let expected = Difference::from(matched_ratio(&[(&of, &to)]).unwrap());
                let found = Case::new(&of).over(&Case::new(&to)).unwrap();
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-3);
                let is_same = near(found.value, expected.value) && near(found.error, expected.error);
                assert!(is_same && near(found.df, expected.df), "{own} and {others}: {found:?}, not {expected:?}");
            }
        }
    }

    #[test]
    fn a_case_without_two_trials_above_nothing_is_compared_with_none() {
        let trials = |values: &[f64]| -> Vec<TrialValue> {
            values.iter().map(|value| TrialValue { place: None, value: *value }).collect()
        };
        let (usual, single, nothing) = (trials(&[1.0, 1.1, 0.9]), trials(&[1.0]), trials(&[1.0, 0.0, 1.0]));
        for other in [&single, &nothing] {
            assert_eq!(Case::new(&usual).over(&Case::new(other)), None);
            assert_eq!(matched_ratio(&[(&usual, other)]), None);
        }
    }
}
