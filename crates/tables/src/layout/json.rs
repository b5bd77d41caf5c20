//! The layout `json`: a row for each record, of its key and a JSON document with all other columns; the method of section 4.1.2 of
//! Lindfors and Lind Oros (KTH, 2018; Appendix A.1).
//!
//! The client makes the document, and the database checks it and stores it in its own type; in the study the server makes it with
//! JSON_OBJECT from the values. Members have the names of the columns, with `_` for quotes and backslashes; bytes are
//! hexadecimal digits. One field is selected within the database, and set there with JSON_SET (`||` in PostgreSQL).

use super::access::{Access, ByFields, change};
use super::columns::{add, column_ref, equals, insert, next_cell, read, table, table_column};
use super::evolution::{append_value, field_column};
use super::query::{Queried, check_window};
use super::text::{make_text, write_json, write_string};
use super::whole::{Whole, chosen};
use super::{Entry, Layout};
use crate::operation::{Fields, Operation};
use crate::query::{Place, Query};
use crate::record::{Cell, Cells, Column, ColumnKind, Generator, RecordType};
use crate::statement::{Comparison, Evolution, Form, Limit, Program, Request, Select, Statement, TableColumn};

/// Registry entry.
pub(super) static JSON: Entry = Entry {
    name: "json",
    summary: "one row a record: its key, and a JSON document of all else (KTH method JSON)",
    packs: false,
    build: |record_type, table, records_max| Ok(Box::new(Json::new(record_type, table, records_max)?)),
};

/// Name of the column with the document, as in the study.
const DOCUMENT: &str = "fields";

struct Json {
    program: Program,
    whole: Whole,
    /// The beginning of each member: its name as a JSON string, and a colon.
    names: Vec<Vec<u8>>,
    insert: u16,
    /// The statement that reads a whole record.
    whole_row: Select,
    read: Option<u16>,
    scan: Option<u16>,
    delete: Option<u16>,
    select: ByFields<Option<u16>>,
    update: ByFields<u16>,
    queried: Queried,
}

/// Returns the name of a column's member.
fn member(column: &str) -> String {
    column.replace(['"', '\\', '\''], "_")
}

impl Json {
    fn new(record_type: &RecordType, name: &str, records_max: usize) -> Result<Self, String> {
        let whole = Whole::of(record_type);
        let mut members = std::collections::BTreeMap::new();
        for column in &whole.columns {
            if let Some(other) = members.insert(member(&column.name), &column.name) {
                return Err(format!(
                    "the columns {other:?} and {:?} of record type \"{}\" would both be the member {:?} of a document, which \
                     has no quotes and backslashes; rename one, or take another layout.name",
                    column.name,
                    record_type.name,
                    member(&column.name)
                ));
            }
        }
        let mut program = Program { rows_max: records_max, ..Program::default() };
        let key = whole.key.column.clone();
        let document = TableColumn { name: DOCUMENT.to_owned(), kind: ColumnKind::Json, nullable: false };
        let columns = vec![key.clone(), document];
        program.tables.push(table(name, columns.clone(), vec![key.name.clone()]));
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns: columns.clone() });
        let whole_row = Select {
            columns: columns.iter().map(|column| column_ref(name, &column.name)).collect(),
            from: name.to_owned(),
            conditions: vec![equals(name, &key.name, key.kind)],
            ..Select::default()
        };
        let start = |column: &Column| {
            let mut start = Vec::new();
            write_string(member(&column.name).as_bytes(), &mut start);
            start.push(b':');
            start
        };
        let names = whole.columns.iter().map(start).collect();
        let (select, update) = (ByFields::default(), ByFields::default());
        Ok(Json {
            program,
            whole,
            names,
            insert,
            whole_row,
            read: None,
            scan: None,
            delete: None,
            select,
            update,
            queried: Queried::default(),
        })
    }

    fn table(&self) -> String {
        self.program.tables[0].name.clone()
    }

    /// Replaces the values from `first` on by a document that contains them.
    fn make_document(&self, first: usize, cells: &mut Cells) {
        cells.replace_by_text(first, |cells, out| {
            let mut before = b'{';
            for (name, cell) in self.names.iter().zip(&cells.as_slice()[first..]) {
                out.push(before);
                out.extend_from_slice(name);
                write_json(*cell, cells, out);
                before = b',';
            }
            out.extend_from_slice(if before == b'{' { b"{}" } else { b"}" });
        });
    }
}

impl Layout for Json {
    fn program(&self) -> &Program {
        &self.program
    }

    fn record_table(&self) -> Option<&str> {
        self.program.tables.first().map(|table| table.name.as_str())
    }

