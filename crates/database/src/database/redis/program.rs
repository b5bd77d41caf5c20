//! The commands for a program's statements. Main types: [`Plan`] and [`Keyed`].
//!
//! A row is found only by its whole key: a statement that needs more is refused here, and already during planning.

use super::key::{prefix_of, stream_of};
use super::reply::bulk;
use super::stream::Reading as NumberedReading;
use super::value;
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{Comparison, Program, Select, Statement, Table, TableColumn};

/// A script that changes fields of an existing row; returns 1 if the row exists, else 0. Its values are the number of fields to set,
/// each with its value, then the fields that become null.
pub(super) const UPDATE: &str = "if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end \
    local last = 1 + 2 * tonumber(ARGV[1]) \
    if last > 1 then redis.call('HSET', KEYS[1], unpack(ARGV, 2, last)) end \
    if #ARGV > last then redis.call('HDEL', KEYS[1], unpack(ARGV, last + 1)) end \
    return 1";

/// The command for a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// HSET of all fields of a row.
    Insert { keyed: Keyed, fields: Vec<Field> },
    /// EVALSHA of [`UPDATE`]; the values of the fields come first.
    Update { keyed: Keyed, fields: Vec<Field> },
    /// UNLINK.
    Delete { keyed: Keyed },
    /// HMGET of these fields.
    Select { keyed: Keyed, fields: Vec<Field>, reading: Reading },
    /// XADD of a row that the server numbers to the stream with this key.
    Append { key: Vec<u8>, fields: Vec<Field> },
    /// XRANGE or XREVRANGE of such rows.
    Follow { reading: NumberedReading },
}

/// The interpretation of the answer to a HMGET.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The kinds of the answer's columns, which are the first of the fields.
    pub kinds: Vec<ColumnKind>,
    /// The index of the field that every row has, which distinguishes an existing row from a missing one.
    pub present: usize,
}

/// A field of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The field's name, as a byte string of the protocol.
    pub bulk: Vec<u8>,
}

/// The construction of a row's key from values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keyed {
    /// The table's name and a colon.
    prefix: Vec<u8>,
    /// The indexes of the key's columns among a statement's values, in the order of the table's key.
    places: Vec<usize>,
}

impl Keyed {
    /// Appends the key of a row whose values begin at `first`.
    pub(super) fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        for (number, place) in self.places.iter().enumerate() {
            if number > 0 {
                out.push(b':');
            }
            let from = out.len();
            value::append(cells, cells.get(first + place), out);
            // A colon within a part would be taken for the one between two parts.
            if self.places.len() > 1 && matches!(cells.get(first + place), Cell::Text(_) | Cell::Blob(_)) {
                escape(from, out);
            }
        }
    }
}

/// Puts a backslash before each colon and each backslash from the index `from` on.
fn escape(from: usize, out: &mut Vec<u8>) {
    let mut place = from;
    while place < out.len() {
        if matches!(out[place], b':' | b'\\') {
            out.insert(place, b'\\');
            place += 1;
        }
        place += 1;
    }
}

impl Plan {
    /// Returns whether the command changes something.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Plan::Select { .. } | Plan::Follow { .. })
    }

    /// Returns the commands for a program's statements.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that Redis has no command for.
    pub(super) fn of(program: &Program) -> Result<Vec<Plan>, DatabaseError> {
        program.statements.iter().map(|statement| plan(statement, program)).collect()
    }
}

fn plan(statement: &Statement, program: &Program) -> Result<Plan, DatabaseError> {
    let table_of = |name: &str| {
        let found = program.tables.iter().find(|table| table.name == name);
        found.ok_or_else(|| refused(&format!("the table {name} is none of the study's")))
    };
    match statement {
        Statement::Insert { table, columns } if table_of(table)?.numbered => {
            Ok(Plan::Append { key: stream_of(table).into_bytes(), fields: fields(columns) })
        }
        Statement::Select(select) if table_of(&select.from)?.numbered => {
            Ok(Plan::Follow { reading: NumberedReading::of(select, table_of(&select.from)?)? })
        }
        Statement::Insert { table, columns } => {
            let keyed = keyed(table_of(table)?, columns.iter().map(|column| column.name.as_str()))?;
            Ok(Plan::Insert { keyed, fields: fields(columns) })
        }
        Statement::Update { table, set, key } => {
            let named = set.iter().map(|_| "").chain(key.iter().map(|column| column.name.as_str()));
            Ok(Plan::Update { keyed: keyed(table_of(table)?, named)?, fields: fields(set) })
        }
        Statement::Delete { table, key } => {
            let named = key.iter().map(|column| column.name.as_str());
            Ok(Plan::Delete { keyed: keyed(table_of(table)?, named)? })
        }
        Statement::Select(select) => select_of(select, table_of(&select.from)?),
        _ => Err(refused("it has no command for such a statement")),
    }
}

