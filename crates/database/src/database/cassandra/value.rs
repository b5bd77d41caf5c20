//! Conversion of values to the bytes of the protocol, and back.
//!
//! Numbers are big-endian, texts and bytes are stored as they are. A null is a value without bytes; in an insert it is a value that is not set, so that the server stores
//! nothing for it, no mark of a deletion either.

use super::frame::{broken, long_bytes};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};

/// The length that stands for null.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// The length that stands for a value that is not set.
const UNSET: [u8; 4] = (-2_i32).to_be_bytes();

/// What a null in a statement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// The column becomes null.
    Null,
    /// The column is left alone.
    Unset,
}

/// Returns the name of the type of a column.
pub(super) fn type_of(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Int16 => "smallint",
        ColumnKind::Int32 => "int",
        ColumnKind::Int64 => "bigint",
        ColumnKind::Float64 => "double",
        ColumnKind::Text(_) | ColumnKind::Json => "text",
        ColumnKind::Blob(_) => "blob",
    }
}

/// Returns the number of that type in the protocol.
pub(super) fn type_number(kind: ColumnKind) -> u16 {
    match kind {
        ColumnKind::Int16 => 0x0013,
        ColumnKind::Int32 => 0x0009,
        ColumnKind::Int64 => 0x0002,
        ColumnKind::Float64 => 0x0007,
        ColumnKind::Text(_) | ColumnKind::Json => 0x000d,
        ColumnKind::Blob(_) => 0x0003,
    }
}

/// Appends a whole number as a value.
pub(super) fn append_bigint(value: i64, out: &mut Vec<u8>) {
    long_bytes(&value.to_be_bytes(), out);
}

/// Appends a value of this kind. Returns `None`, and appends nothing, where it is no value of the kind.
#[inline]
pub(super) fn append(kind: ColumnKind, cells: &Cells, cell: Cell, absent: Absent, out: &mut Vec<u8>) -> Option<()> {
    match (kind, cell) {
        (_, Cell::Null) if absent == Absent::Null => out.extend_from_slice(&NULL),
        (_, Cell::Null) => out.extend_from_slice(&UNSET),
        (ColumnKind::Int64, Cell::Int(value)) => append_bigint(value, out),
        (ColumnKind::Int32, Cell::Int(value)) => long_bytes(&i32::try_from(value).ok()?.to_be_bytes(), out),
        (ColumnKind::Int16, Cell::Int(value)) => long_bytes(&i16::try_from(value).ok()?.to_be_bytes(), out),
        (ColumnKind::Float64, Cell::Float(value)) => long_bytes(&value.to_be_bytes(), out),
        (ColumnKind::Float64, Cell::Int(value)) => long_bytes(&(value as f64).to_be_bytes(), out),
        (ColumnKind::Text(_) | ColumnKind::Json | ColumnKind::Blob(_), Cell::Text(span) | Cell::Blob(span)) => {
            long_bytes(cells.bytes_of(span), out);
        }
        _ => return None,
    }
    Some(())
}

/// Checks that bytes are a value of this kind.
///
/// # Errors
/// [`DatabaseError::Lost`] where they are none.
pub(super) fn check(kind: ColumnKind, bytes: Option<&[u8]>) -> Result<(), DatabaseError> {
    let Some(bytes) = bytes else { return Ok(()) };
    let is_right = match kind {
        ColumnKind::Int16 => bytes.len() == 2,
        ColumnKind::Int32 => bytes.len() == 4,
        ColumnKind::Int64 | ColumnKind::Float64 => bytes.len() == 8,
        ColumnKind::Text(_) | ColumnKind::Json | ColumnKind::Blob(_) => true,
    };
    if is_right { Ok(()) } else { Err(broken("sends a value that is none of its column's type")) }
}

