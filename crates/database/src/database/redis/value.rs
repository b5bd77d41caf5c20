//! Conversion of values to the bytes of a field, and back.
//!
//! Integers are in decimal; floating-point numbers have the fewest digits that give the same number again; texts and bytes are stored as they are. Null is a
//! missing field.

use std::io::Write;

use super::reply::{bulk, number};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};

/// The maximum bytes of a number in digits.
const DIGITS: usize = 32;

/// Appends the bytes of a value; nothing for null.
pub(super) fn append(cells: &Cells, cell: Cell, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => {}
        Cell::Int(value) => number(value, out),
        Cell::Float(value) => float(value, out),
        Cell::Text(span) | Cell::Blob(span) => out.extend_from_slice(cells.bytes_of(span)),
    }
}

/// Appends a value as a byte string of the protocol; `scratch` is cleared.
pub(super) fn append_bulk(cells: &Cells, cell: Cell, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    match cell {
        Cell::Text(span) | Cell::Blob(span) => bulk(cells.bytes_of(span), out),
        cell => {
            scratch.clear();
            append(cells, cell, scratch);
            bulk(scratch, out);
        }
    }
}

fn float(value: f64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS];
    let mut rest = &mut digits[..];
    let size = value.abs();
    let is_plain = size == 0.0 || (1e-5..1e15).contains(&size);
    // Numbers of that size fit into the buffer, and so does every number with an exponent.
    let written = if is_plain { write!(rest, "{value}") } else { write!(rest, "{value:e}") };
    let length = DIGITS - rest.len();
    match written {
        Ok(()) => out.extend_from_slice(&digits[..length]),
        Err(_) => out.extend_from_slice(format!("{value:e}").as_bytes()),
    }
}

/// Appends the value of this kind from its bytes; returns `None`, and appends nothing, where they are invalid.
pub(super) fn keep(kind: ColumnKind, bytes: &[u8], rows: &mut Cells) -> Option<()> {
    let text = || std::str::from_utf8(bytes).ok();
    match kind {
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => rows.int(text()?.parse().ok()?),
        ColumnKind::Float64 => rows.float(text()?.parse().ok()?),
        ColumnKind::Text(_) | ColumnKind::Json => rows.text(text()?),
        ColumnKind::Blob(_) => rows.blob(bytes),
    }
    Some(())
}

/// Returns the error for bytes that are no value of this kind.
pub(super) fn no_value(kind: ColumnKind, bytes: &[u8]) -> DatabaseError {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    DatabaseError::refused("value", format!("{shown:?} is no {kind:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(fill: impl FnOnce(&mut Cells)) -> Vec<u8> {
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        fill(&mut cells);
        append(&cells, cells.get(0), &mut out);
        out
    }

    #[test]
    fn numbers_are_as_people_write_them_where_that_is_short() {
        let text = |value: f64| String::from_utf8(written(|cells| cells.float(value))).unwrap();
        assert_eq!([text(0.25), text(-3.0), text(0.0), text(123456.75)], ["0.25", "-3", "0", "123456.75"]);
        assert_eq!([text(1e300), text(5e-324), text(-1.5e-7)], ["1e300", "5e-324", "-1.5e-7"]);
    }

    #[test]
    fn what_is_no_value_of_its_kind_is_not_kept() {
        let mut cells = Cells::new();
        assert_eq!(keep(ColumnKind::Int64, b"seven", &mut cells), None);
        assert_eq!(keep(ColumnKind::Text(9), &[0xff], &mut cells), None);
        assert!(cells.is_empty());
    }

    proptest! {
        #[test]
        fn every_number_comes_back(bits: u64, whole: i64) {
            let value = f64::from_bits(bits);
            let mut cells = Cells::new();
            keep(ColumnKind::Float64, &written(|cells| cells.float(value)), &mut cells).unwrap();
            keep(ColumnKind::Int64, &written(|cells| cells.int(whole)), &mut cells).unwrap();
            prop_assert!(matches!(cells.get(0), Cell::Float(found) if found == value || (found.is_nan() && value.is_nan())));
            prop_assert_eq!(cells.get(1), Cell::Int(whole));
        }
    }
}
