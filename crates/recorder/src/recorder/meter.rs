//! Counters of the recorder besides the spool's own: commits, trouble, requests. Main type: [`Meter`].
//!
//! Invariant: memory is bounded, whatever names clients choose.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::access::Strangers;
use super::durability::Terms;
use super::log;
use super::progress::Progress;
use super::sources::Sources;
use crate::database::durability::Lasts;

/// The upper bounds of the classes of times, in seconds.
pub const TIME_BOUNDS_S: [f64; 16] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// A counter.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the counter.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Subtracts from the counter, if it is a state.
    pub fn subtract(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the value, if it is a state.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A histogram of times.
#[derive(Debug, Default)]
pub struct Times {
    classes: [Count; TIME_BOUNDS_S.len() + 1],
    sum_ns: Count,
}

impl Times {
    /// Counts a time.
    pub fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        self.classes[TIME_BOUNDS_S.partition_point(|bound| *bound < seconds)].add(1);
        self.sum_ns.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the counts by class, not cumulated, and the sum of all times in seconds.
    pub fn read(&self) -> ([u64; TIME_BOUNDS_S.len() + 1], f64) {
        (std::array::from_fn(|class| self.classes[class].get()), self.sum_ns.get() as f64 / 1e9)
    }
}

/// All counters.
#[derive(Debug, Default)]
pub struct Meter {
    /// Transactions committed.
    pub commits: Count,
    /// Rows in them.
    pub rows: Count,
    /// Batches among them that were prepared while the one before was committed.
    pub prepared: Count,
    /// Time from the start of a transaction to the answer to its COMMIT.
    pub commit_times: Times,
    /// Time from a request's arrival to its acknowledgement.
    pub acknowledgement_times: Times,
    /// Requests acknowledged.
    pub acknowledged_requests: Count,
    /// Requests refused for their content: 4xx.
    pub refused_requests: Count,
    /// Requests refused for lack of room: 429 and 503.
    pub turned_away: Count,
    /// Messages that had been stored before.
    pub duplicates: Count,
    /// Lines that were refused because they are not points.
    pub bad_lines: Count,
    /// Number of times that the database had to be tried again.
    pub retries: Count,
    /// Connections made to the database.
    pub connections: Count,
    /// Lanes that are connected.
    pub lanes_connected: Count,
    /// Records that are committed and kept in the spool, because the database may forget them.
    pub kept_rows: Count,
    /// Records that are written again, because the database forgot them.
    pub rewritten: Count,
    /// Number of times that a writer found that the database had forgotten commits.
    pub forgotten: Count,
    /// Number of times that a writer found that a copy of its spool had moved its row of the ledger.
    pub copies: Count,
    /// Records of this recorder that were deleted because of their age.
    pub retired: Count,
    /// The records whose commit was their acknowledgement, since the recorder was started.
    pub unspooled: RecordRanges,
    /// The progress of the writers, which tells whether records are stored in time.
    pub progress: Progress,
    /// Number of times that a measurement's records were set apart.
    pub set_apart: Count,
    /// Settings because of which the database may forget what it commits, with their values.
    pub weaknesses: Mutex<Vec<(String, String)>>,
    /// Bytes of requests in memory.
    pub memory_bytes: Count,
    /// Clients that were refused.
    pub strangers: Strangers,
    /// The sources that send most.
    pub(super) sources: Sources,
    /// Rows in quarantine whose entry was damaged in the spool.
    pub damaged: Count,
    /// The parts of a shared stream.
    pub shared: SharedCounts,
}

/// Numbers of records, as ranges.
#[derive(Debug, Default)]
pub struct RecordRanges {
    /// The number behind each range's last, by its first.
    ends: Mutex<BTreeMap<i64, i64>>,
}

impl RecordRanges {
    /// Adds a range that has nothing in common with the others. It continues one that ends where it begins.
    pub fn add(&self, range: Range<i64>) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        match ends.range_mut(..=range.start).next_back() {
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => drop(ends.insert(range.start, range.end)),
        }
    }

    /// Returns whether a number is in one of the ranges.
    pub fn has(&self, number: i64) -> bool {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.range(..=number).next_back().is_some_and(|(_, end)| number < *end)
    }
}

/// Counters of the parts of a shared stream.
#[derive(Debug, Default)]
pub struct SharedCounts {
    /// Recorders of the stream that could write when this one looked last.
    pub recorders: Count,
    /// Requests that this recorder has brought into the stream.
    pub published: Count,
    /// Parts that this recorder has taken.
    pub taken: Count,
    /// Parts that it has given up in order.
    pub given: Count,
    /// Parts that it has lost, or given up because a message could not be stored.
    pub lost: Count,
}

impl Meter {
    /// Notes the terms under which a connection writes, and logs what is new in them.
    pub(super) fn note_terms(&self, terms: &Terms) {
        let weak = terms.weaknesses.iter().map(|weakness| (weakness.setting.clone(), weakness.value.clone())).collect();
        let before = std::mem::replace(&mut *self.weaknesses.lock().unwrap_or_else(PoisonError::into_inner), weak);
        if let Some(hardened) = &terms.hardened {
            log::info(
                "the database would forget what it commits; the recorder's sessions are set",
                &[("to", hardened)],
            );
        }
        for weakness in &terms.weaknesses {
            if before.iter().any(|(setting, value)| (setting, value) == (&weakness.setting, &weakness.value)) {
                continue;
            }
            let loses = weakness.loses.to_owned();
            let mut facts = vec![("setting", &weakness.setting), ("value", &weakness.value), ("loses", &loses)];
            facts.push(("remedy", &weakness.remedy));
            let kept = terms.keep.map(|keep| crate::units::show_seconds(keep.as_secs_f64()));
            let event = match kept.as_ref().filter(|_| weakness.lasts != Lasts::OnTornPages) {
                Some(kept) => {
                    facts.push(("kept", kept));
                    "the database may forget what it has committed; the spool keeps it meanwhile"
                }
                None => "the database may damage what it has committed",
            };
            let facts: Vec<_> = facts.iter().map(|(name, value)| (*name, value.as_str())).collect();
            log::warning(event, &facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_records_continue_and_have_no_other_numbers() {
        let ranges = RecordRanges::default();
        let first_of_next = 1 << 52;
        [3..5, 5..5, 5..9, first_of_next..first_of_next + 2, 20..21].into_iter().for_each(|range| ranges.add(range));
        let has: Vec<i64> =
            (0..30).chain(first_of_next - 2..first_of_next + 4).filter(|number| ranges.has(*number)).collect();
        assert_eq!(has, [3, 4, 5, 6, 7, 8, 20, first_of_next, first_of_next + 1]);
        assert_eq!(ranges.ends.lock().unwrap().len(), 3);
    }

    #[test]
    fn times_fall_into_their_classes() {
        let times = Times::default();
        [0.0004, 0.0005, 0.3, 100.0].iter().for_each(|seconds| times.add(Duration::from_secs_f64(*seconds)));
        let (classes, sum) = times.read();
        assert_eq!((classes[0], classes[9], classes[16]), (2, 1, 1));
        assert!((sum - 100.3009).abs() < 1e-6);
    }
}
