//! The content of a message: rows of values.
//!
//! ```text
//! rows: u32   values of a row: u32   then each value: its kind (one byte) and, little-endian,
//!     0 null   1 whole number: i64   2 number: f64   3 text   4 bytes: length u32, and as many bytes
//! ```
//!
//! Main functions: [`encode`] and [`decode`], inverse to each other.

use crate::record::{Cell, Cells};

/// Appends rows whose values begin at `first` among the cells.
pub fn encode(cells: &Cells, first: usize, rows: u32, width: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&rows.to_le_bytes());
    out.extend_from_slice(&width.to_le_bytes());
    for place in first..first + rows as usize * width as usize {
        match cells.get(place) {
            Cell::Null => out.push(0),
            Cell::Int(value) => {
                out.push(1);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Cell::Float(value) => {
                out.push(2);
                out.extend_from_slice(&value.to_le_bytes());
            }
            cell @ (Cell::Text(span) | Cell::Blob(span)) => {
                let bytes = cells.bytes_of(span);
                out.push(if matches!(cell, Cell::Text(_)) { 3 } else { 4 });
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Appends the values of a message to cells. Returns the number of rows and the number of values of each; `None` when the message is damaged, and
/// the values appended until then are of no use.
pub fn decode(mut message: &[u8], out: &mut Cells) -> Option<(u32, u32)> {
    let bytes = &mut message;
    let (rows, width) = (u32::from_le_bytes(take(bytes)?), u32::from_le_bytes(take(bytes)?));
    for _ in 0..u64::from(rows) * u64::from(width) {
        let [kind] = take(bytes)?;
        match kind {
            0 => out.null(),
            1 => out.int(i64::from_le_bytes(take(bytes)?)),
            2 => out.float(f64::from_le_bytes(take(bytes)?)),
            3 | 4 => {
                let length = u32::from_le_bytes(take(bytes)?) as usize;
                let (text, rest) = bytes.split_at_checked(length)?;
                *bytes = rest;
                if kind == 3 { out.text(std::str::from_utf8(text).ok()?) } else { out.blob(text) }
            }
            _ => return None,
        }
    }
    bytes.is_empty().then_some((rows, width))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_encoded_is_decoded_and_what_was_cut_is_not() {
        let mut cells = Cells::new();
        cells.int(99);
        for _ in 0..2 {
            cells.int(-7);
            cells.float(0.25);
            cells.text("päivä");
            cells.blob(&[0, 255]);
            cells.null();
        }
        let mut message = Vec::new();
        encode(&cells, 1, 2, 5, &mut message);
        let mut decoded = Cells::new();
        assert_eq!(decode(&message, &mut decoded), Some((2, 5)));
        let json = |cells: &Cells, first: usize| -> Vec<_> {
            (first..first + 10).map(|n| cells.to_json(cells.get(n))).collect()
        };
        assert_eq!(json(&decoded, 0), json(&cells, 1));
        for length in 0..message.len() {
            assert_eq!(decode(&message[..length], &mut Cells::new()), None, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let few: Vec<u8> = [&[2, 0, 0, 0, 3, 0, 0, 0], &bytes[..]].concat();
            decode(&few, &mut Cells::new());
        }
    }
}
