//! Single records by their key: what the workloads `select` and `update` need of a layout. Main types: [`Access`], what is
//! asked for, and [`Accessed`], the statements that do it.

use super::columns::{add, column_ref, equals, next_cell, read, table_column};
use crate::record::{Generator, RecordType};
use crate::statement::{Expect, Program, Request, Select, Statement, Step, TableColumn};

/// What a case asks of single records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// What is selected, where anything is.
    pub select: Option<Columns>,
    /// The place among the values of the column that is updated, where one is.
    pub update: Option<usize>,
}

/// Columns that a selection reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// All of identity and values, as [`Operation::Read`](crate::operation::Operation::Read) does.
    All,
    /// The value column at this place.
    Value(usize),
}

/// The statements of an [`Access`], in a layout's program.
#[derive(Debug, Default)]
pub(super) struct Accessed {
    select: Option<u16>,
    update: Option<(u16, usize)>,
}

impl Accessed {
    /// Adds what is asked for to a program. `read_all` is the statement that reads all columns, and `table_of` names the table of
    /// a value column; the tables have the same key.
    pub(super) fn add<'a>(
        access: Access,
        record_type: &RecordType,
        program: &mut Program,
        read_all: u16,
        key: &[TableColumn],
        table_of: impl Fn(usize) -> &'a str,
    ) -> Self {
        let select = access.select.map(|columns| match columns {
            Columns::All => read_all,
            Columns::Value(place) => {
                let table = table_of(place);
                let select = Select {
                    columns: vec![column_ref(table, &record_type.values[place].name)],
                    from: table.to_owned(),
                    conditions: key.iter().map(|column| equals(table, &column.name, column.kind)).collect(),
                    ..Select::default()
                };
                add(program, Statement::Select(select))
            }
        });
        let update = access.update.map(|place| {
            let set = vec![table_column(&record_type.values[place])];
            let table = table_of(place).to_owned();
            (add(program, Statement::Update { table, set, key: key.to_vec() }), place)
        });
        Accessed { select, update }
    }

    /// Appends the selection of a record whose key `append_key` appends.
    #[inline]
    pub(super) fn select(&self, request: &mut Request, append_key: impl FnOnce(&mut Request)) {
        let Some(statement) = self.select else { return };
        let first_cell = next_cell(&request.cells);
        append_key(request);
        read(request, statement, first_cell);
    }

    /// Appends the update of a record to a value of the record `like`.
    #[inline]
    pub(super) fn update(
        &self,
        like: u64,
        generator: &dyn Generator,
        request: &mut Request,
        append_key: impl FnOnce(&mut Request),
    ) {
        let Some((statement, place)) = self.update else { return };
        let values = request.cells.len();
        generator.values(like, &mut request.cells);
        let first_cell = next_cell(&request.cells);
        request.cells.repeat(values + place);
        append_key(request);
        request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Changed(1) });
    }
}
