//! Sightings: readers that look for events while writers write them, and the time that each event took until it was seen.
//!
//! Writers stamp events with the time at which a write begins ([`Ledger`] keeps which ones were acknowledged). Readers,
//! each with a thread and a connection of its own, look for them ([`read_tables`]) and report what they saw
//! ([`Sightings`]). Freshness is the time from the stamp until the reader has the row.
//!
//! Invariants: a reader shares nothing with a writer except the moment at which counting begins, so that no reader can
//! hold up a writer; every acknowledged event that a reader did not see is counted as lost.

mod cursor;
mod intervals;
mod ledger;
mod reader;
mod subscribe;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

pub use super::monotonic;
pub use cursor::Cursor;
pub use intervals::Intervals;
pub use ledger::{Acknowledged, Ledger, Stamper};
pub use reader::{Asking, ReaderTask, read_tables};
pub use subscribe::{SubscriberTask, read_messages, store_messages};

/// The state shared with readers while they read; times are those of [`monotonic::now_ns`].
#[derive(Debug, Default)]
pub struct Control {
    /// Time from which on stamped events count; 0 before it is known, and until then nobody reads.
    from_ns: AtomicU64,
    /// Time at which the writers ended; 0 while they write.
    written_ns: AtomicU64,
    stop: AtomicBool,
}

impl Control {
    /// Makes readers begin; events stamped from this time on count.
    pub fn begin(&self, from_ns: u64) {
        self.from_ns.store(from_ns.max(1), Ordering::Release);
    }

    /// Notes that the writers have ended: readers end when they see nothing new any more.
    pub fn written(&self, now_ns: u64) {
        self.written_ns.store(now_ns.max(1), Ordering::Release);
    }

    /// Makes readers end at once.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Returns the time from which on events count; `None` before it is known.
    #[inline]
    pub fn from_ns(&self) -> Option<u64> {
        Some(self.from_ns.load(Ordering::Acquire)).filter(|from_ns| *from_ns > 0)
    }

    /// Returns the time at which the writers ended; `None` while they write.
    #[inline]
    pub fn written_ns(&self) -> Option<u64> {
        Some(self.written_ns.load(Ordering::Acquire)).filter(|written_ns| *written_ns > 0)
    }

    /// Returns whether readers must end at once.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// No reader counts as far.
const COUNT_MOST: u64 = 1 << 50;

/// Returns whether a reader has finished: the writers have ended, and since then nothing new has come for `quiet_ns`,
/// or `drain_ns` has passed.
fn is_over(written_ns: Option<u64>, last_new_ns: u64, now_ns: u64, quiet_ns: u64, drain_ns: u64) -> bool {
    written_ns
        .is_some_and(|written_ns| now_ns > last_new_ns.max(written_ns) + quiet_ns || now_ns > written_ns + drain_ns)
}

/// The observations of one reader.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sightings {
    /// Number of the reader within its group.
    pub reader: u32,
    /// The writers whose events it looks for.
    pub writers: Vec<u32>,
    /// Time from the start of a write to seeing the event, for events that count.
    pub freshness: Histogram,
    /// For each writer of the trial, the places of all its events that were seen, whether they count or not.
    pub seen: Vec<Intervals>,
    /// Number of events that were seen again under another key, or delivered again.
    pub duplicates: u64,
    /// Number of polls, or of messages received.
    pub polls: u64,
    /// Number of rows or events that were read.
    pub rows: u64,
    /// Number of rows that had been read before, because the window reached back or a key had been passed over.
    pub read_again: u64,
    /// Number of times that a subscriber was cut off because it could not keep up.
    #[serde(default)]
    pub cut_off: u64,
    /// Time by which the reader's clock is ahead of that of the writers, in nanoseconds; 0 on the same machine.
    #[serde(skip)]
    pub ahead_ns: i64,
    /// CPU time of the reader's thread while writers wrote, in seconds.
    pub cpu_s: f64,
    /// The reason why it ended before its time, if it did.
    pub error: Option<String>,
}

impl Sightings {
    /// Makes the record of a reader that has seen nothing yet; the trial has `of` writers.
    pub fn new(reader: u32, writers: Vec<u32>, of: usize) -> Self {
        Sightings { reader, writers, seen: vec![Intervals::default(); of], ..Sightings::default() }
    }

