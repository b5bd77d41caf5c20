//! The state of a log besides its frames: how far it is durable, which segments were given up, and a note of the caller. Main type: [`Marks`].
//!
//! Invariant: one of the two slots is always whole, because the other is written only while that one is durable; and a given-up segment is recorded in both slots before
//! its file is removed.

use std::io;
use std::sync::Arc;

use crate::segments::disk::{Disk, DiskFile};
use crate::segments::frame::{put, u32_at, u64_at};

/// Name of the file.
pub const NAME: &str = "mark";
/// Size of a slot in bytes.
const SLOT_BYTES: usize = 16 << 10;
/// Bytes before the list of given-up segments.
const FIXED_BYTES: usize = 96;
/// Bytes of one entry of that list.
const ONE_BYTES: usize = 16;
/// Maximum number of given-up segments above the first kept one.
pub const GIVEN_UP_MAX: usize = 500;
/// Maximum length of a note in bytes.
pub const NOTE_MAX: usize = SLOT_BYTES - FIXED_BYTES - GIVEN_UP_MAX * ONE_BYTES;
/// `MARK`
const MAGIC: u32 = u32::from_le_bytes(*b"MARK");

/// A segment that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    pub number: u64,
    /// Number of frames that the segment had.
    pub frames: u32,
    /// Number of rows that these frames acknowledged.
    pub rows: u32,
}

/// The content of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// Number of the mark; grows with each mark written.
    pub generation: u64,
    /// Epoch of the opening that wrote the mark.
    pub epoch: u64,
    /// The newest sequence known to be on the disk.
    pub durable: u64,
    /// Number of rows acknowledged through `durable`.
    pub rows: u64,
    /// The lowest number of a segment that was not given up.
    pub first: u64,
    /// The first sequence of segment `first`.
    pub first_sequence: u64,
    /// Number of rows acknowledged before segment `first`.
    pub first_rows: u64,
    /// The highest number of a segment ever created.
    pub newest: u64,
    /// Segments up to this number have their footers on the disk.
    pub sealed: u64,
    /// Whether the log was closed with this mark, and nothing followed.
    pub is_clean: bool,
    /// Segments above `first` that were given up, ascending.
    pub given_up: Vec<GivenUp>,
    /// The caller's note.
    pub note: Vec<u8>,
}

impl Mark {
    /// Returns whether a segment was given up.
    pub fn is_given_up(&self, number: u64) -> bool {
        number < self.first || self.given_up.iter().any(|one| one.number == number)
    }

    fn encoded(&self) -> Vec<u8> {
        let mut bytes = vec![0; FIXED_BYTES + self.given_up.len() * ONE_BYTES + self.note.len()];
        put(&mut bytes, 4, &MAGIC.to_le_bytes());
        let numbers =
            [self.generation, self.epoch, self.durable, self.rows, self.first, self.first_sequence, self.first_rows];
        for (place, number) in numbers.into_iter().enumerate() {
            put(&mut bytes, 8 + 8 * place, &number.to_le_bytes());
        }
        put(&mut bytes, 64, &self.newest.to_le_bytes());
        put(&mut bytes, 72, &self.sealed.to_le_bytes());
        put(&mut bytes, 80, &[u8::from(self.is_clean)]);
        put(&mut bytes, 84, &(self.given_up.len() as u32).to_le_bytes());
        put(&mut bytes, 88, &(self.note.len() as u32).to_le_bytes());
        let mut place = FIXED_BYTES;
        for GivenUp { number, frames, rows } in &self.given_up {
            put(&mut bytes, place, &number.to_le_bytes());
            put(&mut bytes, place + 8, &frames.to_le_bytes());
            put(&mut bytes, place + 12, &rows.to_le_bytes());
            place += ONE_BYTES;
        }
        put(&mut bytes, place, &self.note);
        let checksum = crc32c::crc32c(&bytes[4..]);
        put(&mut bytes, 0, &checksum.to_le_bytes());
        bytes
    }

