//! The bytes in which the layout `key-value` keeps a record: its columns one after another, without their names.
//!
//! Format, little-endian: for each column a byte with its type, then for 0 null: nothing; 1 whole number: 8 bytes; 2 fractional
//! number: 8 bytes; 3 text, 4 bytes: 4 bytes of length, and the bytes. Columns behind those of the record type are fields that
//! were added later.

use crate::record::{Cell, Cells, Column, ColumnKind};

const NULL: u8 = 0;
const INT: u8 = 1;
const FLOAT: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// Writes one value.
#[inline]
pub(super) fn write(cell: Cell, cells: &Cells, out: &mut Vec<u8>) {
    let mut counted = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match cell {
        Cell::Null => out.push(NULL),
        Cell::Text(span) => counted(TEXT, cells.bytes_of(span)),
        Cell::Blob(span) => counted(BLOB, cells.bytes_of(span)),
        Cell::Int(value) => {
            out.push(INT);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Cell::Float(value) => {
            out.push(FLOAT);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Returns the maximum number of bytes that a record with these columns takes.
pub(super) fn bytes_max(columns: &[Column]) -> u32 {
    let of = |column: &Column| match column.kind {
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64 => 9,
        ColumnKind::Blob(bytes) => bytes.saturating_add(5),
        // A character takes up to four bytes.
        ColumnKind::Text(characters) => characters.saturating_mul(4).saturating_add(5),
        ColumnKind::Json => u32::MAX / 2,
    };
    columns.iter().map(of).fold(0, u32::saturating_add)
}

/// Appends the values of a record to cells; `None` if the bytes are not a record.
pub fn decode(mut bytes: &[u8], out: &mut Cells) -> Option<()> {
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        match *tag {
            NULL => out.null(),
            INT => out.int(i64::from_le_bytes(take(&mut bytes)?)),
            FLOAT => out.float(f64::from_le_bytes(take(&mut bytes)?)),
            TEXT | BLOB => {
                let length = u32::from_le_bytes(take(&mut bytes)?) as usize;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                if *tag == TEXT { out.text(std::str::from_utf8(value).ok()?) } else { out.blob(value) }
            }
            _ => return None,
        }
    }
    Some(())
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_of_every_kind_are_decoded_as_they_were() {
        let mut cells = Cells::new();
        cells.null();
        cells.int(-7);
        cells.float(0.1);
        cells.text("päivä");
        cells.blob(&[0, 255]);
        let mut bytes = Vec::new();
        cells.as_slice().iter().for_each(|cell| write(*cell, &cells, &mut bytes));
        let mut decoded = Cells::new();
        assert_eq!(decode(&bytes, &mut decoded), Some(()));
        assert_eq!(decoded, cells);
        assert_eq!(decode(&bytes[..bytes.len() - 1], &mut Cells::new()), None);
        assert_eq!(decode(&[9], &mut Cells::new()), None);
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_decoding_ends(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes, &mut Cells::new());
        }
    }
}
