//! The records whose storage was acknowledged to a client, by number. Main type: [`Acknowledged`].
//!
//! Invariant: a client's record numbers follow each other, or lie at equal distances where several clients share the numbers, so that memory grows with the unacknowledged records and not
//! with time.

use std::ops::Range;

use crate::database::DatabaseError;

use super::tally::Ending;

/// Maximum number of runs that are kept; a load with more gaps is broken anyway, and its check says so.
const RUNS_MAX: usize = 100_000;

/// The records of one client that were acknowledged, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// Records that must be stored.
    pub stored: Runs,
    /// Records whose state is unknown: their connection was lost, or no answer came until the end.
    pub unknown: Vec<Range<u64>>,
    /// Whether there were too many runs to keep.
    pub is_cut: bool,
    /// Time at which the last insertion was due, in nanoseconds by the engine's clock.
    pub last_intended_ns: u64,
    /// Time at which the last answer came, in nanoseconds by the engine's clock.
    pub last_done_ns: u64,
}

impl Acknowledged {
    /// Notes how the insertion of these records ended.
    pub(super) fn note(&mut self, records: Range<u64>, (intended_ns, done_ns): (u64, u64), ending: &Ending<'_>) {
        self.last_intended_ns = self.last_intended_ns.max(intended_ns);
        self.last_done_ns = self.last_done_ns.max(done_ns);
        match ending {
            Ending::Completed { .. } => self.is_cut |= !self.stored.push(records),
            Ending::Failed(DatabaseError::Lost(_)) | Ending::Abandoned => {
                append(&mut self.unknown, records, &mut self.is_cut);
            }
            Ending::Failed(_) => {}
        }
    }

    /// Returns the number of records that must be stored.
    pub fn count(&self) -> u64 {
        self.stored.count()
    }

    /// Returns the number of records whose state is unknown.
    pub fn count_unknown(&self) -> u64 {
        self.unknown.iter().map(|run| run.end - run.start).sum()
    }
}

/// Runs of record numbers, in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs(Vec<Spaced>);

/// Runs of the same length at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spaced {
    first: u64,
    length: u64,
    /// Distance from the beginning of a run to that of the next one; 0 for one run.
    distance: u64,
    runs: u64,
}

impl Spaced {
    /// Takes in a run of the same length, if it lies where the next one would.
    fn take(&mut self, run: Spaced) -> bool {
        let distance = run.first.saturating_sub(self.first);
        let fits = self.length == run.length && run.runs == 1 && distance > self.length;
        match self.runs {
            1 if fits => self.distance = distance,
            runs if fits && self.distance.checked_mul(runs) == Some(distance) => {}
            _ => return false,
        }
        self.runs += 1;
        true
    }
}

impl Runs {
    /// Adds a run; returns false if there are too many to keep.
    fn push(&mut self, records: Range<u64>) -> bool {
        let new = Spaced { first: records.start, length: records.end - records.start, distance: 0, runs: 1 };
        let is_full = self.0.len() >= RUNS_MAX;
        match self.0.last_mut() {
            Some(last) if last.runs == 1 && last.first + last.length == new.first => last.length += new.length,
            Some(last) => {
                if last.take(new) {
                    return true;
                }
                if is_full {
                    return false;
                }
                self.0.push(new);
            }
            None => self.0.push(new),
        }
        // A run that has grown may be the next one of those before it.
        if let [.., before, last] = self.0.as_mut_slice()
            && before.take(*last)
        {
            self.0.pop();
        }
        true
    }

    /// Returns the runs in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().flat_map(|spaced| {
            let firsts = (0..spaced.runs).map(|run| spaced.first + run * spaced.distance);
            firsts.map(|first| first..first + spaced.length)
        })
    }

    /// Returns the number of records.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|spaced| spaced.length * spaced.runs).sum()
    }
}

impl FromIterator<Range<u64>> for Runs {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(runs: I) -> Self {
        let mut all = Runs::default();
        runs.into_iter().for_each(|run| {
            all.push(run);
        });
        all
    }
}

fn append(runs: &mut Vec<Range<u64>>, records: Range<u64>, is_cut: &mut bool) {
    let is_full = runs.len() >= RUNS_MAX;
    match runs.last_mut() {
        Some(last) if last.end == records.start => last.end = records.end,
        _ if is_full => *is_cut = true,
        _ => runs.push(records),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_follow_each_other_are_one_run_and_failures_part_them() {
        let mut kept = Acknowledged::default();
        let (stored, lost) = (Ending::Completed { empty: false }, DatabaseError::Lost("gone".to_owned()));
        let refused = DatabaseError::refused("503", "full");
        kept.note(0..5, (1, 2), &stored);
        kept.note(5..10, (3, 4), &stored);
        kept.note(10..15, (5, 6), &Ending::Failed(&refused));
        kept.note(15..20, (7, 8), &stored);
        kept.note(20..25, (9, 10), &Ending::Failed(&lost));
        kept.note(25..30, (11, 12), &Ending::Abandoned);
        assert_eq!(kept.stored.iter().collect::<Vec<_>>(), [0..10, 15..20]);
        assert_eq!(kept.unknown, std::iter::once(20..30).collect::<Vec<_>>());
        assert_eq!((kept.count(), kept.count_unknown(), kept.is_cut), (15, 10, false));
        assert_eq!((kept.last_intended_ns, kept.last_done_ns), (11, 12));
    }
    #[test]
    fn the_numbers_of_clients_that_take_turns_need_no_memory() {
        for (length, parts) in [(5, 1), (10, 2), (100, 10)] {
            let (mut runs, mut told) = (Runs::default(), Vec::new());
            for turn in 0..10_000 {
                let first = 700 + turn * 3 * length * parts;
                for part in 0..parts {
                    let run = first + part * length..first + (part + 1) * length;
                    told.extend(run.clone());
                    assert!(runs.push(run));
                }
            }
            assert!(runs.0.len() <= 2, "{} pieces", runs.0.len());
            assert_eq!(runs.count(), told.len() as u64);
            assert!(runs.iter().flatten().eq(told));
        }
    }

    #[test]
    fn whatever_is_added_comes_out_again_in_its_order() {
        let mut word = 7_u64;
        for _ in 0..2_000 {
            let (mut runs, mut told, mut at) = (Runs::default(), Vec::new(), 0);
            for _ in 0..30 {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                at += (word >> 33) % 3 * 4;
                let run = at..at + 1 + (word >> 40) % 4;
                at = run.end;
                told.extend(run.clone());
                runs.push(run);
            }
            assert!(runs.iter().flatten().eq(told), "{runs:?}");
        }
    }
}