    fn decoded(slot: &[u8]) -> Option<Self> {
        if slot.len() < FIXED_BYTES || u32_at(slot, 4) != MAGIC {
            return None;
        }
        let (count, note) = (u32_at(slot, 84) as usize, u32_at(slot, 88) as usize);
        if count > GIVEN_UP_MAX || note > NOTE_MAX {
            return None;
        }
        let note_at = FIXED_BYTES + count * ONE_BYTES;
        let bytes = slot.get(..note_at + note)?;
        if crc32c::crc32c(&bytes[4..]) != u32_at(bytes, 0) {
            return None;
        }
        let given_up = |place: usize| {
            let place = FIXED_BYTES + place * ONE_BYTES;
            GivenUp { number: u64_at(bytes, place), frames: u32_at(bytes, place + 8), rows: u32_at(bytes, place + 12) }
        };
        Some(Mark {
            generation: u64_at(bytes, 8),
            epoch: u64_at(bytes, 16),
            durable: u64_at(bytes, 24),
            rows: u64_at(bytes, 32),
            first: u64_at(bytes, 40),
            first_sequence: u64_at(bytes, 48),
            first_rows: u64_at(bytes, 56),
            newest: u64_at(bytes, 64),
            sealed: u64_at(bytes, 72),
            is_clean: bytes[80] != 0,
            given_up: (0..count).map(given_up).collect(),
            note: bytes[note_at..].to_vec(),
        })
    }
}

/// The file that holds the marks.
pub struct Marks {
    file: Arc<dyn DiskFile>,
    generation: u64,
}

impl Marks {
    /// Opens the file, or creates it; returns it with the newest mark in it, if there is one.
    pub fn open(disk: &dyn Disk, is_there: bool) -> io::Result<(Marks, Option<Mark>)> {
        let file = if is_there {
            disk.open(NAME)?
        } else {
            let file = disk.create(NAME, 2 * SLOT_BYTES as u64)?;
            file.sync()?;
            disk.sync()?;
            file
        };
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        let newest = bytes.chunks(SLOT_BYTES).filter_map(Mark::decoded).max_by_key(|mark| mark.generation);
        let generation = newest.as_ref().map_or(0, |mark| mark.generation);
        Ok((Marks { file, generation }, newest))
    }

    /// Writes a mark into the older slot; it is durable after the next [`Marks::sync`].
    pub fn write(&mut self, mark: &Mark) -> io::Result<()> {
        let generation = self.generation + 1;
        let bytes = Mark { generation, ..mark.clone() }.encoded();
        self.file.write_at(&bytes, (generation % 2) * SLOT_BYTES as u64)?;
        self.generation = generation;
        Ok(())
    }

    /// Makes the mark written last durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        Mark {
            generation: 1,
            epoch: 2,
            durable: 3,
            rows: 4,
            first: 5,
            first_sequence: 6,
            first_rows: 7,
            newest: 14,
            sealed: 15,
            is_clean: true,
            given_up: vec![GivenUp { number: 8, frames: 9, rows: 10 }, GivenUp { number: 11, frames: 12, rows: 13 }],
            note: b"note".to_vec(),
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_every_bit_counts() {
        let bytes = mark().encoded();
        let slot = |bytes: &[u8]| [bytes, &vec![0; SLOT_BYTES - bytes.len()]].concat();
        assert_eq!(Mark::decoded(&slot(&bytes)), Some(mark()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::decoded(&slot(&flipped)), None, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(Mark::decoded(&bytes[..cut]), None, "{cut} bytes");
        }
    }

    #[test]
    fn the_longest_mark_has_room_in_a_slot() {
        let one = GivenUp { number: u64::MAX, frames: u32::MAX, rows: u32::MAX };
        let longest = Mark { given_up: vec![one; GIVEN_UP_MAX], note: vec![1; NOTE_MAX], ..mark() };
        let bytes = longest.encoded();
        assert_eq!((bytes.len(), Mark::decoded(&bytes)), (SLOT_BYTES, Some(longest)));
    }
}
