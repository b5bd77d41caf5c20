//! The workload `freshness`: clients write events with the time at which each write began, while readers look for these events.
//!
//! Main type: [`Events`]: tables whose rows the database numbers, the inserts of writers, and the requests of readers. An event's number
//! determines its writer and its place among that writer's events ([`Numbering`]), which every writer commits in order.
//!
//! Invariant: loadline writes an event's number once; a number under two keys was stored twice.

use std::sync::Arc;

use super::{Entry, write};
use crate::data;
use crate::layout::Access;
use crate::record::{Cells, ColumnKind, Generator};
use crate::statement::{
    ColumnRef, Comparison, Condition, Expect, Limit, Program, Request, Select, SqlForm, Statement, Step, Table,
    TableColumn,
};
use crate::trial::{Poll, Settings};

/// Registry entry.
pub(super) static FRESHNESS: Entry = Entry {
    name: "freshness",
    summary: "writers stamp events, readers beside them tell how long it took until they saw each (ROCC 2006); [freshness]",
    needs_tables: false,
    keeps_records: false,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| (write::WRITE.build)(settings, client),
};

/// Name of the column with the key that the database gives a row.
pub const KEY: &str = "record_id";
/// Name of the column with the number of the event.
const EVENT: &str = "event";
/// Name of the column with the time at which its write began, on the machine's monotonic clock.
const WRITTEN: &str = "written_ns";
/// Index of the key in a row that was read.
pub const KEY_PLACE: usize = 0;
/// Index of the event's number in a row that was read.
pub const EVENT_PLACE: usize = 1;
/// Index of the time of the write in a row that was read.
pub const WRITTEN_PLACE: usize = 2;
/// Maximum number of rows that a poll by key reads; a reader that is behind asks again at once.
pub const POLL_ROWS_MAX: u64 = 10_000;
/// Number of rows of a result table that are inserted at a time.
pub const RESULT_ROWS: usize = 1_000;
/// Number of rows from which on a historian takes no further message into a transaction.
pub const STORED_ROWS: u32 = 2_000;
/// Number of records of one kind of sensor whose length is measured.
const SAMPLED: u64 = 1_000;

/// The relation between events and writers: which writer writes an event, and which of the writer's events it is. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbering {
    /// Number of writers, at least 1.
    pub writers: u64,
    /// Number of consecutive events that one writer writes before the next writer's events begin, at least 1.
    pub per_measurement: u64,
}

impl Numbering {
    /// Returns the writer of an event, and the event's place among those of the writer.
    #[inline]
    pub fn place_of(self, event: u64) -> (usize, u64) {
        let measurement = event / self.per_measurement;
        let place = (measurement / self.writers) * self.per_measurement + event % self.per_measurement;
        ((measurement % self.writers) as usize, place)
    }
}

/// Tables of events, and the statements over them.
pub struct Events {
    generator: Arc<dyn Generator>,
    /// The program that all connections prepare.
    pub program: Program,
    /// The relation between events and writers.
    pub numbering: Numbering,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// For each table, the statement that inserts events.
    inserts: Vec<u16>,
    /// For each table, the statement that notifies readers; none if readers are not notified.
    tells: Vec<u16>,
    /// For each table, the statement that reads new rows.
    pub reads: Vec<u16>,
    /// For each group of readers, the statement that stores what they found; empty if it is not stored.
    pub results: Vec<u16>,
    /// Number of values in a row that is read.
    pub width: usize,
}

