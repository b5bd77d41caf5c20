//! Rows that the server numbers: the entries of a stream under the key `table:rows`, whose ids are `0-1`, `0-2` and so on.
//!
//! Main types: [`Reading`], the query for entries, and [`Entries`], which takes in the answer. Invariant: no more entries and no more values are taken in than were asked for.

use super::key::stream_of;
use super::reply::{Part, bulk, number, out_of_step};
use super::value;
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{Comparison, Limit, Select, Table, TableColumn};

/// The query for the entries behind a number in their order, or for the latest ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The key of the stream.
    key: Vec<u8>,
    /// The columns that are read besides the number, which is the first value of a row; in the order of the table.
    columns: Vec<TableColumn>,
    /// Whether the latest entries are read, the last one first.
    is_of_latest: bool,
    /// The maximum number of entries.
    most: u32,
}

impl Reading {
    /// Returns the query for a statement.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that is no such query.
    pub(super) fn of(select: &Select, table: &Table) -> Result<Self, DatabaseError> {
        let why = "of rows that it numbers it reads those behind a number, or the latest ones, in their order";
        let refused = |why: &str| DatabaseError::refused("redis", why);
        let [key] = &table.primary_key[..] else { return Err(refused(why)) };
        let is_behind = match &select.conditions[..] {
            [] => false,
            [one] if one.column.column == *key && one.comparison == Comparison::Greater => true,
            _ => return Err(refused(why)),
        };
        let is_in_order = matches!(&select.order[..], [(by, falls)] if by.column == *key && *falls != is_behind);
        let is_plain = select.joins.is_empty() && select.window.is_none() && !select.for_update;
        let most = match select.limit {
            Some(Limit::Fixed(most)) if is_in_order && is_plain => u32::try_from(most).map_err(|_| refused(why))?,
            _ => return Err(refused(why)),
        };
        let [number, others @ ..] = &select.columns[..] else { return Err(refused(why)) };
        let mut left = table.columns.iter();
        let mut column = |name: &str| left.by_ref().find(|column| column.name == name).cloned();
        let columns: Option<Vec<TableColumn>> = others.iter().map(|wanted| column(&wanted.column)).collect();
        let columns = columns.filter(|_| number.column == *key).ok_or_else(|| refused(why))?;
        let key = stream_of(&table.name).into_bytes();
        Ok(Reading { key, columns, is_of_latest: !is_behind, most })
    }

    /// Appends the command; the number is the first of the values.
    pub(super) fn append(&self, cells: &Cells, first: usize, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"*6\r\n");
        bulk(if self.is_of_latest { b"XREVRANGE" } else { b"XRANGE" }, out);
        bulk(&self.key, out);
        if self.is_of_latest {
            out.extend_from_slice(b"$1\r\n+\r\n$1\r\n-\r\n");
        } else {
            scratch.clear();
            scratch.extend_from_slice(b"(0-");
            if let Cell::Int(behind) = cells.get(first) {
                number(behind.max(0), scratch);
            }
            bulk(scratch, out);
            out.extend_from_slice(b"$1\r\n+\r\n");
        }
        bulk(b"COUNT", out);
        scratch.clear();
        number(self.most.into(), scratch);
        bulk(scratch, out);
    }

    /// Returns whether an answer may have so many entries.
    pub(super) fn may_have(&self, entries: u32) -> bool {
        entries <= self.most
    }
}

/// Appends the command that adds an entry: the fields of the columns that are not null. Returns the number of fields.
pub(super) fn append_entry<'a>(
    key: &[u8],
    fields: impl Iterator<Item = (&'a [u8], Cell)> + Clone,
    cells: &Cells,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> u32 {
    let given = fields.filter(|(_, cell)| !matches!(cell, Cell::Null));
    let count = given.clone().count();
    out.push(b'*');
    number(3 + 2 * count as i64, out);
    out.extend_from_slice(b"\r\n$4\r\nXADD\r\n");
    bulk(key, out);
    out.extend_from_slice(b"$3\r\n0-*\r\n");
    for (name, cell) in given {
        out.extend_from_slice(name);
        value::append_bulk(cells, cell, scratch, out);
    }
    count as u32
}

/// The part of an answer that is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// An entry: its id, and a list of names and values.
    #[default]
    Entry,
    Id,
    List,
    Name,
    /// The value of the column with this index; `None` for one that is not read.
    Value(Option<usize>),
}

