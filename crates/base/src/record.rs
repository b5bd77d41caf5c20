//! Records: the data that are measured and stored. A record type has identity columns (who measured) and value columns (what
//! was measured); a [`Generator`] makes its records; [`Cells`] carries their values without an allocation per record.
//!
//! Invariant: a record is a pure function of (seed, index), so any client can make any slice of the data.

use serde::{Deserialize, Serialize};

/// The type of a column, independent of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnKind {
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 64-bit IEEE 754 number.
    Float64,
    /// UTF-8 text of at most this many characters.
    Text(u32),
    /// Bytes, at most this many.
    Blob(u32),
    /// A JSON document, in the database's own type for documents where it has one. Its value is a text.
    Json,
}

/// One column of a record type.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name, as in the table and in studies.
    pub name: String,
    /// Type.
    pub kind: ColumnKind,
    /// Whether the value of the column may be null.
    pub nullable: bool,
    /// Whether analyses use the column often: the layout `star-hot` puts it into the main table. Ignored for identity columns.
    pub hot: bool,
}

/// A record type: the columns that identify who measured, and the columns with what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordType {
    /// Name as in `record.type`.
    pub name: String,
    /// Identity columns, the same for all records of one measurement.
    pub identity: Vec<Column>,
    /// Number of leading identity columns that together make a measurement unique.
    pub identity_key: usize,
    /// The identity column that is filled in when a measurement ends, if there is one: its index in `identity`.
    pub identity_end: Option<usize>,
    /// The identity column that alone is the record's key, where records have a key of their own: its index in `identity`. It
    /// may be of any kind, for example a number or a text. Each such record is a measurement of its own, and a table of whole records
    /// needs no other key. Records without one have their number as key.
    pub key: Option<usize>,
    /// Value columns.
    pub values: Vec<Column>,
    /// The columns with the source and the time of a record; `None` where records have none.
    pub series: Option<SeriesColumns>,
}

/// The columns by which records belong to a series: their source, and their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesColumns {
    /// Index in [`RecordType::values`] of the column with the number of the source, from 1.
    pub source: usize,
    /// Index in [`RecordType::values`] of the column with the time in nanoseconds since 1970.
    pub time: usize,
    /// The records of a round, and the rounds within which a reading comes again; `None` where each comes once.
    pub again: Option<(u64, u64)>,
}

/// Makes the records of one type. Implementations are in `data/`.
///
/// Records are numbered from 0; consecutive ones belong to one measurement, as many as [`Generator::records_per_measurement`]
/// says unless measurements differ in length.
pub trait Generator: Send + Sync {
    /// The type of the records made.
    fn record_type(&self) -> &RecordType;

    /// Returns the number of consecutive records that share one identity, or the largest such number where measurements differ in length; at least 1.
    fn records_per_measurement(&self) -> u64;

    /// Appends the identity columns of a measurement, in the order of [`RecordType::identity`]. `records` is the number
    /// of its records so far, which decides the column [`RecordType::identity_end`]: it is null for 0.
    fn identity(&self, measurement: u64, records: u64, out: &mut Cells);

    /// Appends the value columns of a record, in the order of [`RecordType::values`].
    fn values(&self, record: u64, out: &mut Cells);

    /// Appends the value column with this index of a record.
    fn value(&self, record: u64, place: usize, out: &mut Cells) {
        let first = out.len();
        self.values(record, out);
        out.keep_one(first, place);
    }

    /// Returns the number of measurements whose records alternate, one of each in turn; `None` where a measurement's records follow each other.
    fn alternating(&self) -> Option<u64> {
        None
    }

    /// Returns the measurement to which a record belongs.
    fn measurement_of(&self, record: u64) -> u64 {
        record / self.records_per_measurement()
    }

    /// Returns the first record of a measurement. A measurement ends where the next one begins.
    fn first_record_of(&self, measurement: u64) -> u64 {
        measurement * self.records_per_measurement()
    }
}

/// The time stamp of the first record that a study sends to a recorder. Time stamps are made of the records' numbers, so that records are found again where
/// they were stored: they begin in November 2023 and are a millisecond apart.
const FIRST_NS: i64 = 1_700_000_000_000_000_000;
const STEP_NS: i64 = 1_000_000;

/// Returns the time stamp of a record, in nanoseconds since 1970.
pub fn time_of_number(number: u64) -> i64 {
    FIRST_NS.saturating_add((number as i64).saturating_mul(STEP_NS))
}

