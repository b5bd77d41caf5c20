//! The commands for a program's statements. Main type: [`Plan`].
//!
//! A statement that is not answered exactly is refused here, and already during planning.

use super::bson;
use super::find::{Find, checked, path};
use super::key::Key;
use super::message::{begin_sequence, body, end_sequence};
use super::questions::ask;
use super::shape::{Filter, ID, Place, Shape, Test, refused};
use super::value;
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{Comparison, Program, Statement, TableColumn};

/// The most bytes of a document, and of a message, as every server has them.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;
const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// The command for a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// `insert` of documents.
    Insert { table: String, key: Key, fields: Vec<(usize, String, ColumnKind)>, values: usize },
    /// `update` of members; the values of the key come behind theirs.
    Update { table: String, set: Vec<(String, ColumnKind)>, nulls: Nulls, which: Filter },
    /// `delete`.
    Delete { table: String, which: Filter },
    /// `find` or `aggregate`.
    Find(Box<Find>),
}

/// What becomes of members whose value becomes null.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Nulls {
    /// They are removed, as a null is a missing member.
    Removed,
    /// They are null, as in a document of JSON.
    Kept,
    /// This member is removed; there are no values.
    Member(String),
}

impl Plan {
    /// Returns the commands for a program's statements.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that there is no command for.
    pub(super) fn of(program: &Program) -> Result<Vec<Plan>, DatabaseError> {
        if program.as_text {
            return Err(refused("rows are sent as documents, not as statements"));
        }
        program.statements.iter().map(|statement| plan(statement, program)).collect()
    }

    /// Returns whether the command changes something.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Plan::Find(_))
    }

    /// Appends the sections of the command for a step whose values begin at `first`; `concern` is the member that says what a write waits for.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a value that no column has, and for more than a message takes.
    pub(super) fn append(
        &self,
        database: &str,
        concern: &[u8],
        (cells, first, rows): (&Cells, usize, u32),
        out: &mut Vec<u8>,
    ) -> Result<(), DatabaseError> {
        let from = out.len();
        let head = |verb: &str, table: &str, out: &mut Vec<u8>| {
            body(database, out, |out| {
                bson::text(verb, table.as_bytes(), out);
                bson::boolean("ordered", true, out);
                out.extend_from_slice(concern);
            });
        };
        let appended = match self {
            Plan::Insert { table, values, .. } => {
                head("insert", table, out);
                let sequence = begin_sequence("documents", out);
                let of_row = |row: usize, out: &mut Vec<u8>| self.append_row(cells, first + row * values, out);
                (0..rows as usize)
                    .try_for_each(|row| {
                        let from = out.len();
                        of_row(row, out)?;
                        if out.len() - from > DOCUMENT_BYTES_MAX { None } else { Some(()) }
                    })
                    .map(|()| end_sequence(sequence, out))
            }
            Plan::Update { table, set, nulls, which } => {
                head("update", table, out);
                let sequence = begin_sequence("updates", out);
                let change = bson::begin(out);
                which.append("q", cells, first, out).and_then(|()| append_change((set, nulls), cells, first, out)).map(
                    |()| {
                        bson::boolean("multi", !which.is_of_one(), out);
                        bson::end(change, out);
                        end_sequence(sequence, out);
                    },
                )
            }
            Plan::Delete { table, which } => {
                head("delete", table, out);
                let sequence = begin_sequence("deletes", out);
                let change = bson::begin(out);
                which.append("q", cells, first, out).map(|()| {
                    bson::int32("limit", which.is_of_one().into(), out);
                    bson::end(change, out);
                    end_sequence(sequence, out);
                })
            }
            Plan::Find(find) => find.append(database, cells, first, out),
        };
        match appended {
            None => {
                Err(refused("a value is none of its column's kind, a key is null, or a document has more than 16 MiB"))
            }
            Some(()) if out.len() - from > MESSAGE_BYTES_MAX - super::message::HEADER_BYTES => Err(refused(
                "a message has 48,000,000 bytes at most, and these records have more; write fewer records together",
            )),
            Some(()) => Ok(()),
        }
    }

    /// Appends the document of a row.
    #[inline]
    fn append_row(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Option<()> {
        let Plan::Insert { key, fields, .. } = self else { return None };
        let from = bson::begin(out);
        key.append(ID, None, cells, first, out)?;
        for (place, name, kind) in fields {
            value::append(name, *kind, cells, cells.get(first + place), out)?;
        }
        bson::end(from, out);
        Some(())
    }
}

