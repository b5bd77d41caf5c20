//! How SQLite writes SQL.

use crate::database::Dialect;
use crate::database::dialect::StraightJoin;
use crate::record::ColumnKind;

/// SQLite's dialect.
#[derive(Debug)]
pub(super) struct SqliteDialect;

impl Dialect for SqliteDialect {
    fn quote(&self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            // This very word makes a primary key of one column the number of the row, without an index of its own.
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => "INTEGER",
            ColumnKind::Float64 => "REAL",
            // Documents are texts, which the JSON functions read.
            ColumnKind::Text(_) | ColumnKind::Json => "TEXT",
            ColumnKind::Blob(_) => "BLOB",
        }
        .to_owned()
    }

    fn row_lock(&self) -> &'static str {
        ""
    }

    /// A primary key of this type is the number of the row; without AUTOINCREMENT it costs nothing, and rises as long as no row is
    /// deleted.
    fn numbered_type(&self) -> String {
        "INTEGER".to_owned()
    }

    fn placeholder(&self, _: usize) -> String {
        "?".to_owned()
    }

    fn value_of_text(&self, text: &str, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => format!("CAST({text} AS INTEGER)"),
            ColumnKind::Float64 => format!("CAST({text} AS REAL)"),
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => text.to_owned(),
        }
    }

    fn straight_join(&self) -> Option<StraightJoin> {
        Some(StraightJoin::CrossJoin)
    }

    fn explain(&self, query: &str) -> String {
        format!("EXPLAIN QUERY PLAN {query}")
    }

    /// The last column says it in words.
    fn plan_line(&self, row: &[Option<String>]) -> String {
        row.last().cloned().flatten().unwrap_or_default()
    }

    fn analyse(&self, table: &str) -> Option<String> {
        Some(format!("ANALYZE {}", self.quote(table)))
    }

    fn read_only(&self) -> Option<&'static str> {
        Some("PRAGMA query_only = ON")
    }
}
