//! The layout `wide`, schema 1 of Ruottinen 2015 (figure 3.4): one table in which every row repeats the identity.
//!
//! The primary key is the identity key, as in the thesis, with the record's number behind it: rows of one measurement have
//! the same identity. Record types without an identity key have the number alone; those whose identity is the number itself
//! have that column as their key, and the table has the record's columns and no other.

use super::access::{Access, Accessed};
use super::columns::{RECORD_ID, add, column_ref, equals, insert, next_cell, number_column, read, table, table_column};
use super::{Entry, Layout};
use crate::operation::Operation;
use crate::record::{Generator, RecordType};
use crate::statement::{Program, Request, Select, Statement, TableColumn};

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
    accessed: Accessed,
    /// The columns of the primary key; the last is the record's number.
    key: Vec<TableColumn>,
    /// Whether the number is a column of the layout's own, in front of the record's.
    adds_number: bool,
}

impl Wide {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Self {
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let stored = || record_type.identity.iter().chain(&record_type.values);
        let adds_number = record_type.number.is_none();
        let key: Vec<_> = match record_type.number {
            Some(place) => vec![table_column(&record_type.identity[place])],
            None => {
                let identity = record_type.identity[..record_type.identity_key].iter().map(table_column);
                identity.chain([number_column(RECORD_ID)]).collect()
            }
        };
        let number = adds_number.then(|| number_column(RECORD_ID));
        let columns: Vec<_> = number.into_iter().chain(stored().map(table_column)).collect();
        let primary_key = key.iter().map(|column| column.name.clone()).collect();
        program.tables.push(table(name, columns.clone(), primary_key));
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns });
        let select = Select {
            columns: stored().map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: key.iter().map(|column| equals(name, &column.name, column.kind)).collect(),
            ..Select::default()
        };
        let read = add(&mut program, Statement::Select(select));
        Wide { program, insert, read, accessed: Accessed::default(), key, adds_number }
    }

    /// Appends the identity that a record's key begins with, to be copied from; where it is.
    fn identity(&self, record: u64, generator: &dyn Generator, request: &mut Request) -> usize {
        let identity = request.cells.len();
        if self.key.len() > 1 {
            generator.identity(generator.measurement_of(record), 1, &mut request.cells);
        }
        identity
    }

    /// Appends the key of a record whose identity is there.
    fn append_key(&self, record: u64, identity: usize, request: &mut Request) {
        (identity..identity + self.key.len() - 1).for_each(|place| request.cells.repeat(place));
        request.cells.int(record as i64);
    }
}

impl Layout for Wide {
    fn program(&self) -> &Program {
        &self.program
    }

    fn record_table(&self) -> Option<&str> {
        self.program.tables.first().map(|table| table.name.as_str())
    }

    fn add_access(&mut self, access: Access, record_type: &RecordType) -> Result<(), String> {
        let table = self.record_table().unwrap_or_default().to_owned();
        self.accessed = Accessed::add(access, record_type, &mut self.program, self.read, &self.key, |_| &table);
        Ok(())
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        match *operation {
            Operation::Insert { first, records } => {
                let first_cell = next_cell(&request.cells);
                for record in first..first + u64::from(records) {
                    let measurement = generator.measurement_of(record);
                    let so_far = record - measurement * generator.records_per_measurement() + 1;
                    if self.adds_number {
                        request.cells.int(record as i64);
                    }
                    generator.identity(measurement, so_far, &mut request.cells);
                    generator.values(record, &mut request.cells);
                }
                insert(request, self.insert, records, first_cell);
            }
            Operation::Read { record } => {
                let identity = self.identity(record, generator, request);
                let first_cell = next_cell(&request.cells);
                self.append_key(record, identity, request);
                read(request, self.read, first_cell);
            }
            Operation::Select { record } => {
                let identity = self.identity(record, generator, request);
                self.accessed.select(request, |request| self.append_key(record, identity, request));
            }
            Operation::Update { record, like } => {
                let identity = self.identity(record, generator, request);
                self.accessed.update(like, generator, request, |request| self.append_key(record, identity, request));
            }
            Operation::Statement { .. } => {}
        }
    }
}
