//! Values to the server: the commands that execute a prepared statement, for one row or many. Main type: [`Bound`], a
//! prepared statement with the types that its parameters were last bound with.
//!
//! Invariant: in the steady state nothing is allocated beyond the bytes to send, and types are sent only when they change.

use super::decode::ColumnType;
use super::packet;
use crate::record::{Cell, Cells, ColumnKind};

const EXECUTE: u8 = 0x17;
const BULK_EXECUTE: u8 = 0xfa;
/// The flag of a bulk execution that states the types of the parameters in front of the rows.
const BULK_WITH_TYPES: u16 = 128;
/// The indicator in front of each value of a bulk execution.
const PRESENT: u8 = 0;
const ABSENT: u8 = 1;

const DOUBLE: u8 = 5;
const NULL: u8 = 6;
const LONGLONG: u8 = 8;
const BLOB: u8 = 252;
const VAR_STRING: u8 = 253;

/// A prepared statement of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The server's number of the statement.
    pub id: u32,
    /// The number of rows of values that it takes.
    pub rows: u32,
    /// The columns of its answer's rows, as far as they are known.
    pub answer: Vec<ColumnType>,
    types: Box<[u8]>,
    types_known: bool,
}

impl Bound {
    /// Creates a statement with parameters of these kinds; `None` where the kind is known only from the value.
    pub fn new(id: u32, rows: u32, answer: Vec<ColumnType>, kinds: impl Iterator<Item = Option<ColumnKind>>) -> Self {
        Bound { id, rows, answer, types: kinds.map(type_of_kind).collect(), types_known: false }
    }

    /// Has the types sent again with the next values, since the server may not have them.
    pub fn forget_types(&mut self) {
        self.types_known = false;
    }

    /// Appends the command that executes the statement with the cells from `first` on.
    #[inline]
    pub fn execute(&mut self, cells: &Cells, first: usize, out: &mut Vec<u8>) {
        let at = out.len();
        // After the header: no cursor, one iteration.
        let mut head = [0; 14];
        head[4] = EXECUTE;
        head[5..9].copy_from_slice(&self.id.to_le_bytes());
        head[10] = 1;
        out.extend_from_slice(&head);
        let count = self.types.len();
        if count > 0 {
            let bitmap = out.len();
            out.resize(bitmap + count.div_ceil(8), 0);
            let changed = self.adopt_types(cells, first) || !self.types_known;
            out.push(u8::from(changed));
            if changed {
                self.types_known = true;
                out.extend(self.types.iter().flat_map(|kind| [*kind, 0]));
            }
            for place in 0..count {
                match cells.get(first + place) {
                    Cell::Null => out[bitmap + place / 8] |= 1 << (place % 8),
                    Cell::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
                    Cell::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
                    Cell::Text(span) | Cell::Blob(span) => {
                        let bytes = cells.bytes_of(span);
                        packet::length(out, bytes.len());
                        out.extend_from_slice(bytes);
                    }
                }
            }
        }
        packet::end(out, at, 0);
    }

    /// Appends the command that executes the statement with up to `rows` rows of cells from `first` on. Returns the number of rows
    /// taken: at least 1, and as many as keep the message within `bytes_max` and have the same types as the first row.
    pub fn execute_bulk(&mut self, cells: &Cells, first: usize, rows: u32, bytes_max: usize, out: &mut Vec<u8>) -> u32 {
        let count = self.types.len();
        self.adopt_types(cells, first);
        self.types_known = false;
        let at = packet::begin(out);
        out.push(BULK_EXECUTE);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&BULK_WITH_TYPES.to_le_bytes());
        out.extend(self.types.iter().flat_map(|kind| [*kind, 0]));
        let mut taken = 0;
        while taken < rows {
            let row_at = out.len();
            let same_types = self.bulk_row(cells, first + taken as usize * count, out);
            if taken > 0 && (!same_types || out.len() - at > bytes_max) {
                out.truncate(row_at);
                break;
            }
            taken += 1;
        }
        packet::end(out, at, 0);
        taken
    }

    /// Appends a row of a bulk execution. Returns whether its values have the bound types.
    #[inline]
    fn bulk_row(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> bool {
        out.reserve(self.types.len() * 9);
        let mut same = true;
        for (place, bound) in self.types.iter().enumerate() {
            let cell = cells.get(first + place);
            same &= type_of(cell).is_none_or(|kind| kind == *bound);
            match cell {
                Cell::Null => out.push(ABSENT),
                Cell::Int(value) => out.extend_from_slice(&present(value.to_le_bytes())),
                Cell::Float(value) => out.extend_from_slice(&present(value.to_le_bytes())),
                Cell::Text(span) | Cell::Blob(span) => {
                    let bytes = cells.bytes_of(span);
                    out.push(PRESENT);
                    packet::length(out, bytes.len());
                    out.extend_from_slice(bytes);
                }
            }
        }
        same
    }

    /// Stores the types of the values; a null leaves its type unchanged. Returns whether one changed.
    #[inline]
    fn adopt_types(&mut self, cells: &Cells, first: usize) -> bool {
        let mut changed = false;
        for (place, bound) in self.types.iter_mut().enumerate() {
            if let Some(kind) = type_of(cells.get(first + place)).filter(|kind| kind != bound) {
                *bound = kind;
                changed = true;
            }
        }
        changed
    }
}

