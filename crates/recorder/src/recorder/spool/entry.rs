//! What the spool holds. Main types: [`Offer`], before it is stored, and [`Entry`], after.

use std::sync::Arc;

use crate::recorder::line::Precision;

/// The lanes of what waits apart: each has a connection while something waits in it. Measurements beyond share them.
pub const APART_LANES: std::ops::Range<u32> = 500..504;

/// The lane of refused records that find no room in quarantine; nobody writes it.
pub(super) const DEFERRED_LANE: u32 = 600;

/// One request's points, on their way into the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The writer that it goes through.
    pub lane: u32,
    /// Who sent it, as it calls itself.
    pub source: Arc<str>,
    /// Who sent it, as its token says: the name in `[[access]]`; empty for all others.
    pub sender: Arc<str>,
    /// The sender's own id of it; empty for none.
    pub message_id: String,
    /// When it arrived, in nanoseconds since 1970: the time of points without one.
    pub received_ns: i64,
    /// Unit of its time stamps.
    pub precision: Precision,
    /// Number of points in it; at least 1.
    pub rows: u32,
    /// The points as line protocol, every line a good one.
    pub body: Vec<u8>,
    /// Whether the body is compressed: as it is stored, never as it is sent or written.
    pub is_packed: bool,
}

#[cfg(any(test, feature = "simulated"))]
impl Offer {
    /// Points of a source that are sent without an id.
    pub(in crate::recorder) fn plain(source: &str, rows: u32, body: &[u8]) -> Self {
        Offer {
            lane: 0,
            source: source.into(),
            sender: "".into(),
            message_id: String::new(),
            received_ns: 0,
            precision: Precision::Nanoseconds,
            rows,
            body: body.to_vec(),
            is_packed: false,
        }
    }
}

/// An offer that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, above 0 and above all before it.
    pub sequence: i64,
    /// What was offered.
    pub offer: Offer,
}

impl Offer {
    /// What it counts against the spool's bound, in bytes: its texts, and what the log needs besides.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(self.source.len() + self.sender.len() + self.message_id.len(), self.body.len())
    }

    /// All but the points.
    pub fn without_body(&self) -> Offer {
        Offer {
            source: Arc::clone(&self.source),
            sender: Arc::clone(&self.sender),
            message_id: self.message_id.clone(),
            body: Vec::new(),
            ..*self
        }
    }
}

/// What an entry with texts and a body of so many bytes counts against the spool's bound.
pub(super) fn stored_bytes(texts: usize, body: usize) -> u64 {
    const OVERHEAD_BYTES: usize = 128;
    (OVERHEAD_BYTES + texts + body) as u64
}

/// The lane of a source: always the same, in every version and on every machine, so that a source's records keep their order.
pub fn lane_of(source: &str, lanes: u32) -> u32 {
    crc32fast::hash(source.as_bytes()) % lanes.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_always_has_the_same_lane() {
        let lanes: std::collections::BTreeSet<_> = (0..100).map(|source| lane_of(&source.to_string(), 4)).collect();
        assert_eq!(lanes.len(), 4);
        assert_eq!(lane_of("a", 1), 0);
        assert_eq!((lane_of("a", 7), lane_of("b", 5)), (4, 1), "it is stored with what waits");
    }
}
