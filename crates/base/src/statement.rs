//! Statements: what a layout asks of any database. A [`Program`] lists the statements of a case, which every
//! connection prepares; a [`Request`] executes some of them with values, as one operation.
//!
//! Invariant: layouts and databases meet only here.

mod apart;
mod evolution;
mod question;
mod records;
mod sql;

use serde::{Deserialize, Serialize};

use crate::record::{Cells, ColumnKind};

pub use apart::{Again, Apart};
pub use evolution::{Bind, Evolution, SchemaChange};
pub use question::{Asking, Partitions, SourceIndex, TimeColumn};
pub use records::{Form, SelectRecords};
pub use sql::SqlForm;

/// A statement with `?` for each value, independent of the database. Its index in a [`Program`] is its number.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// Insert one or many rows.
    Insert {
        /// Table name.
        table: String,
        /// Column names, in the order of the values.
        columns: Vec<TableColumn>,
    },
    /// Set columns of the rows with the given key. Values: those of `set`, then those of `key`.
    Update {
        /// Table name.
        table: String,
        /// Columns to set.
        set: Vec<TableColumn>,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Remove the rows with the given key. Values: those of `key`.
    Delete {
        /// Table name.
        table: String,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Set one column of several rows, each to a value of its own: the rows with the given key whose column `by` is one of the
    /// cases. Values: one for each case, then those of `key`.
    UpdateCases {
        /// Table name.
        table: String,
        /// Column that tells the rows apart.
        by: TableColumn,
        /// Column to set.
        set: TableColumn,
        /// Texts in the column `by`, one for each row.
        cases: Vec<String>,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Set members of a JSON document in the rows with the given key. Values: those of `set`, then those of `key`.
    UpdateDocument {
        /// Table name.
        table: String,
        /// Column with the document.
        document: String,
        /// Members to set, by name, with the type of their values.
        set: Vec<TableColumn>,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Remove a member from a JSON document in the rows with the given key. Values: those of `key`.
    ReduceDocument {
        /// Table name.
        table: String,
        /// Column with the document.
        document: String,
        /// Name of the member.
        member: String,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Read one member of a JSON document in the rows with the given key. Values: those of `key`.
    SelectMember {
        /// Table name.
        table: String,
        /// Column with the document.
        document: String,
        /// The member, with the type that its value is read as.
        member: TableColumn,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Read all rows of the first groups of rows with equal keys, starting at a key, in the order of the keys. Values: the lowest key
    /// that the first group may have, and the number of groups.
    SelectGroups {
        /// Table name.
        table: String,
        /// Columns of the answer.
        columns: Vec<String>,
        /// Column whose equal values form a group.
        key: TableColumn,
    },
    /// Read rows.
    Select(Select),
    /// Read records that are not rows of typed columns.
    SelectRecords(SelectRecords),
    /// Answer a question about sources and times.
    Ask(Asking),
    /// A study's own SQL, in the database's own dialect but with `?` for parameters.
    Sql {
        /// The text as written in the study.
        sql: String,
        /// Whether an answer without rows is acceptable for a query.
        allow_empty: bool,
        /// How the statement is sent, where the program leaves the choice to the statement.
        form: SqlForm,
    },
}

/// A query over one table or several joined ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Select {
    /// Columns of the answer.
    pub columns: Vec<ColumnRef>,
    /// First table.
    pub from: String,
    /// Tables joined to it, in order.
    pub joins: Vec<Join>,
    /// Conditions, all of which must hold; each takes one value.
    pub conditions: Vec<Condition>,
    /// Order of the answer; `true` is descending.
    pub order: Vec<(ColumnRef, bool)>,
    /// The largest number of rows in the answer; `None` for no limit.
    pub limit: Option<Limit>,
    /// The rows of one of the tables to which the query is restricted; `None` for all rows.
    pub window: Option<Window>,
    /// Whether the rows are locked against changes by others until the transaction ends.
    pub for_update: bool,
    /// Hints to the database on how to execute the query.
    pub hints: Hints,
}

/// The rows of a table with the highest numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Table name.
    pub table: String,
    /// Column with the numbers.
    pub by: String,
    /// Number of rows.
    pub rows: u64,
}

/// Hints to the database on how to execute a query. Only databases that know a hint are given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Join the tables in the order in which they are named.
    pub straight_join: bool,
    /// Keep the answer in the query cache, or do not; `None` gives no hint.
    pub cache: Option<bool>,
}

/// The largest number of rows that a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A fixed number.
    Fixed(u64),
    /// The value bound after those of the conditions, a whole number.
    Bound,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRef {
    /// Table name.
    pub table: String,
    /// Column name.
    pub column: String,
}

/// An inner join of a table on equal columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// The table joined.
    pub table: String,
    /// Pairs of columns that must be equal.
    pub on: Vec<(ColumnRef, ColumnRef)>,
}

/// A comparison of a column with one bound value.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: ColumnRef,
    /// Its type, which decides the type of the bound value.
    pub kind: ColumnKind,
    /// The comparison.
    pub comparison: Comparison,
}

