//! The layout `eav`: a row for each field of each record, of entity, attribute and value; the method of section 4.1.2 of Lindfors
//! and Lind Oros (KTH, 2018; Appendix A.2). The entity is the record's key, the value a text; a field that is null has a row without one.
//!
//! An update of several fields of a record is one statement with CASE. A scan reads all rows of the first n entities from a key on,
//! in the order of the keys: whole records, which the study leaves out.

use super::access::{Access, ByFields, change};
use super::columns::{add, column_ref, equals, insert, next_cell, read, table};
use super::evolution::append_value;
use super::query::{Queried, check_window};
use super::text::{make_text, repeat_as_text};
use super::whole::{Whole, chosen};
use super::{Entry, Layout};
use crate::operation::{Fields, Operation};
use crate::query::{Place, Query};
use crate::record::{Column, ColumnKind, Generator, RecordType};
use crate::statement::{Evolution, Expect, Form, Program, Request, Select, Statement, Step, TableColumn};

/// Registry entry.
pub(super) static EAV: Entry = Entry {
    name: "eav",
    summary: "one row a field: entity, attribute, value (KTH method EAV-table)",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(Eav::new(record_type, table, records_max))),
};

/// Names of the columns, as in the study; the entity column has the name of the record's key.
const ATTRIBUTE: &str = "field";
const VALUE: &str = "value";

/// Maximum length of an attribute's name in characters.
const ATTRIBUTE_CHARACTERS: u32 = 64;

struct Eav {
    program: Program,
    whole: Whole,
    insert: u16,
    /// The statement that reads all rows of a record.
    all_rows: Select,
    read: Option<u16>,
    select: ByFields<u16>,
    update: ByFields<u16>,
    scan: Option<u16>,
    delete: Option<u16>,
    queried: Queried,
}

/// Returns the maximum number of characters in the text of a column's value.
fn characters(column: &Column) -> u32 {
    match column.kind {
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => 20,
        // The smallest numbers are written without an exponent.
        ColumnKind::Float64 => 1100,
        ColumnKind::Text(characters) => characters,
        ColumnKind::Blob(bytes) => bytes.saturating_mul(2),
        ColumnKind::Json => u32::MAX,
    }
}

impl Eav {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Self {
        let whole = Whole::of(record_type);
        let fields = whole.columns.len();
        let mut program =
            Program { rows_max: records_max.saturating_mul(fields), rows_usual: fields, ..Program::default() };
        let longest = whole.columns.iter().map(characters).max().unwrap_or(1);
        let key = whole.key.column.clone();
        let column = |name: &str, kind, nullable| TableColumn { name: name.to_owned(), kind, nullable };
        let columns = vec![
            key.clone(),
            column(ATTRIBUTE, ColumnKind::Text(ATTRIBUTE_CHARACTERS), false),
            column(VALUE, ColumnKind::Text(longest.max(255)), true),
        ];
        program.tables.push(table(name, columns.clone(), vec![key.name.clone(), ATTRIBUTE.to_owned()]));
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns: columns.clone() });
        let all_rows = Select {
            columns: columns.iter().map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: vec![equals(name, &key.name, key.kind)],
            ..Select::default()
        };
        let (select, update) = (ByFields::default(), ByFields::default());
        let (read, scan, delete) = (None, None, None);
        Eav { program, whole, insert, all_rows, read, select, update, scan, delete, queried: Queried::default() }
    }

    /// Returns the table's name, and its columns entity, attribute and value.
    fn columns(&self) -> (&str, &TableColumn, &TableColumn, &TableColumn) {
        let table = &self.program.tables[0];
        (&table.name, &table.columns[0], &table.columns[1], &table.columns[2])
    }

    /// Returns the statements that read and set one field.
    fn of_one(&self) -> (Statement, Statement) {
        let (name, entity, attribute, value) = self.columns();
        let select = Select {
            columns: vec![column_ref(name, &value.name)],
            from: name.to_owned(),
            conditions: [entity, attribute].map(|column| equals(name, &column.name, column.kind)).into(),
            ..Select::default()
        };
        let key = vec![entity.clone(), attribute.clone()];
        (Statement::Select(select), Statement::Update { table: name.to_owned(), set: vec![value.clone()], key })
    }

    /// Returns the statement that sets all value columns.
    fn of_all(&self) -> Statement {
        let (name, entity, attribute, value) = self.columns();
        let values = &self.whole.columns[self.whole.identity..];
        Statement::UpdateCases {
            table: name.to_owned(),
            by: attribute.clone(),
            set: value.clone(),
            cases: values.iter().map(|column| column.name.clone()).collect(),
            key: vec![entity.clone()],
        }
    }

    fn append_rows(&self, record: u64, generator: &dyn Generator, request: &mut Request, values: usize) {
        for (place, column) in (values..).zip(&self.whole.columns) {
            self.whole.key.append(record, generator, request);
            request.cells.text(&column.name);
            repeat_as_text(&mut request.cells, place);
        }
    }

    fn name_of(&self, fields: Fields) -> Option<&str> {
        match (fields, chosen(&self.whole.columns[self.whole.identity..], fields)) {
            (Fields::One(_), [column]) => Some(&column.name),
            _ => None,
        }
    }
}

