//! How SQLite writes SQL.

use crate::database::Dialect;
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

    fn placeholder(&self, _: usize) -> String {
        "?".to_owned()
    }
}
