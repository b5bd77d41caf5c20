//! Rows from the server, in the binary form of prepared statements. Main function: [`row`]; [`ColumnType`] is the information that it
//! needs about a column.
//!
//! Invariant: nothing here panics, whatever bytes arrive.

use super::packet::Fields;
use crate::record::Cells;

/// The number of the binary character set, which marks bytes that are not text.
const BINARY: u16 = 63;
const UNSIGNED: u16 = 32;

/// The encoding of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// An integer.
    Int {
        /// The size in bytes: 1, 2, 4 or 8.
        bytes: u8,
        /// True if the integer is unsigned.
        unsigned: bool,
    },
    /// A floating-point number of 4 bytes.
    Float,
    /// A floating-point number of 8 bytes.
    Double,
    /// A date; with a time of day if `true`.
    Date(bool),
    /// A time span.
    Time,
    /// A text, preceded by its length.
    Text,
    /// Bytes that are not text, preceded by their length.
    Blob,
    /// Always null.
    Null,
}

impl ColumnType {
    /// Returns the type in a column's definition; `None` when the definition is cut off.
    pub fn from_definition(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        for _ in 0..6 {
            fields.counted()?;
        }
        fields.number()?;
        let character_set = fields.u16()?;
        fields.u32()?;
        let kind = fields.u8()?;
        let unsigned = fields.u16()? & UNSIGNED != 0;
        let int = |bytes| ColumnType::Int { bytes, unsigned };
        Some(match kind {
            1 => int(1),
            2 | 13 => int(2),
            3 | 9 => int(4),
            8 => int(8),
            4 => ColumnType::Float,
            5 => ColumnType::Double,
            6 => ColumnType::Null,
            7 | 12 => ColumnType::Date(true),
            10 => ColumnType::Date(false),
            11 => ColumnType::Time,
            // Decimal numbers and JSON are text, whatever their character set.
            0 | 245 | 246 => ColumnType::Text,
            _ if character_set == BINARY => ColumnType::Blob,
            _ => ColumnType::Text,
        })
    }
}

/// Appends the values of a row; returns `None` when it does not match the columns.
pub fn row(payload: &[u8], columns: &[ColumnType], cells: &mut Cells) -> Option<()> {
    let mut fields = Fields(payload.get(1..)?);
    let nulls = fields.bytes((columns.len() + 9) / 8)?;
    for (place, column) in columns.iter().enumerate() {
        let bit = place + 2;
        if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            cells.null();
        } else {
            value(*column, &mut fields, cells)?;
        }
    }
    fields.0.is_empty().then_some(())
}

/// Appends the values of a row in text form, as in answers to statements that were not prepared; returns `None` when it does not match the columns.
pub fn text_row(payload: &[u8], columns: &[ColumnType], cells: &mut Cells) -> Option<()> {
    const NULL: u8 = 0xfb;
    let mut fields = Fields(payload);
    for column in columns {
        if fields.0.first() == Some(&NULL) {
            fields.u8()?;
            cells.null();
            continue;
        }
        let bytes = fields.counted()?;
        let text = std::str::from_utf8(bytes).ok();
        match (column, text) {
            (ColumnType::Blob, _) | (_, None) => cells.blob(bytes),
            (ColumnType::Int { .. }, Some(text)) => match text.parse() {
                Ok(value) => cells.int(value),
                Err(_) => cells.text(text),
            },
            (ColumnType::Float | ColumnType::Double, Some(text)) => cells.float(text.parse().ok()?),
            (_, Some(text)) => cells.text(text),
        }
    }
    fields.0.is_empty().then_some(())
}

fn value(column: ColumnType, fields: &mut Fields<'_>, cells: &mut Cells) -> Option<()> {
    match column {
        ColumnType::Int { bytes, unsigned } => whole(fields.bytes(usize::from(bytes))?, unsigned, cells),
        ColumnType::Float => cells.float(f64::from(f32::from_le_bytes(fields.array()?))),
        ColumnType::Double => cells.float(f64::from_le_bytes(fields.array()?)),
        ColumnType::Date(timed) => cells.text(&date(fields, timed)?),
        ColumnType::Time => cells.text(&time(fields)?),
        ColumnType::Text => {
            let bytes = fields.counted()?;
            match std::str::from_utf8(bytes) {
                Ok(text) => cells.text(text),
                Err(_) => cells.blob(bytes),
            }
        }
        ColumnType::Blob => cells.blob(fields.counted()?),
        ColumnType::Null => cells.null(),
    }
    Some(())
}

/// Appends an integer; an unsigned one beyond the signed range becomes text.
fn whole(bytes: &[u8], unsigned: bool, cells: &mut Cells) {
    let negative = !unsigned && bytes.last().is_some_and(|last| *last >= 0x80);
    let mut wide = if negative { [0xff; 8] } else { [0; 8] };
    wide[..bytes.len()].copy_from_slice(bytes);
    let value = i64::from_le_bytes(wide);
    if unsigned && value < 0 { cells.text(&u64::from_le_bytes(wide).to_string()) } else { cells.int(value) }
}

