//! Values to the server, each in the form that the server expects for the parameter or column. Main type:
//! [`Encoding`]; the same bytes serve in a Bind message and in a binary COPY.
//!
//! Invariant: a value that does not fit its parameter or column is refused here, before anything of its request is sent.

use std::io::Write;

use super::types;
use crate::record::{Cell, Cells, Span};

/// The version byte in front of the text of a jsonb value.
pub const JSONB_VERSION: u8 = 1;

/// The encoding of the values of one parameter or column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// boolean, binary
    Bool,
    /// smallint, binary
    Int2,
    /// integer, binary
    Int4,
    /// bigint, binary
    Int8,
    /// real, binary
    Float4,
    /// double precision, binary
    Float8,
    /// A text of any kind, whose binary form is its bytes.
    Text,
    /// bytea, binary
    Bytes,
    /// jsonb, whose binary form is a version byte and the text.
    Jsonb,
    /// Any other type, as text that the server's own input function reads.
    Written,
}

/// The reason why a value does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The number is too large or too small.
    Range,
    /// A value that is not a number, or not an integer where one is needed.
    Kind,
    /// A text with a zero character.
    Zero,
}

impl Encoding {
    /// Returns the encoding for parameters of a type, given by its OID.
    pub fn of(oid: u32) -> Self {
        match oid {
            types::BOOL => Encoding::Bool,
            types::INT2 => Encoding::Int2,
            types::INT4 => Encoding::Int4,
            types::INT8 => Encoding::Int8,
            types::FLOAT4 => Encoding::Float4,
            types::FLOAT8 => Encoding::Float8,
            types::TEXT | types::VARCHAR | types::BPCHAR | types::NAME | types::UNKNOWN => Encoding::Text,
            types::BYTEA => Encoding::Bytes,
            types::JSONB => Encoding::Jsonb,
            _ => Encoding::Written,
        }
    }

    /// Returns whether the encoding is binary.
    pub fn is_binary(self) -> bool {
        self != Encoding::Written
    }

    /// Returns a description of the values, for messages.
    pub fn description(self) -> &'static str {
        match self {
            Encoding::Bool => "boolean (0 or 1)",
            Encoding::Int2 => "smallint (-32768 to 32767)",
            Encoding::Int4 => "integer (-2147483648 to 2147483647)",
            Encoding::Int8 => "bigint (64 bits)",
            Encoding::Float4 => "real",
            Encoding::Float8 => "double precision",
            Encoding::Text => "text",
            Encoding::Bytes => "bytea",
            Encoding::Jsonb => "jsonb",
            Encoding::Written => "of a type that is written as text",
        }
    }

    /// Appends the length of a value and its bytes. Integers fit every numeric type, fractional numbers fit integer types
    /// only when they are whole, texts fit numeric types when they are written numbers.
    ///
    /// # Errors
    /// When the value does not fit; the bytes appended by then are of no use.
    #[inline]
    pub fn encode(self, cell: Cell, cells: &Cells, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match (self, cell) {
            (_, Cell::Null) => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            (Encoding::Int4, Cell::Int(value)) => fixed(out, narrow::<i32>(value)?.to_be_bytes()),
            (Encoding::Int8, Cell::Int(value)) => fixed(out, value.to_be_bytes()),
            (Encoding::Int2, Cell::Int(value)) => fixed(out, narrow::<i16>(value)?.to_be_bytes()),
            (Encoding::Float8, Cell::Float(value)) => fixed(out, value.to_be_bytes()),
            (Encoding::Float8, Cell::Int(value)) => fixed(out, (value as f64).to_be_bytes()),
            (Encoding::Text, Cell::Text(span)) => counted(out, without_zero(cells.bytes_of(span))?),
            (Encoding::Bytes, Cell::Blob(span) | Cell::Text(span)) => counted(out, cells.bytes_of(span)),
            (Encoding::Jsonb, Cell::Text(span)) => {
                let text = without_zero(cells.bytes_of(span))?;
                out.extend_from_slice(&(text.len() as u32 + 1).to_be_bytes());
                out.push(JSONB_VERSION);
                out.extend_from_slice(text);
            }
            _ => self.convert(cell, cells, out)?,
        }
        Ok(())
    }

    /// Handles the less common conversions.
    fn convert(self, cell: Cell, cells: &Cells, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match self {
            Encoding::Bool => fixed(out, [u8::from(truth(cell, cells)?)]),
            Encoding::Int2 => fixed(out, narrow::<i16>(whole(cell, cells)?)?.to_be_bytes()),
            Encoding::Int4 => fixed(out, narrow::<i32>(whole(cell, cells)?)?.to_be_bytes()),
            Encoding::Int8 => fixed(out, whole(cell, cells)?.to_be_bytes()),
            Encoding::Float8 => fixed(out, number(cell, cells)?.to_be_bytes()),
            Encoding::Float4 => {
                let value = number(cell, cells)?;
                let single = value as f32;
                if single.is_infinite() && value.is_finite() {
                    return Err(Misfit::Range);
                }
                fixed(out, single.to_be_bytes());
            }
            Encoding::Bytes | Encoding::Jsonb => return Err(Misfit::Kind),
            Encoding::Text | Encoding::Written => return written(cell, cells, out),
        }
        Ok(())
    }
}

