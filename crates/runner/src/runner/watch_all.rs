//! Watches all recorders of a trial, and the stream that they share, as one. Main types: [`WatchAll`] and [`Together`].
//!
//! Invariant: each record counts at one place: it waits in the stream or a spool, is in a quarantine, or is committed.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::front::Front;
use super::watch::{EVERY, Looks, Watch};
use super::watch_stream::StreamWatch;
use crate::server::interrupted;

/// The threads that watch.
pub struct WatchAll {
    recorders: Vec<Watch>,
    stream: Option<StreamWatch>,
}

/// What was seen of all recorders.
pub struct Together {
    /// What was seen of each recorder, in the order of their numbers.
    pub recorders: Vec<Looks>,
    /// Records in the shared stream, with the time of each look; empty without a stream.
    stream: Vec<(Instant, u64)>,
    /// Records in the shared stream at the end.
    streamed: u64,
}

impl WatchAll {
    /// Starts to watch. A message of a shared stream has this many records.
    ///
    /// # Errors
    /// Fails if the NATS server of a shared stream does not answer.
    pub fn start(front: &Front, records: u32) -> anyhow::Result<Self> {
        let stream = front.stream().map(|stream| StreamWatch::start(stream, u64::from(records))).transpose()?;
        Ok(WatchAll { recorders: front.watched().map(Watch::start).collect(), stream })
    }

    /// Waits until `acknowledged` records are stored and nothing waits, but at most for `patience`, and returns all that was seen.
    ///
    /// # Errors
    /// Fails if a recorder or the NATS server does not answer any more.
    pub fn finish(mut self, acknowledged: u64, patience: Duration) -> anyhow::Result<Together> {
        let until = Instant::now() + patience;
        loop {
            let looks = numbered(self.recorders.iter(), Watch::now)?;
            let stored: u64 = looks.iter().map(|look| look.committed + look.quarantined).sum();
            let spooled: u64 = looks.iter().map(|look| look.spooled).sum();
            let waiting = spooled + self.stream.as_mut().map_or(Ok(0), StreamWatch::now)?;
            if waiting == 0 && stored >= acknowledged || Instant::now() >= until || interrupted() {
                break;
            }
            std::thread::sleep(EVERY / 5);
        }
        // One more look of the threads covers the end.
        std::thread::sleep(2 * EVERY);
        let streamed = self.stream.as_mut().map_or(Ok(0), StreamWatch::now)?;
        let recorders = numbered(self.recorders.into_iter(), Watch::end)?;
        Ok(Together { recorders, stream: self.stream.map(StreamWatch::end).unwrap_or_default(), streamed })
    }
}

/// Asks each recorder; an error names the recorder if there are several.
fn numbered<W, A>(
    watches: impl ExactSizeIterator<Item = W>,
    ask: impl Fn(W) -> anyhow::Result<A>,
) -> anyhow::Result<Vec<A>> {
    let count = watches.len();
    let each = (1..).zip(watches).map(|(number, watch): (usize, W)| {
        let answer = ask(watch);
        if count == 1 { answer } else { answer.with_context(|| format!("recorder {number} of {count}")) }
    });
    each.collect()
}

impl Together {
    /// Returns the number of records that are committed.
    pub fn committed(&self) -> u64 {
        self.recorders.iter().map(|looks| looks.last.committed).sum()
    }

    /// Returns the number of records in quarantine.
    pub fn quarantined(&self) -> u64 {
        self.recorders.iter().map(|looks| looks.last.quarantined).sum()
    }

    /// Returns the number of records that wait in spools and in the stream, of which `sent` were sent in all.
    pub fn spooled(&self, sent: u64) -> u64 {
        let spooled: u64 = self.recorders.iter().map(|looks| looks.last.spooled).sum();
        // A message leaves the stream a moment after its commit, so that its records can be seen at both places.
        let elsewhere = self.committed() + self.quarantined() + spooled;
        spooled + self.streamed.min(sent.saturating_sub(elsewhere))
    }

    /// Returns the number of records that all committed between two times.
    pub fn committed_between(&self, from: Instant, to: Instant) -> f64 {
        self.recorders.iter().map(|looks| looks.committed_between(from, to)).sum()
    }

    /// Returns when the last record was first seen to be committed.
    pub fn stored_at(&self) -> Option<Instant> {
        self.recorders.iter().filter_map(Looks::stored_at).max()
    }

    /// Returns the largest number of records that waited at once in all spools and the stream.
    pub fn spooled_max(&self) -> u64 {
        let mut places: Vec<Vec<(Instant, u64)>> =
            self.recorders.iter().map(|looks| looks.spooled().collect()).collect();
        places.push(self.stream.clone());
        let times = || places.iter().flatten().map(|(at, _)| *at);
        times().map(|at| places.iter().map(|seen| waiting_at(seen, at)).sum()).max().unwrap_or(0)
    }

    /// Returns the longest time that a recorder took to answer.
    pub fn longest_answer(&self) -> Duration {
        self.recorders.iter().map(|looks| looks.answers.longest).max().unwrap_or_default()
    }

    /// Returns the number of requests without an answer.
    pub fn unanswered(&self) -> u64 {
        self.recorders.iter().map(|looks| looks.answers.unanswered).sum()
    }

    /// Returns how often a part of the stream was taken by another recorder while the load lasted.
    pub fn parts_moved(&self) -> u64 {
        self.recorders.iter().map(Looks::parts_taken).sum()
    }
}

/// Returns what waited at a time, as seen at the last look before it.
fn waiting_at(seen: &[(Instant, u64)], at: Instant) -> u64 {
    let after = seen.partition_point(|(looked, _)| *looked <= at);
    after.checked_sub(1).map_or(0, |before| seen[before].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::watch::{Answers, read_page};

    fn looks(start: Instant, seen: &[(u64, u64, u64)]) -> Looks {
        let page = |committed: u64, spooled: u64| {
            format!(
                "loadline_acknowledged_rows_total 0\nloadline_committed_rows_total {committed}\nloadline_spooled_rows {spooled}\n\
                 loadline_quarantined_rows 1\n"
            )
        };
        let look = |(tenths, committed, spooled): &(u64, u64, u64)| {
            read_page(&page(*committed, *spooled), start + Duration::from_millis(100 * tenths)).unwrap()
        };
        let all: Vec<_> = seen.iter().map(look).collect();
        Looks::of(all, Answers { asked: 3, unanswered: 1, longest: Duration::from_millis(7) })
    }

    #[test]
    fn what_waits_anywhere_at_one_time_is_added_and_what_is_seen_twice_counts_once() {
        let start = Instant::now();
        let at = |tenths: u64| start + Duration::from_millis(100 * tenths);
        let first = looks(start, &[(0, 0, 0), (10, 100, 5), (20, 200, 0)]);
        let second = looks(start, &[(1, 0, 7), (11, 50, 0), (21, 60, 0)]);
        let stream = vec![(at(0), 2), (at(12), 9), (at(20), 4)];
        let together = Together { recorders: vec![first, second], stream, streamed: 4 };
        assert_eq!((together.committed(), together.quarantined()), (260, 2));
        assert_eq!(together.spooled_max(), 5 + 9, "the seven of the second were gone by then");
        assert_eq!(together.spooled(266), 4);
        assert_eq!(together.spooled(263), 1, "three are committed and leave the stream a moment later");
        assert_eq!(together.stored_at(), Some(at(21)));
        assert!((together.committed_between(at(0), at(20)) - (200.0 + 59.0)).abs() < 1e-6);
        assert_eq!((together.unanswered(), together.longest_answer()), (2, Duration::from_millis(7)));
    }
}
