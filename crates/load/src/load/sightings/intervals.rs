//! Sets of mostly consecutive whole numbers, stored as intervals.
//!
//! Main type: [`Intervals`]. Invariant: intervals neither overlap nor touch, so that memory grows only with the number of gaps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A set of whole numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Intervals {
    /// The last number of each interval, by its first number.
    last_of: BTreeMap<u64, u64>,
}

impl Intervals {
    /// Adds a number. Returns whether it is new.
    #[inline]
    pub fn insert(&mut self, number: u64) -> bool {
        // It is nearly always the number after the last interval.
        if let Some(mut last) = self.last_of.last_entry()
            && *last.get() + 1 == number
        {
            *last.get_mut() = number;
            return true;
        }
        if self.contains(number) {
            return false;
        }
        self.join(number, number);
        true
    }

    /// Adds all numbers from `first` to `last`, both included.
    pub fn insert_range(&mut self, first: u64, last: u64) {
        let inside: Vec<u64> = self.last_of.range(first..=last).map(|(first, _)| *first).collect();
        let (mut low, mut high) = (first, last);
        if let Some((before, end)) = self.last_of.range(..first).next_back()
            && *end >= first
        {
            (low, high) = (*before, high.max(*end));
        }
        for begin in inside {
            high = high.max(self.last_of.remove(&begin).unwrap_or(high));
        }
        self.last_of.remove(&low);
        self.join(low, high);
    }

    /// Adds an interval that overlaps no other, and joins it with those that it touches.
    fn join(&mut self, mut first: u64, mut last: u64) {
        if let Some(end) = self.last_of.remove(&(last + 1)) {
            last = end;
        }
        if let Some((before, end)) = self.last_of.range(..first).next_back().map(|(first, last)| (*first, *last))
            && end + 1 == first
        {
            first = before;
        }
        self.last_of.insert(first, last);
    }

    /// Returns whether the set contains a number.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.last_of.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    /// Returns the first number from `from` on that the set does not contain.
    pub fn first_missing(&self, from: u64) -> u64 {
        match self.last_of.range(..=from).next_back() {
            Some((_, last)) if *last >= from => last + 1,
            _ => from,
        }
    }

    /// Removes all numbers up to and including this one.
    pub fn forget_through(&mut self, number: u64) {
        while let Some(first) = self.last_of.first_entry() {
            if *first.key() > number {
                return;
            }
            let last = first.remove();
            if last > number {
                self.last_of.insert(number + 1, last);
                return;
            }
        }
    }

    /// Returns how many numbers the set contains.
    pub fn count(&self) -> u64 {
        self.last_of.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Returns how many numbers are in both sets.
    pub fn count_shared(&self, other: &Intervals) -> u64 {
        let shared = |(first, last): (&u64, &u64)| -> u64 {
            let before = other.last_of.range(..first).next_back();
            let within = other.last_of.range(first..=last);
            let overlap = |(a, b): (&u64, &u64)| (*b).min(*last).checked_sub((*a).max(*first)).map_or(0, |n| n + 1);
            before.map_or(0, overlap) + within.map(overlap).sum::<u64>()
        };
        self.last_of.iter().map(shared).sum()
    }
}

impl From<Vec<(u64, u64)>> for Intervals {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut intervals = Intervals::default();
        pairs
            .into_iter()
            .filter(|(first, last)| first <= last)
            .for_each(|(first, last)| intervals.insert_range(first, last));
        intervals
    }
}

impl From<Intervals> for Vec<(u64, u64)> {
    fn from(intervals: Intervals) -> Self {
        intervals.last_of.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn intervals_hold_what_a_set_of_numbers_holds() {
        for seed in 0..20 {
            let mut random = Stream::seeded(seed);
            let (mut set, mut other_set) = (BTreeSet::new(), BTreeSet::new());
            let (mut intervals, mut other) = (Intervals::default(), Intervals::default());
            for _ in 0..150 {
                let number = random.below(120);
                assert_eq!(intervals.insert(number), set.insert(number));
                let (first, length) = (random.below(120), random.below(4));
                other.insert_range(first, first + length);
                other_set.extend(first..=first + length);
                assert_eq!(other.count(), other_set.len() as u64, "{other:?}");
            }
            assert_eq!(intervals.count(), set.len() as u64);
            assert_eq!(intervals.count_shared(&other), set.intersection(&other_set).count() as u64);
            for number in 0..130 {
                assert_eq!(intervals.contains(number), set.contains(&number));
                assert_eq!(intervals.first_missing(number), (number..).find(|n| !set.contains(n)).unwrap());
            }
            let pairs: Vec<(u64, u64)> = intervals.clone().into();
            assert!(pairs.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{pairs:?}");
            assert_eq!(Intervals::from(pairs), intervals);
            intervals.forget_through(60);
            assert_eq!(intervals.count(), set.range(61..).count() as u64);
        }
    }
}