/// Comparisons that queries may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A table that a layout needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Table name.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<TableColumn>,
    /// Columns of the primary key.
    pub primary_key: Vec<String>,
    /// Whether the database numbers the rows itself: the primary key is then a single column that is not among `columns` and increases
    /// with each row inserted.
    pub numbered: bool,
    /// Further unique keys.
    pub unique: Vec<Vec<String>>,
    /// Secondary indexes.
    pub indexes: Vec<Vec<String>>,
    /// References to tables that stand earlier in the layout's list.
    pub foreign_keys: Vec<ForeignKey>,
    /// The column with the time of a row's reading; `None` where rows have no time.
    pub time: Option<TimeColumn>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ColumnKind,
    /// Whether the column may be null.
    pub nullable: bool,
}

/// Columns that refer to the primary key of another table.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The other table.
    pub table: String,
    /// Columns of the other table.
    pub references: Vec<String>,
}

/// The tables and statements of one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Tables to create, in this order; dropped in the reverse order.
    pub tables: Vec<Table>,
    /// Statements that requests refer to by index.
    pub statements: Vec<Statement>,
    /// The largest number of rows that a request gives to one statement.
    pub rows_max: usize,
    /// The number of rows that most requests give to an insert; 0 where no number is that of most.
    pub rows_usual: usize,
    /// Whether statements are sent as text with their values in it, and none is prepared.
    pub as_text: bool,
    /// Whether a transaction of several statements takes as few round trips as the database allows. If not, BEGIN, each
    /// statement and COMMIT wait for the answer to the previous one, as in most applications.
    pub pipelines: bool,
    /// The content that the tables have from the start; executed once, after they have been created.
    pub first: Request,
    /// How the rows of tables are told apart, where more is known of it than their primary keys say.
    pub apart: Vec<Apart>,
}

/// One operation as statements with values; cleared and filled again for every operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// What to execute, in order. More than one step is one transaction.
    pub steps: Vec<Step>,
    /// The values of all steps.
    pub cells: Cells,
    /// Values that are taken from an answer and put into a later step.
    pub carries: Vec<Carry>,
    /// Number of the client that sends the request, from 0.
    pub client: u32,
}

/// A value of a later step taken from the answer to an earlier one: from the first row that it reads, or null where it reads no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carry {
    /// Index in [`Request::steps`] of the step whose answer has the value.
    pub step: u16,
    /// Index of the value in the row, from 0.
    pub column: u16,
    /// Index in [`Request::cells`] at which the value is put before its own step is executed.
    pub cell: u32,
}

/// The execution of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index in [`Program::statements`].
    pub statement: u16,
    /// Number of rows of values; 1 for everything but inserts.
    pub rows: u32,
    /// Index of the first value in the request's cells; the values follow each other, row by row.
    pub first_cell: u32,
    /// The answer that counts as correct.
    pub expect: Expect,
}

/// The answer that a step must have to count as correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Any answer but an error.
    Anything,
    /// At least one row; none is an *empty* operation.
    Rows,
    /// This many rows read; any other number is a failed operation.
    RowCount(u64),
    /// At least this many rows read; fewer are a failed operation.
    RowsAtLeast(u64),
    /// This many rows changed; any other number is a failed operation.
    Changed(u64),
    /// At least one row changed; none is a failed operation.
    ChangedSome,
}

/// A number of rows that differs from the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscount {
    /// The statement's name, where it is known.
    pub statement: Option<String>,
    /// Whether the rows were changed rather than found.
    pub is_of_changes: bool,
    /// The number of rows.
    pub rows: u64,
    /// The expected number of rows.
    pub right: u64,
    /// Whether `right` is a minimum.
    pub is_least: bool,
    /// Whether the changes remain, because nothing rolls them back.
    pub stays: bool,
}

impl std::fmt::Display for Miscount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Miscount { statement, is_of_changes, rows, right, is_least, stays } = self;
        let (statement, verb) =
            (statement.as_deref().unwrap_or("the statement"), if *is_of_changes { "changed" } else { "found" });
        let (least, stays) =
            (if *is_least { "at least " } else { "" }, if *stays { ", and they stay changed" } else { "" });
        write!(f, "{statement} {verb} {rows} rows instead of {least}{right}{stays}")
    }
}

