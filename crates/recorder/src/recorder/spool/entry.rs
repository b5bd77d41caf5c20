//! Entries of the spool. Main types: [`Offer`], before it is stored, and [`Entry`], after.

use std::sync::Arc;

use crate::recorder::line::Precision;

/// The lanes for records that wait apart. A lane has a connection while something waits in it; measurements beyond the number of lanes share them.
pub const APART_LANES: std::ops::Range<u32> = 500..504;

/// The first of the lanes that are fed straight from the intake, and whose records are never in the spool.
pub const FIRST_DIRECT_LANE: u32 = 1_000;

/// The lane of refused records that find no room in quarantine; no writer writes it.
pub(super) const DEFERRED_LANE: u32 = 600;

/// The points of one request, on their way into the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The number of the writer that the request goes through.
    pub lane: u32,
    /// The sender's own name for itself.
    pub source: Arc<str>,
    /// The sender's name in `[[access]]`, according to its token; empty if it has none.
    pub sender: Arc<str>,
    /// The id that the sender gave the message; empty for none.
    pub message_id: String,
    /// The time of arrival, in nanoseconds since 1970; it is also the time of points without one.
    pub received_ns: i64,
    /// The unit of the time stamps in the body.
    pub precision: Precision,
    /// The number of points in the body; at least 1.
    pub rows: u32,
    /// The points as line protocol; every line is valid.
    pub body: Vec<u8>,
    /// Whether the body is compressed. A body is compressed only in the spool, never when it is sent or written.
    pub is_packed: bool,
}

#[cfg(any(test, feature = "simulated"))]
impl Offer {
    /// Returns points of a source that are sent without an id.
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

/// A stored offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The entry's number: above 0, and above the numbers of all entries before it.
    pub sequence: i64,
    /// The offer as it was stored.
    pub offer: Offer,
}

impl Offer {
    /// Returns the bytes that the entry counts against the spool's bound: its texts, its body, and the log's overhead.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(self.source.len() + self.sender.len() + self.message_id.len(), self.body.len())
    }

    /// Returns the offer without its body.
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

/// Returns the bytes that an entry counts against the spool's bound, given the bytes of its texts and its body.
pub(super) fn stored_bytes(texts: usize, body: usize) -> u64 {
    const OVERHEAD_BYTES: usize = 128;
    (OVERHEAD_BYTES + texts + body) as u64
}

/// Returns the lane of a source. It is the same in every version and on every machine, so that a source's records keep their order.
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