    fn add_access(&mut self, access: &Access, record_type: &RecordType) {
        let (table, key) = (self.table(), self.whole.key_columns());
        let value = |column: &Column| {
            let column = TableColumn { name: member(&column.name), ..table_column(column) };
            match column.kind {
                // Documents cannot hold bytes.
                ColumnKind::Blob(bytes) => TableColumn { kind: ColumnKind::Text(bytes.saturating_mul(2)), ..column },
                _ => column,
            }
        };
        let values: Vec<_> = record_type.values.iter().map(value).collect();
        let program = &mut self.program;
        self.read = access.reads_whole().then(|| add(program, Statement::Select(self.whole_row.clone())));
        self.select = ByFields::new(&access.select, |fields| match chosen(&values, fields) {
            [member] if fields != Fields::All => {
                let (table, document, key) = (table.clone(), DOCUMENT.to_owned(), key.clone());
                Some(add(program, Statement::SelectMember { table, document, member: member.clone(), key }))
            }
            _ => self.read,
        });
        self.update = ByFields::new(&access.update, |fields| {
            let (table, document, key) = (table.clone(), DOCUMENT.to_owned(), key.clone());
            add(program, Statement::UpdateDocument { table, document, set: chosen(&values, fields).to_vec(), key })
        });
        self.scan = access.scan.then(|| add_scan(program, &self.whole_row, &self.whole.key.column));
        self.delete = access.delete.then(|| add(program, Statement::Delete { table, key }));
    }

    fn add_queries(&mut self, queries: &[Query], record_type: &RecordType) -> Result<(), String> {
        check_window(queries, &self.whole.key)?;
        let (table, key) = (self.table(), self.whole.key.column.clone());
        let named = |place: Place| TableColumn {
            name: member(&place.column(record_type).name),
            ..Whole::named(place, record_type)
        };
        let form = (table.as_str(), &key, &Form::Document(DOCUMENT.to_owned()));
        self.queried = Queried::add_records(queries, &mut self.program, record_type, form, &named);
        Ok(())
    }

    fn evolution(&self, field: &Column) -> Evolution {
        let (table, document, key) = (self.table(), DOCUMENT.to_owned(), self.whole.key_columns());
        let set = vec![field_column(field)];
        let member = field.name.clone();
        let write =
            Statement::UpdateDocument { table: table.clone(), document: document.clone(), set, key: key.clone() };
        let erase = Statement::ReduceDocument { table, document, member, key };
        let (writing, erasing) = (self.whole.key.clone(), self.whole.key.clone());
        Evolution {
            program: Program { statements: vec![write, erase], rows_max: 1, ..Program::default() },
            write: Some(Box::new(move |record, generator, request| {
                let first_cell = next_cell(&request.cells);
                append_value(record, request);
                writing.append(record, generator, request);
                change(request, 0, first_cell, 1);
            })),
            erase: Some(Box::new(move |record, generator, request| {
                let first_cell = next_cell(&request.cells);
                erasing.append(record, generator, request);
                change(request, 1, first_cell, 1);
            })),
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
                    self.make_document(values, &mut request.cells);
                }
                insert(request, self.insert, records, first_cell);
            }
            Operation::Read { record } => {
                let Some(statement) = self.read else { return };
                key.append(record, generator, request);
                read(request, statement, first_cell);
            }
            Operation::Select { record, fields } => {
                let Some(Some(statement)) = self.select.get(fields) else { return };
                key.append(record, generator, request);
                read(request, *statement, first_cell);
            }
            Operation::Update { record, like, fields } => {
                let Some(statement) = self.update.get(fields) else { return };
                append_members(like, fields, generator, request);
                let first_cell = first_cell + generator.record_type().values.len() as u32;
                key.append(record, generator, request);
                change(request, *statement, first_cell, 1);
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
            Operation::Query { query } => self.queried.bind(query, request),
            Operation::Ask { .. } | Operation::Statement { .. } | Operation::Replayed { .. } => {}
        }
    }
}

/// Appends the values of a record and, behind them, the chosen fields in the form of a document's members.
fn append_members(record: u64, fields: Fields, generator: &dyn Generator, request: &mut Request) {
    let values = request.cells.len();
    generator.values(record, &mut request.cells);
    let end = request.cells.len();
    for place in values..end {
        if fields == Fields::All || fields == Fields::One((place - values) as u16) {
            request.cells.repeat(place);
            if matches!(request.cells.get(place), Cell::Blob(_)) {
                make_text(&mut request.cells);
            }
        }
    }
}

/// Adds the scan of whole rows in the order of a single key; it reads the columns of `read`.
pub(super) fn add_scan(program: &mut Program, read: &Select, key: &TableColumn) -> u16 {
    let mut from_key = equals(&read.from, &key.name, key.kind);
    from_key.comparison = Comparison::GreaterOrEqual;
    let order = vec![(from_key.column.clone(), false)];
    let limit = Some(Limit::Bound);
    add(program, Statement::Select(Select { conditions: vec![from_key], order, limit, ..read.clone() }))
}