#[inline]
fn present(value: [u8; 8]) -> [u8; 9] {
    let mut bytes = [PRESENT; 9];
    bytes[1..].copy_from_slice(&value);
    bytes
}

#[inline]
fn type_of(cell: Cell) -> Option<u8> {
    match cell {
        Cell::Null => None,
        Cell::Int(_) => Some(LONGLONG),
        Cell::Float(_) => Some(DOUBLE),
        Cell::Text(_) => Some(VAR_STRING),
        Cell::Blob(_) => Some(BLOB),
    }
}

fn type_of_kind(kind: Option<ColumnKind>) -> u8 {
    match kind {
        None => NULL,
        Some(ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64) => LONGLONG,
        Some(ColumnKind::Float64) => DOUBLE,
        Some(ColumnKind::Text(_) | ColumnKind::Json) => VAR_STRING,
        Some(ColumnKind::Blob(_)) => BLOB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(kinds: &[Option<ColumnKind>]) -> Bound {
        Bound::new(9, 1, Vec::new(), kinds.iter().copied())
    }

    fn executed(statement: &mut Bound, cells: &Cells) -> Vec<u8> {
        let mut out = Vec::new();
        statement.execute(cells, 0, &mut out);
        assert_eq!(out[..4], [out.len() as u8 - 4, 0, 0, 0]);
        assert_eq!(out[4..14], [EXECUTE, 9, 0, 0, 0, 0, 1, 0, 0, 0]);
        out.split_off(14)
    }

    #[test]
    fn types_travel_once_and_again_when_they_change() {
        let mut statement = bound(&[Some(ColumnKind::Int16), None]);
        let mut cells = Cells::new();
        cells.int(-2);
        cells.text("ab");
        let value = [0xfe, 255, 255, 255, 255, 255, 255, 255, 2, b'a', b'b'];
        assert_eq!(executed(&mut statement, &cells), [&[0, 1, LONGLONG, 0, VAR_STRING, 0][..], &value].concat());
        assert_eq!(executed(&mut statement, &cells), [&[0, 0][..], &value].concat());
        statement.forget_types();
        assert_eq!(executed(&mut statement, &cells)[1], 1);
        cells.clear();
        cells.null();
        cells.null();
        assert_eq!(executed(&mut statement, &cells), [3, 0], "nulls keep the types");
        cells.clear();
        cells.float(1.0);
        cells.blob(&[]);
        let again = executed(&mut statement, &cells);
        assert_eq!(again, [0, 1, DOUBLE, 0, BLOB, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0]);
    }

    #[test]
    fn a_statement_without_parameters_is_bare_and_missing_values_are_null() {
        let mut statement = bound(&[]);
        assert!(executed(&mut statement, &Cells::new()).is_empty());
        let mut statement = bound(&[None; 9]);
        assert_eq!(executed(&mut statement, &Cells::new())[..3], [255, 1, 1]);
    }

    #[test]
    fn a_bulk_ends_at_its_bound_and_where_types_change_and_takes_at_least_a_row() {
        let mut cells = Cells::new();
        for row in 0..10 {
            cells.int(row);
            if row % 2 == 0 { cells.null() } else { cells.text("x") }
        }
        cells.float(0.5);
        cells.null();
        let mut statement = bound(&[Some(ColumnKind::Int64), Some(ColumnKind::Text(9))]);
        let mut out = Vec::new();
        assert_eq!(statement.execute_bulk(&cells, 0, 11, 1 << 20, &mut out), 10, "the float is for the next");
        assert_eq!(out[4..15], [BULK_EXECUTE, 9, 0, 0, 0, 128, 0, LONGLONG, 0, VAR_STRING, 0]);
        assert_eq!(out[15..25], [0, 0, 0, 0, 0, 0, 0, 0, 0, ABSENT]);
        assert_eq!(out.len(), 15 + 5 * 10 + 5 * 12);
        out.clear();
        assert_eq!(statement.execute_bulk(&cells, 20, 1, 1 << 20, &mut out), 1);
        assert_eq!(out[11], DOUBLE);
        out.clear();
        assert_eq!(statement.execute_bulk(&cells, 0, 10, 0, &mut out), 1);
        out.clear();
        assert_eq!(statement.execute_bulk(&cells, 0, 10, 15 + 10 + 12, &mut out), 2);
    }
}
