//! Positions in the spool's two logs. Main types: [`Place`], and [`EntryRef`], an entry without its points.

use loadline_segments::segments::{FrameHeader, Position};

/// One of the two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LogName {
    /// Requests as they were taken in.
    Entries,
    /// Data that stays longer.
    Lasting,
}

impl LogName {
    pub(super) fn code(self) -> u8 {
        u8::from(self == LogName::Lasting)
    }

    pub(super) fn of(code: u8) -> Option<Self> {
        [LogName::Entries, LogName::Lasting].get(usize::from(code)).copied()
    }
}

/// A part of the body of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub log: LogName,
    /// The number of the segment.
    pub segment: u32,
    /// The offset of the frame in the segment, in bytes.
    pub offset: u32,
    /// Bytes of the frame's body.
    pub length: u32,
    /// The offset of the part in the body.
    pub at: u32,
    /// Bytes of the part.
    pub bytes: u32,
}

/// An entry without its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryRef {
    pub place: Place,
    pub version: u32,
    pub rows: u32,
    /// The bytes that the entry counts against the spool's bound.
    pub bytes: u32,
    /// The time of arrival, in microseconds since 1970.
    pub received_us: i64,
}

impl Place {
    /// Returns the place of a part of a frame.
    pub(super) fn of(log: LogName, frame: &FrameHeader, at: usize, bytes: usize) -> Self {
        let clamped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Place {
            log,
            // A log has no more than 2^32 segments.
            segment: frame.position.segment as u32,
            offset: frame.position.offset,
            length: frame.length,
            at: clamped(at),
            bytes: clamped(bytes),
        }
    }

    pub(super) fn position(&self) -> Position {
        Position { segment: self.segment.into(), offset: self.offset }
    }

    /// Returns the log and the number of the segment that contains the place.
    pub(super) fn segment_of(&self) -> (LogName, u32) {
        (self.log, self.segment)
    }

    /// Returns the part of the frame's body.
    pub(super) fn part<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        let (begin, end) = (self.at as usize, self.at as usize + self.bytes as usize);
        body.get(begin..end).unwrap_or_default()
    }
}
