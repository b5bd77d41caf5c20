//! The row of a recorder's writer, which each of its transactions updates.

use crate::record::ColumnKind;
use crate::statement::{SqlForm, Statement, Table, TableColumn};

/// Returns the columns of the table of writers.
pub fn ledger_columns() -> Vec<TableColumn> {
    let number = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
    let text = TableColumn { name: "recorder".to_owned(), kind: ColumnKind::Text(32), nullable: false };
    let more = ["lane", "sequence", "next_row", "next_identity", "ended_row", "edited_ns"].map(number);
    [number("writer"), text].into_iter().chain(more).collect()
}

/// Returns the table of writers with this name.
pub fn ledger_table(name: &str) -> Table {
    Table {
        name: name.to_owned(),
        columns: ledger_columns(),
        primary_key: vec!["writer".to_owned()],
        numbered: false,
        unique: vec![vec!["recorder".to_owned(), "lane".to_owned()]],
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    }
}

/// Returns the statement that updates a writer's row in the table `name`, which needs no quotes. `compares` is the operator between the stored and the given values:
/// a recorder uses "=", so that of two processes that believe to be the same writer one changes nothing. Values: the new sequence, rows, identities, ended rows
/// and time, then the writer and the previous sequence and time.
pub fn ledger_update(name: &str, compares: &str) -> Statement {
    let sql = format!(
        "UPDATE {name} SET sequence = ?, next_row = ?, next_identity = ?, ended_row = ?, edited_ns = ? \
         WHERE writer = ? AND sequence {compares} ? AND edited_ns {compares} ?"
    );
    Statement::Sql { sql, allow_empty: true, form: SqlForm::Prepared }
}
