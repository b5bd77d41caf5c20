//! The layout `wide`, schema 1 of Ruottinen 2015 (figure 3.4): one table in which every row repeats the identity.
//!
//! The primary key is the identity key, as in the thesis, with the record's number behind it: rows of one measurement have
//! the same identity. Record types without an identity key have the number alone.

use super::columns::{RECORD_ID, add, column_ref, equals, insert, next_cell, number_column, read, table, table_column};
use super::{Entry, Layout};
use crate::operation::Operation;
use crate::record::{ColumnKind, Generator, RecordType};
use crate::statement::{Program, Request, Select, Statement};

/// Registry entry.
pub(super) static WIDE: Entry = Entry {
    name: "wide",
    summary: "one table; every row repeats the identity (Oulu schema 1)",
    build: |record_type, table, records_max| Ok(Box::new(Wide::new(record_type, table, records_max))),
};

struct Wide {
    program: Program,
    insert: u16,
    read: u16,
    identity_key: usize,
}

impl Wide {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Self {
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let stored = || record_type.identity.iter().chain(&record_type.values);
        let key = &record_type.identity[..record_type.identity_key];
        let mut columns = vec![number_column(RECORD_ID)];
        columns.extend(stored().map(table_column));
        let primary_key = key.iter().map(|column| column.name.clone()).chain([RECORD_ID.to_owned()]);
        program.tables.push(table(name, columns.clone(), primary_key.collect()));
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns });
        let conditions = key.iter().map(|column| equals(name, &column.name, column.kind));
        let select = Select {
            columns: stored().map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: conditions.chain([equals(name, RECORD_ID, ColumnKind::Int64)]).collect(),
            ..Select::default()
        };
        let read = add(&mut program, Statement::Select(select));
        Wide { program, insert, read, identity_key: record_type.identity_key }
    }
}

impl Layout for Wide {
    fn program(&self) -> &Program {
        &self.program
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        match *operation {
            Operation::Insert { first, records } => {
                let first_cell = next_cell(&request.cells);
                for record in first..first + u64::from(records) {
                    let measurement = generator.measurement_of(record);
                    let so_far = record - measurement * generator.records_per_measurement() + 1;
                    request.cells.int(record as i64);
                    generator.identity(measurement, so_far, &mut request.cells);
                    generator.values(record, &mut request.cells);
                }
                insert(request, self.insert, records, first_cell);
            }
            Operation::Read { record } => {
                let identity = request.cells.len();
                if self.identity_key > 0 {
                    generator.identity(generator.measurement_of(record), 1, &mut request.cells);
                }
                let first_cell = next_cell(&request.cells);
                (identity..identity + self.identity_key).for_each(|place| request.cells.repeat(place));
                request.cells.int(record as i64);
                read(request, self.read, first_cell);
            }
            Operation::Statement { .. } => {}
        }
    }
}
