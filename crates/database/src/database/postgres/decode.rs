//! Values from the server, for requests whose rows are kept. Main type: [`Decoding`].
//!
//! Invariant: [`append_row`] appends exactly as many values as the row has columns; otherwise it returns `None`, and its values do not count.

use super::encode::{Encoding, JSONB_VERSION};
use super::message::{take_i16, take_value};
use crate::record::Cells;

/// The format in which a column is requested, and the conversion of its values. Types without an encoding of their own come
/// as text and remain text.
pub type Decoding = Encoding;

/// Appends the values of a DataRow; returns `None` when the row is malformed.
pub fn append_row(columns: &[Decoding], mut body: &[u8], cells: &mut Cells) -> Option<()> {
    let count = usize::try_from(take_i16(&mut body)?).ok()?;
    if count != columns.len() {
        return None;
    }
    for column in columns {
        match take_value(&mut body)? {
            None => cells.null(),
            Some(value) => append(*column, value, cells)?,
        }
    }
    body.is_empty().then_some(())
}

/// Appends the values of a DataRow in text form; returns `None` when the row is malformed.
pub fn append_text_row(columns: &[Decoding], mut body: &[u8], cells: &mut Cells) -> Option<()> {
    let count = usize::try_from(take_i16(&mut body)?).ok()?;
    if count != columns.len() {
        return None;
    }
    for column in columns {
        match take_value(&mut body)? {
            None => cells.null(),
            Some(value) => append_text(*column, std::str::from_utf8(value).ok()?, cells)?,
        }
    }
    body.is_empty().then_some(())
}

fn append_text(column: Decoding, text: &str, cells: &mut Cells) -> Option<()> {
    match column {
        Decoding::Bool => cells.int(i64::from(text == "t")),
        Decoding::Int2 | Decoding::Int4 | Decoding::Int8 => cells.int(text.parse().ok()?),
        Decoding::Float4 | Decoding::Float8 => cells.float(text.parse().ok()?),
        Decoding::Bytes => {
            let digits = text.strip_prefix("\\x")?.as_bytes();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            cells.blob(&digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?);
        }
        Decoding::Jsonb | Decoding::Text | Decoding::Written => cells.text(text),
    }
    Some(())
}

fn append(column: Decoding, value: &[u8], cells: &mut Cells) -> Option<()> {
    match column {
        Decoding::Bool => cells.int(i64::from(u8::from_be_bytes(value.try_into().ok()?))),
        Decoding::Int2 => cells.int(i64::from(i16::from_be_bytes(value.try_into().ok()?))),
        Decoding::Int4 => cells.int(i64::from(i32::from_be_bytes(value.try_into().ok()?))),
        Decoding::Int8 => cells.int(i64::from_be_bytes(value.try_into().ok()?)),
        Decoding::Float4 => cells.float(f64::from(f32::from_be_bytes(value.try_into().ok()?))),
        Decoding::Float8 => cells.float(f64::from_be_bytes(value.try_into().ok()?)),
        Decoding::Bytes => cells.blob(value),
        Decoding::Jsonb => cells.text(std::str::from_utf8(value.strip_prefix(&[JSONB_VERSION])?).ok()?),
        Decoding::Text | Decoding::Written => match std::str::from_utf8(value) {
            Ok(text) => cells.text(text),
            Err(_) => cells.blob(value),
        },
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;
    use proptest::prelude::*;

    const ALL: [Decoding; 9] = [
        Decoding::Bool,
        Decoding::Int2,
        Decoding::Int4,
        Decoding::Int8,
        Decoding::Float4,
        Decoding::Float8,
        Decoding::Text,
        Decoding::Bytes,
        Decoding::Written,
    ];

    #[test]
    fn every_form_comes_back_as_it_went() {
        let mut sent = Cells::new();
        for value in [1, -2, 3 << 20, i64::MIN] {
            sent.int(value);
        }
        sent.float(0.5);
        sent.float(-0.1);
        sent.text("päivä");
        sent.blob(&[0, 255]);
        sent.text("1.50");
        let mut body = 9_i16.to_be_bytes().to_vec();
        for (column, cell) in ALL.iter().zip(sent.as_slice()) {
            column.encode(*cell, &sent, &mut body).unwrap();
        }
        let mut received = Cells::new();
        append_row(&ALL, &body, &mut received).unwrap();
        assert_eq!(received, sent);
    }

    #[test]
    fn null_stays_null_and_a_row_of_another_shape_is_malformed() {
        let mut cells = Cells::new();
        append_row(&[Decoding::Int4], &[0, 1, 255, 255, 255, 255], &mut cells).unwrap();
        assert_eq!(cells.as_slice(), [Cell::Null]);
        for body in [&[0, 2, 255, 255, 255, 255][..], &[0, 1, 0, 0, 0, 2, 0, 0], &[0, 1, 0, 0, 0, 9], &[0], &[]] {
            assert_eq!(append_row(&[Decoding::Int4], body, &mut cells), None, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_rows_never_panic(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            append_row(&ALL[..3], &body, &mut Cells::new());
        }
    }
}
