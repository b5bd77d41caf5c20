//! The layout `gorilla`: a row for several readings of a source, with their values packed as bytes by [`Packing`].
//!
//! A row has the number of its first record, the source, the least and the largest time of its readings, their number, the identity, and the packed values.
//! An operation packs the records that it brings, so a row holds the readings of one source that come together, at most `layout.readings_per_row`. The client packs and
//! unpacks, and that is a part of its operations' time.
//!
//! Invariant: single records can be neither read nor changed.

mod bits;
mod column;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod packing;

use std::cell::RefCell;

use super::access::Access;
use super::columns::{RECORD_ID, add, column_ref, insert, next_cell, number_column, table, table_column};
use super::{Entry, Layout};
use crate::data::SOURCE_ID;
use crate::operation::Operation;
use crate::query::Place;
use crate::question::{Ask, Question};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::statement::{Asking, Evolution, Program, Request, SourceIndex, Statement, TableColumn};

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::PACKED_READINGS;
use packing::Scratch;
pub use packing::{Packed, Packing};

/// Registry entry.
pub(super) static GORILLA: Entry = Entry {
    name: "gorilla",
    summary: "one row for several readings of a source, packed as differences (Gorilla, VLDB 2015)",
    packs: true,
    build: |record_type, table, rows_max| Ok(Box::new(Gorilla::new(record_type, table, rows_max, READINGS_DEFAULT)?)),
};

/// Readings in a row unless a study says otherwise: in the paper, 120 of them are two hours of a minute each, from where on longer blocks save little (section 4.3).
pub const READINGS_DEFAULT: u32 = 120;

/// Most readings in a row.
pub const READINGS_MAX: u32 = 4096;

/// Name of the column with the least time of a row's readings.
pub const FIRST_NS: &str = "first_ns";

/// Name of the column with the largest time of a row's readings.
pub const LAST_NS: &str = "last_ns";

/// Name of the column with the number of readings in a row.
pub const READINGS: &str = "readings";

/// Name of the column with the packed values.
const PACKED: &str = "packed";

/// The layout.
pub(crate) struct Gorilla {
    program: Program,
    insert: u16,
    packing: Packing,
    readings_per_row: u64,
}

thread_local! {
    /// Readings that are being packed, and memory for it.
    static PACKED_HERE: RefCell<(Cells, Scratch)> = RefCell::default();
}

