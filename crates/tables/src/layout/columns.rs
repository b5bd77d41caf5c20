//! Parts that the layouts share: columns of tables and of answers, and steps over the cells appended last.

use crate::record::{Cells, Column, ColumnKind, RecordType};
use crate::statement::{
    Again, Apart, ColumnRef, Comparison, Condition, Expect, Program, Request, Statement, Step, Table, TableColumn,
    TimeColumn,
};

/// Name of the column that numbers records.
pub const RECORD_ID: &str = "record_id";

/// Name of the column that numbers measurements.
pub(super) const MEASUREMENT: &str = "measurement";

/// Returns a column of the layout's own that holds a number.
pub(super) fn number_column(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false }
}

/// Returns the table column of a record's column.
pub(super) fn table_column(column: &Column) -> TableColumn {
    TableColumn { name: column.name.clone(), kind: column.kind, nullable: column.nullable }
}

/// Returns a reference to a column of a table, for use in a query.
pub(super) fn column_ref(table: &str, column: &str) -> ColumnRef {
    ColumnRef { table: table.to_owned(), column: column.to_owned() }
}

/// Returns the condition that a column equals a bound value.
pub(super) fn equals(table: &str, column: &str, kind: ColumnKind) -> Condition {
    Condition { column: column_ref(table, column), kind, comparison: Comparison::Equal }
}

/// Returns a table without further keys.
pub(super) fn table(name: &str, columns: Vec<TableColumn>, primary_key: Vec<String>) -> Table {
    Table {
        name: name.to_owned(),
        columns,
        primary_key,
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    }
}

/// Returns the column with the time of a record, for the table that has it; `None` where records have no time.
pub(super) fn time_column(record_type: &RecordType) -> Option<TimeColumn> {
    record_type.series.map(|series| TimeColumn { name: record_type.values[series.time].name.clone(), partitions: None })
}

/// Returns how the rows of a table are told apart that has a row for each record, with the record's number as the last column of its key.
pub(super) fn apart(table: &str, record_type: &RecordType) -> Apart {
    let series = record_type.series;
    Apart {
        table: table.to_owned(),
        source: series.map(|series| record_type.values[series.source].name.clone()),
        again: series.and_then(|series| series.again).map(|(round, rounds)| Again { round, rounds }),
    }
}

/// Appends a statement to a program, and returns its number.
pub(super) fn add(program: &mut Program, statement: Statement) -> u16 {
    program.statements.push(statement);
    (program.statements.len() - 1) as u16
}

/// Returns the index of the next cell.
pub(super) fn next_cell(cells: &Cells) -> u32 {
    cells.len() as u32
}

/// Appends the insertion of rows whose cells begin at `first_cell`.
pub(super) fn insert(request: &mut Request, statement: u16, rows: u32, first_cell: u32) {
    request.steps.push(Step { statement, rows, first_cell, expect: Expect::Changed(u64::from(rows)) });
}

/// Appends the reading of a row by the key whose cells begin at `first_cell`.
pub(super) fn read(request: &mut Request, statement: u16, first_cell: u32) {
    request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Rows });
}
