//! The values of statements in a trace: as JSON in its lines, and as consecutive bytes in memory.
//!
//! Main functions: [`append_value`] and [`read`].

use serde::{Deserialize, Serialize};

use crate::record::Cells;

/// A value in the form of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// No value.
    Null(()),
    /// A whole number.
    Int(i64),
    /// A fractional number.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes, as hexadecimal digits.
    Bytes {
        /// Hexadecimal digits, two per byte.
        hex: String,
    },
}

const NULL: u8 = 0;
const INT: u8 = 1;
const FLOAT: u8 = 2;
const TEXT: u8 = 3;
const BYTES: u8 = 4;

/// Appends a value to the bytes in memory.
///
/// # Errors
/// A description of the value, where it is invalid.
pub fn append_value(value: &Value, to: &mut Vec<u8>) -> Result<(), String> {
    match value {
        Value::Null(()) => to.push(NULL),
        Value::Int(number) => {
            to.push(INT);
            to.extend_from_slice(&number.to_le_bytes());
        }
        Value::Float(number) => {
            to.push(FLOAT);
            to.extend_from_slice(&number.to_le_bytes());
        }
        Value::Text(text) => append_counted(TEXT, text.as_bytes(), to),
        Value::Bytes { hex } => {
            let bytes = bytes_of(hex).ok_or_else(|| format!("\"{hex}\" is no bytes in hexadecimal digits"))?;
            append_counted(BYTES, &bytes, to);
        }
    }
    Ok(())
}

fn append_counted(tag: u8, bytes: &[u8], to: &mut Vec<u8>) {
    to.push(tag);
    // A line, and so a value, has at most a few MiB.
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

/// Returns the bytes of hexadecimal digits.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

/// Reads `count` values, and appends them to cells. Missing values become null.
#[inline]
pub fn read(mut from: &[u8], count: u32, to: &mut Cells) {
    for _ in 0..count {
        let Some((tag, rest)) = from.split_first() else {
            to.null();
            continue;
        };
        from = rest;
        match *tag {
            INT => to.int(i64::from_le_bytes(take(&mut from))),
            FLOAT => to.float(f64::from_le_bytes(take(&mut from))),
            TEXT | BYTES => {
                let length = (u32::from_le_bytes(take(&mut from)) as usize).min(from.len());
                let (bytes, rest) = from.split_at(length);
                from = rest;
                match (*tag, std::str::from_utf8(bytes)) {
                    (TEXT, Ok(text)) => to.text(text),
                    _ => to.blob(bytes),
                }
            }
            _ => to.null(),
        }
    }
}

/// Takes the next bytes; zeros where there are none.
#[inline]
fn take<const N: usize>(from: &mut &[u8]) -> [u8; N] {
    let Some((bytes, rest)) = from.split_first_chunk::<N>() else { return [0; N] };
    *from = rest;
    *bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;

    #[test]
    fn values_come_back_as_they_went() {
        let line = r#"[null, -3, 2.5, "a'b", {"hex": "00ff"}]"#;
        let values: Vec<Value> = serde_json::from_str(line).unwrap();
        let mut bytes = Vec::new();
        values.iter().for_each(|value| append_value(value, &mut bytes).unwrap());
        let mut cells = Cells::new();
        read(&bytes, 6, &mut cells);
        assert_eq!(
            [0, 1, 2, 5].map(|place| cells.get(place)),
            [Cell::Null, Cell::Int(-3), Cell::Float(2.5), Cell::Null]
        );
        let Cell::Text(text) = cells.get(3) else { panic!("{:?}", cells.get(3)) };
        let Cell::Blob(blob) = cells.get(4) else { panic!("{:?}", cells.get(4)) };
        assert_eq!((cells.bytes_of(text), cells.bytes_of(blob)), (&b"a'b"[..], &[0, 255][..]));
        assert_eq!(serde_json::to_string(&values).unwrap(), line.replace(": ", ":").replace(", ", ","));
        assert!(append_value(&Value::Bytes { hex: "0g".to_owned() }, &mut bytes).is_err());
        assert!(append_value(&Value::Bytes { hex: "000".to_owned() }, &mut bytes).is_err());
    }
}