/// The progress of an answer.
#[derive(Debug, Default)]
pub(super) struct Entries {
    stage: Stage,
    /// The number of entries, and of names and values of the current entry, that are still to come.
    left: u32,
    parts_left: u32,
    /// The number of columns of the current entry that have their value.
    filled: usize,
    /// The reason why a value is none of its column.
    wrong: Option<DatabaseError>,
}

impl Entries {
    /// Returns the progress of an answer with this number of entries, which is not 0.
    pub(super) fn of(entries: u32) -> Self {
        Entries { left: entries, ..Entries::default() }
    }

    /// Returns whether the answer is complete.
    pub(super) fn are_complete(&self) -> bool {
        self.left == 0
    }

    /// Returns why a value was not kept, once.
    pub(super) fn take_wrong(&mut self) -> Option<DatabaseError> {
        self.wrong.take()
    }

    /// Takes in a part, and appends values to `rows` where rows are kept. Returns whether an entry is complete.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] for a part that no entry has there.
    pub(super) fn take(
        &mut self,
        reading: &Reading,
        part: &Part<'_>,
        rows: Option<&mut Cells>,
    ) -> Result<bool, DatabaseError> {
        match (self.stage, part) {
            (Stage::Entry, Part::List(Some(2))) => (self.stage, self.filled) = (Stage::Id, 0),
            (Stage::Id, Part::Bytes(Some(id))) => {
                let number = std::str::from_utf8(id).ok().and_then(|id| id.strip_prefix("0-")?.parse().ok());
                let number: i64 = number.ok_or_else(|| out_of_step(part))?;
                rows.into_iter().for_each(|rows| rows.int(number));
                self.stage = Stage::List;
            }
            (Stage::List, Part::List(Some(parts))) if parts % 2 == 0 => {
                self.parts_left = *parts;
                return Ok(self.go_on(reading, rows));
            }
            (Stage::Name, Part::Bytes(Some(name))) => {
                let left = reading.columns.iter().skip(self.filled);
                let found = left.clone().position(|column| column.name.as_bytes() == *name);
                self.parts_left -= 1;
                self.stage = Stage::Value(found.map(|skipped| self.filled + skipped));
            }
            (Stage::Value(place), Part::Bytes(Some(bytes))) => {
                self.parts_left -= 1;
                let mut rows = rows;
                if let (Some(place), Some(rows)) = (place, rows.as_deref_mut()) {
                    (self.filled..place).for_each(|_| rows.null());
                    self.keep(reading.columns[place].kind, bytes, rows);
                }
                self.filled = place.map_or(self.filled, |place| place + 1);
                return Ok(self.go_on(reading, rows));
            }
            (_, part) => return Err(out_of_step(part)),
        }
        Ok(false)
    }

    /// Goes on with the next name, or completes the entry. Returns whether it is complete.
    fn go_on(&mut self, reading: &Reading, rows: Option<&mut Cells>) -> bool {
        if self.parts_left > 0 {
            self.stage = Stage::Name;
            return false;
        }
        if let Some(rows) = rows {
            (self.filled..reading.columns.len()).for_each(|_| rows.null());
        }
        self.stage = Stage::Entry;
        self.left -= 1;
        true
    }

    fn keep(&mut self, kind: ColumnKind, bytes: &[u8], rows: &mut Cells) {
        if value::keep(kind, bytes, rows).is_none() {
            rows.null();
            self.wrong.get_or_insert(value::no_value(kind, bytes));
        }
    }
}