impl Gorilla {
    /// Makes the layout for records with sources; an operation brings at most `rows_max` rows.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub(crate) fn new(
        record_type: &RecordType,
        name: &str,
        rows_max: usize,
        readings_per_row: u32,
    ) -> Result<Self, String> {
        let packing = Packing::of(record_type).ok_or(
            "layout \"gorilla\" packs the readings of sources, and the records have none; set record.sources, or take another layout.name",
        )?;
        let number = |name| TableColumn { name: String::from(name), kind: ColumnKind::Int64, nullable: false };
        let source = TableColumn { name: SOURCE_ID.to_owned(), kind: ColumnKind::Int32, nullable: false };
        let readings = TableColumn { name: READINGS.to_owned(), kind: ColumnKind::Int32, nullable: false };
        let mut columns = vec![number_column(RECORD_ID), source, number(FIRST_NS), number(LAST_NS), readings];
        let own = [FIRST_NS, LAST_NS, READINGS, PACKED];
        if let Some(column) = record_type.identity.iter().find(|column| own.contains(&column.name.as_str())) {
            return Err(format!(
                "record column \"{}\" has the name of a column of layout \"gorilla\"; choose another, or take another layout.name",
                column.name
            ));
        }
        columns.extend(record_type.identity.iter().map(table_column));
        let bytes = ColumnKind::Blob(bytes_max(record_type, readings_per_row));
        columns.push(TableColumn { name: PACKED.to_owned(), kind: bytes, nullable: false });
        let mut program = Program { rows_max: rows_max.max(1), ..Program::default() };
        program.tables.push(table(name, columns.clone(), vec![RECORD_ID.to_owned()]));
        let insert = add(&mut program, Statement::Insert { table: name.to_owned(), columns });
        Ok(Gorilla { program, insert, packing, readings_per_row: u64::from(readings_per_row.max(1)) })
    }

    /// Appends the row with the records from `first` on, each so many further than the one before.
    fn append_row(&self, records: (u64, u64, u64), generator: &dyn Generator, request: &mut Request) {
        let (first, every, count) = records;
        PACKED_HERE.with_borrow_mut(|(readings, scratch)| {
            readings.clear();
            let (mut least, mut largest) = (i64::MAX, i64::MIN);
            for number in 0..count {
                let cell = readings.len();
                generator.values(first + number * every, readings);
                let time = self.packing.time_of(readings, cell);
                (least, largest) = (least.min(time), largest.max(time));
            }
            let (measurement, last) = (generator.measurement_of(first), first + (count - 1) * every);
            request.cells.int(first as i64);
            request.cells.int(measurement as i64 + 1);
            request.cells.int(least);
            request.cells.int(largest);
            request.cells.int(count as i64);
            generator.identity(measurement, last - generator.first_record_of(measurement) + 1, &mut request.cells);
            let end = request.cells.len();
            request.cells.replace_by_blob(end, |_, out| self.packing.pack(readings, scratch, out));
        });
    }

    fn asking(&self, question: &Question, record_type: &RecordType) -> Asking {
        let name = &self.program.tables[0].name;
        let columns = question.columns(record_type).into_iter();
        let identities = columns.filter(|place| matches!(place, Place::Identity(_)));
        let identity = |place: Place| {
            let column = place.column(record_type);
            (column_ref(name, &column.name), column.kind)
        };
        let mut columns: Vec<_> = identities.map(identity).collect();
        columns.push((column_ref(name, PACKED), ColumnKind::Blob(u32::MAX)));
        Asking {
            ask: if question.ask == Ask::Newest { Ask::Newest } else { Ask::Range },
            from: name.clone(),
            joins: Vec::new(),
            source: column_ref(name, SOURCE_ID),
            time: column_ref(name, LAST_NS),
            least_time: Some(column_ref(name, FIRST_NS)),
            columns,
            all_sources: question.all_sources,
            source_index: SourceIndex::None,
            has_span: question.span_ns.is_some() && question.ask != Ask::Newest,
            bucket: 0,
            most: 0,
            by: question.by,
            figures: Vec::new(),
        }
    }
}

/// Returns how many bytes the values of a row's readings have at most, packed.
fn bytes_max(record_type: &RecordType, readings: u32) -> u32 {
    let bytes = |column: &Column| match column.kind {
        // A character has up to four bytes.
        ColumnKind::Text(length) => 12 + 4 * u64::from(length),
        ColumnKind::Blob(length) => 12 + u64::from(length),
        ColumnKind::Json => 1 << 20,
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64 => 10,
    };
    let of_reading: u64 = record_type.values.iter().map(bytes).sum();
    let counts = 16 + 5 * record_type.values.len() as u64;
    u32::try_from(counts + of_reading * u64::from(readings)).unwrap_or(u32::MAX)
}

impl Layout for Gorilla {
    fn program(&self) -> &Program {
        &self.program
    }

    /// Nothing is added: a caller that needs single records is refused before.
    fn add_access(&mut self, _: &Access, _: &RecordType) {}

    fn add_questions(&mut self, questions: &[Question], record_type: &RecordType) -> Result<Vec<u16>, String> {
        let askings: Vec<_> = questions.iter().map(|question| self.asking(question, record_type)).collect();
        Ok(askings.into_iter().map(|asking| add(&mut self.program, Statement::Ask(asking))).collect())
    }

    fn packing(&self) -> Option<&Packing> {
        Some(&self.packing)
    }

    fn evolution(&self, _: &Column) -> Evolution {
        Evolution::default()
    }

    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request) {
        let Operation::Insert { first, records } = *operation else { return };
        let (sources, end) = (generator.alternating().unwrap_or(1).max(1), first + u64::from(records));
        let first_cell = next_cell(&request.cells);
        let mut rows = 0;
        // The records from `first` to the next of its source begin the rows of all sources that there are.
        for begin in first..end.min(first + sources) {
            let mut from = begin;
            while from < end {
                let count = (end - from).div_ceil(sources).min(self.readings_per_row);
                self.append_row((from, sources, count), generator, request);
                from += count * sources;
                rows += 1;
            }
        }
        insert(request, self.insert, rows, first_cell);
    }
}
