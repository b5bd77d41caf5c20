//! The values of one column of several readings, as bits: [`encode`] and [`decode`].
//!
//! After Pelkonen and others, *Gorilla: A Fast, Scalable, In-Memory Time Series Database*, VLDB 2015, section 4.1: of times, the difference of neighbouring differences is
//! kept; of floating-point numbers, the bits in which neighbours differ. Differences are written in 0, 7, 12, 20, 32 or 64 bits instead of the paper's 0, 7, 9, 12 and
//! 32, because times are in nanoseconds and not in seconds; they are multiples of the largest unit that divides them all. Whole numbers are kept as their difference to the
//! one before, texts and bytes only where they change.

use super::bits::{Reader, Writer};
use crate::record::{Cell, Cells, ColumnKind};

/// The bits of a number in which it differs from the one before: zeros in front of them, and their count.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    zeros: u32,
    length: u32,
}

/// Bytes of texts that are read at most: a few bits can stand for a long text that is repeated.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Bits in which the zeros in front and the length of a window are written.
const ZEROS_BITS: u32 = 5;
const LENGTH_BITS: u32 = 6;

/// Appends the values of a column: of each row of `width` cells, the one with this place.
pub(super) fn encode(kind: ColumnKind, nullable: bool, rows: &Cells, place: (usize, usize), out: &mut Vec<u8>) {
    let (width, column) = place;
    let mut writer = Writer::new(out);
    let mut before = Before::default();
    for row in 0..rows.len() / width.max(1) {
        let cell = rows.get(row * width + column);
        let is_null = matches!(cell, Cell::Null);
        if nullable {
            writer.bits(u64::from(is_null), 1);
        }
        if is_null {
            continue;
        }
        match (kind, cell) {
            (ColumnKind::Float64, Cell::Float(value)) => before.write_float(value.to_bits(), &mut writer),
            (_, Cell::Int(value)) => {
                writer.signed(value.wrapping_sub(before.whole));
                before.whole = value;
            }
            (_, Cell::Text(span) | Cell::Blob(span)) => before.write_bytes(rows.bytes_of(span), &mut writer),
            // A generator makes values of their columns' kinds only.
            (_, Cell::Float(_) | Cell::Null) => {}
        }
    }
    writer.end();
}

/// Appends the times of a column.
pub(super) fn encode_times(times: &[i64], out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    let differences = times.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let unit = differences.fold(0, |unit, difference| common_divisor(unit, difference.unsigned_abs())).max(1);
    writer.number(unit);
    let (mut before, mut step) = (0_i64, 0_i64);
    for (number, time) in times.iter().enumerate() {
        if number == 0 {
            writer.signed(*time);
        } else {
            let now = divided(time.wrapping_sub(before), unit);
            writer.signed(now.wrapping_sub(step));
            step = now;
        }
        before = *time;
    }
    writer.end();
}

/// Reads this many times; `None` if the bytes are damaged.
pub(super) fn decode_times(bytes: &[u8], count: usize, out: &mut Vec<i64>) -> Option<()> {
    let mut reader = Reader::new(bytes);
    let unit = reader.number()?;
    let (mut before, mut step) = (0_i64, 0_i64);
    for number in 0..count {
        let value = reader.signed()?;
        before = if number == 0 {
            value
        } else {
            step = step.wrapping_add(value);
            before.wrapping_add(step.wrapping_mul(unit as i64))
        };
        out.push(before);
    }
    Some(())
}

/// Divides a difference by a unit that divides it.
fn divided(difference: i64, unit: u64) -> i64 {
    i64::try_from(unit).map_or(difference.signum(), |unit| difference / unit)
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Reads this many values and appends them; `None` if the bytes are damaged.
pub(super) fn decode(kind: ColumnKind, nullable: bool, bytes: &[u8], count: usize, out: &mut Cells) -> Option<()> {
    let mut reader = Reader::new(bytes);
    let mut before = Before::default();
    for _ in 0..count {
        if nullable && reader.bit()? {
            out.null();
            continue;
        }
        match kind {
            ColumnKind::Float64 => out.float(f64::from_bits(before.read_float(&mut reader)?)),
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => {
                before.whole = before.whole.wrapping_add(reader.signed()?);
                out.int(before.whole);
            }
            _ if out.text_bytes() > TEXT_BYTES_MAX => return None,
            ColumnKind::Blob(_) => out.blob(before.read_bytes(&mut reader)?),
            ColumnKind::Text(_) | ColumnKind::Json => {
                out.text(std::str::from_utf8(before.read_bytes(&mut reader)?).ok()?);
            }
        }
    }
    Some(())
}

/// What is known of the value before.
#[derive(Default)]
struct Before {
    whole: i64,
    bits: u64,
    window: Option<Window>,
    bytes: Vec<u8>,
}

impl Before {
    /// Writes a floating-point number: `0` for the same one, `10` and the differing bits where they lie in the last window, or `11`, a new window and its bits.
    #[inline]
    fn write_float(&mut self, bits: u64, writer: &mut Writer) {
        let differing = bits ^ self.bits;
        self.bits = bits;
        if differing == 0 {
            return writer.bits(0, 1);
        }
        let zeros = differing.leading_zeros().min((1 << ZEROS_BITS) - 1);
        let behind = differing.trailing_zeros();
        let fits = |window: &Window| zeros >= window.zeros && behind >= 64 - window.zeros - window.length;
        if let Some(window) = self.window.filter(fits) {
            writer.bits(0b10, 2);
            return writer.bits(differing >> (64 - window.zeros - window.length), window.length);
        }
        let length = 64 - zeros - behind;
        writer.bits(0b11, 2);
        writer.bits(u64::from(zeros), ZEROS_BITS);
        // 1 to 64 bits.
        writer.bits(u64::from(length - 1), LENGTH_BITS);
        writer.bits(differing >> behind, length);
        self.window = Some(Window { zeros, length });
    }

    #[inline]
    fn read_float(&mut self, reader: &mut Reader) -> Option<u64> {
        if reader.bit()? {
            let window = match reader.bit()? {
                false => self.window?,
                true => {
                    let zeros = reader.bits(ZEROS_BITS)? as u32;
                    Window { zeros, length: 1 + reader.bits(LENGTH_BITS)? as u32 }
                }
            };
            self.window = Some(window);
            let behind = 64_u32.checked_sub(window.zeros + window.length)?;
            self.bits ^= reader.bits(window.length)? << behind;
        }
        Some(self.bits)
    }

    fn write_bytes(&mut self, bytes: &[u8], writer: &mut Writer) {
        if bytes == self.bytes {
            return writer.bits(0, 1);
        }
        writer.bits(1, 1);
        writer.number(bytes.len() as u64);
        bytes.iter().for_each(|byte| writer.bits(u64::from(*byte), 8));
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn read_bytes(&mut self, reader: &mut Reader) -> Option<&[u8]> {
        if reader.bit()? {
            let length = usize::try_from(reader.number()?).ok().filter(|length| *length <= reader.bytes_left())?;
            self.bytes.clear();
            for _ in 0..length {
                self.bytes.push(reader.bits(8)? as u8);
            }
        }
        Some(&self.bytes)
    }
}
