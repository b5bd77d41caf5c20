//! Statements: what a layout asks of any database. A [`Program`] lists the statements of a case, which every
//! connection prepares; a [`Request`] executes some of them with values, as one operation.
//!
//! Invariant: layouts and databases meet only here.

use crate::record::{Cells, ColumnKind};

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
    /// Read rows.
    Select(Select),
    /// A study's own SQL, in the database's own dialect but with `?` for parameters.
    Sql {
        /// The text as the study has it.
        sql: String,
        /// Whether no row is an acceptable answer to a query.
        allow_empty: bool,
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
    /// How many rows at most.
    pub limit: Option<Limit>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

/// One operation as statements with values; cleared and filled again for every operation.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What to execute, in order. More than one step is one transaction.
    pub steps: Vec<Step>,
    /// The values of all steps.
    pub cells: Cells,
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
    /// This many rows changed; any other number is a failed operation.
    Changed(u64),
}

impl Request {
    /// Forgets all steps and keeps the memory.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.cells.clear();
    }
}

/// Where the `?` parameters of a text stand, as byte positions; those within quotes and comments do not count.
pub fn parameter_places(sql: &str) -> Vec<usize> {
    let bytes = sql.as_bytes();
    let mut places = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => 1 + length_through(&rest[1..], &[quote]),
            b'-' if rest.starts_with(b"--") => length_through(rest, b"\n"),
            b'/' if rest.starts_with(b"/*") => length_through(rest, b"*/"),
            byte => {
                if byte == b'?' {
                    places.push(at);
                }
                1
            }
        };
    }
    places
}

/// How many bytes there are up to and including `end`; all of them when it does not occur.
fn length_through(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|window| window == end).map_or(bytes.len(), |found| found + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_within_quotes_and_comments_do_not_count() {
        let sql = "SELECT '?', \"a?\", `b?` FROM t -- ?\n WHERE x = ? /* ? */ AND y = ?";
        let places = parameter_places(sql);
        assert_eq!(places.len(), 2);
        assert!(places.iter().all(|place| sql.as_bytes()[*place] == b'?'));
        assert_eq!(parameter_places("SELECT 'it''s ?', ?").len(), 1);
        assert_eq!(parameter_places("SELECT '? never closed").len(), 0);
        assert_eq!(parameter_places("").len(), 0);
    }
}
