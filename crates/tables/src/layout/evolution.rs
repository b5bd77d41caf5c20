//! The evolution of layouts whose fields are columns: the table is altered.

use super::access::change;
use super::columns::next_cell;
use crate::record::{Column, Generator};
use crate::statement::{Evolution, Program, Request, SchemaChange, Statement, TableColumn};

/// Beginning of a record's value in an added field; the record's number follows.
pub(super) const VALUE_PREFIX: &str = "added to ";

/// Appends the value of a record's new field: a text.
pub(super) fn append_value(record: u64, request: &mut Request) {
    let first = request.cells.len();
    request.cells.int(record as i64);
    request.cells.replace_by_text(first, |cells, out| {
        out.extend_from_slice(VALUE_PREFIX.as_bytes());
        super::text::write(cells.get(first), cells, out);
    });
}

/// Returns the table column of a field; it is null in the records that lack the field.
pub(super) fn field_column(field: &Column) -> TableColumn {
    TableColumn { name: field.name.clone(), kind: field.kind, nullable: true }
}

/// Returns the evolution that adds a column to a table and drops it again. `append_key` appends the key of a record.
pub(super) fn column_evolution(
    table: &str,
    field: &Column,
    key: &[TableColumn],
    append_key: impl Fn(u64, &dyn Generator, &mut Request) + Send + Sync + 'static,
) -> Evolution {
    let column = field_column(field);
    let update = Statement::Update { table: table.to_owned(), set: vec![column.clone()], key: key.to_vec() };
    Evolution {
        add: Some(SchemaChange::AddColumn { table: table.to_owned(), column: column.clone(), default: None }),
        program: Program { statements: vec![update], rows_max: 1, ..Program::default() },
        write: Some(Box::new(move |record, generator, request| {
            let first_cell = next_cell(&request.cells);
            append_value(record, request);
            append_key(record, generator, request);
            change(request, 0, first_cell, 1);
        })),
        remove: Some(SchemaChange::DropColumn { table: table.to_owned(), column: column.name }),
        ..Evolution::default()
    }
}
