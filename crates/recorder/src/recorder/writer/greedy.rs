//! Lanes of greedy sources: when their entries may be written. What [`Lane`] does so that those of all others are written first.
//!
//! Invariant: an entry in such a lane is written after every older one in the lanes of all sources, so that each source keeps its order.

use std::time::{Duration, Instant};

use super::lane::{Lane, Leave, Turns};
use crate::recorder::spool::{GREEDY_LANES, Reader};

/// Where entries wait so long in the lanes of all sources, these lanes wait for them.
const LATE: Duration = Duration::from_millis(250);
/// A lane waits for others at most this many times as long as it wrote last: they may be as many as the database can take, for ever.
const WAITS_TIMES: u32 = 4;
/// A lane in which nothing waits gives its connection up after this time.
const IDLE_FOR: Duration = Duration::from_secs(10);

impl Lane {
    /// Whether this is a lane of greedy sources.
    pub(super) fn is_of_greedy(&self) -> bool {
        GREEDY_LANES.contains(&self.settings.lane)
    }

    /// The entry that this lane may write up to, without it: the first one that waits in the lanes of all sources. None where it is to wait.
    pub(super) fn may_write_before(&mut self, reader: &Reader) -> Result<Option<i64>, Leave> {
        let lanes = 0..self.settings.writer.count;
        let progress = &self.settings.meter.progress;
        let now = self.settings.clock.now();
        let is_late = progress.waits_now(lanes.clone()) > LATE && !self.settings.stop.is_asked();
        let since = *self.turns.waits_since.get_or_insert(now);
        if is_late && now.duration_since(since) < WAITS_TIMES * self.turns.wrote_for {
            return Ok(None);
        }
        let mut before = i64::MAX;
        for lane in lanes {
            // What is being written just now is not counted as written.
            before = before.min(reader.first(lane, progress.through(lane))?.unwrap_or(i64::MAX));
        }
        Ok(Some(before))
    }

    /// It has written for so long.
    pub(super) fn note_turn(&mut self, begun: Instant) {
        self.turns = Turns { wrote_for: self.settings.clock.since(begun), ..Turns::default() };
    }

    /// Nothing waits here: after a while the connection is given up; then true.
    pub(super) fn rest_of_greedy(&mut self, reader: &Reader) -> Result<bool, Leave> {
        let since = *self.turns.idle_since.get_or_insert_with(|| self.settings.clock.now());
        if self.settings.clock.since(since) < IDLE_FOR || self.has_work(reader)? {
            return Ok(false);
        }
        self.write_ends_if_due(true)?;
        self.disconnect();
        self.turns = Turns::default();
        Ok(true)
    }
}
