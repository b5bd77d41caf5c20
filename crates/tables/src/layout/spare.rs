//! The layout `spare`: a row for each record in columns that were created before their use was known, and a table that tells what
//! they are used for; the method "extra fields" of section 2.2.2.4 of Lindfors and Lind Oros (KTH, 2018), which names it and leaves it out.
//!
//! All columns except the key are texts, because the type of an unused column has to be fixed when it is created. The application
//! knows the names: it reads them from the naming table when it starts, which is not part of the measurement.

use super::access::{Access, Accessed, Shape, TablePart, change};
use super::columns::{add, column_ref, equals, insert, next_cell, table};
use super::evolution::append_value;
use super::query::{Queried, check_window};
use super::text::repeat_as_text;
use super::whole::Whole;
use super::{Entry, Layout};
use crate::operation::Operation;
use crate::query::{Place, Query};
use crate::record::{Column, ColumnKind, Generator, RecordType};
use crate::statement::{Comparison, Evolution, Form, Program, Request, Select, Statement, Table, TableColumn};

/// Registry entry.
pub(super) static SPARE: Entry = Entry {
    name: "spare",
    summary: "one row a record in prepared columns of text, some unused, and a table of what they are for (KTH extra fields)",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(Spare::new(record_type, table, records_max))),
};

/// Number of columns that no field uses yet.
const UNUSED: usize = 8;

/// Maximum length of a column's text in characters: TEXT rather than VARCHAR, as in the study.
const CHARACTERS: u32 = 16_000;

/// Maximum length of a field's name in characters.
const NAME_CHARACTERS: u32 = 64;

struct Spare {
    program: Program,
    whole: Whole,
    insert: u16,
    /// The statement that reads a whole record.
    read: Select,
    accessed: Accessed,
    queried: Queried,
}

fn column(name: String, kind: ColumnKind, nullable: bool) -> TableColumn {
    TableColumn { name, kind, nullable }
}

/// Returns the spare column with this number, from 0.
fn spare(number: usize, characters: u32) -> TableColumn {
    column(format!("spare_{}", number + 1), ColumnKind::Text(characters), true)
}

impl Spare {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Self {
        let whole = Whole::of(record_type);
        let used = whole.columns.len();
        let longest = whole.columns.iter().map(|column| match column.kind {
            ColumnKind::Text(characters) => characters,
            ColumnKind::Blob(bytes) => bytes.saturating_mul(2),
            _ => 0,
        });
        let characters = longest.max().unwrap_or(0).max(CHARACTERS);
        let mut program = Program { rows_max: records_max.max(used), ..Program::default() };
        let key = whole.key.column.clone();
        let columns = |spares| [key.clone()].into_iter().chain((0..spares).map(|number| spare(number, characters)));
        let names = format!("{name}_names");
        let naming = vec![
            column("place".to_owned(), ColumnKind::Int32, false),
            column("name".to_owned(), ColumnKind::Text(NAME_CHARACTERS), false),
        ];
        program.tables.push(table(&names, naming.clone(), vec!["place".to_owned()]));
        program.tables.push(table(name, columns(used + UNUSED).collect(), vec![key.name.clone()]));
        let into_records =
            add(&mut program, Statement::Insert { table: name.to_owned(), columns: columns(used).collect() });
        let read = Select {
            columns: columns(used).map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: vec![equals(name, &key.name, key.kind)],
            ..Select::default()
        };
        let name_one = add(&mut program, Statement::Insert { table: names, columns: naming });
        for (place, column) in (1..).zip(&whole.columns) {
            program.first.cells.int(place);
            program.first.cells.text(&column.name);
        }
        if used > 0 {
            insert(&mut program.first, name_one, used as u32, 0);
        }
        Spare { program, whole, insert: into_records, read, accessed: Accessed::default(), queried: Queried::default() }
    }

    /// Returns the naming table and the record table.
    fn tables(&self) -> (&Table, &Table) {
        (&self.program.tables[0], &self.program.tables[1])
    }
}