fn date(fields: &mut Fields<'_>, timed: bool) -> Option<String> {
    let mut parts = Fields(counted_by_byte(fields)?);
    let (mut year, mut month, mut day) = (0, 0, 0);
    if !parts.0.is_empty() {
        (year, month, day) = (parts.u16()?, parts.u8()?, parts.u8()?);
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if !timed {
        return Some(date);
    }
    let (mut hour, mut minute, mut second) = (0, 0, 0);
    if !parts.0.is_empty() {
        (hour, minute, second) = (parts.u8()?, parts.u8()?, parts.u8()?);
    }
    Some(format!("{date} {hour:02}:{minute:02}:{second:02}{}", fraction(&mut parts)?))
}

fn time(fields: &mut Fields<'_>) -> Option<String> {
    let mut parts = Fields(counted_by_byte(fields)?);
    if parts.0.is_empty() {
        return Some("00:00:00".into());
    }
    let sign = if parts.u8()? == 0 { "" } else { "-" };
    let days = u64::from(parts.u32()?);
    let hours = days * 24 + u64::from(parts.u8()?);
    let (minutes, seconds) = (parts.u8()?, parts.u8()?);
    Some(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", fraction(&mut parts)?))
}

/// Returns the remaining microseconds with their decimal point; empty for none.
fn fraction(parts: &mut Fields<'_>) -> Option<String> {
    if parts.0.is_empty() { Some(String::new()) } else { parts.u32().map(|micros| format!(".{micros:06}")) }
}

fn counted_by_byte<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let count = fields.u8()?;
    fields.bytes(usize::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn definition(kind: u8, character_set: u16, flags: u16) -> Vec<u8> {
        let mut payload = b"\x03def\x01s\x01t\x01t\x01c\x01c\x0c".to_vec();
        payload.extend_from_slice(&character_set.to_le_bytes());
        payload.extend_from_slice(&[0, 1, 0, 0, kind]);
        payload.extend_from_slice(&flags.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]);
        payload
    }

    fn read(kind: u8, character_set: u16, flags: u16, value: &[u8]) -> serde_json::Value {
        let column = ColumnType::from_definition(&definition(kind, character_set, flags)).unwrap();
        let mut cells = Cells::new();
        row(&[&[0, 0], value].concat(), &[column], &mut cells).unwrap();
        cells.to_json(cells.get(0))
    }

    #[test]
    fn every_type_is_read() {
        assert_eq!(read(1, BINARY, 0, &[0x80]), -128);
        assert_eq!(read(1, BINARY, UNSIGNED, &[0x80]), 128);
        assert_eq!(read(2, BINARY, 0, &[0, 0x80]), -32_768);
        assert_eq!(read(3, BINARY, UNSIGNED, &[255; 4]), u32::MAX);
        assert_eq!(read(8, BINARY, 0, &i64::MIN.to_le_bytes()), i64::MIN);
        assert_eq!(read(8, BINARY, UNSIGNED, &[255; 8]), "18446744073709551615");
        assert_eq!(read(4, BINARY, 0, &1.5f32.to_le_bytes()), 1.5);
        assert_eq!(read(5, BINARY, 0, &(-0.25f64).to_le_bytes()), -0.25);
        assert_eq!(read(246, BINARY, 0, b"\x051.500"), "1.500");
        assert_eq!(read(253, 45, 0, b"\x02\xc3\xa4"), "ä");
        assert_eq!(read(252, BINARY, 0, b"\x02\x00\xff"), "00ff");
        assert_eq!(read(253, 45, 0, b"\x01\xff"), "ff", "text that is none is kept as bytes");
        assert_eq!(read(10, BINARY, 0, &[4, 0xe8, 7, 2, 29]), "2024-02-29");
        assert_eq!(read(12, BINARY, 0, &[0]), "0000-00-00 00:00:00");
        assert_eq!(read(7, BINARY, 0, &[11, 0xe8, 7, 2, 29, 1, 2, 3, 5, 0, 0, 0]), "2024-02-29 01:02:03.000005");
        assert_eq!(read(11, BINARY, 0, &[8, 1, 1, 0, 0, 0, 2, 3, 4]), "-26:03:04");
        assert_eq!(read(11, BINARY, 0, &[0]), "00:00:00");
    }

    #[test]
    fn nulls_are_read_from_the_bitmap_and_misfits_are_refused() {
        let column = ColumnType::Int { bytes: 1, unsigned: false };
        let mut cells = Cells::new();
        let columns = [column; 7];
        row(&[0, 0b1000_0100, 1, 2, 3, 4, 5, 6], &columns[..6], &mut cells).ok_or(()).unwrap_err();
        cells.clear();
        row(&[0, 0b0000_0100, 0b0000_0001, 2, 3, 4, 5, 6], &columns, &mut cells).unwrap();
        let values: Vec<_> = cells.as_slice().iter().map(|cell| cells.to_json(*cell)).collect();
        assert_eq!(serde_json::json!([null, 2, 3, 4, 5, 6, null]), serde_json::Value::from(values));
        assert_eq!(row(&[0, 0], &columns, &mut cells), None);
        assert_eq!(row(&[0, 0, 1, 1], &columns[..1], &mut cells), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            kinds in proptest::collection::vec((any::<u8>(), any::<u16>(), any::<u16>()), 0..6),
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let types = kinds.iter().filter_map(|(kind, set, flags)| ColumnType::from_definition(&definition(*kind, *set, *flags)));
            let _ = row(&bytes, &types.collect::<Vec<_>>(), &mut Cells::new());
            let _ = ColumnType::from_definition(&bytes);
        }
    }
}
