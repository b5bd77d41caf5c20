//! Values in ClickHouse's format RowBinary. Main types: [`Column`], which says how a value is written, and [`Extent`], how far a row goes.
//!
//! Numbers are in little-endian order; texts and bytes follow their length as LEB128. A column that may be null has a byte in front of each value: 1 for null.

use crate::database::session::ANSWER_BYTES_MAX;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::TableColumn;

/// The maximum bytes of a length: ten groups of seven bits hold 64 bits.
const LENGTH_BYTES_MAX: usize = 10;

/// A column as its table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// The name, for errors.
    pub name: String,
    pub kind: ColumnKind,
    pub nullable: bool,
}

impl From<&TableColumn> for Column {
    fn from(column: &TableColumn) -> Self {
        Column { name: column.name.clone(), kind: column.kind, nullable: column.nullable }
    }
}

/// Appends a value of a column.
///
/// # Errors
/// A sentence: the column cannot have the value.
pub(super) fn append(column: &Column, cells: &Cells, cell: Cell, out: &mut Vec<u8>) -> Result<(), String> {
    if column.nullable {
        out.push(u8::from(matches!(cell, Cell::Null)));
    }
    match (column.kind, cell) {
        (_, Cell::Null) if column.nullable => {}
        (ColumnKind::Int16, Cell::Int(value)) => {
            let value = i16::try_from(value).map_err(|_| out_of_range(column, value))?;
            out.extend_from_slice(&value.to_le_bytes());
        }
        (ColumnKind::Int32, Cell::Int(value)) => {
            let value = i32::try_from(value).map_err(|_| out_of_range(column, value))?;
            out.extend_from_slice(&value.to_le_bytes());
        }
        (ColumnKind::Int64, Cell::Int(value)) => out.extend_from_slice(&value.to_le_bytes()),
        (ColumnKind::Float64, Cell::Float(value)) => out.extend_from_slice(&value.to_le_bytes()),
        (ColumnKind::Float64, Cell::Int(value)) => out.extend_from_slice(&(value as f64).to_le_bytes()),
        (ColumnKind::Text(_) | ColumnKind::Json | ColumnKind::Blob(_), Cell::Text(span) | Cell::Blob(span)) => {
            let bytes = cells.bytes_of(span);
            append_length(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        (kind, Cell::Null) => return Err(format!("the column {} of {kind:?} cannot be null", column.name)),
        (kind, _) => return Err(format!("the column {} of {kind:?} is given a value of another type", column.name)),
    }
    Ok(())
}

#[cold]
fn out_of_range(column: &Column, value: i64) -> String {
    format!("{value} is out of range for the column {} of {:?}", column.name, column.kind)
}

fn append_length(mut length: u64, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// How far a row goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// This many bytes.
    Whole(usize),
    /// At least this many, and more than are there.
    AtLeast(usize),
}

/// Returns how far the row goes whose bytes these are.
///
/// # Errors
/// A sentence: it is no row of these columns.
pub(super) fn extent(columns: &[Column], bytes: &[u8]) -> Result<Extent, String> {
    let mut at = 0;
    for column in columns {
        let Some(shown) = bytes.get(at..) else { return Ok(Extent::AtLeast(at)) };
        match value(column, shown)? {
            Found::Null => at += 1,
            Found::Value { from, length } => at += from + length,
            Found::Incomplete => return Ok(Extent::AtLeast(bytes.len() + 1)),
        }
    }
    Ok(if at <= bytes.len() { Extent::Whole(at) } else { Extent::AtLeast(at) })
}

/// Appends the values of a whole row. Returns the first column whose value is no text in UTF-8; it becomes a null.
pub(super) fn keep<'a>(columns: &'a [Column], bytes: &[u8], rows: &mut Cells) -> Result<Option<&'a Column>, String> {
    let (mut rest, mut wrong) = (bytes, None);
    for column in columns {
        match value(column, rest)? {
            Found::Null => {
                rows.null();
                rest = &rest[1..];
            }
            Found::Value { from, length } => {
                let own = rest.get(from..from + length).ok_or("a row is cut")?;
                match (column.kind, own) {
                    (ColumnKind::Int16, &[a, b]) => rows.int(i16::from_le_bytes([a, b]).into()),
                    (ColumnKind::Int32, &[a, b, c, d]) => rows.int(i32::from_le_bytes([a, b, c, d]).into()),
                    (ColumnKind::Int64, own) => rows.int(i64::from_le_bytes(own.try_into().unwrap_or_default())),
                    (ColumnKind::Float64, own) => rows.float(f64::from_le_bytes(own.try_into().unwrap_or_default())),
                    (ColumnKind::Blob(_), own) => rows.blob(own),
                    (_, own) => match std::str::from_utf8(own) {
                        Ok(text) => rows.text(text),
                        Err(_) => {
                            rows.null();
                            wrong = wrong.or(Some(column));
                        }
                    },
                }
                rest = &rest[from + length..];
            }
            Found::Incomplete => return Err("a row is cut".to_owned()),
        }
    }
    Ok(wrong)
}

/// The place of a value in the bytes that begin with it.
enum Found {
    /// A null, which is a byte.
    Null,
    /// A value of this length that begins at this index. Its end may not be there yet.
    Value { from: usize, length: usize },
    /// More bytes are needed to know.
    Incomplete,
}