impl Events {
    /// Creates the events of a trial.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let generator = data::build(&settings.record)?;
        let freshness = settings.freshness.clone().unwrap_or_default();
        let (writers, batch) = (settings.load.clients.max(1), settings.workload.batch as usize);
        let columns = columns(&*generator)?;
        let width = columns.len() + 1;
        let mut events = Events {
            generator,
            program: Program { rows_max: STORED_ROWS as usize + batch, rows_usual: batch, ..Program::default() },
            numbering: Numbering {
                writers: u64::from(writers),
                per_measurement: settings.record.per_measurement.max(1),
            },
            tables: Vec::new(),
            inserts: Vec::new(),
            tells: Vec::new(),
            reads: Vec::new(),
            results: Vec::new(),
            width,
        };
        for number in 0..freshness.tables_of(writers) {
            let name = format!("{}_{}", settings.record.table, number + 1);
            let window = (freshness.poll == Poll::Window).then_some(freshness.window);
            let read = events.add(read_statement(&name, &columns, window));
            events.reads.push(read);
            if freshness.poll == Poll::Notify {
                let sql = format!("NOTIFY \"{name}\"");
                let tell = events.add(Statement::Sql { sql, allow_empty: true, form: SqlForm::Prepared });
                events.tells.push(tell);
            }
            let insert = events.add_table(&name, columns.clone());
            events.inserts.push(insert);
            events.tables.push(name);
        }
        for group in 0..if freshness.results { freshness.groups_in_all() } else { 0 } {
            let columns = ["reader", EVENT, WRITTEN, "seen_ns"].map(number_column).to_vec();
            let insert = events.add_table(&format!("{}_result_{}", settings.record.table, group + 1), columns);
            events.results.push(insert);
        }
        Ok(events)
    }

    fn add(&mut self, statement: Statement) -> u16 {
        self.program.statements.push(statement);
        (self.program.statements.len() - 1) as u16
    }

    fn add_table(&mut self, name: &str, columns: Vec<TableColumn>) -> u16 {
        self.program.tables.push(Table {
            name: name.to_owned(),
            columns: columns.clone(),
            primary_key: vec![KEY.to_owned()],
            numbered: true,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        });
        self.add(Statement::Insert { table: name.to_owned(), columns })
    }

    /// Returns the index of the table with a writer's events.
    pub fn table_of(&self, writer: usize) -> usize {
        writer % self.tables.len()
    }

    /// Returns the channel on which readers of a table are notified of new rows.
    pub fn channel(&self, table: usize) -> &str {
        &self.tables[table]
    }

    /// Fills an empty request with the writing of consecutive events that one writer begins to write at `written_ns`.
    #[inline]
    pub fn write(&self, first: u64, events: u32, written_ns: u64, request: &mut Request) {
        let table = self.table_of(self.numbering.place_of(first).0);
        for event in first..first + u64::from(events) {
            request.cells.int(event as i64);
            request.cells.int(written_ns as i64);
            let measurement = self.generator.measurement_of(event);
            let so_far = event - self.generator.first_record_of(measurement) + 1;
            self.generator.identity(measurement, so_far, &mut request.cells);
            self.generator.values(event, &mut request.cells);
        }
        self.insert(table, events, request);
        if let Some(tell) = self.tells.get(table) {
            let step =
                Step { statement: *tell, rows: 1, first_cell: request.cells.len() as u32, expect: Expect::Anything };
            request.steps.push(step);
        }
    }

    /// Appends the insertion of as many rows as the request's cells hold for a table.
    pub fn insert(&self, table: usize, rows: u32, request: &mut Request) {
        let step =
            Step { statement: self.inserts[table], rows, first_cell: 0, expect: Expect::Changed(u64::from(rows)) };
        request.steps.push(step);
    }

    /// Fills an empty request with the query for new rows of a table: rows behind a key, or the latest ones.
    pub fn ask(&self, table: usize, behind: u64, request: &mut Request) {
        if self.is_by_key(table) {
            request.cells.int(behind as i64);
        }
        let step = Step { statement: self.reads[table], rows: 1, first_cell: 0, expect: Expect::Anything };
        request.steps.push(step);
    }

    fn is_by_key(&self, table: usize) -> bool {
        let read = self.program.statements.get(usize::from(self.reads[table]));
        matches!(read, Some(Statement::Select(select)) if !select.conditions.is_empty())
    }

    /// Returns the mean length of an event's record in bytes: 2, 4 or 8 for numbers, and the actual length of texts and bytes. Event number and
    /// time of the write are loadline's own and do not count.
    pub fn record_bytes(&self) -> f64 {
        let kinds = self.generator.record_type();
        let kinds: Vec<ColumnKind> = kinds.identity.iter().chain(&kinds.values).map(|column| column.kind).collect();
        let mut bytes = 0;
        let mut cells = Cells::new();
        for event in 0..SAMPLED {
            cells.clear();
            let record = event * self.numbering.per_measurement + event;
            self.generator.identity(self.generator.measurement_of(record), 1, &mut cells);
            self.generator.values(record, &mut cells);
            bytes +=
                kinds.iter().zip(cells.as_slice()).map(|(kind, cell)| length_of(*kind, *cell, &cells)).sum::<usize>();
        }
        bytes as f64 / SAMPLED as f64
    }
}

