//! Values of cells as values of documents, and back.
//!
//! Whole numbers of 64 bits are `long`, smaller ones `int`, other numbers `double` with all their bits, texts `string`, bytes `binData`, documents of JSON documents (`document.rs`). Null is a missing member.

use super::bson::{self, Value};
use super::document;
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};

/// The maximum characters of a wrong value that are quoted.
const SHOWN_MAX: usize = 60;

/// Appends a value as a member of a document, nothing for null; `None` where it is none of its column's kind. Numbers that are not finite are none: FerretDB hangs up on them.
#[inline]
pub(super) fn append(name: &str, kind: ColumnKind, cells: &Cells, cell: Cell, out: &mut Vec<u8>) -> Option<()> {
    match (kind, cell) {
        (_, Cell::Null) => {}
        (ColumnKind::Int16, Cell::Int(value)) => bson::int32(name, i16::try_from(value).ok()?.into(), out),
        (ColumnKind::Int32, Cell::Int(value)) => bson::int32(name, value.try_into().ok()?, out),
        (ColumnKind::Int64, Cell::Int(value)) => bson::int64(name, value, out),
        (ColumnKind::Float64, Cell::Float(value)) if value.is_finite() => bson::double(name, value, out),
        (ColumnKind::Text(_), Cell::Text(span)) => bson::text(name, cells.bytes_of(span), out),
        (ColumnKind::Json, Cell::Text(span)) => document::append(name, cells.bytes_of(span), out)?,
        (ColumnKind::Blob(_), Cell::Blob(span)) => bson::binary(name, cells.bytes_of(span), out),
        _ => return None,
    }
    Some(())
}

/// Appends the cell of this kind for a value of a document; `None` stands for a missing member.
///
/// # Errors
/// [`DatabaseError::Refused`], with nothing appended, where the value is of another kind.
#[inline]
pub(super) fn keep(kind: ColumnKind, value: Option<Value<'_>>, rows: &mut Cells) -> Result<(), DatabaseError> {
    let wrong = || no_value(kind, value);
    match (kind, value) {
        (_, None | Some(Value::Null)) => rows.null(),
        (ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64, Some(Value::Int(found))) => rows.int(found),
        (ColumnKind::Float64, Some(Value::Double(found))) => rows.float(found),
        (ColumnKind::Text(_), Some(Value::Text(found))) => {
            rows.text(std::str::from_utf8(found).map_err(|_| wrong())?);
        }
        (ColumnKind::Json, Some(found)) => {
            let mut is_json = true;
            rows.text_of(|out| is_json = document::write(found, out).is_some());
            if !is_json {
                rows.pop();
                return Err(wrong());
            }
        }
        (ColumnKind::Blob(_), Some(Value::Binary(found))) => rows.blob(found),
        _ => return Err(wrong()),
    }
    Ok(())
}

/// Appends the cell for a member of a document of JSON, in which a floating-point number without a fraction is a whole one.
///
/// # Errors
/// As of [`keep`].
pub(super) fn keep_member(kind: ColumnKind, value: Option<Value<'_>>, rows: &mut Cells) -> Result<(), DatabaseError> {
    match (kind, value) {
        (ColumnKind::Float64, Some(Value::Int(found))) => {
            rows.float(found as f64);
            Ok(())
        }
        _ => keep(kind, value, rows),
    }
}

#[cold]
fn no_value(kind: ColumnKind, value: Option<Value<'_>>) -> DatabaseError {
    let shown = match value {
        Some(Value::Text(_)) => value.and_then(|value| value.shown(SHOWN_MAX)).unwrap_or_default(),
        Some(Value::Double(number)) => number.to_string(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::Boolean(value)) => value.to_string(),
        Some(Value::Document(_)) => "a document".to_owned(),
        Some(Value::Array(_)) => "an array".to_owned(),
        Some(Value::Binary(bytes)) => format!("binary data of {} bytes", bytes.len()),
        Some(Value::Other(number)) => format!("a value of type {number:#04x}"),
        None | Some(Value::Null) => "null".to_owned(),
    };
    DatabaseError::refused("value", format!("{shown:?} is no {kind:?}"))
}

#[cfg(test)]
mod tests {
    use super::super::bson::{Document, begin, end};
    use super::*;
    use proptest::prelude::*;

    fn written(kind: ColumnKind, fill: impl FnOnce(&mut Cells)) -> Option<Vec<u8>> {
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        fill(&mut cells);
        let from = begin(&mut out);
        append("v", kind, &cells, cells.get(0), &mut out)?;
        end(from, &mut out);
        Some(out)
    }

    fn same(kind: ColumnKind, fill: impl FnOnce(&mut Cells)) -> Cells {
        let bytes = written(kind, fill).unwrap();
        let mut found = Cells::new();
        keep(kind, Document::whole(&bytes).unwrap().get("v").unwrap(), &mut found).unwrap();
        found
    }

    #[test]
    fn what_a_column_does_not_have_is_not_sent() {
        assert_eq!(written(ColumnKind::Int16, |cells| cells.int(40_000)), None);
        assert_eq!(written(ColumnKind::Int32, |cells| cells.int(1 << 31)), None);
        assert_eq!(written(ColumnKind::Int64, |cells| cells.text("7")), None);
        assert_eq!(written(ColumnKind::Float64, |cells| cells.float(f64::NAN)), None);
        assert_eq!(written(ColumnKind::Float64, |cells| cells.float(f64::INFINITY)), None);
        assert_eq!(written(ColumnKind::Float64, Cells::null), Some(vec![5, 0, 0, 0, 0]), "null is missing");
    }

    #[test]
    fn what_is_no_value_of_its_kind_is_not_kept() {
        for (kind, value) in [
            (ColumnKind::Int64, Value::Text(b"seven")),
            (ColumnKind::Int64, Value::Double(7.0)),
            (ColumnKind::Text(9), Value::Text(&[0xff])),
            (ColumnKind::Blob(9), Value::Text(b"x")),
            (ColumnKind::Float64, Value::Other(0x13)),
        ] {
            let mut cells = Cells::new();
            let told = keep(kind, Some(value), &mut cells).unwrap_err();
            assert!(told.is_refusal() && cells.is_empty(), "{told}");
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back(whole: i64, bits: u64, text in "\\PC{0,9}\0?", bytes in proptest::collection::vec(any::<u8>(), 0..9)) {
            prop_assert_eq!(same(ColumnKind::Int64, |cells| cells.int(whole)).get(0), Cell::Int(whole));
            let small = i64::from(whole as i16);
            prop_assert_eq!(same(ColumnKind::Int16, |cells| cells.int(small)).get(0), Cell::Int(small));
            let real = f64::from_bits(bits);
            if real.is_finite() {
                let found = same(ColumnKind::Float64, |cells| cells.float(real));
                prop_assert!(matches!(found.get(0), Cell::Float(found) if found.to_bits() == bits));
            }
            let found = same(ColumnKind::Text(9), |cells| cells.text(&text));
            prop_assert!(matches!(found.get(0), Cell::Text(span) if found.bytes_of(span) == text.as_bytes()));
            let found = same(ColumnKind::Blob(9), |cells| cells.blob(&bytes));
            prop_assert!(matches!(found.get(0), Cell::Blob(span) if found.bytes_of(span) == bytes));
        }
    }
}
