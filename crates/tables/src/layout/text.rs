//! Values as text, for layouts whose columns hold anything.
//!
//! Invariant: texts stand for themselves; the text of a number reads as exactly that number; bytes are hexadecimal digits.

use std::io::Write;

use crate::record::{Cell, Cells};

pub(super) use crate::quote::write_json_string as write_string;

/// Appends the text of a value of these cells to the cells; null stays null.
#[inline]
pub(super) fn repeat_as_text(cells: &mut Cells, place: usize) {
    cells.repeat(place);
    make_text(cells);
}

/// Turns the last value into a text; null stays null.
#[inline]
pub(super) fn make_text(cells: &mut Cells) {
    let Some(last) = cells.len().checked_sub(1) else { return };
    let cell = cells.get(last);
    if !matches!(cell, Cell::Null | Cell::Text(_)) {
        cells.replace_by_text(last, |cells, out| write(cell, cells, out));
    }
}

/// Writes the text of a value; nothing for a null.
pub(super) fn write(cell: Cell, cells: &Cells, out: &mut Vec<u8>) {
    // Writing into a vector cannot fail.
    let _ = match cell {
        Cell::Null => Ok(()),
        Cell::Int(value) => write!(out, "{value}"),
        Cell::Float(value) => write!(out, "{value}"),
        Cell::Text(span) => out.write_all(cells.bytes_of(span)),
        Cell::Blob(span) => cells.bytes_of(span).iter().try_for_each(|byte| write!(out, "{byte:02x}")),
    };
}

/// Writes a value as JSON; numbers that JSON cannot represent become null.
pub(super) fn write_json(cell: Cell, cells: &Cells, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Float(value) if !value.is_finite() => out.extend_from_slice(b"null"),
        Cell::Int(_) | Cell::Float(_) => write(cell, cells, out),
        Cell::Text(span) => write_string(cells.bytes_of(span), out),
        Cell::Blob(_) => {
            out.push(b'"');
            write(cell, cells, out);
            out.push(b'"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_become_texts_that_say_the_same() {
        let mut cells = Cells::new();
        cells.float(0.1 + 0.2);
        make_text(&mut cells);
        cells.int(i64::MIN);
        make_text(&mut cells);
        cells.blob(&[0, 255]);
        repeat_as_text(&mut cells, 2);
        let texts: Vec<_> = cells.as_slice().iter().map(|cell| cells.to_json(*cell)).collect();
        assert_eq!(texts, ["0.30000000000000004", "-9223372036854775808", "00ff", "00ff"]);
        assert!(matches!(cells.get(3), Cell::Text(_)) && matches!(cells.get(2), Cell::Blob(_)));
    }

    #[test]
    fn strings_are_read_back_as_they_were() {
        for text in ["", "plain", "\"\\", "a\nb\t\u{1}ä", "end\""] {
            let mut out = Vec::new();
            write_string(text.as_bytes(), &mut out);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
