//! The layout of a study that writes as a recorder does: its tables and, in each transaction, the update of its writer's row. Main type: [`Recorded`].
//!
//! Each client is a writer. Records and identities have the study's numbers, from 1; those of a recorder have the number of its writer in their upper bits. Writes of a recorder
//! outside these transactions are left out: the ends of measurements, which it updates when nothing waits, and the register of names.

use super::super::columns::{add, insert, next_cell};
use super::super::text::{repeat_as_text, write_string};
use super::super::{Layout, access::Access};
use super::described::{Described, StoredColumn};
use super::kind::FieldKind;
use super::ledger::{ledger_columns, ledger_table, ledger_update};
use super::names::{keeps_column_name, keeps_table_name};
use super::series::hash_hex;
use super::shape::Shape;
use crate::operation::Operation;
use crate::record::{Cell, Cells, Column, Generator, RecordType, time_of_number};
use crate::statement::{Evolution, Expect, Program, Request, Statement, Step};

/// A column of the record type that becomes a tag or a field: its index among identity and values, and its name.
#[derive(Debug, Clone)]
struct Source {
    place: usize,
    name: String,
    kind: FieldKind,
    hot: bool,
}

/// The layout of a recorder.
pub struct Recorded {
    program: Program,
    shape: Shape,
    /// The tags, in the order of the columns.
    tags: Vec<Source>,
    fields: Vec<Source>,
    /// Indexes into the tags and fields, sorted by name.
    tags_by_name: Vec<usize>,
    fields_by_name: Vec<usize>,
    /// Number of identity and value columns of a record.
    width: usize,
    ledger: u16,
    begin: Option<u16>,
    main: u16,
    second: Option<u16>,
}

