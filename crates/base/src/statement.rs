//! Statements: what a layout asks of any database. A [`Program`] lists the statements of a case, which every
//! connection prepares; a [`Request`] executes some of them with values, as one operation.
//!
//! Invariant: layouts and databases meet only here.

mod evolution;
mod records;

use serde::{Deserialize, Serialize};

use crate::record::{Cells, ColumnKind};

pub use evolution::{Bind, Evolution, SchemaChange};
pub use records::{Form, SelectRecords};

/// A statement with `?` for each value, neutral to the database. Its place in a [`Program`] is its number.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// Insert one or many rows.
    Insert {
        /// Table name.
        table: String,
        /// Column names, in the order of the values.
        columns: Vec<TableColumn>,
    },
    /// Set columns of the rows with the given key. Values: first those of `set`, then those of `key`.
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
    /// Set one column of several rows, each to a value of its own: those with the given key whose column `by` is one of the
    /// cases. Values: one for each case, then those of `key`.
    UpdateCases {
        /// Table name.
        table: String,
        /// Column that tells the rows apart.
        by: TableColumn,
        /// Column to set.
        set: TableColumn,
        /// Texts in the column `by`.
        cases: Vec<String>,
        /// Columns compared for equality.
        key: Vec<TableColumn>,
    },
    /// Set members of a JSON document in the rows with the given key. Values: first those of `set`, then those of `key`.
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
    /// Take a member out of a JSON document in the rows with the given key. Values: those of `key`.
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
    /// Read all rows of the first groups of rows with equal keys, from a key on, in the order of the keys. Values: the key at
    /// which the first group may be, and the number of groups.
    SelectGroups {
        /// Table name.
        table: String,
        /// Columns of the answer.
        columns: Vec<String>,
        /// Column whose values make the groups.
        key: TableColumn,
    },
    /// Read rows.
    Select(Select),
    /// Read records that are no rows of typed columns.
    SelectRecords(SelectRecords),
    /// A study's own SQL, in the database's own dialect but with `?` for parameters.
    Sql {
        /// The text as the study has it.
        sql: String,
        /// Whether no row is an acceptable answer to a query.
        allow_empty: bool,
        /// How it travels, where its program leaves it to it.
        form: SqlForm,
    },
}

/// How the text of somebody else's travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SqlForm {
    /// Prepared once.
    #[default]
    Prepared,
    /// Prepared once, or as text with its values in it where the database does not prepare it.
    Either,
    /// As text with its values in it.
    Text,
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
    /// How many rows at most.
    pub limit: Option<Limit>,
    /// The rows of one of the tables that alone are looked at; all where there is none.
    pub window: Option<Window>,
    /// Whether the rows are kept from others' changes until the transaction ends.
    pub for_update: bool,
    /// What the database is told besides.
    pub hints: Hints,
}

/// The rows of a table with the highest numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Table name.
    pub table: String,
    /// Column with the numbers.
    pub by: String,
    /// How many rows.
    pub rows: u64,
}

/// What a query tells the database about how to execute it. Only databases that know a hint are given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Join the tables in the order in which they are named.
    pub straight_join: bool,
    /// Keep the answer in the query cache, or do not; none says nothing.
    pub cache: Option<bool>,
}

/// How many rows of a query are wanted at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// This many.
    Fixed(u64),
    /// As many as the value bound behind those of the conditions says: a whole number.
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
    /// Its type, which decides the type of the value bound.
    pub kind: ColumnKind,
    /// The comparison.
    pub comparison: Comparison,
}

/// Comparisons that queries may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// =
    Equal,
    /// <>
    NotEqual,
    /// <
    Less,
    /// <=
    LessOrEqual,
    /// >
    Greater,
    /// >=
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
    /// Whether the database numbers the rows itself: the primary key is then one column that is not among `columns` and rises
    /// with each row inserted.
    pub numbered: bool,
    /// Further unique keys.
    pub unique: Vec<Vec<String>>,
    /// Secondary indexes.
    pub indexes: Vec<Vec<String>>,
    /// References to tables that stand earlier in the layout's list.
    pub foreign_keys: Vec<ForeignKey>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ColumnKind,
    /// Whether it may be null.
    pub nullable: bool,
}

