//! The readings of a source as bytes: [`Packing`].
//!
//! The bytes are: a version, the number of readings, and for each value column but the source its length in bytes and its bits. Numbers of bytes and readings are LEB128.
//! A column is read without the others.

use super::column::{decode, decode_times, encode, encode_times};
use crate::record::{Cell, Cells, ColumnKind, RecordType};

/// The first byte.
const VERSION: u8 = 1;

/// How the readings of a record type are packed.
#[derive(Debug, Clone)]
pub struct Packing {
    /// The kinds of the value columns, and whether they can be null.
    columns: Vec<(ColumnKind, bool)>,
    /// The value column with the source, which is not packed.
    source: usize,
    /// The value column with the time.
    time: usize,
}

impl Packing {
    /// Returns how records of this type are packed; `None` if they have no sources and times.
    pub fn of(record_type: &RecordType) -> Option<Self> {
        let series = record_type.series?;
        let columns = record_type.values.iter().map(|column| (column.kind, column.nullable)).collect();
        Some(Packing { columns, source: series.source, time: series.time })
    }

    /// Returns the number of value columns.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether a value column has the source.
    pub fn is_source(&self, place: usize) -> bool {
        place == self.source
    }

    /// Returns whether a value column has the time.
    pub fn is_time(&self, place: usize) -> bool {
        place == self.time
    }

    /// Returns the time of a reading, whose value columns begin at this cell.
    pub(super) fn time_of(&self, rows: &Cells, first: usize) -> i64 {
        match rows.get(first + self.time) {
            Cell::Int(time_ns) => time_ns,
            _ => 0,
        }
    }

    /// Packs readings, each a row of all value columns.
    pub(super) fn pack(&self, rows: &Cells, scratch: &mut Scratch, out: &mut Vec<u8>) {
        let width = self.width().max(1);
        let readings = rows.len() / width;
        scratch.times.clear();
        scratch.times.extend((0..readings).map(|row| self.time_of(rows, row * width)));
        out.push(VERSION);
        write_count(readings as u64, out);
        for (place, (kind, nullable)) in self.columns.iter().enumerate().filter(|(place, _)| *place != self.source) {
            scratch.bits.clear();
            match place == self.time {
                true => encode_times(&scratch.times, &mut scratch.bits),
                false => encode(*kind, *nullable, rows, (width, place), &mut scratch.bits),
            }
            write_count(scratch.bits.len() as u64, out);
            out.extend_from_slice(&scratch.bits);
        }
    }

    /// Opens packed readings; `None` if the bytes are none.
    pub fn open<'a>(&'a self, bytes: &'a [u8]) -> Option<Packed<'a>> {
        let (version, mut rest) = bytes.split_first()?;
        let readings = usize::try_from(read_count(&mut rest)?).ok()?;
        let mut parts = Vec::with_capacity(self.width());
        for place in 0..self.width() {
            if place == self.source {
                parts.push(&[][..]);
                continue;
            }
            let length = usize::try_from(read_count(&mut rest)?).ok()?;
            let (part, behind) = rest.split_at_checked(length)?;
            // Each value takes at least a bit.
            if readings > length.saturating_mul(8) {
                return None;
            }
            parts.push(part);
            rest = behind;
        }
        (*version == VERSION && rest.is_empty()).then_some(Packed { packing: self, readings, parts })
    }
}

/// Memory that packing uses again.
#[derive(Default)]
pub(super) struct Scratch {
    times: Vec<i64>,
    bits: Vec<u8>,
}

/// Packed readings.
pub struct Packed<'a> {
    packing: &'a Packing,
    readings: usize,
    parts: Vec<&'a [u8]>,
}

impl Packed<'_> {
    /// Returns the number of readings.
    pub fn readings(&self) -> usize {
        self.readings
    }

    /// Appends the times of all readings, in the order in which these arrived; `None` if the bytes are damaged.
    pub fn times(&self, out: &mut Vec<i64>) -> Option<()> {
        decode_times(self.parts.get(self.packing.time)?, self.readings, out)
    }

    /// Appends a value column of all readings, other than those of the source and the time; `None` if the bytes are damaged.
    pub fn column(&self, place: usize, out: &mut Cells) -> Option<()> {
        let (kind, nullable) = self.packing.columns.get(place)?;
        decode(*kind, *nullable, self.parts.get(place)?, self.readings, out)
    }
}