impl Recorded {
    /// Creates a recorder's layout with this name for records of a type, with a row of the ledger for each client and, with `time_index`, an index on
    /// source and time.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(
        name: &str,
        record_type: &RecordType,
        table: &str,
        records_max: usize,
        clients: u32,
        time_index: bool,
    ) -> Result<Self, String> {
        let Some(shape) = Shape::named(name) else {
            let names = Shape::NAMES.join(", ");
            return Err(format!(
                "layout.tables is \"recorder\" and layout.name is \"{name}\"; a recorder has the layouts {names}"
            ));
        };
        let (tags, fields) = sources(record_type)?;
        check_table(table)?;
        if shape.has_identity() && record_type.identity_key == 0 {
            let type_name = &record_type.name;
            return Err(format!(
                "layout.tables is \"recorder\" and measurements of {type_name} may have the same tags, which are one identity for a \
                 recorder; take layout.name = \"wide\" or another record.type"
            ));
        }
        let described = Described { table, shape, has_more: false, tags: columns(&tags), fields: columns(&fields) };
        let ledger_name = format!("{table}_writer");
        let mut program = Program { pipelines: true, ..Program::default() };
        program.tables.push(ledger_table(&ledger_name));
        program.tables.extend(described.tables(time_index));
        let fill = add(&mut program, Statement::Insert { table: ledger_name.clone(), columns: ledger_columns() });
        let ledger = add(&mut program, ledger_update(&ledger_name, "<>"));
        let mut insert = |table: String, columns| add(&mut program, Statement::Insert { table, columns });
        let begin = shape.has_identity().then(|| insert(described.identity_table(), described.identity_columns()));
        let main = insert(described.record_table(), described.record_columns());
        let second = described.second_table().map(|table| insert(table, described.second_columns()));
        let rows = if shape == Shape::Eav { records_max * fields.len().max(1) } else { records_max };
        program.rows_max = rows.max(clients as usize);
        append_writers(fill, clients, &mut program.first);
        let width = record_type.identity.len() + record_type.values.len();
        let (tags_by_name, fields_by_name) = (by_name(&tags), by_name(&fields));
        Ok(Recorded { program, shape, tags, fields, tags_by_name, fields_by_name, width, ledger, begin, main, second })
    }

    /// Appends the step that updates the writer's row, with which each transaction of a recorder begins.
    fn move_row(&self, first: u64, records: u32, request: &mut Request) {
        let first_cell = next_cell(&request.cells);
        let after = (first + u64::from(records)) as i64;
        let values = [after, after, after, after, time_of_number(first) + 1, i64::from(request.client), -1, -1];
        values.into_iter().for_each(|value| request.cells.int(value));
        request.steps.push(Step { statement: self.ledger, rows: 1, first_cell, expect: Expect::Changed(1) });
    }

    /// Appends the rows of the measurements that begin within these records.
    fn begin(&self, first: u64, records: u32, generator: &dyn Generator, request: &mut Request) {
        let Some(statement) = self.begin else { return };
        let last = first + u64::from(records) - 1;
        let measurement = generator.measurement_of(first);
        let began_before = generator.first_record_of(measurement) < first;
        let begun = measurement + u64::from(began_before)..generator.measurement_of(last) + 1;
        // Generated cells precede the rows that are made of them.
        let generated = request.cells.len();
        begun.clone().for_each(|measurement| generator.identity(measurement, 1, &mut request.cells));
        let width = generator.record_type().identity.len();
        let first_cell = next_cell(&request.cells);
        let mut rows = 0;
        for (measurement, identity) in begun.zip((generated..).step_by(width.max(1))) {
            let begin_ns = time_of_number(generator.first_record_of(measurement));
            let series = self.series(identity, &request.cells);
            request.cells.int(measurement as i64 + 1);
            request.cells.text(&series);
            [begin_ns, begin_ns, time_of_number(last)].iter().for_each(|time| request.cells.int(*time));
            self.append_tags(identity, &mut request.cells);
            rows += 1;
        }
        if rows > 0 {
            insert(request, statement, rows, first_cell);
        }
    }

    /// Returns the key by which an identity is found: the hash of its tags.
    fn series(&self, identity: usize, cells: &Cells) -> String {
        let mut texts = Vec::with_capacity(2 * self.tags.len());
        for tag in self.tags_by_name.iter().map(|place| &self.tags[*place]) {
            let text = text_of(cells.get(identity + tag.place), cells);
            if !text.is_empty() {
                texts.extend([tag.name.clone(), text]);
            }
        }
        hash_hex(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn append_tags(&self, generated: usize, cells: &mut Cells) {
        for tag in &self.tags {
            let place = generated + tag.place;
            match cells.get(place) {
                // The line protocol has no empty tags.
                Cell::Text(span) if cells.bytes_of(span).is_empty() => cells.null(),
                _ => repeat_as_text(cells, place),
            }
        }
    }

    /// Appends the fields that are hot, those that are not, or all (`None`).
    fn append_fields(&self, generated: usize, hot: Option<bool>, cells: &mut Cells) {
        for field in self.fields.iter().filter(|field| hot.is_none_or(|hot| hot == field.hot)) {
            append_field(generated + field.place, cells);
        }
    }

    /// Appends all fields that have a value as one JSON document.
    fn append_document(&self, generated: usize, cells: &mut Cells) {
        cells.null();
        let last = cells.len() - 1;
        cells.replace_by_text(last, |cells, out| {
            out.push(b'{');
            let mut separator = None;
            for field in self.fields_by_name.iter().map(|place| &self.fields[*place]) {
                let cell = sent(cells.get(generated + field.place));
                if cell == Cell::Null {
                    continue;
                }
                out.extend(separator.replace(b','));
                write_string(field.name.as_bytes(), out);
                out.push(b':');
                // Writing into a vector cannot fail.
                let _ = match cell {
                    Cell::Int(value) => serde_json::to_writer(&mut *out, &value),
                    Cell::Float(value) => serde_json::to_writer(&mut *out, &value),
                    Cell::Text(span) => {
                        write_string(cells.bytes_of(span), out);
                        Ok(())
                    }
                    Cell::Null | Cell::Blob(_) => Ok(()),
                };
            }
            out.push(b'}');
        });
    }

    /// Appends a row for each field of a record that has a value; returns the number of rows.
    fn append_single_values(&self, record: i64, generated: usize, cells: &mut Cells) -> u32 {
        let mut rows = 0;
        for field in &self.fields {
            let place = generated + field.place;
            if sent(cells.get(place)) == Cell::Null {
                continue;
            }
            cells.int(record);
            cells.text(&field.name);
            for kind in [FieldKind::Float, FieldKind::Int, FieldKind::Text] {
                if kind == field.kind { append_field(place, cells) } else { cells.null() }
            }
            rows += 1;
        }
        rows
    }

    fn append_records(&self, first: u64, records: u32, generator: &dyn Generator, request: &mut Request) {
        let generated = request.cells.len();
        for record in first..first + u64::from(records) {
            let measurement = generator.measurement_of(record);
            let so_far = record - generator.first_record_of(measurement) + 1;
            generator.identity(measurement, so_far, &mut request.cells);
            generator.values(record, &mut request.cells);
        }
        let rows = || (first..first + u64::from(records)).zip((generated..).step_by(self.width.max(1)));
        let first_cell = next_cell(&request.cells);
        for (record, generated) in rows() {
            request.cells.int(record as i64 + 1);
            if self.shape.has_identity() {
                request.cells.int(generator.measurement_of(record) as i64 + 1);
            }
            request.cells.int(time_of_number(record));
            match self.shape {
                Shape::Wide => {
                    self.append_tags(generated, &mut request.cells);
                    self.append_fields(generated, None, &mut request.cells);
                }
                Shape::Star => self.append_fields(generated, None, &mut request.cells),
                Shape::StarHot => self.append_fields(generated, Some(true), &mut request.cells),
                Shape::Json => self.append_document(generated, &mut request.cells),
                Shape::Eav => {}
            }
        }
        insert(request, self.main, records, first_cell);
        let Some(second) = self.second else { return };
        let (first_cell, mut second_rows) = (next_cell(&request.cells), 0);
        for (record, generated) in rows() {
            let record = record as i64 + 1;
            if self.shape == Shape::Eav {
                second_rows += self.append_single_values(record, generated, &mut request.cells);
            } else {
                request.cells.int(record);
                self.append_fields(generated, Some(false), &mut request.cells);
                second_rows += 1;
            }
        }
        if second_rows > 0 {
            insert(request, second, second_rows, first_cell);
        }
    }
}

impl Layout for Recorded {
    fn program(&self) -> &Program {
        &self.program
    }

    /// Adds nothing: these tables are only written to.
    fn add_access(&mut self, _access: &Access, _record_type: &RecordType) {}

    fn evolution(&self, _field: &Column) -> Evolution {
        Evolution::default()
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        let Operation::Insert { first, records } = *operation else { return };
        self.move_row(first, records, request);
        self.begin(first, records, generator, request);
        self.append_records(first, records, generator, request);
    }
}

impl Source {
    fn column(&self) -> StoredColumn<'_> {
        StoredColumn { name: &self.name, kind: self.kind, hot: self.hot }
    }
}