/// Appends the value of this kind from its bytes.
///
/// # Errors
/// [`DatabaseError::Lost`], with nothing appended, where they are no value of the kind.
pub(super) fn keep(kind: ColumnKind, bytes: Option<&[u8]>, rows: &mut Cells) -> Result<(), DatabaseError> {
    let Some(bytes) = bytes else {
        rows.null();
        return Ok(());
    };
    let wrong = || broken("sends a value that is none of its column's type");
    match kind {
        ColumnKind::Int16 => rows.int(i16::from_be_bytes(bytes.try_into().map_err(|_| wrong())?).into()),
        ColumnKind::Int32 => rows.int(i32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?).into()),
        ColumnKind::Int64 => rows.int(i64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        ColumnKind::Float64 => rows.float(f64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        ColumnKind::Text(_) | ColumnKind::Json => rows.text(std::str::from_utf8(bytes).map_err(|_| wrong())?),
        ColumnKind::Blob(_) => rows.blob(bytes),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::frame::Body;
    use super::*;
    use proptest::prelude::*;

    const KINDS: [ColumnKind; 7] = [
        ColumnKind::Int16,
        ColumnKind::Int32,
        ColumnKind::Int64,
        ColumnKind::Float64,
        ColumnKind::Text(9),
        ColumnKind::Json,
        ColumnKind::Blob(9),
    ];

    fn written(kind: ColumnKind, absent: Absent, fill: impl FnOnce(&mut Cells)) -> Option<Vec<u8>> {
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        fill(&mut cells);
        append(kind, &cells, cells.get(0), absent, &mut out).map(|()| out)
    }

    #[test]
    fn a_null_is_stored_only_where_it_replaces_something() {
        for kind in KINDS {
            assert_eq!(written(kind, Absent::Null, Cells::null).unwrap(), NULL);
            assert_eq!(written(kind, Absent::Unset, Cells::null).unwrap(), UNSET);
        }
    }

    #[test]
    fn what_a_column_cannot_have_is_not_sent() {
        assert_eq!(written(ColumnKind::Int16, Absent::Null, |cells| cells.int(40_000)), None);
        assert_eq!(written(ColumnKind::Int32, Absent::Null, |cells| cells.int(1 << 31)), None);
        assert_eq!(written(ColumnKind::Int64, Absent::Null, |cells| cells.text("7")), None);
        assert_eq!(written(ColumnKind::Text(9), Absent::Null, |cells| cells.int(7)), None);
    }

    proptest! {
        #[test]
        fn every_value_comes_back(whole: i64, bits: u64, text in "\\PC{0,9}") {
            let real = f64::from_bits(bits);
            let same = |kind, fill: &dyn Fn(&mut Cells)| {
                let bytes = written(kind, Absent::Null, fill).unwrap();
                let mut body = Body(&bytes);
                let mut found = Cells::new();
                keep(kind, body.value().unwrap(), &mut found).unwrap();
                body.end().unwrap();
                found
            };
            prop_assert_eq!(same(ColumnKind::Int64, &|cells| cells.int(whole)).get(0), Cell::Int(whole));
            let small = i64::from(whole as i16);
            prop_assert_eq!(same(ColumnKind::Int16, &|cells| cells.int(small)).get(0), Cell::Int(small));
            prop_assert_eq!(same(ColumnKind::Int32, &|cells| cells.int(small)).get(0), Cell::Int(small));
            let found = same(ColumnKind::Float64, &|cells| cells.float(real));
            prop_assert!(matches!(found.get(0), Cell::Float(found) if found.to_bits() == bits || (found.is_nan() && real.is_nan())));
            let found = same(ColumnKind::Text(9), &|cells| cells.text(&text));
            prop_assert!(matches!(found.get(0), Cell::Text(span) if found.bytes_of(span) == text.as_bytes()));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            for kind in KINDS {
                let mut cells = Cells::new();
                let outcome = keep(kind, Some(&bytes), &mut cells);
                prop_assert_eq!(cells.len(), usize::from(outcome.is_ok()));
            }
        }
    }
}