impl Layout for Spare {
    fn program(&self) -> &Program {
        &self.program
    }

    fn record_table(&self) -> Option<&str> {
        Some(&self.tables().1.name)
    }

    fn add_access(&mut self, access: &Access, record_type: &RecordType) {
        let (_, records) = self.tables();
        let key = &self.whole.key.column;
        let mut from_key = equals(&self.read.from, &key.name, key.kind);
        from_key.comparison = Comparison::GreaterOrEqual;
        let order = vec![(from_key.column.clone(), false)];
        let scan = Select { conditions: vec![from_key], order, ..self.read.clone() };
        let values = records.columns[1 + self.whole.identity..].iter().take(record_type.values.len());
        let columns = values.cloned().enumerate().collect();
        let parts = vec![TablePart { table: records.name.clone(), columns }];
        let shape = Shape { read: &self.read, key: &self.whole.key_columns(), parts, scan, as_text: true };
        self.accessed = Accessed::add(access, &mut self.program, shape);
    }

    fn add_queries(&mut self, queries: &[Query], record_type: &RecordType) -> Result<(), String> {
        check_window(queries, &self.whole.key)?;
        let (table, key) = (self.tables().1.name.clone(), self.whole.key.column.clone());
        let whole = self.whole.clone();
        let named = |place: Place| {
            let column = Whole::named(place, record_type);
            let used = whole.columns.iter().position(|used| used.name == column.name);
            // The key is in a column of its own, under its name.
            used.map_or(column.clone(), |used| TableColumn { name: spare(used, 0).name, ..column })
        };
        let form = (table.as_str(), &key, &Form::Texts);
        self.queried = Queried::add_records(queries, &mut self.program, record_type, form, &named);
        Ok(())
    }

    fn evolution(&self, field: &Column) -> Evolution {
        let (names, records) = self.tables();
        let place = self.whole.columns.len();
        let unused = vec![records.columns[1 + place].clone()];
        let key = self.whole.key_columns();
        let statements = vec![
            Statement::Insert { table: names.name.clone(), columns: names.columns.clone() },
            Statement::Delete { table: names.name.clone(), key: names.columns[..1].to_vec() },
            Statement::Update { table: records.name.clone(), set: unused, key },
        ];
        let (mut begin, mut end) = (Request::default(), Request::default());
        begin.cells.int(place as i64 + 1);
        begin.cells.text(&field.name);
        insert(&mut begin, 0, 1, 0);
        end.cells.int(place as i64 + 1);
        change(&mut end, 1, 0, 1);
        let bind = |has_value: bool| {
            let key = self.whole.key.clone();
            Box::new(move |record, generator: &dyn Generator, request: &mut Request| {
                let first_cell = next_cell(&request.cells);
                if has_value {
                    append_value(record, request)
                } else {
                    request.cells.null()
                }
                key.append(record, generator, request);
                change(request, 2, first_cell, 1);
            })
        };
        let program = Program { statements, rows_max: 1, ..Program::default() };
        Evolution { program, begin, write: Some(bind(true)), erase: Some(bind(false)), end, ..Evolution::default() }
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        let first_cell = next_cell(&request.cells);
        let key = &self.whole.key;
        match *operation {
            Operation::Insert { first, records } => {
                let width = self.whole.columns.len();
                let range = first..first + u64::from(records);
                range.clone().for_each(|record| self.whole.append(record, generator, request));
                let rows = next_cell(&request.cells);
                for (record, values) in range.zip((first_cell as usize..).step_by(width.max(1))) {
                    key.append(record, generator, request);
                    (values..values + width).for_each(|place| repeat_as_text(&mut request.cells, place));
                }
                insert(request, self.insert, records, rows);
            }
            Operation::Query { query } => self.queried.bind(query, request),
            _ => {
                let append_key = |record, request: &mut Request| key.append(record, generator, request);
                self.accessed.bind(operation, generator, request, append_key, append_key);
            }
        }
    }
}
