//! Lanes of greedy sources: they hold entries of sources that send more than their share while others wait, and the others are written beside
//! them instead of behind them. Main type: [`GreedySources`].
//!
//! Invariant: as long as an entry of a source waits in such a lane, all later entries of that source go there too. Since the writers write
//! an entry in such a lane only after every older one in the lanes of all sources, each source keeps its order.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The first lane of greedy sources.
const FIRST_LANE: u32 = 400;
/// The number of such lanes. A lane has a connection while something waits in it; if there are more greedy sources, they share lanes.
const LANES: u32 = 4;

/// The lanes of greedy sources.
pub const GREEDY_LANES: Range<u32> = FIRST_LANE..FIRST_LANE + LANES;

/// The sources that have entries waiting in the lanes of greedy sources.
#[derive(Debug, Default)]
pub(super) struct GreedySources {
    /// The lane of each source, and the source's newest entry there.
    lanes: HashMap<Arc<str>, (u32, i64)>,
}

impl GreedySources {
    /// Returns the greedy sources of a spool that was opened, from the source, lane and sequence of each waiting entry.
    pub(super) fn of(waiting: impl Iterator<Item = (Arc<str>, u32, i64)>) -> Self {
        let mut greedy = GreedySources::default();
        waiting.for_each(|(source, lane, sequence)| greedy.note(&source, lane, sequence));
        greedy
    }

    /// Returns the greedy lane for an entry of a source; `None` if the entry goes to the source's own lane.
    pub(super) fn lane_for(&self, source: &str, is_greedy: bool) -> Option<u32> {
        let known = self.lanes.get(source).map(|(lane, _)| *lane);
        known.or_else(|| is_greedy.then(|| self.free_lane(source)))
    }

    /// Returns a lane in which nothing waits, or else one that is shared.
    fn free_lane(&self, source: &str) -> u32 {
        let shared = FIRST_LANE + crc32fast::hash(source.as_bytes()) % LANES;
        let is_free = |lane: &u32| self.lanes.values().all(|(taken, _)| taken != lane);
        GREEDY_LANES.into_iter().find(is_free).unwrap_or(shared)
    }

    /// Notes that an entry of a source was stored in such a lane.
    pub(super) fn note(&mut self, source: &Arc<str>, lane: u32, sequence: i64) {
        let newest = self.lanes.entry(Arc::clone(source)).or_insert((lane, sequence));
        *newest = (lane, sequence.max(newest.1));
    }

    /// Notes that everything up to an entry of a lane has left the spool: sources with no more entries there go with all others again.
    pub(super) fn settled(&mut self, lane: u32, through: i64) {
        if GREEDY_LANES.contains(&lane) {
            self.lanes.retain(|_, (own, newest)| *own != lane || *newest > through);
        }
    }
}

#[cfg(test)]
#[path = "greedy_simulation.rs"]
mod simulation;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_stays_in_its_lane_until_nothing_of_it_waits_there() {
        let (mut greedy, source) = (GreedySources::default(), Arc::from("s"));
        assert_eq!(greedy.lane_for("s", false), None);
        let lane = greedy.lane_for("s", true).unwrap();
        assert!(GREEDY_LANES.contains(&lane));
        greedy.note(&source, lane, 5);
        assert_eq!(greedy.lane_for("s", false), Some(lane), "it is behind its own entry");
        let other = greedy.lane_for("t", true).unwrap();
        assert_ne!(other, lane, "there is a lane in which nothing waits");
        greedy.note(&source, lane, 9);
        greedy.settled(lane, 5);
        assert_eq!(greedy.lane_for("s", false), Some(lane));
        greedy.settled(other, 9);
        greedy.settled(0, 9);
        assert_eq!(greedy.lane_for("s", false), Some(lane));
        greedy.settled(lane, 9);
        assert_eq!(greedy.lane_for("s", false), None);
    }

    #[test]
    fn more_sources_than_lanes_share_them() {
        let mut greedy = GreedySources::default();
        for number in 0..20 {
            let source: Arc<str> = format!("source {number}").into();
            let lane = greedy.lane_for(&source, true).unwrap();
            assert!(GREEDY_LANES.contains(&lane));
            greedy.note(&source, lane, number);
        }
    }
}
