//! Which trials of two alternatives can be compared round by round.
//!
//! Main function: [`pairs`]. Invariant: the decision depends on when trials were executed and never on their values, so that it
//! cannot favour a result.

use std::collections::BTreeMap;

use super::sample::TrialValue;

/// Below this many rounds a paired interval is wider than an unpaired one for want of degrees of freedom.
pub const ROUNDS_LEAST: usize = 5;
/// Share of either side's trials that may be left out because the other side has none in that round.
const LEFT_OUT_MOST: f64 = 0.25;

/// A trial's place in the order of execution, and its value.
type Placed = (u64, f64);

/// The values of rounds in which both sides have one. None when there are fewer than five such rounds, when more than a
/// quarter of a side's trials would be left out, or when the rounds were not executed one after the other: then a round is
/// no moment that its trials share.
pub fn pairs(a: &[TrialValue], b: &[TrialValue]) -> Option<Vec<(f64, f64)>> {
    Some(round_pairs(a, b)?.into_iter().map(|pair| (pair.of, pair.to)).collect())
}

/// The values of two alternatives in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundPair {
    /// The round.
    pub round: u32,
    /// The value of the first.
    pub of: f64,
    /// The value of the second.
    pub to: f64,
}

/// The same as [`pairs`] with the rounds.
pub fn round_pairs(a: &[TrialValue], b: &[TrialValue]) -> Option<Vec<RoundPair>> {
    let by_round = |side: &[TrialValue]| -> Option<BTreeMap<u32, (u64, f64)>> {
        let placed: Option<Vec<(u32, (u64, f64))>> =
            side.iter().map(|trial| trial.place.map(|(round, sequence)| (round, (sequence, trial.value)))).collect();
        let placed = placed?;
        let count = placed.len();
        Some(placed.into_iter().collect::<BTreeMap<_, _>>()).filter(|rounds| rounds.len() == count)
    };
    let (of, to) = (by_round(a)?, by_round(b)?);
    let both: Vec<(u32, Placed, Placed)> =
        of.iter().filter_map(|(round, value)| Some((*round, *value, *to.get(round)?))).collect();
    let shared: Vec<(Placed, Placed)> = both.iter().map(|(_, of, to)| (*of, *to)).collect();
    let longest = of.len().max(to.len()) as f64;
    if shared.len() < ROUNDS_LEAST || (shared.len() as f64) < (1.0 - LEFT_OUT_MOST) * longest {
        return None;
    }
    let last = |((x, _), (y, _)): &(Placed, Placed)| *x.max(y);
    let first = |((x, _), (y, _)): &(Placed, Placed)| *x.min(y);
    let is_interleaved = shared.windows(2).all(|rounds| last(&rounds[0]) < first(&rounds[1]));
    let pair = |(round, (_, of), (_, to))| RoundPair { round, of, to };
    is_interleaved.then(|| both.into_iter().map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trials of these rounds; `offset` is the place within the round.
    fn trials(rounds: &[u32], offset: u64) -> Vec<TrialValue> {
        let trial = |round: &u32| TrialValue {
            place: Some((*round, u64::from(*round) * 2 + offset)),
            value: f64::from(*round) + offset as f64 / 10.0,
        };
        rounds.iter().map(trial).collect()
    }

    #[test]
    fn rounds_that_both_sides_have_are_paired() {
        let found = pairs(&trials(&[0, 1, 2, 3, 4, 5], 0), &trials(&[0, 2, 3, 4, 5, 6], 1)).unwrap();
        assert_eq!(found, [(0.0, 0.1), (2.0, 2.1), (3.0, 3.1), (4.0, 4.1), (5.0, 5.1)]);
    }

    #[test]
    fn too_few_shared_rounds_are_not_paired() {
        assert_eq!(pairs(&trials(&[0, 1, 2, 3], 0), &trials(&[0, 1, 2, 3], 1)), None);
        let (short, long) = (trials(&[0, 1, 2, 3, 4], 0), trials(&[0, 1, 2, 3, 4, 5, 6, 7], 1));
        assert_eq!(pairs(&short, &long), None, "three of eight trials would be left out");
    }

    #[test]
    fn rounds_that_were_executed_apart_are_not_paired() {
        let rounds: Vec<u32> = (0..8).collect();
        let mut later = trials(&rounds, 1);
        later.iter_mut().for_each(|trial| trial.place = trial.place.map(|(round, at)| (round, at + 100)));
        assert_eq!(pairs(&trials(&rounds, 0), &later), None);
        let mut unplaced = trials(&rounds, 1);
        unplaced[3].place = None;
        assert_eq!(pairs(&trials(&rounds, 0), &unplaced), None);
    }
}