/// Appends a number as LEB128.
fn write_count(mut count: u64, out: &mut Vec<u8>) {
    while count >= 0x80 {
        out.push(count as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
}

/// Reads a number of at most 35 bits.
fn read_count(bytes: &mut &[u8]) -> Option<u64> {
    let mut count = 0;
    for place in 0..5 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        count |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(count);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::gorilla::fuzzed::{is_same, packing_of};
    use crate::random::Stream;

    const KINDS: [ColumnKind; 8] = [
        ColumnKind::Int32,
        ColumnKind::Int64,
        ColumnKind::Int16,
        ColumnKind::Float64,
        ColumnKind::Int64,
        ColumnKind::Text(20),
        ColumnKind::Blob(20),
        ColumnKind::Float64,
    ];

    fn packing(nullable: bool) -> Packing {
        packing_of(&KINDS, if nullable { 2 } else { KINDS.len() }).unwrap()
    }

    /// Returns readings whose values are rough: extremes, repetitions and nulls among random ones.
    fn readings(stream: &mut Stream, nullable: bool) -> Cells {
        let mut rows = Cells::new();
        let whole = |stream: &mut Stream| match stream.below(6) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => 0,
            _ => stream.word() as i64 >> stream.below(64),
        };
        for _ in 0..1 + stream.below(200) {
            for (place, kind) in KINDS.iter().enumerate() {
                match kind {
                    _ if nullable && place > 1 && stream.below(4) == 0 => rows.null(),
                    ColumnKind::Float64 => rows.float(match stream.below(6) {
                        0 => f64::MAX,
                        1 => -0.0,
                        2 => f64::from_bits(stream.word() & !(0x7ff << 52)),
                        3 => (stream.below(300) as f64) / 10.0,
                        _ => 21.5,
                    }),
                    ColumnKind::Text(_) => rows.text(["", "up", "päällä"][stream.below(3) as usize]),
                    ColumnKind::Blob(_) => rows.blob(&stream.word().to_le_bytes()[..stream.below(9) as usize]),
                    _ => rows.int(whole(stream)),
                }
            }
        }
        rows
    }

    #[test]
    fn every_value_comes_back_to_its_last_bit() {
        let mut stream = Stream::seeded(1);
        for round in 0..400 {
            let packing = packing(round % 2 == 0);
            let rows = readings(&mut stream, round % 2 == 0);
            let mut bytes = Vec::new();
            packing.pack(&rows, &mut Scratch::default(), &mut bytes);
            let packed = packing.open(&bytes).unwrap();
            let readings = rows.len() / KINDS.len();
            assert_eq!(packed.readings(), readings);
            let mut times = Vec::new();
            packed.times(&mut times).unwrap();
            assert!((0..readings).all(|row| rows.get(row * KINDS.len() + 1) == Cell::Int(times[row])));
            for place in 2..KINDS.len() {
                let mut column = Cells::new();
                packed.column(place, &mut column).unwrap();
                assert_eq!(column.len(), readings);
                for row in 0..readings {
                    let (found, right) = (column.get(row), rows.get(row * KINDS.len() + place));
                    let same = is_same((found, &column), (right, &rows));
                    assert!(same, "{found:?} instead of {right:?}");
                }
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_as_something_but_never_more_than_they_can_hold() {
        let mut stream = Stream::seeded(2);
        let packing = packing(true);
        for _ in 0..2000 {
            let rows = readings(&mut stream, true);
            let mut bytes = Vec::new();
            packing.pack(&rows, &mut Scratch::default(), &mut bytes);
            for _ in 0..1 + stream.below(3) {
                let place = stream.below(bytes.len() as u64) as usize;
                match stream.below(3) {
                    0 => bytes.truncate(place.max(1)),
                    1 => bytes[place] ^= 1 << stream.below(8),
                    _ => bytes[place] = stream.word() as u8,
                }
            }
            let Some(packed) = packing.open(&bytes) else { continue };
            assert!(packed.readings() <= 8 * bytes.len());
            let _ = packed.times(&mut Vec::new());
            for place in 2..KINDS.len() {
                let mut column = Cells::new();
                if packed.column(place, &mut column).is_some() {
                    assert_eq!(column.len(), packed.readings());
                }
            }
        }
    }

    #[test]
    fn regular_times_and_values_that_stay_take_a_bit_each() {
        let packing = packing(false);
        let mut rows = Cells::new();
        for reading in 0..800 {
            for (place, kind) in KINDS.iter().enumerate() {
                match kind {
                    ColumnKind::Float64 => rows.float(21.3),
                    ColumnKind::Text(_) => rows.text("up"),
                    ColumnKind::Blob(_) => rows.blob(b"x"),
                    // A time that is missing now and then costs a few bits: it is a multiple of the interval.
                    _ if place == 1 => rows.int(1_700_000_000_000_000_000 + (reading + reading / 100) * 10_000_000_000),
                    _ => rows.int(7),
                }
            }
        }
        let mut bytes = Vec::new();
        packing.pack(&rows, &mut Scratch::default(), &mut bytes);
        let bits = 7 * 800;
        assert!(bytes.len() * 8 < bits + 1200, "{} bytes", bytes.len());
    }
}