#[inline]
fn fixed<const N: usize>(out: &mut Vec<u8>, value: [u8; N]) {
    // One copy of at most twelve bytes, whose length is known at compile time.
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&(N as u32).to_be_bytes());
    bytes[4..4 + N].copy_from_slice(&value);
    out.extend_from_slice(&bytes[..4 + N]);
}

#[inline]
fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    // The length cannot overflow: a request whose message exceeds 1 GiB is refused afterwards, and cells hold at most 4 GiB.
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[inline]
fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, Misfit> {
    T::try_from(value).map_err(|_| Misfit::Range)
}

#[inline]
fn without_zero(bytes: &[u8]) -> Result<&[u8], Misfit> {
    if bytes.contains(&0) { Err(Misfit::Zero) } else { Ok(bytes) }
}

fn whole(cell: Cell, cells: &Cells) -> Result<i64, Misfit> {
    match cell {
        Cell::Int(value) => Ok(value),
        // 2^63 is the first number beyond the range, and exact as f64, unlike i64::MAX.
        Cell::Float(value) if value.fract() == 0.0 => {
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
                Ok(value as i64)
            } else {
                Err(Misfit::Range)
            }
        }
        Cell::Text(span) => parse(span, cells),
        Cell::Float(_) | Cell::Blob(_) | Cell::Null => Err(Misfit::Kind),
    }
}

/// Returns a boolean: from 0 or 1, or from one of the words that PostgreSQL reads ("Boolean Type" of its manual).
fn truth(cell: Cell, cells: &Cells) -> Result<bool, Misfit> {
    if let Cell::Text(span) = cell {
        let text = std::str::from_utf8(cells.bytes_of(span)).unwrap_or_default().trim().to_ascii_lowercase();
        return match text.as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok(true),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok(false),
            _ => Err(Misfit::Kind),
        };
    }
    match whole(cell, cells)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Misfit::Range),
    }
}

fn number(cell: Cell, cells: &Cells) -> Result<f64, Misfit> {
    match cell {
        Cell::Int(value) => Ok(value as f64),
        Cell::Float(value) => Ok(value),
        Cell::Text(span) => parse(span, cells),
        Cell::Blob(_) | Cell::Null => Err(Misfit::Kind),
    }
}

fn parse<T: std::str::FromStr>(span: Span, cells: &Cells) -> Result<T, Misfit> {
    std::str::from_utf8(cells.bytes_of(span)).ok().and_then(|text| text.trim().parse().ok()).ok_or(Misfit::Kind)
}

