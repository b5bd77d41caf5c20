//! The layout `wide`, schema 1 of Ruottinen 2015 (figure 3.4): one table in which every row repeats the identity.
//!
//! The primary key is the identity key, as in the thesis, followed by the record's number, because rows of one measurement have
//! the same identity. Record types without an identity key have the number alone; those with a key of their own have that
//! column as primary key, and the table has no columns but the record's.
//!
//! Scans and latest windows use the record's key. If that is a number behind an identity key, cases with them have an index
//! over it.

use super::access::{Access, Accessed, Shape, TablePart, value_columns};
use super::columns::{add, apart, column_ref, equals, insert, next_cell, table, table_column, time_column};
use super::evolution::column_evolution;
use super::key::RecordKey;
use super::query::{Path, Queried, check_window};
use super::{Entry, Layout};
use crate::operation::Operation;
use crate::query::Query;
use crate::question::Question;
use crate::record::{Column, Generator, RecordType};
use crate::statement::{Comparison, Evolution, Program, Request, Select, Statement, Table, TableColumn};

/// Registry entry.
pub(super) static WIDE: Entry = Entry {
    name: "wide",
    summary: "one table; every row repeats the identity (Oulu schema 1)",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(Wide::new(record_type, table, records_max))),
};

struct Wide {
    program: Program,
    insert: u16,
    /// The statement that reads a whole record.
    read: Select,
    accessed: Accessed,
    queried: Queried,
    /// The columns of the primary key; the last one is the record's own.
    primary_key: Vec<TableColumn>,
    key: RecordKey,
}

impl Wide {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Self {
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let stored = || record_type.identity.iter().chain(&record_type.values);
        let key = RecordKey::of(record_type);
        let in_front = if key.place.is_some() { 0 } else { record_type.identity_key };
        let identity = record_type.identity[..in_front].iter().map(table_column);
        let primary_key: Vec<_> = identity.chain([key.column.clone()]).collect();
        let number = key.place.is_none().then(|| key.column.clone());
        let columns: Vec<_> = number.into_iter().chain(stored().map(table_column)).collect();
        let names = primary_key.iter().map(|column| column.name.clone()).collect();
        program.tables.push(Table { time: time_column(record_type), ..table(name, columns.clone(), names) });
        if key.place.is_none() {
            program.apart.push(apart(name, record_type));
        }
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns });
        let read = Select {
            columns: stored().map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: primary_key.iter().map(|column| equals(name, &column.name, column.kind)).collect(),
            ..Select::default()
        };
        Wide { program, insert, read, accessed: Accessed::default(), queried: Queried::default(), primary_key, key }
    }

    /// Adds an index on the record's key, unless that is the first column of the primary key.
    fn index_key(&mut self) {
        let (index, indexes) = (vec![self.key.column.name.clone()], &mut self.program.tables[0].indexes);
        if self.primary_key.len() > 1 && !indexes.contains(&index) {
            indexes.push(index);
        }
    }

    /// Appends the primary key of a record.
    #[inline]
    fn append_key(&self, record: u64, generator: &dyn Generator, request: &mut Request) {
        append_key(&self.key, self.primary_key.len() - 1, record, generator, request);
    }
}

/// Appends the first `in_front` identity columns of a record, and its own key.
#[inline]
fn append_key(key: &RecordKey, in_front: usize, record: u64, generator: &dyn Generator, request: &mut Request) {
    if in_front > 0 {
        let first = request.cells.len();
        generator.identity(generator.measurement_of(record), 1, &mut request.cells);
        request.cells.truncate(first + in_front);
    }
    key.append(record, generator, request);
}

impl Layout for Wide {
    fn program(&self) -> &Program {
        &self.program
    }

    fn record_table(&self) -> Option<&str> {
        self.program.tables.first().map(|table| table.name.as_str())
    }

    fn add_access(&mut self, access: &Access, record_type: &RecordType) {
        let key = &self.key.column;
        let name = self.read.from.clone();
        let mut from_key = equals(&name, &key.name, key.kind);
        from_key.comparison = Comparison::GreaterOrEqual;
        let order = vec![(from_key.column.clone(), false)];
        let scan = Select { conditions: vec![from_key], order, ..self.read.clone() };
        if access.scan {
            self.index_key();
        }
        let parts = vec![TablePart { table: name, columns: value_columns(record_type, |_| true) }];
        let shape = Shape { read: &self.read, key: &self.primary_key, parts, scan, as_text: false };
        self.accessed = Accessed::add(access, &mut self.program, shape);
    }

    fn add_queries(&mut self, queries: &[Query], record_type: &RecordType) -> Result<(), String> {
        check_window(queries, &self.key)?;
        if queries.iter().any(|query| query.window.is_some()) {
            self.index_key();
        }
        let path = Path::single(&self.program.tables[0].name);
        self.queried = Queried::add(queries, &mut self.program, record_type, &path);
        Ok(())
    }

    fn add_questions(&mut self, questions: &[Question], record_type: &RecordType) -> Result<Vec<u16>, String> {
        let path = Path::single(&self.program.tables[0].name);
        Ok(path.add_questions(questions, &mut self.program, record_type))
    }

    fn evolution(&self, field: &Column) -> Evolution {
        let table = self.record_table().unwrap_or_default();
        // The closure outlives the layout, so it owns copies.
        let (key, in_front) = (self.key.clone(), self.primary_key.len() - 1);
        column_evolution(table, field, &self.primary_key, move |record, generator, request| {
            append_key(&key, in_front, record, generator, request);
        })
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        match *operation {
            Operation::Insert { first, records } => {
                let first_cell = next_cell(&request.cells);
                for record in first..first + u64::from(records) {
                    let measurement = generator.measurement_of(record);
                    let so_far = record - generator.first_record_of(measurement) + 1;
                    if self.key.place.is_none() {
                        request.cells.int(record as i64);
                    }
                    generator.identity(measurement, so_far, &mut request.cells);
                    generator.values(record, &mut request.cells);
                }
                insert(request, self.insert, records, first_cell);
            }
            Operation::Query { query } => self.queried.bind(query, request),
            _ => {
                let append_key = |record, request: &mut Request| self.append_key(record, generator, request);
                let append_first = |record, request: &mut Request| self.key.append(record, generator, request);
                self.accessed.bind(operation, generator, request, append_key, append_first);
            }
        }
    }
}