fn length_of(kind: ColumnKind, cell: crate::record::Cell, cells: &Cells) -> usize {
    match (cell, kind) {
        (crate::record::Cell::Null, _) => 0,
        (crate::record::Cell::Text(span) | crate::record::Cell::Blob(span), _) => cells.bytes_of(span).len(),
        (_, ColumnKind::Int16) => 2,
        (_, ColumnKind::Int32) => 4,
        _ => 8,
    }
}

fn number_column(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false }
}

/// Returns the columns of a table of events, without its key.
fn columns(generator: &dyn Generator) -> Result<Vec<TableColumn>, String> {
    let record_type = generator.record_type();
    let mut columns = [EVENT, WRITTEN].map(number_column).to_vec();
    for column in record_type.identity.iter().chain(&record_type.values) {
        if [KEY, EVENT, WRITTEN].contains(&column.name.to_lowercase().as_str()) {
            let name = &column.name;
            return Err(format!(
                "record.type: tables of events have a column \"{name}\" of their own; name it otherwise"
            ));
        }
        columns.push(TableColumn { name: column.name.clone(), kind: column.kind, nullable: column.nullable });
    }
    Ok(columns)
}

/// Returns the statement that reads rows behind a key in the order of their keys, or the latest rows.
fn read_statement(table: &str, columns: &[TableColumn], window: Option<u32>) -> Statement {
    let column = |column: &str| ColumnRef { table: table.to_owned(), column: column.to_owned() };
    let names = columns.iter().map(|own| column(&own.name));
    let behind = Condition { column: column(KEY), kind: ColumnKind::Int64, comparison: Comparison::Greater };
    Statement::Select(Select {
        columns: std::iter::once(column(KEY)).chain(names).collect(),
        from: table.to_owned(),
        conditions: if window.is_some() { Vec::new() } else { vec![behind] },
        order: vec![(column(KEY), window.is_some())],
        limit: Some(Limit::Fixed(window.map_or(POLL_ROWS_MAX, u64::from))),
        ..Select::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{CustomColumn, Fill, FreshnessSettings};

    pub fn settings(writers: u32) -> Settings {
        let mut settings = Settings::default();
        settings.record.type_name = "custom".to_owned();
        settings.record.table = "e".to_owned();
        settings.record.per_measurement = 10;
        let column = |name: &str, kind: &str, fill| CustomColumn {
            name: name.to_owned(),
            kind: kind.to_owned(),
            fill,
            hot: true,
        };
        settings.record.values =
            vec![column("x", "float", Fill::Uniform(0.0, 1.0)), column("note", "text", Fill::RandomText(40))];
        settings.layout.name = "wide".to_owned();
        settings.workload.name = "freshness".to_owned();
        settings.workload.batch = 5;
        settings.load.clients = writers;
        settings.freshness = Some(FreshnessSettings::default());
        settings
    }

    #[test]
    fn the_numbers_of_a_writers_events_follow_each_other() {
        let numbering = Numbering { writers: 3, per_measurement: 10 };
        let mut places = vec![Vec::new(); 3];
        for event in 0..120 {
            let (writer, place) = numbering.place_of(event);
            places[writer].push(place);
        }
        assert!(places.iter().all(|places| *places == (0..40).collect::<Vec<_>>()));
    }

    #[test]
    fn each_writer_has_its_own_table_unless_there_are_fewer() {
        let events = Events::new(&settings(3)).unwrap();
        assert_eq!(events.tables, ["e_1", "e_2", "e_3"]);
        let mut request = Request::default();
        events.write(15, 5, 77, &mut request);
        assert_eq!(request.steps.len(), 1);
        assert_eq!(usize::from(request.steps[0].statement), 3, "the second writer's table");
        assert_eq!(request.cells.len(), 5 * (events.width - 1));
        let shared = FreshnessSettings { tables: Some(1), results: true, ..FreshnessSettings::default() };
        let events = Events::new(&Settings { freshness: Some(shared), ..settings(3) }).unwrap();
        assert_eq!((events.tables.len(), events.results.len()), (1, 2));
        assert_eq!(events.program.tables.len(), 3, "events, and results of two groups");
    }

    #[test]
    fn the_length_of_a_record_is_that_of_its_content() {
        assert_eq!(Events::new(&settings(1)).unwrap().record_bytes(), 48.0);
    }
}
