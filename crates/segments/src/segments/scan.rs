//! The content of a segment, decoded from its bytes. Main type: [`Scan`].

use crate::segments::footer::Footer;
use crate::segments::frame::{ALIGNMENT, FrameHeader, HEADER_BYTES, Position, SegmentHeader, epoch_of, stored_bytes};

/// A point in the sequence of all frames, and the number of rows acknowledged through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Through {
    pub sequence: u64,
    pub rows: u64,
}

impl Through {
    pub fn new(sequence: u64, rows: u64) -> Self {
        Through { sequence, rows }
    }
}

/// The header and the footer of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    pub number: u64,
    pub header: Option<SegmentHeader>,
    pub footer: Option<Footer>,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl Ends {
    pub fn epoch(&self) -> Option<u64> {
        self.header.map(|header| header.epoch).or(self.footer.map(|footer| footer.epoch))
    }

    /// Returns the offset of the footer, whether or not it is there, even if the file is shorter than it was created; `None` if a footer has no room.
    pub fn footer_at(&self) -> Option<u64> {
        let bytes = self.header.map_or(self.bytes, |header| header.bytes);
        (bytes >= 2 * HEADER_BYTES as u64).then(|| bytes - HEADER_BYTES as u64)
    }
}

/// The frames of a segment whose headers are whole.
#[derive(Debug, Default)]
pub struct Scan {
    pub epoch: Option<u64>,
    /// Each frame, with whether its body is whole.
    pub frames: Vec<(FrameHeader, bool)>,
    /// The newest point that any of the frames recorded as durable.
    pub durable: Through,
}

impl Scan {
    /// Scans the bytes of a segment. If neither its header nor its footer tells the epoch, its first frame does, or one of `epochs`.
    pub fn of(ends: &Ends, bytes: &[u8], epochs: &[u64]) -> Self {
        let first = bytes.get(HEADER_BYTES..).and_then(epoch_of);
        let known = ends.epoch().into_iter().chain(first.filter(|_| ends.epoch().is_none()));
        let others = epochs.iter().copied().filter(|_| ends.epoch().is_none());
        let scans = known.chain(others).map(|epoch| Scan::with_epoch(ends, bytes, epoch));
        let mut found = Scan::default();
        for scan in scans {
            found = scan;
            if !found.frames.is_empty() {
                return found;
            }
        }
        Scan { epoch: ends.epoch(), ..found }
    }

    /// Returns whether nothing of the segment is readable.
    pub fn is_silent(&self, ends: &Ends) -> bool {
        ends.epoch().is_none() && self.frames.is_empty()
    }

    fn with_epoch(ends: &Ends, bytes: &[u8], epoch: u64) -> Self {
        // Without header and footer the file may have been longer, so frames may extend to its end.
        let end = match (ends.header, ends.footer) {
            (Some(header), _) => header.bytes.saturating_sub(HEADER_BYTES as u64),
            (None, Some(_)) => (bytes.len() - HEADER_BYTES) as u64,
            (None, None) => bytes.len() as u64,
        };
        let mut scan = Scan { epoch: Some(epoch), ..Scan::default() };
        let mut place = HEADER_BYTES;
        while let Some(rest) = bytes.get(place..).filter(|rest| rest.len() >= HEADER_BYTES) {
            let position = Position { segment: ends.number, offset: place as u32 };
            let is_next = |header: &FrameHeader| {
                let is_after = scan.frames.last().is_none_or(|(last, _)| header.sequence > last.sequence);
                is_after && place as u64 + stored_bytes(header.length.into()) <= end
            };
            let Some(header) = FrameHeader::decoded(rest, position, epoch).filter(is_next) else {
                place += ALIGNMENT as usize;
                continue;
            };
            let body = rest.get(HEADER_BYTES..HEADER_BYTES + header.length as usize);
            let is_whole = body.is_some_and(|body| header.has_body(body));
            if header.durable > scan.durable.sequence {
                scan.durable = Through::new(header.durable, header.durable_rows);
            }
            scan.frames.push((header, is_whole));
            place += header.stored_bytes() as usize;
        }
        scan
    }
}
