//! Decides when entries in lanes of greedy sources may be written: the part of [`Lane`] that lets all others go first.
//!
//! Invariant: an entry in such a lane is written after every older one in the lanes of all sources, so that each source keeps its order.

use std::time::{Duration, Instant};

use super::lane::Lane;
use super::leave::Leave;
use super::turns::Turns;
use crate::recorder::spool::{GREEDY_LANES, Reader};

/// When entries wait this long in the lanes of all sources, greedy lanes wait for them.
const LATE: Duration = Duration::from_millis(250);
/// A lane waits for others at most this many times as long as its last turn took: others may send as much as the database can take, for ever.
const WAITS_TIMES: u32 = 4;
/// The time after which a lane in which nothing waits closes its connection.
const IDLE_FOR: Duration = Duration::from_secs(10);

impl Lane {
    /// Returns whether this is a lane of greedy sources.
    pub(super) fn is_of_greedy(&self) -> bool {
        GREEDY_LANES.contains(&self.settings.lane)
    }

    /// Returns the entry before which this lane may write: the first one that waits in the lanes of all sources. `None` if the lane must wait.
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
            // An entry that is being written does not count as written.
            before = before.min(reader.first(lane, progress.through(lane))?.unwrap_or(i64::MAX));
        }
        Ok(Some(before))
    }

    /// Notes how long the lane's turn took.
    pub(super) fn note_turn(&mut self, begun: Instant) {
        self.turns = Turns { wrote_for: self.settings.clock.since(begun), ..Turns::default() };
    }

    /// Called when nothing waits here: after a while closes the connection and returns true.
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