/// Appends what becomes of members: those with a value are set, and those that become null as it is said of nulls.
fn append_change(
    (set, nulls): (&[(String, ColumnKind)], &Nulls),
    cells: &Cells,
    first: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let from = bson::begin_document("u", out);
    let is_removed = |place: usize| *nulls == Nulls::Removed && cells.get(first + place) == Cell::Null;
    let (removed, values): (Vec<usize>, Vec<usize>) = (0..set.len()).partition(|place| is_removed(*place));
    if !values.is_empty() {
        let given = bson::begin_document("$set", out);
        for place in values {
            let (name, kind) = &set[place];
            match cells.get(first + place) {
                Cell::Null => bson::null(name, out),
                cell => value::append(name, *kind, cells, cell, out)?,
            }
        }
        bson::end(given, out);
    }
    let member = if let Nulls::Member(member) = nulls { Some(member.as_str()) } else { None };
    let removed = removed.iter().map(|place| set[*place].0.as_str()).chain(member);
    let mut removed = removed.peekable();
    if removed.peek().is_some() {
        bson::document("$unset", out, |out| removed.for_each(|name| bson::text(name, b"", out)));
    }
    bson::end(from, out);
    Some(())
}

/// Returns the tests that these columns equal the values behind so many others.
fn equal(columns: &[TableColumn], in_front: usize) -> Vec<Test> {
    let test = |(place, column): (usize, &TableColumn)| Test {
        column: column.name.clone(),
        comparison: Comparison::Equal,
        place: in_front + place,
    };
    columns.iter().enumerate().map(test).collect()
}

fn plan(statement: &Statement, program: &Program) -> Result<Plan, DatabaseError> {
    match statement {
        Statement::Insert { table, columns } => {
            let shape = Shape::of(program, table)?;
            let key = shape.key_among(columns.iter().map(|column| column.name.as_str()))?;
            let own = columns.iter().enumerate();
            let own = own.filter(|(_, column)| matches!(shape.place_of(&column.name), Place::Own(_)));
            let fields = own.map(|(place, column)| (place, column.name.clone(), column.kind)).collect();
            Ok(Plan::Insert { table: table.clone(), key, fields, values: columns.len() })
        }
        Statement::Update { table, set, key } => {
            let shape = Shape::of(program, table)?;
            if set.iter().any(|column| !matches!(shape.place_of(&column.name), Place::Own(_))) {
                return Err(refused(&format!("the key of a document of {table} stays as it is")));
            }
            let which = shape.filter(&equal(key, set.len()))?;
            let set = set.iter().map(|column| (column.name.clone(), column.kind)).collect();
            Ok(Plan::Update { table: table.clone(), set, nulls: Nulls::Removed, which })
        }
        Statement::Delete { table, key } => {
            let which = Shape::of(program, table)?.filter(&equal(key, 0))?;
            Ok(Plan::Delete { table: table.clone(), which })
        }
        Statement::Select(select) => Find::of(&Shape::of(program, &select.from)?, select).map(Box::new).map(Plan::Find),
        Statement::UpdateDocument { table, document, set, key } => {
            let which = Shape::of(program, table)?.filter(&equal(key, set.len()))?;
            let member = |column: &TableColumn| Ok((path(document, &checked(&column.name)?), column.kind));
            let set = set.iter().map(member).collect::<Result<_, DatabaseError>>()?;
            Ok(Plan::Update { table: table.clone(), set, nulls: Nulls::Kept, which })
        }
        Statement::ReduceDocument { table, document, member, key } => {
            let which = Shape::of(program, table)?.filter(&equal(key, 0))?;
            let nulls = Nulls::Member(path(document, &checked(member)?));
            Ok(Plan::Update { table: table.clone(), set: Vec::new(), nulls, which })
        }
        Statement::SelectMember { table, document, member, key } => {
            let found = Find::member(&Shape::of(program, table)?, document, member, &equal(key, 0))?;
            Ok(Plan::Find(Box::new(found)))
        }
        Statement::SelectRecords(select) => {
            Find::records(&Shape::of(program, &select.table)?, select).map(Box::new).map(Plan::Find)
        }
        Statement::Ask(asking) => ask(&Shape::of(program, &asking.from)?, asking).map(Box::new).map(Plan::Find),
        _ => Err(refused("it has no command for such a statement")),
    }
}
