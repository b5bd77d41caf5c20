//! The footer of a segment that is no longer appended to. Main type: [`Footer`].

use crate::segments::frame::{HEADER_BYTES, is_sealed, put, sealed, u32_at, u64_at};

/// `SEAL`
const MAGIC: u32 = u32::from_le_bytes(*b"SEAL");

/// Summary of a whole segment. Everything in the segment that is not damaged is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// The segment's number.
    pub number: u64,
    /// Epoch of the opening that created the segment.
    pub epoch: u64,
    /// The sequence of its last frame; if it has none, the sequence before its first one.
    pub last: u64,
    /// Number of rows acknowledged before or in the segment, including rows that never reached the disk.
    pub rows: u64,
    /// Sequences up to this one were known to be on the disk when the segment was last appended to.
    pub certain: u64,
    /// Number of rows acknowledged through `certain`.
    pub certain_rows: u64,
    /// Number of frames behind `certain` that had not reached the disk when the footer was written.
    pub missing: u64,
    /// Number of rows that the missing frames acknowledge.
    pub missing_rows: u64,
}

impl Footer {
    pub fn encoded(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 4, &MAGIC.to_le_bytes());
        let places = [self.number, self.epoch, self.last, self.rows];
        let numbers = places.into_iter().chain([self.certain, self.certain_rows, self.missing, self.missing_rows]);
        for (place, number) in numbers.enumerate() {
            put(&mut bytes, 8 + 8 * place, &number.to_le_bytes());
        }
        sealed(bytes)
    }

    /// Decodes the footer in these bytes; `None` unless they are the footer of segment `number`.
    pub fn decoded(bytes: &[u8], number: u64) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        (u32_at(bytes, 4) == MAGIC && u64_at(bytes, 8) == number && is_sealed(bytes)).then(|| Footer {
            number,
            epoch: u64_at(bytes, 16),
            last: u64_at(bytes, 24),
            rows: u64_at(bytes, 32),
            certain: u64_at(bytes, 40),
            certain_rows: u64_at(bytes, 48),
            missing: u64_at(bytes, 56),
            missing_rows: u64_at(bytes, 64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_is_read_as_it_was_written_and_every_bit_counts() {
        let footer =
            Footer { number: 9, epoch: 1, last: 2, rows: 3, certain: 4, certain_rows: 5, missing: 6, missing_rows: 7 };
        let bytes = footer.encoded();
        assert_eq!(Footer::decoded(&bytes, 9), Some(footer));
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Footer::decoded(&flipped, 9), None, "bit {bit}");
        }
        assert_eq!((Footer::decoded(&bytes[1..], 9), Footer::decoded(&bytes, 8)), (None, None));
    }
}