fn select_of(select: &Select, table: &Table) -> Result<Plan, DatabaseError> {
    let is_by_key = select.conditions.iter().all(|condition| condition.comparison == Comparison::Equal);
    let is_plain = select.joins.is_empty() && select.window.is_none() && select.limit.is_none() && !select.for_update;
    if !is_by_key || !is_plain {
        return Err(refused("it reads a row by its whole key, and nothing else"));
    }
    let keyed = keyed(table, select.conditions.iter().map(|condition| condition.column.column.as_str()))?;
    let column = |name: &String| table.columns.iter().find(|column| column.name == *name);
    let columns: Option<Vec<&TableColumn>> = select.columns.iter().map(|wanted| column(&wanted.column)).collect();
    let mut columns = columns.ok_or_else(|| refused("a column that is read is none of the table's"))?;
    let kinds = columns.iter().map(|column| column.kind).collect();
    let present = match columns.iter().position(|column| !column.nullable) {
        Some(present) => present,
        None => {
            let always = table.columns.iter().find(|column| !column.nullable);
            columns.push(always.ok_or_else(|| refused("the table has no column that every row has"))?);
            columns.len() - 1
        }
    };
    let fields = columns.iter().map(|column| Field::of(&column.name)).collect();
    Ok(Plan::Select { keyed, fields, reading: Reading { kinds, present } })
}

impl Field {
    fn of(name: &str) -> Self {
        let mut own = Vec::new();
        bulk(name.as_bytes(), &mut own);
        Field { bulk: own }
    }
}

fn fields(columns: &[TableColumn]) -> Vec<Field> {
    columns.iter().map(|column| Field::of(&column.name)).collect()
}

/// Returns the construction of a row's key from values that belong to these columns.
fn keyed<'a>(table: &Table, named: impl Iterator<Item = &'a str>) -> Result<Keyed, DatabaseError> {
    let named: Vec<&str> = named.collect();
    let place_of = |key: &String| named.iter().position(|name| name == key);
    let places: Option<Vec<usize>> = table.primary_key.iter().map(place_of).collect();
    let is_whole = named.iter().filter(|name| !name.is_empty()).count() >= table.primary_key.len();
    match places.filter(|places| is_whole && !places.is_empty() && !table.numbered) {
        Some(places) => Ok(Keyed { prefix: prefix_of(&table.name).into_bytes(), places }),
        None => Err(refused(&format!("rows of {} are found by their whole key, and by nothing else", table.name))),
    }
}

fn refused(why: &str) -> DatabaseError {
    DatabaseError::refused("redis", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key_of(parts: &[&str]) -> Vec<u8> {
        let mut cells = Cells::new();
        parts.iter().for_each(|part| cells.text(part));
        let keyed = Keyed { prefix: b"t:".to_vec(), places: (0..parts.len()).collect() };
        let mut out = Vec::new();
        keyed.append(&cells, 0, &mut out);
        out
    }

    #[test]
    fn keys_of_several_columns_are_told_apart() {
        assert_eq!(key_of(&["a:b"]), b"t:a:b");
        assert_eq!(key_of(&["a:b", "c"]), b"t:a\\:b:c");
        assert_eq!(key_of(&["a", "b:c"]), b"t:a:b\\:c");
    }

    proptest! {
        #[test]
        fn two_rows_never_have_the_same_key(a in "[a:\\\\]{0,4}", b in "[a:\\\\]{0,4}", c in "[a:\\\\]{0,4}", d in "[a:\\\\]{0,4}") {
            prop_assert_eq!(key_of(&[&a, &b]) == key_of(&[&c, &d]), (a, b) == (c, d));
        }
    }
}
