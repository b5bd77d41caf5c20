//! The records whose storage was acknowledged to a client, by number. Main type: [`Acknowledged`].
//!
//! Invariant: a client's record numbers are consecutive, so that memory grows with the unacknowledged records and not with time.

use std::ops::Range;

use crate::database::DatabaseError;

use super::tally::Ending;

/// Maximum number of runs that are kept; a load with more gaps is broken anyway, and its check says so.
const RUNS_MAX: usize = 100_000;

/// The records of one client that were acknowledged, in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// Records that must be stored.
    pub stored: Vec<Range<u64>>,
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
            Ending::Completed { .. } => append(&mut self.stored, records, &mut self.is_cut),
            Ending::Failed(DatabaseError::Lost(_)) | Ending::Abandoned => {
                append(&mut self.unknown, records, &mut self.is_cut);
            }
            Ending::Failed(_) => {}
        }
    }

    /// Returns the number of records that must be stored.
    pub fn count(&self) -> u64 {
        self.stored.iter().map(|run| run.end - run.start).sum()
    }

    /// Returns the number of records whose state is unknown.
    pub fn count_unknown(&self) -> u64 {
        self.unknown.iter().map(|run| run.end - run.start).sum()
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
        assert_eq!(
            (kept.stored.as_slice(), kept.unknown.as_slice()),
            (&[0..10, 15..20][..], std::slice::from_ref(&(20..30)))
        );
        assert_eq!((kept.count(), kept.count_unknown(), kept.is_cut), (15, 10, false));
        assert_eq!((kept.last_intended_ns, kept.last_done_ns), (11, 12));
    }
}