/// Returns the number of the record with this time stamp; `None` for a time stamp that was not made of a number.
pub fn number_of_time(time_ns: i64) -> Option<u64> {
    let since_ns = time_ns.checked_sub(FIRST_NS)?;
    if since_ns % STEP_NS == 0 { u64::try_from(since_ns / STEP_NS).ok() } else { None }
}

/// One value. Text and bytes live in the [`Cells`] that the cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A whole number of any width.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// UTF-8 text.
    Text(Span),
    /// Bytes.
    Blob(Span),
}

/// A range of the bytes of a [`Cells`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    length: u32,
}

/// A flat list of values with the bytes of their texts; cleared and filled again for every operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cells {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    /// Buffer of [`Cells::replace_by_text`]; empty otherwise.
    scratch: Vec<u8>,
}

impl Cells {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns the number of bytes of all texts and blobs.
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the list has no value.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Appends a null.
    #[inline]
    pub fn null(&mut self) {
        self.cells.push(Cell::Null);
    }

    /// Appends a whole number.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.cells.push(Cell::Int(value));
    }

    /// Appends a floating-point number.
    #[inline]
    pub fn float(&mut self, value: f64) {
        self.cells.push(Cell::Float(value));
    }

    /// Appends a value that has no bytes of its own; a text or blob, which belongs to another list, becomes a null.
    #[inline]
    pub fn plain(&mut self, cell: Cell) {
        self.cells.push(match cell {
            Cell::Text(_) | Cell::Blob(_) => Cell::Null,
            plain => plain,
        });
    }

    /// Appends text.
    #[inline]
    pub fn text(&mut self, value: &str) {
        let span = self.keep(value.as_bytes());
        self.cells.push(Cell::Text(span));
    }

    /// Appends bytes.
    #[inline]
    pub fn blob(&mut self, value: &[u8]) {
        let span = self.keep(value);
        self.cells.push(Cell::Blob(span));
    }

    /// Appends text of the given length in bytes, made in place by `fill`, which must leave valid UTF-8 there.
    /// Bytes start as spaces. Text that is not UTF-8 afterwards becomes a run of `?`.
    pub fn text_with(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        self.bytes.resize(start + length, b' ');
        fill(&mut self.bytes[start..]);
        // Most text is ASCII, which is found out sixteen bytes at a time.
        if !self.bytes[start..].is_ascii() && std::str::from_utf8(&self.bytes[start..]).is_err() {
            self.bytes[start..].fill(b'?');
        }
        self.cells.push(Cell::Text(Span { start: start as u32, length: length as u32 }));
    }

    /// Appends text that `write` appends to the bytes. Text that is not UTF-8 becomes a run of `?`.
    pub fn text_of(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let own = self.bytes.get_mut(start..).unwrap_or_default();
        if !own.is_ascii() && std::str::from_utf8(own).is_err() {
            own.fill(b'?');
        }
        let length = own.len() as u32;
        self.cells.push(Cell::Text(Span { start: start as u32, length }));
    }

    /// Appends bytes of the given length, made in place by `fill`; they start as zeros.
    pub fn blob_with(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        self.bytes.resize(start + length, 0);
        fill(&mut self.bytes[start..]);
        self.cells.push(Cell::Blob(Span { start: start as u32, length: length as u32 }));
    }

    /// Appends a copy of a cell that belongs to `other`.
    pub fn copy_from(&mut self, other: &Cells, cell: Cell) {
        match cell {
            Cell::Text(span) => self.text(std::str::from_utf8(other.bytes_of(span)).unwrap_or("?")),
            Cell::Blob(span) => self.blob(other.bytes_of(span)),
            plain => self.cells.push(plain),
        }
    }

    /// Appends all values of another list, with their bytes.
    pub fn append(&mut self, other: &Cells) {
        let shift = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |span: Span| Span { start: span.start + shift, length: span.length };
        self.cells.extend(other.cells.iter().map(|cell| match *cell {
            Cell::Text(span) => Cell::Text(moved(span)),
            Cell::Blob(span) => Cell::Blob(moved(span)),
            plain => plain,
        }));
    }

    /// Removes all values after the first `length`; their bytes stay until the list is cleared.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.cells.truncate(length);
    }

    /// Of the values from `first` on, keeps only the one at `place` among them, which is then at `first`.
    #[inline]
    pub fn keep_one(&mut self, first: usize, place: usize) {
        let kept = self.get(first + place);
        self.cells.truncate(first);
        self.cells.push(kept);
    }

    /// Appends a copy of the value at a place.
    pub fn again(&mut self, place: usize) {
        self.cells.push(self.get(place));
    }

    /// Removes the last value; its bytes stay.
    pub fn pop(&mut self) -> Option<Cell> {
        self.cells.pop()
    }

    /// Replaces a value by one that has no bytes of its own; does nothing after the end.
    #[inline]
    pub fn replace(&mut self, index: usize, cell: Cell) {
        if let Some(place) = self.cells.get_mut(index) {
            *place = cell;
        }
    }

    /// Replaces a value by a copy of one that belongs to `other`; does nothing after the end.
    pub fn replace_from(&mut self, index: usize, other: &Cells, cell: Cell) {
        let cell = match cell {
            Cell::Text(span) => Cell::Text(self.keep(other.bytes_of(span))),
            Cell::Blob(span) => Cell::Blob(self.keep(other.bytes_of(span))),
            plain => plain,
        };
        self.replace(index, cell);
    }

    /// Removes the value at a place; the values after it move up. Does nothing after the end.
    #[inline]
    pub fn remove(&mut self, index: usize) {
        if index < self.cells.len() {
            self.cells.remove(index);
        }
    }

    /// Exchanges two values; does nothing when one is after the end.
    pub fn exchange(&mut self, a: usize, b: usize) {
        if a.max(b) < self.cells.len() {
            self.cells.swap(a, b);
        }
    }

    /// Replaces the values from `first` on by one text that `write` makes of them. Text that is not UTF-8 becomes a run of `?`.
    pub fn replace_by_text(&mut self, first: usize, write: impl FnOnce(&Cells, &mut Vec<u8>)) {
        let mut made = std::mem::take(&mut self.scratch);
        write(self, &mut made);
        if std::str::from_utf8(&made).is_err() {
            made.fill(b'?');
        }
        let span = self.keep(&made);
        self.cells.truncate(first);
        self.cells.push(Cell::Text(span));
        made.clear();
        self.scratch = made;
    }

    /// Replaces the values from `first` on by one byte string that `write` makes of them.
    pub fn replace_by_blob(&mut self, first: usize, write: impl FnOnce(&Cells, &mut Vec<u8>)) {
        let mut made = std::mem::take(&mut self.scratch);
        write(self, &mut made);
        let span = self.keep(&made);
        self.cells.truncate(first);
        self.cells.push(Cell::Blob(span));
        made.clear();
        self.scratch = made;
    }

    /// Appends the value at a place again, without copying its bytes; null after the end.
    #[inline]
    pub fn repeat(&mut self, index: usize) {
        self.cells.push(self.get(index));
    }

    /// Returns the value at a place; null after the end.
    #[inline]
    pub fn get(&self, index: usize) -> Cell {
        self.cells.get(index).copied().unwrap_or(Cell::Null)
    }

    /// Returns all values in order.
    #[inline]
    pub fn as_slice(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the bytes of a text or blob cell of this list.
    #[inline]
    pub fn bytes_of(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..(span.start + span.length) as usize]
    }

    /// Returns a value as an owned [`serde_json::Value`]; bytes become a hexadecimal string.
    pub fn to_json(&self, cell: Cell) -> serde_json::Value {
        match cell {
            Cell::Null => serde_json::Value::Null,
            Cell::Int(value) => value.into(),
            Cell::Float(value) => value.into(),
            Cell::Text(span) => String::from_utf8_lossy(self.bytes_of(span)).into_owned().into(),
            Cell::Blob(span) => self.bytes_of(span).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
        }
    }

    fn keep(&mut self, value: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        debug_assert!(self.bytes.len() <= u32::MAX as usize, "the texts of one operation exceed 4 GiB");
        Span { start: start as u32, length: value.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_texts_apart_and_forget_them_when_cleared() {
        let mut cells = Cells::new();
        cells.text("päivä");
        cells.blob(&[0, 255]);
        cells.text_with(3, |bytes| bytes.copy_from_slice(b"abc"));
        let texts: Vec<_> = cells.as_slice().iter().map(|cell| cells.to_json(*cell)).collect();
        assert_eq!(texts, ["päivä", "00ff", "abc"]);
        cells.repeat(0);
        assert_eq!(cells.to_json(cells.get(3)), "päivä");
        let mut joined = Cells::new();
        joined.text("a");
        joined.append(&cells);
        assert_eq!(joined.to_json(joined.get(1)), "päivä");
        cells.keep_one(1, 1);
        assert_eq!((cells.len(), cells.to_json(cells.get(1))), (2, "abc".into()));
        cells.clear();
        assert_eq!(cells.get(0), Cell::Null);
    }
}