    /// Notes an event that was seen now: its writer, its place among the writer's events, and the start of its write. Returns whether it is new.
    #[inline]
    pub fn take(&mut self, writer: usize, place: u64, written_ns: u64, now_ns: u64, from_ns: u64) -> bool {
        let Some(seen) = self.seen.get_mut(writer) else { return false };
        if !seen.insert(place) {
            self.duplicates += 1;
            return false;
        }
        // Everything else is by the reader's own clock.
        let written_ns = written_ns.saturating_add_signed(self.ahead_ns);
        if written_ns >= from_ns {
            self.freshness.record(now_ns.saturating_sub(written_ns));
        }
        true
    }

    /// Checks what a reader on another machine reports.
    ///
    /// # Errors
    /// Fails with what cannot be.
    pub fn check(&self) -> Result<(), String> {
        let counts = [self.duplicates, self.polls, self.rows, self.read_again, self.cut_off, self.freshness.count()];
        match counts.iter().find(|count| **count > COUNT_MOST) {
            Some(count) => Err(format!("reader {} reports a count of {count}", self.reader)),
            None if !(0.0..f64::INFINITY).contains(&self.cpu_s) => {
                Err(format!("reader {} reports {} s of CPU time", self.reader, self.cpu_s))
            }
            None => Ok(()),
        }
    }

    /// Returns how many acknowledged events the reader looked for, and how many of them it did not see.
    pub fn missed(&self, acknowledged: &[Acknowledged]) -> (u64, u64) {
        let mut totals = (0, 0);
        for writer in &self.writers {
            let Some(own) = acknowledged.get(*writer as usize) else { continue };
            let seen = self.seen.get(*writer as usize).map_or(0, |seen| own.counted.count_shared(seen));
            totals.0 += own.counted.count();
            totals.1 += own.counted.count() - seen;
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_seen_once_and_what_was_acknowledged_and_not_seen_is_lost() {
        let mut seen = Sightings::new(0, vec![0, 1], 3);
        assert!(seen.take(0, 0, 5, 9, 10), "an event of the warm-up");
        assert!(seen.take(0, 1, 12, 20, 10));
        assert!(!seen.take(0, 1, 12, 30, 10));
        assert!(seen.take(2, 7, 12, 30, 10), "of a writer that it does not look for");
        assert_eq!((seen.freshness.count(), seen.freshness.min_ns(), seen.duplicates), (2, 8, 1));
        let of = |first, last| {
            let mut counted = Intervals::default();
            counted.insert_range(first, last);
            Acknowledged { counted, all: last + 1 }
        };
        assert_eq!(seen.missed(&[of(1, 3), of(0, 0), of(0, 9)]), (4, 3));
    }

    #[test]
    fn a_reader_with_another_clock_counts_by_its_own() {
        // A clock that is 100 ns ahead: an event of 12 by the writers' clock was written at 112 by its own.
        let mut seen = Sightings { ahead_ns: 100, ..Sightings::new(0, vec![0], 1) };
        assert!(seen.take(0, 0, 5, 120, 110), "of the warm-up, which ended at 110");
        assert!(seen.take(0, 1, 12, 120, 110));
        assert_eq!((seen.freshness.count(), seen.freshness.min_ns()), (1, 8));
        let mut behind = Sightings { ahead_ns: -100, ..Sightings::new(0, vec![0], 1) };
        assert!(behind.take(0, 0, 1_012, 920, 0));
        assert_eq!(behind.freshness.min_ns(), 8);
        assert!(behind.check().is_ok());
        assert!(Sightings { rows: u64::MAX, ..behind.clone() }.check().unwrap_err().contains("18446744073709551615"));
        assert!(Sightings { cpu_s: f64::NAN, ..behind }.check().is_err());
    }

    #[test]
    fn readers_end_when_nothing_new_comes_after_the_writers_or_they_have_waited_long_enough() {
        assert!(!is_over(None, 0, 1_000, 10, 100), "while writers write there is no end");
        assert!(!is_over(Some(50), 95, 100, 10, 100));
        assert!(is_over(Some(50), 80, 100, 10, 100));
        assert!(is_over(Some(50), 151, 151, 10, 100));
    }
}
