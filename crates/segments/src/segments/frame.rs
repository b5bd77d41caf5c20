//! Frames and headers of segments as bytes. Main types: [`FrameHeader`] and [`SegmentHeader`].
//!
//! Invariant: decoding takes bounded, linear time whatever the bytes are, and returns a header only if its checksum is right.

/// Size in bytes of a segment header, of a frame header, and of a footer.
pub const HEADER_BYTES: usize = 72;
/// Frames begin at multiples of this many bytes.
pub const ALIGNMENT: u64 = 8;
/// `SEGM`
const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"SEGM");

/// The position of a frame: the number of its segment and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The segment's number, from 1.
    pub segment: u64,
    /// Offset in bytes from the beginning of the segment.
    pub offset: u32,
}

impl Position {
    fn encoded(self) -> u64 {
        (self.segment << 32) | u64::from(self.offset)
    }
}

/// The header of a frame: everything about it except its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The position of the frame.
    pub position: Position,
    /// Length of the body in bytes.
    pub length: u32,
    /// Number of rows that the frame acknowledges.
    pub rows: u32,
    /// The caller's tag, which tells frames apart.
    pub tag: u32,
    /// The caller's kind of frame.
    pub kind: u8,
    /// Epoch of the opening that wrote the frame.
    pub epoch: u64,
    /// The frame's number, from 1: one more than that of the frame before it.
    pub sequence: u64,
    /// Number of rows that all frames before it acknowledge.
    pub rows_before: u64,
    /// The newest sequence known to be on the disk when the frame was written.
    pub durable: u64,
    /// Number of rows that all frames through `durable` acknowledge.
    pub durable_rows: u64,
    pub(crate) body_checksum: u32,
}

impl FrameHeader {
    /// Returns the number of bytes that the frame takes with its body, up to where the next one begins.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(self.length.into())
    }

    /// Returns the number of rows that this frame and all before it acknowledge.
    pub fn rows_through(&self) -> u64 {
        self.rows_before + u64::from(self.rows)
    }

    pub(crate) fn encoded(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 4, &self.body_checksum.to_le_bytes());
        put(&mut bytes, 8, &self.length.to_le_bytes());
        put(&mut bytes, 12, &self.rows.to_le_bytes());
        put(&mut bytes, 16, &self.tag.to_le_bytes());
        put(&mut bytes, 20, &[self.kind]);
        put(&mut bytes, 24, &self.epoch.to_le_bytes());
        put(&mut bytes, 32, &self.sequence.to_le_bytes());
        put(&mut bytes, 40, &self.rows_before.to_le_bytes());
        put(&mut bytes, 48, &self.durable.to_le_bytes());
        put(&mut bytes, 56, &self.durable_rows.to_le_bytes());
        put(&mut bytes, 64, &self.position.encoded().to_le_bytes());
        sealed(bytes)
    }

    /// Decodes the header in the first bytes; `None` unless they are a header of this position and epoch.
    pub(crate) fn decoded(bytes: &[u8], position: Position, epoch: u64) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        // The cheap checks come first: most places that are examined hold no header.
        if u64_at(bytes, 24) != epoch || u64_at(bytes, 64) != position.encoded() || !is_sealed(bytes) {
            return None;
        }
        Some(FrameHeader {
            position,
            body_checksum: u32_at(bytes, 4),
            length: u32_at(bytes, 8),
            rows: u32_at(bytes, 12),
            tag: u32_at(bytes, 16),
            kind: bytes[20],
            epoch,
            sequence: u64_at(bytes, 32),
            rows_before: u64_at(bytes, 40),
            durable: u64_at(bytes, 48),
            durable_rows: u64_at(bytes, 56),
        })
    }

    pub(crate) fn has_body(&self, body: &[u8]) -> bool {
        body.len() == self.length as usize && crc32c::crc32c(body) == self.body_checksum
    }
}

/// Returns the epoch in the bytes of a frame header, without checking anything else in it.
pub fn epoch_of(header: &[u8]) -> Option<u64> {
    header.first_chunk::<HEADER_BYTES>().map(|bytes| u64_at(bytes, 24))
}

/// Returns the number of bytes that a frame with a body of `length` bytes takes.
pub fn stored_bytes(length: u64) -> u64 {
    (HEADER_BYTES as u64 + length).next_multiple_of(ALIGNMENT)
}