fn columns(sources: &[Source]) -> Vec<StoredColumn<'_>> {
    sources.iter().map(Source::column).collect()
}

/// Returns the tags and fields of a record type: the columns that identify the measurement and never change, and all others.
fn sources(record_type: &RecordType) -> Result<(Vec<Source>, Vec<Source>), String> {
    let type_name = &record_type.name;
    if record_type.key.is_some() {
        return Err(format!(
            "layout.tables is \"recorder\" and records of {type_name} have a key and no source; take another record.type"
        ));
    }
    let all = record_type.identity.iter().chain(&record_type.values).enumerate();
    let (mut tags, mut fields) = (Vec::new(), Vec::new());
    for (place, column) in all {
        let is_tag = place < record_type.identity.len() && record_type.identity_end != Some(place);
        let kind = if is_tag { Some(FieldKind::Text) } else { FieldKind::sent(column.kind) };
        let Some(kind) = kind else { continue };
        if !keeps_column_name(&column.name) {
            let name = &column.name;
            return Err(format!(
                "layout.tables is \"recorder\" and a recorder gives the column \"{name}\" of {type_name} another name; call it \
                 otherwise"
            ));
        }
        let source = Source { place, name: column.name.clone(), kind, hot: column.hot };
        if is_tag { tags.push(source) } else { fields.push(source) }
    }
    Ok((tags, fields))
}

/// Checks a table name, which is used without quotes in the statement that updates a writer's row.
fn check_table(table: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = table.starts_with(|first: char| first.is_ascii_lowercase());
    if keeps_table_name(table) && begins && table.bytes().all(is_plain) {
        return Ok(());
    }
    let remedy = "begin with a small letter and take small letters, digits and _";
    Err(format!(
        "layout.tables is \"recorder\" and a recorder gives tables another name than record.table {table:?}; {remedy}"
    ))
}

/// Appends a row for each client, as a recorder creates one for each writer.
fn append_writers(statement: u16, clients: u32, request: &mut Request) {
    let recorder = hash_hex(&["study"]);
    for client in 0..clients {
        request.cells.int(i64::from(client));
        request.cells.text(&recorder);
        request.cells.int(i64::from(client));
        (0..5).for_each(|_| request.cells.int(0));
    }
    insert(request, statement, clients, 0);
}

fn by_name(sources: &[Source]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..sources.len()).collect();
    places.sort_by(|a, b| sources[*a].name.cmp(&sources[*b].name));
    places
}

/// Returns a value as it can be sent as a field: numbers that are not finite are left out.
fn sent(cell: Cell) -> Cell {
    match cell {
        Cell::Float(value) if !value.is_finite() => Cell::Null,
        Cell::Blob(_) => Cell::Null,
        cell => cell,
    }
}

fn append_field(place: usize, cells: &mut Cells) {
    match sent(cells.get(place)) {
        Cell::Null => cells.null(),
        _ => cells.repeat(place),
    }
}

fn text_of(cell: Cell, cells: &Cells) -> String {
    let mut out = Vec::new();
    super::super::text::write(cell, cells, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
