//! The layout `star`, schema 2 of Ruottinen 2015 (figure 3.5): an identity table, and a values table that refers to it.

use super::access::{Access, Accessed, Shape, TablePart, value_columns};
use super::columns::{
    MEASUREMENT, RECORD_ID, add, column_ref, equals, insert, next_cell, number_column, table, table_column, time_column,
};
use super::evolution::column_evolution;
use super::identity::Identity;
use super::key::RecordKey;
use super::query::{Path, PathTable, Queried};
use super::{Entry, Layout};
use crate::operation::Operation;
use crate::query::{Place, Query};
use crate::question::Question;
use crate::record::{Column, ColumnKind, Generator, RecordType};
use crate::statement::{Evolution, Program, Request, Select, Statement};

/// Registry entry.
pub(super) static STAR: Entry = Entry {
    name: "star",
    summary: "an identity table and a values table (Oulu schema 2)",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(Star::new(record_type, table, records_max))),
};

struct Star {
    program: Program,
    identity: Identity,
    insert: u16,
    /// The statement that reads a whole record.
    read: Select,
    accessed: Accessed,
    queried: Queried,
    /// The key that scans are ordered by.
    key: RecordKey,
}

impl Star {
    fn new(record_type: &RecordType, prefix: &str, records_max: usize) -> Self {
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let identity = Identity::new(record_type, prefix, &mut program);
        let name = format!("{prefix}_values");
        let mut columns = vec![number_column(RECORD_ID), number_column(MEASUREMENT)];
        columns.extend(record_type.values.iter().map(table_column));
        let mut values = table(&name, columns.clone(), vec![RECORD_ID.to_owned()]);
        values.indexes.push(vec![MEASUREMENT.to_owned()]);
        values.foreign_keys.push(identity.foreign_key());
        values.time = time_column(record_type);
        program.tables.push(values);
        let insert = add(&mut program, Statement::Insert { table: name.clone(), columns });
        let value_refs = record_type.values.iter().map(|column| column_ref(&name, &column.name));
        let read = Select {
            columns: identity.column_refs(record_type).chain(value_refs).collect(),
            joins: vec![identity.join(&name)],
            conditions: vec![equals(&name, RECORD_ID, ColumnKind::Int64)],
            from: name.clone(),
            ..Select::default()
        };
        let (accessed, queried) = (Accessed::default(), Queried::default());
        Star { program, identity, insert, read, accessed, queried, key: RecordKey::of(record_type) }
    }
}

impl Star {
    fn path(&self) -> Path {
        let name = self.record_table().unwrap_or_default().to_owned();
        let holds = Box::new(|place| matches!(place, Place::Value(_)));
        let values = PathTable { name, has_records: true, link: None, holds };
        Path { tables: vec![self.identity.path_table(), values] }
    }
}

impl Layout for Star {
    fn program(&self) -> &Program {
        &self.program
    }

    fn add_ends(&mut self, record_type: &RecordType) {
        self.identity.add_end(&mut self.program, record_type);
    }

    fn add_access(&mut self, access: &Access, record_type: &RecordType) {
        let name = self.record_table().unwrap_or_default().to_owned();
        let scan = self.identity.scan(&self.read, record_type);
        let parts = vec![TablePart { table: name, columns: value_columns(record_type, |_| true) }];
        let shape = Shape { read: &self.read, key: &[number_column(RECORD_ID)], parts, scan, as_text: false };
        self.accessed = Accessed::add(access, &mut self.program, shape);
        if access.delete {
            self.identity.add_delete(&mut self.program);
        }
    }

    fn add_queries(&mut self, queries: &[Query], record_type: &RecordType) -> Result<(), String> {
        let path = self.path();
        self.queried = Queried::add(queries, &mut self.program, record_type, &path);
        Ok(())
    }

    fn add_questions(&mut self, questions: &[Question], record_type: &RecordType) -> Result<Vec<u16>, String> {
        let path = self.path();
        Ok(path.add_questions(questions, &mut self.program, record_type))
    }

    fn evolution(&self, field: &Column) -> Evolution {
        column_evolution(
            self.record_table().unwrap_or_default(),
            field,
            &[number_column(RECORD_ID)],
            |record, _, request| {
                request.cells.int(record as i64);
            },
        )
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        match *operation {
            Operation::Insert { first, records } => {
                let range = first..first + u64::from(records);
                self.identity.begin(&range, generator, request);
                let first_cell = next_cell(&request.cells);
                for record in range.clone() {
                    request.cells.int(record as i64);
                    request.cells.int(generator.measurement_of(record) as i64);
                    generator.values(record, &mut request.cells);
                }
                insert(request, self.insert, records, first_cell);
                self.identity.end(&range, generator, request);
            }
            Operation::Query { query } => self.queried.bind(query, request),
            _ => {
                let append_key = |record: u64, request: &mut Request| request.cells.int(record as i64);
                let append_first = |record, request: &mut Request| self.key.append(record, generator, request);
                self.accessed.bind(operation, generator, request, append_key, append_first);
                if let Operation::Delete { record } = *operation {
                    self.identity.delete(record, generator, request);
                }
            }
        }
    }
}