impl Layout for Eav {
    fn program(&self) -> &Program {
        &self.program
    }

    fn record_table(&self) -> Option<&str> {
        self.program.tables.first().map(|table| table.name.as_str())
    }

    fn rows_per_record(&self) -> u64 {
        self.whole.columns.len() as u64
    }

    fn add_access(&mut self, access: &Access, _: &RecordType) {
        let (select_one, update_one) = self.of_one();
        let update_all = self.of_all();
        let (name, entity, attribute, value) = self.columns();
        let columns = [entity, attribute, value].map(|column| column.name.clone()).into();
        let scan = Statement::SelectGroups { table: name.to_owned(), columns, key: entity.clone() };
        let delete = Statement::Delete { table: name.to_owned(), key: vec![entity.clone()] };
        let all_rows = Statement::Select(self.all_rows.clone());
        let program = &mut self.program;
        let mut once = |statement: &Statement| match program.statements.iter().position(|known| known == statement) {
            Some(known) => known as u16,
            None => add(program, statement.clone()),
        };
        self.read = access.read.then(|| once(&all_rows));
        self.select = ByFields::new(&access.select, |fields| match fields {
            Fields::All => once(&all_rows),
            Fields::One(_) => once(&select_one),
        });
        self.update = ByFields::new(&access.update, |fields| match fields {
            Fields::All => once(&update_all),
            Fields::One(_) => once(&update_one),
        });
        self.scan = access.scan.then(|| once(&scan));
        self.delete = access.delete.then(|| once(&delete));
    }

    fn add_queries(&mut self, queries: &[Query], record_type: &RecordType) -> Result<(), String> {
        check_window(queries, &self.whole.key)?;
        let (table, key) = (self.program.tables[0].name.clone(), self.whole.key.column.clone());
        let named = |place: Place| Whole::named(place, record_type);
        let form = (table.as_str(), &key, &Form::Rows { attribute: ATTRIBUTE.to_owned(), value: VALUE.to_owned() });
        self.queried = Queried::add_records(queries, &mut self.program, record_type, form, &named);
        Ok(())
    }

    fn evolution(&self, field: &Column) -> Evolution {
        let table = &self.program.tables[0];
        let (name, columns) = (table.name.clone(), table.columns.clone());
        let write = Statement::Insert { table: name.clone(), columns };
        let erase = Statement::Delete { table: name, key: table.columns[..2].to_vec() };
        let bind = |statement: u16, with_value: bool| {
            let (key, attribute) = (self.whole.key.clone(), field.name.clone());
            Box::new(move |record, generator: &dyn Generator, request: &mut Request| {
                let first_cell = next_cell(&request.cells);
                key.append(record, generator, request);
                request.cells.text(&attribute);
                if with_value {
                    append_value(record, request);
                }
                change(request, statement, first_cell, 1);
            })
        };
        Evolution {
            program: Program { statements: vec![write, erase], rows_max: 1, ..Program::default() },
            write: Some(bind(0, true)),
            erase: Some(bind(1, false)),
            ..Evolution::default()
        }
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        let key = &self.whole.key;
        let first_cell = next_cell(&request.cells);
        match *operation {
            Operation::Insert { first, records } => {
                let width = self.whole.columns.len();
                let range = first..first + u64::from(records);
                range.clone().for_each(|record| self.whole.append(record, generator, request));
                let rows = next_cell(&request.cells);
                for (record, values) in range.zip((first_cell as usize..).step_by(width.max(1))) {
                    self.append_rows(record, generator, request, values);
                }
                insert(request, self.insert, records * width as u32, rows);
            }
            Operation::Read { record } => {
                let Some(statement) = self.read else { return };
                key.append(record, generator, request);
                read(request, statement, first_cell);
            }
            Operation::Select { record, fields } => {
                let Some(statement) = self.select.get(fields) else { return };
                key.append(record, generator, request);
                if let Some(name) = self.name_of(fields) {
                    request.cells.text(name);
                }
                read(request, *statement, first_cell);
            }
            Operation::Update { record, like, fields } => {
                let Some(statement) = self.update.get(fields) else { return };
                generator.values(like, &mut request.cells);
                let end = request.cells.len();
                let places = match fields {
                    Fields::All => first_cell as usize..end,
                    Fields::One(place) => {
                        let place = first_cell as usize + usize::from(place);
                        place..place + 1
                    }
                };
                let changed = places.len() as u64;
                places.for_each(|place| {
                    request.cells.repeat(place);
                    make_text(&mut request.cells);
                });
                key.append(record, generator, request);
                if let Some(name) = self.name_of(fields) {
                    request.cells.text(name);
                }
                change(request, *statement, end as u32, changed);
            }
            Operation::Scan { first, records } => {
                let Some(statement) = self.scan else { return };
                key.append(first, generator, request);
                request.cells.int(i64::from(records));
                read(request, statement, first_cell);
            }
            Operation::Delete { record } => {
                let Some(statement) = self.delete else { return };
                key.append(record, generator, request);
                // A record may have received further fields since.
                request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::ChangedSome });
            }
            Operation::Query { query } => self.queried.bind(query, request),
            Operation::Ask { .. } | Operation::Statement { .. } | Operation::Replayed { .. } => {}
        }
    }
}