/// The header at the beginning of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The segment's number, from 1.
    pub number: u64,
    /// Epoch of the opening that created the segment.
    pub epoch: u64,
    /// The sequence of its first frame.
    pub first: u64,
    /// Number of rows that all frames before it acknowledge, except rows that never reached the disk.
    pub rows: u64,
    /// Size of the segment in bytes.
    pub bytes: u64,
}

impl SegmentHeader {
    pub fn encoded(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 4, &SEGMENT_MAGIC.to_le_bytes());
        for (place, number) in [self.number, self.epoch, self.first, self.rows, self.bytes].into_iter().enumerate() {
            put(&mut bytes, 8 + 8 * place, &number.to_le_bytes());
        }
        sealed(bytes)
    }

    /// Decodes the header in the first bytes; `None` unless they are the header of segment `number`.
    pub fn decoded(bytes: &[u8], number: u64) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let is_one = u32_at(bytes, 4) == SEGMENT_MAGIC && u64_at(bytes, 8) == number && is_sealed(bytes);
        is_one.then(|| SegmentHeader {
            number,
            epoch: u64_at(bytes, 16),
            first: u64_at(bytes, 24),
            rows: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
        })
    }
}

/// Puts the checksum of all other bytes into the first four.
pub fn sealed(mut bytes: [u8; HEADER_BYTES]) -> [u8; HEADER_BYTES] {
    let checksum = crc32c::crc32c(&bytes[4..]);
    put(&mut bytes, 0, &checksum.to_le_bytes());
    bytes
}

/// Returns whether the first four bytes are the checksum of all others. Zeros alone do not count, since nothing was written there.
pub fn is_sealed(bytes: &[u8; HEADER_BYTES]) -> bool {
    crc32c::crc32c(&bytes[4..]) == u32_at(bytes, 0) && bytes.iter().any(|byte| *byte != 0)
}

pub fn put(bytes: &mut [u8], place: usize, value: &[u8]) {
    bytes[place..place + value.len()].copy_from_slice(value);
}

/// Reads a little-endian number at `place`, which must lie within the bytes.
pub fn u32_at(bytes: &[u8], place: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[place..place + 4]);
    u32::from_le_bytes(number)
}

/// Reads a little-endian number at `place`, which must lie within the bytes.
pub fn u64_at(bytes: &[u8], place: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[place..place + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FrameHeader {
        FrameHeader {
            position: Position { segment: 7, offset: 64 },
            length: 5,
            rows: 3,
            tag: 500,
            kind: 2,
            epoch: 0x1122_3344_5566_7788,
            sequence: 9,
            rows_before: 40,
            durable: 8,
            durable_rows: 37,
            body_checksum: crc32c::crc32c(b"hello"),
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_only_where_it_stands() {
        let (header, bytes) = (header(), header().encoded());
        assert_eq!(FrameHeader::decoded(&bytes, header.position, header.epoch), Some(header));
        assert!(header.has_body(b"hello") && !header.has_body(b"hellp") && !header.has_body(b"hell"));
        assert_eq!((header.stored_bytes(), header.rows_through()), (80, 43));
        let elsewhere = Position { segment: 8, offset: 64 };
        assert_eq!(FrameHeader::decoded(&bytes, elsewhere, header.epoch), None);
        assert_eq!(FrameHeader::decoded(&bytes, header.position, header.epoch + 1), None);
        assert_eq!(FrameHeader::decoded(&bytes[..HEADER_BYTES - 1], header.position, header.epoch), None);
    }

    #[test]
    fn every_bit_of_a_header_is_covered() {
        let segment = SegmentHeader { number: 3, epoch: 5, first: 6, rows: 7, bytes: 8 };
        assert_eq!(SegmentHeader::decoded(&segment.encoded(), 3), Some(segment));
        for bit in 0..HEADER_BYTES * 8 {
            let flipped = |mut bytes: [u8; HEADER_BYTES]| {
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            };
            let (frame, position) = (flipped(header().encoded()), header().position);
            assert_eq!(FrameHeader::decoded(&frame, position, header().epoch), None, "bit {bit}");
            assert_eq!(SegmentHeader::decoded(&flipped(segment.encoded()), 3), None, "bit {bit}");
        }
        assert!(!is_sealed(&[0; HEADER_BYTES]));
    }
}