fn value(column: &Column, bytes: &[u8]) -> Result<Found, String> {
    let mark = usize::from(column.nullable);
    if column.nullable {
        match bytes.first() {
            None => return Ok(Found::Incomplete),
            Some(0) => {}
            Some(1) => return Ok(Found::Null),
            Some(other) => return Err(format!("the column {} begins with {other} instead of 0 or 1", column.name)),
        }
    }
    let length = match column.kind {
        ColumnKind::Int16 => 2,
        ColumnKind::Int32 => 4,
        ColumnKind::Int64 | ColumnKind::Float64 => 8,
        ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => {
            return Ok(match length_of(&bytes[mark..])? {
                None => Found::Incomplete,
                Some((_, length)) if length > ANSWER_BYTES_MAX as u64 => {
                    return Err(format!("the column {} is said to have {length} bytes", column.name));
                }
                Some((own, length)) => Found::Value { from: mark + own, length: length as usize },
            });
        }
    };
    Ok(Found::Value { from: mark, length })
}

/// Returns the bytes of a length, and the length; `None` while it is incomplete.
fn length_of(bytes: &[u8]) -> Result<Option<(usize, u64)>, String> {
    let mut length = 0_u64;
    for (place, byte) in bytes.iter().take(LENGTH_BYTES_MAX).enumerate() {
        let group = u64::from(byte & 0x7f);
        length |= group.checked_shl(7 * place as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(Some((place + 1, length)));
        }
    }
    if bytes.len() < LENGTH_BYTES_MAX { Ok(None) } else { Err("the length of a text does not end".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(kind: ColumnKind, nullable: bool) -> Column {
        Column { name: "c".to_owned(), kind, nullable }
    }

    #[test]
    fn values_are_as_the_format_has_them() {
        let mut cells = Cells::new();
        cells.int(-2);
        cells.null();
        cells.text(&"x".repeat(200));
        let columns =
            [column(ColumnKind::Int16, false), column(ColumnKind::Int64, true), column(ColumnKind::Text(300), true)];
        let mut out = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            append(column, &cells, cells.get(place), &mut out).unwrap();
        }
        assert_eq!(out[..6], [0xfe, 0xff, 1, 0, 0xc8, 1]);
        assert_eq!(extent(&columns, &out), Ok(Extent::Whole(206)));
        for cut in 0..out.len() {
            assert!(matches!(extent(&columns, &out[..cut]), Ok(Extent::AtLeast(least)) if least > cut && least <= 206));
        }
    }

    #[test]
    fn what_a_column_cannot_have_is_refused() {
        let mut cells = Cells::new();
        cells.int(40_000);
        cells.null();
        cells.text("x");
        let refused =
            |kind, place| append(&column(kind, false), &cells, cells.get(place), &mut Vec::new()).unwrap_err();
        assert!(refused(ColumnKind::Int16, 0).contains("40000 is out of range for the column c"));
        assert!(refused(ColumnKind::Int64, 1).contains("cannot be null"));
        assert!(refused(ColumnKind::Float64, 2).contains("another type"));
    }

    #[test]
    fn rows_that_are_none_are_told() {
        let text = column(ColumnKind::Text(9), true);
        assert!(extent(std::slice::from_ref(&text), &[2]).unwrap_err().contains("instead of 0 or 1"));
        assert!(
            extent(std::slice::from_ref(&text), &[0, 0xff, 0xff, 0xff, 0xff, 0x7f])
                .unwrap_err()
                .contains("is said to have")
        );
        assert!(extent(std::slice::from_ref(&text), &[[0].as_slice(), &[0xff; 10]].concat()).is_err());
        let mut rows = Cells::new();
        assert_eq!(keep(std::slice::from_ref(&text), &[0, 1, 0xff], &mut rows), Ok(Some(&text)));
        assert_eq!(rows.as_slice(), [Cell::Null]);
    }

    proptest! {
        #[test]
        fn every_value_comes_back(bits: u64, whole: i64, small: i16, text in "\\PC{0,200}", bytes: Vec<u8>, nullable: bool) {
            let mut cells = Cells::new();
            cells.float(f64::from_bits(bits));
            cells.int(whole);
            cells.int(small.into());
            cells.text(&text);
            cells.blob(&bytes);
            let kinds = [ColumnKind::Float64, ColumnKind::Int64, ColumnKind::Int16, ColumnKind::Text(0), ColumnKind::Blob(0)];
            let columns = kinds.map(|kind| column(kind, nullable));
            let mut out = Vec::new();
            for (place, column) in columns.iter().enumerate() {
                append(column, &cells, cells.get(place), &mut out).unwrap();
            }
            let mut found = Cells::new();
            prop_assert_eq!(extent(&columns, &out), Ok(Extent::Whole(out.len())));
            prop_assert_eq!(keep(&columns, &out, &mut found), Ok(None));
            prop_assert!(matches!(found.get(0), Cell::Float(value) if value.to_bits() == bits));
            for place in 1..5 {
                prop_assert_eq!(found.to_json(found.get(place)), cells.to_json(cells.get(place)));
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let columns = [column(ColumnKind::Int32, true), column(ColumnKind::Text(9), false), column(ColumnKind::Int64, false)];
            let _ = (extent(&columns, &bytes), keep(&columns, &bytes, &mut Cells::new()));
        }
    }
}