impl Expect {
    /// Returns what is wrong with the number of rows read or changed; `None` where it is as expected.
    #[inline]
    pub fn miscount(self, read: u64, changed: u64) -> Option<Miscount> {
        let (is_of_changes, rows, right, is_least) = match self {
            Expect::RowCount(right) if right != read => (false, read, right, false),
            Expect::RowsAtLeast(least) if read < least => (false, read, least, true),
            Expect::Changed(right) if right != changed => (true, changed, right, false),
            Expect::ChangedSome if changed == 0 => (true, 0, 1, true),
            _ => return None,
        };
        Some(Miscount { statement: None, is_of_changes, rows, right, is_least, stays: false })
    }
}

impl Statement {
    /// Returns how the statement is sent, where the program leaves the choice to the statement.
    pub fn form(&self) -> SqlForm {
        if let Statement::Sql { form, .. } = self { *form } else { SqlForm::Prepared }
    }

    /// Returns the kinds of the values of one row, in their order; `None` where only the value itself decides its kind.
    pub fn kinds(&self) -> Vec<Option<ColumnKind>> {
        let of = |columns: &[TableColumn]| columns.iter().map(|column| Some(column.kind)).collect::<Vec<_>>();
        match self {
            Statement::Insert { columns, .. } => of(columns),
            Statement::Update { set, key, .. } | Statement::UpdateDocument { set, key, .. } => {
                [of(set), of(key)].concat()
            }
            Statement::UpdateCases { set, cases, key, .. } => [vec![Some(set.kind); cases.len()], of(key)].concat(),
            Statement::Delete { key, .. }
            | Statement::ReduceDocument { key, .. }
            | Statement::SelectMember { key, .. } => of(key),
            Statement::SelectGroups { key, .. } => vec![Some(key.kind), Some(ColumnKind::Int64)],
            Statement::Select(select) => {
                let limit = (select.limit == Some(Limit::Bound)).then_some(ColumnKind::Int64);
                select.conditions.iter().map(|condition| condition.kind).chain(limit).map(Some).collect()
            }
            Statement::SelectRecords(select) => select.kinds(),
            Statement::Ask(asking) => asking.kinds().into_iter().map(Some).collect(),
            Statement::Sql { sql, .. } => vec![None; parameters_of(sql)],
        }
    }
}

impl Request {
    /// Removes all steps, and keeps the memory and the client's number.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.cells.clear();
        self.carries.clear();
    }
}

/// Returns the text before, between and after the `?` parameters of a statement. A `?` within quotes or comments is no parameter, nor is `??`, which stands
/// for a `?` of the text itself, as in PostgreSQL's operators `?`, `?|` and `?&`.
pub fn parts_around_parameters(sql: &str) -> Vec<String> {
    let bytes = sql.as_bytes();
    let (mut parts, mut part, mut at, mut from) = (Vec::new(), String::new(), 0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (length, is_parameter) = match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => (1 + length_through(&rest[1..], &[quote]), None),
            b'-' if rest.starts_with(b"--") => (length_through(rest, b"\n"), None),
            b'/' if rest.starts_with(b"/*") => (length_through(rest, b"*/"), None),
            b'?' if rest.starts_with(b"??") => (2, Some(false)),
            b'?' => (1, Some(true)),
            _ => (1, None),
        };
        if let Some(is_parameter) = is_parameter {
            part += &sql[from..at];
            from = at + length;
            if is_parameter {
                parts.push(std::mem::take(&mut part));
            } else {
                part.push('?');
            }
        }
        at += length;
    }
    parts.push(part + &sql[from..]);
    parts
}

/// Returns the number of `?` parameters in a text.
pub fn parameters_of(sql: &str) -> usize {
    parts_around_parameters(sql).len() - 1
}

/// Returns the number of bytes up to and including `end`, or the length of `bytes` where `end` does not occur.
fn length_through(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|window| window == end).map_or(bytes.len(), |found| found + end.len())
}

/// Returns a text as one line of at most `most` characters; an ellipsis replaces the rest.
pub fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).collect::<String>() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_within_quotes_and_comments_do_not_count() {
        let sql = "SELECT '?', \"a?\", `b?` FROM t -- ?\n WHERE x = ? /* ? */ AND y = ?";
        let parts = parts_around_parameters(sql);
        assert_eq!(parts[1..], [" /* ? */ AND y = ", ""]);
        assert_eq!(parts[0], "SELECT '?', \"a?\", `b?` FROM t -- ?\n WHERE x = ");
        assert_eq!(parameters_of("SELECT 'it''s ?', ?"), 1);
        assert_eq!(parameters_of("SELECT '? never closed"), 0);
        assert_eq!(parameters_of(""), 0);
    }

    #[test]
    fn two_are_one_of_the_texts_own() {
        assert_eq!(parts_around_parameters("a ?? b"), ["a ? b"]);
        assert_eq!(parts_around_parameters("data ??| array[?] AND '??'"), ["data ?| array[", "] AND '??'"]);
        assert_eq!(parts_around_parameters("ü??? ü"), ["ü?", " ü"]);
    }
}
