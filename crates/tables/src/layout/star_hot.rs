//! The layout `star-hot`, schema 3 of Ruottinen 2015 (figure 3.6): an identity table, a main table of the values that
//! analyses use most, and a secondary table of the others.

use super::access::{Access, Accessed, Shape, TablePart, value_columns};
use super::columns::{
    MEASUREMENT, RECORD_ID, add, column_ref, equals, insert, next_cell, number_column, table, table_column,
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
use crate::statement::{Evolution, ForeignKey, Join, Program, Request, Select, Statement};

/// Registry entry.
pub(super) static STAR_HOT: Entry = Entry {
    name: "star-hot",
    summary: "an identity table, a main table of the hot values and a secondary table of the others (Oulu schema 3)",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(StarHot::new(record_type, table, records_max)?)),
};

struct StarHot {
    program: Program,
    identity: Identity,
    main: Part,
    secondary: Part,
    /// The statement that reads a whole record.
    read: Select,
    accessed: Accessed,
    queried: Queried,
    /// The key that scans are ordered by.
    key: RecordKey,
}

/// One of the two value tables.
struct Part {
    name: String,
    insert: u16,
    /// Indexes of its columns among the record's values.
    places: Vec<usize>,
}

impl StarHot {
    fn new(record_type: &RecordType, prefix: &str, records_max: usize) -> Result<Self, String> {
        let (hot, other): (Vec<_>, Vec<_>) = record_type.values.iter().enumerate().partition(|(_, column)| column.hot);
        if hot.is_empty() || other.is_empty() {
            let (which, remedy) = if hot.is_empty() { ("no", "hot = true") } else { ("every", "hot = false") };
            return Err(format!(
                "layout \"star-hot\" needs value columns of both sorts, but {which} value column of record type \"{}\" is \
                 hot; write {remedy} on some of them, or take the layout \"star\"",
                record_type.name
            ));
        }
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let identity = Identity::new(record_type, prefix, &mut program);
        let names = (format!("{prefix}_main"), format!("{prefix}_secondary"));
        let main = main_part(&names.0, &hot, &identity, &mut program);
        let secondary = secondary_part(&names, &other, &mut program);
        let value_refs = record_type.values.iter().map(|column| {
            let table = if column.hot { &names.0 } else { &names.1 };
            column_ref(table, &column.name)
        });
        let on = vec![(column_ref(&names.1, RECORD_ID), column_ref(&names.0, RECORD_ID))];
        let read = Select {
            columns: identity.column_refs(record_type).chain(value_refs).collect(),
            from: names.0.clone(),
            joins: vec![identity.join(&names.0), Join { table: names.1.clone(), on }],
            conditions: vec![equals(&names.0, RECORD_ID, ColumnKind::Int64)],
            ..Select::default()
        };
        Ok(StarHot {
            program,
            identity,
            main,
            secondary,
            read,
            accessed: Accessed::default(),
            queried: Queried::default(),
            key: RecordKey::of(record_type),
        })
    }
}

impl StarHot {
    fn path(&self) -> Path {
        let table = |part: &Part, link| {
            let places = part.places.clone();
            let holds = Box::new(move |place| matches!(place, Place::Value(value) if places.contains(&value)));
            PathTable { name: part.name.clone(), has_records: true, link, holds }
        };
        let (main, secondary) = (table(&self.main, Some(RECORD_ID)), table(&self.secondary, None));
        Path { tables: vec![self.identity.path_table(), main, secondary] }
    }
}

fn main_part(name: &str, columns: &[(usize, &Column)], identity: &Identity, program: &mut Program) -> Part {
    let mut described = vec![number_column(RECORD_ID), number_column(MEASUREMENT)];
    described.extend(columns.iter().map(|(_, column)| table_column(column)));
    let mut main = table(name, described.clone(), vec![RECORD_ID.to_owned()]);
    main.indexes.push(vec![MEASUREMENT.to_owned()]);
    main.foreign_keys.push(identity.foreign_key());
    program.tables.push(main);
    let insert = add(program, Statement::Insert { table: name.to_owned(), columns: described });
    Part { name: name.to_owned(), insert, places: columns.iter().map(|(place, _)| *place).collect() }
}

fn secondary_part((main, name): &(String, String), columns: &[(usize, &Column)], program: &mut Program) -> Part {
    let mut described = vec![number_column(RECORD_ID)];
    described.extend(columns.iter().map(|(_, column)| table_column(column)));
    let mut secondary = table(name, described.clone(), vec![RECORD_ID.to_owned()]);
    let id = || vec![RECORD_ID.to_owned()];
    secondary.foreign_keys.push(ForeignKey { columns: id(), table: main.clone(), references: id() });
    program.tables.push(secondary);
    let insert = add(program, Statement::Insert { table: name.clone(), columns: described });
    Part { name: name.to_owned(), insert, places: columns.iter().map(|(place, _)| *place).collect() }
}

impl Layout for StarHot {
    fn program(&self) -> &Program {
        &self.program
    }

    fn add_ends(&mut self, record_type: &RecordType) {
        self.identity.add_end(&mut self.program, record_type);
    }

    fn add_access(&mut self, access: &Access, record_type: &RecordType) {
        let scan = self.identity.scan(&self.read, record_type);
        let part = |part: &Part| TablePart {
            table: part.name.clone(),
            columns: value_columns(record_type, |place| part.places.contains(&place)),
        };
        let parts = vec![part(&self.main), part(&self.secondary)];
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
        column_evolution(&self.secondary.name, field, &[number_column(RECORD_ID)], |record, _, request| {
            request.cells.int(record as i64);
        })
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        match *operation {
            Operation::Insert { first, records } => {
                let range = first..first + u64::from(records);
                self.identity.begin(&range, generator, request);
                // Records are generated whole; each table then takes its share of their cells.
                let generated = request.cells.len();
                range.clone().for_each(|record| generator.values(record, &mut request.cells));
                let width = self.main.places.len() + self.secondary.places.len();
                let rows = || range.clone().zip((generated..).step_by(width));
                let first_cell = next_cell(&request.cells);
                for (record, values) in rows() {
                    request.cells.int(record as i64);
                    request.cells.int(generator.measurement_of(record) as i64);
                    self.main.places.iter().for_each(|place| request.cells.repeat(values + place));
                }
                insert(request, self.main.insert, records, first_cell);
                let first_cell = next_cell(&request.cells);
                for (record, values) in rows() {
                    request.cells.int(record as i64);
                    self.secondary.places.iter().for_each(|place| request.cells.repeat(values + place));
                }
                insert(request, self.secondary.insert, records, first_cell);
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
