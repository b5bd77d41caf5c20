//! The layout `key-value`: a row for each record, with its key and one value that is opaque to the database.
//!
//! To update a field, the application must know the others: in one transaction it reads the value, locked against other changes, and
//! writes all of it. The new value here is made from the record as the generator makes it, not from the bytes read: the
//! database does the same work, and merging is up to the application. Fields set by other updates are reset to their generated values.
//! Reading a field reads the whole record.

use super::access::{Access, ByFields, change};
use super::columns::{add, column_ref, equals, insert, next_cell, read, table};
use super::evolution::append_value;
use super::json::add_scan;
use super::whole::Whole;
use super::{Entry, Layout, opaque};
use crate::operation::{Fields, Operation};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::statement::{Bind, Evolution, Program, Request, Select, Statement, TableColumn};

/// Registry entry.
pub(super) static KEY_VALUE: Entry = Entry {
    name: "key-value",
    summary: "one row a record: its key, and all else as bytes that only the application understands",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(KeyValue::new(record_type, table, records_max))),
};

/// Name of the column with the bytes.
const VALUE: &str = "value";

/// Room for fields that are added later, in bytes.
const ROOM_BYTES: u32 = 256;

struct KeyValue {
    program: Program,
    whole: Whole,
    insert: u16,
    /// The statement that reads a whole record.
    whole_row: Select,
    read: Option<u16>,
    select: ByFields<()>,
    update: ByFields<()>,
    read_to_write: Option<u16>,
    write: Option<u16>,
    scan: Option<u16>,
    delete: Option<u16>,
}

impl KeyValue {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Self {
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let whole = Whole::of(record_type);
        let key = whole.key.column.clone();
        let kind = ColumnKind::Blob(opaque::bytes_max(&whole.columns).saturating_add(ROOM_BYTES));
        let columns = vec![key.clone(), TableColumn { name: VALUE.to_owned(), kind, nullable: false }];
        program.tables.push(table(name, columns.clone(), vec![key.name.clone()]));
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns: columns.clone() });
        let whole_row = Select {
            columns: columns.iter().map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: vec![equals(name, &key.name, key.kind)],
            ..Select::default()
        };
        let (select, update) = (ByFields::default(), ByFields::default());
        let (read, read_to_write, write, scan, delete) = (None, None, None, None, None);
        KeyValue { program, whole, insert, whole_row, read, select, update, read_to_write, write, scan, delete }
    }

    /// Returns the statements that read a value in order to rewrite it, and that write it.
    fn rewriting(&self) -> (Statement, Statement) {
        let table = &self.program.tables[0];
        let reading = Select { for_update: true, ..self.whole_row.clone() };
        let set = vec![table.columns[1].clone()];
        let writing = Statement::Update { table: table.name.clone(), set, key: self.whole.key_columns() };
        (Statement::Select(reading), writing)
    }

    /// Returns the requests that add a field to a record, or remove it: the value is read, and written with the field or without it.
    fn rewrite(&self, with_field: bool) -> Bind {
        let whole = self.whole.clone();
        Box::new(move |record, generator, request| {
            let first_cell = next_cell(&request.cells);
            whole.key.append(record, generator, request);
            read(request, 0, first_cell);
            let first = request.cells.len();
            whole.append(record, generator, request);
            if with_field {
                append_value(record, request);
            }
            make_opaque(first, &mut request.cells);
            whole.key.append(record, generator, request);
            change(request, 1, first as u32, 1);
        })
    }
}

/// Replaces the values from `first` on by their bytes.
fn make_opaque(first: usize, cells: &mut Cells) {
    cells.replace_by_blob(first, |cells, out| {
        cells.as_slice()[first..].iter().for_each(|cell| opaque::write(*cell, cells, out));
    });
}

impl Layout for KeyValue {
    fn program(&self) -> &Program {
        &self.program
    }

    fn record_table(&self) -> Option<&str> {
        self.program.tables.first().map(|table| table.name.as_str())
    }

    fn add_access(&mut self, access: &Access, _: &RecordType) {
        let (reading, writing) = self.rewriting();
        let (table, key) = (self.program.tables[0].name.clone(), self.whole.key_columns());
        let program = &mut self.program;
        // Selecting one field reads all of them.
        let reads = access.read || !access.select.is_empty();
        self.read = reads.then(|| add(program, Statement::Select(self.whole_row.clone())));
        self.select = ByFields::new(&access.select, |_| ());
        self.update = ByFields::new(&access.update, |_| ());
        if access.update.iter().any(|fields| *fields != Fields::All) {
            self.read_to_write = Some(add(program, reading));
        }
        if !access.update.is_empty() {
            self.write = Some(add(program, writing));
        }
        self.scan = access.scan.then(|| add_scan(program, &self.whole_row, &self.whole.key.column));
        self.delete = access.delete.then(|| add(program, Statement::Delete { table, key }));
    }

    fn evolution(&self, _: &Column) -> Evolution {
        let (reading, writing) = self.rewriting();
        Evolution {
            program: Program { statements: vec![reading, writing], rows_max: 1, ..Program::default() },
            write: Some(self.rewrite(true)),
            erase: Some(self.rewrite(false)),
            ..Evolution::default()
        }
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        let first_cell = next_cell(&request.cells);
        let key = &self.whole.key;
        match *operation {
            Operation::Insert { first, records } => {
                for record in first..first + u64::from(records) {
                    key.append(record, generator, request);
                    let values = request.cells.len();
                    self.whole.append(record, generator, request);
                    make_opaque(values, &mut request.cells);
                }
                insert(request, self.insert, records, first_cell);
            }
            Operation::Read { record } => {
                let Some(statement) = self.read else { return };
                key.append(record, generator, request);
                read(request, statement, first_cell);
            }
            Operation::Select { record, fields } => {
                let (Some(statement), Some(())) = (self.read, self.select.get(fields)) else { return };
                key.append(record, generator, request);
                read(request, statement, first_cell);
            }
            Operation::Update { record, like, fields } => {
                let (Some(write), Some(())) = (self.write, self.update.get(fields)) else { return };
                if let (Some(reading), Fields::One(_)) = (self.read_to_write, fields) {
                    key.append(record, generator, request);
                    read(request, reading, first_cell);
                }
                let first = request.cells.len();
                self.whole.append_updated(record, (like, fields), generator, request);
                make_opaque(first, &mut request.cells);
                key.append(record, generator, request);
                change(request, write, first as u32, 1);
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
                change(request, statement, first_cell, 1);
            }
            Operation::Query { .. }
            | Operation::Ask { .. }
            | Operation::Statement { .. }
            | Operation::Replayed { .. } => {}
        }
    }
}