/// Columns that refer to the primary key of another table.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    /// Columns here.
    pub columns: Vec<String>,
    /// The other table.
    pub table: String,
    /// Its columns.
    pub references: Vec<String>,
}

/// The tables and statements of one case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Tables to create, in this order; dropped in the reverse order.
    pub tables: Vec<Table>,
    /// Statements that requests refer to by place.
    pub statements: Vec<Statement>,
    /// The largest number of rows that a request gives to one statement.
    pub rows_max: usize,
    /// The number of rows that most requests give to an insert; 0 where there is none that most have.
    pub rows_usual: usize,
    /// Whether statements travel as text with their values in it, and none is prepared.
    pub as_text: bool,
    /// Whether a transaction of several statements takes as few round trips as the database allows. Otherwise BEGIN, each
    /// statement and COMMIT wait for the answer to the one before, as with most applications.
    pub pipelines: bool,
    /// What the tables hold before all else; executed once, when they have been created.
    pub first: Request,
}

/// One operation as statements with values; cleared and filled again for every operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// What to execute, in order. More than one step is one transaction.
    pub steps: Vec<Step>,
    /// The values of all steps.
    pub cells: Cells,
    /// Values that an answer brings.
    pub carries: Vec<Carry>,
    /// Which client sends it, from 0.
    pub client: u32,
}

/// A value of a later step that the answer to an earlier one brings: of the first row that it reads, or none where it reads no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carry {
    /// Place among [`Request::steps`] of the step whose answer has it.
    pub step: u16,
    /// Place of the value in the row, from 0.
    pub column: u16,
    /// Place among [`Request::cells`] that it is put in before its own step is executed.
    pub cell: u32,
}

/// The execution of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Place in [`Program::statements`].
    pub statement: u16,
    /// How many rows of values; 1 for all but inserts.
    pub rows: u32,
    /// Where in the request's cells the values start; they follow each other, row by row.
    pub first_cell: u32,
    /// What answer is right.
    pub expect: Expect,
}

/// What a step must answer to be counted as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Anything but an error.
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

/// A number of rows that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscount {
    /// The statement's name, where it is known.
    pub statement: Option<String>,
    /// Whether these rows were changed; they were found otherwise.
    pub is_of_changes: bool,
    /// How many there were.
    pub rows: u64,
    /// How many there should have been.
    pub right: u64,
    /// Whether there might have been more.
    pub is_least: bool,
    /// Whether what was changed stays so, since nothing takes it back.
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
    /// What is wrong with a number of rows that were read, or with one of rows that were changed.
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
    /// How it travels, where its program leaves it to it.
    pub fn form(&self) -> SqlForm {
        if let Statement::Sql { form, .. } = self { *form } else { SqlForm::Prepared }
    }

    /// The kinds of the values of one row, in their order; none where only the value tells.
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
            Statement::Sql { sql, .. } => vec![None; parameters_of(sql)],
        }
    }
}

impl Request {
    /// Forgets all steps, and keeps the memory and whose it is.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.cells.clear();
        self.carries.clear();
    }
}

/// What stands before, between and behind the `?` parameters of a text. A `?` within quotes and comments is none, nor is `??`, which is a `?` of the
/// text's own, as PostgreSQL's operators `?`, `?|` and `?&` have it.
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

/// How many `?` parameters a text has.
pub fn parameters_of(sql: &str) -> usize {
    parts_around_parameters(sql).len() - 1
}

/// How many bytes there are up to and including `end`; all of them when it does not occur.
fn length_through(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|window| window == end).map_or(bytes.len(), |found| found + end.len())
}

/// A text on one line, of at most so many characters; what is left out is an ellipsis.
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