/// Appends a value as readable text.
fn written(cell: Cell, cells: &Cells, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    // Writing into a vector cannot fail.
    let _ = match cell {
        Cell::Int(value) => write!(out, "{value}"),
        Cell::Float(value) => write!(out, "{value}"),
        Cell::Text(span) => out.write_all(without_zero(cells.bytes_of(span))?),
        Cell::Blob(_) | Cell::Null => return Err(Misfit::Kind),
    };
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(encoding: Encoding, fill: impl FnOnce(&mut Cells)) -> Result<Vec<u8>, Misfit> {
        let mut cells = Cells::new();
        fill(&mut cells);
        let mut out = Vec::new();
        encoding.encode(cells.get(0), &cells, &mut out)?;
        assert_eq!(out.len() - 4, u32::from_be_bytes(*out.first_chunk().unwrap()) as usize);
        Ok(out.split_off(4))
    }

    #[test]
    fn whole_numbers_go_into_every_kind_of_number_that_can_hold_them() {
        assert_eq!(encode(Encoding::Int2, |cells| cells.int(-2)), Ok(vec![0xff, 0xfe]));
        assert_eq!(encode(Encoding::Int4, |cells| cells.int(258)), Ok(vec![0, 0, 1, 2]));
        assert_eq!(encode(Encoding::Int8, |cells| cells.int(1)), Ok(vec![0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(encode(Encoding::Float8, |cells| cells.int(2)), Ok(2_f64.to_be_bytes().to_vec()));
        assert_eq!(encode(Encoding::Float4, |cells| cells.int(2)), Ok(2_f32.to_be_bytes().to_vec()));
        assert_eq!(encode(Encoding::Text, |cells| cells.int(-12)), Ok(b"-12".to_vec()));
        assert_eq!(encode(Encoding::Written, |cells| cells.int(i64::MIN)), Ok(b"-9223372036854775808".to_vec()));
        assert_eq!(encode(Encoding::Bool, |cells| cells.int(1)), Ok(vec![1]));
        assert_eq!(encode(Encoding::Bool, |cells| cells.text("false")), Ok(vec![0]));
        assert_eq!(encode(Encoding::Bool, |cells| cells.text("t")), Ok(vec![1]));
        assert_eq!(encode(Encoding::Bool, |cells| cells.text("maybe")), Err(Misfit::Kind));
    }

    #[test]
    fn values_that_do_not_fit_are_told() {
        assert_eq!(encode(Encoding::Int2, |cells| cells.int(32768)), Err(Misfit::Range));
        assert_eq!(encode(Encoding::Int4, |cells| cells.int(1 << 31)), Err(Misfit::Range));
        assert_eq!(encode(Encoding::Int8, |cells| cells.float(9.3e18)), Err(Misfit::Range));
        assert_eq!(encode(Encoding::Int8, |cells| cells.float(0.5)), Err(Misfit::Kind));
        assert_eq!(encode(Encoding::Int8, |cells| cells.float(f64::NAN)), Err(Misfit::Kind));
        assert_eq!(encode(Encoding::Float4, |cells| cells.float(1e300)), Err(Misfit::Range));
        assert_eq!(encode(Encoding::Bool, |cells| cells.int(2)), Err(Misfit::Range));
        assert_eq!(encode(Encoding::Int4, |cells| cells.text("four")), Err(Misfit::Kind));
        assert_eq!(encode(Encoding::Bytes, |cells| cells.int(4)), Err(Misfit::Kind));
        assert_eq!(encode(Encoding::Text, |cells| cells.text("a\0b")), Err(Misfit::Zero));
        assert_eq!(encode(Encoding::Written, |cells| cells.text("a\0b")), Err(Misfit::Zero));
        assert_eq!(encode(Encoding::Text, |cells| cells.blob(b"ab")), Err(Misfit::Kind));
    }

    #[test]
    fn texts_bytes_and_fractions_keep_their_values() {
        assert_eq!(encode(Encoding::Text, |cells| cells.text("päivä")), Ok("päivä".into()));
        assert_eq!(encode(Encoding::Bytes, |cells| cells.blob(&[0, 255])), Ok(vec![0, 255]));
        assert_eq!(encode(Encoding::Jsonb, |cells| cells.text("{}")), Ok(b"\x01{}".to_vec()));
        assert_eq!(encode(Encoding::Float8, |cells| cells.float(0.1)), Ok(0.1_f64.to_be_bytes().to_vec()));
        assert_eq!(encode(Encoding::Written, |cells| cells.float(0.1)), Ok(b"0.1".to_vec()));
        assert_eq!(encode(Encoding::Int4, |cells| cells.float(7.0)), Ok(vec![0, 0, 0, 7]));
        assert_eq!(encode(Encoding::Int4, |cells| cells.text(" 7 ")), Ok(vec![0, 0, 0, 7]));
    }

    #[test]
    fn null_goes_everywhere() {
        for encoding in [Encoding::Bool, Encoding::Int8, Encoding::Text, Encoding::Bytes, Encoding::Written] {
            let mut out = Vec::new();
            encoding.encode(Cell::Null, &Cells::new(), &mut out).unwrap();
            assert_eq!(out, [255; 4]);
        }
    }
}
