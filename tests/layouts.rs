//! The oracle of layouts: what is written through each of them, over any division into transactions, is read back as the
//! generator made it. SQLite checks keys and references meanwhile.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;

use loadline::data;
use loadline::database::dialect::create_table;
use loadline::database::{Database, Session, sqlite::Sqlite};
use loadline::layout::{self, Layout};
use loadline::operation::Operation;
use loadline::record::{Cell, Cells, Generator};
use loadline::statement::Request;
use loadline::trial::{CustomColumn, DatabaseSettings, Fill, RecordSettings, Settings};
use loadline::workload::{Client, Work};

/// A directory of this test alone, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadline-layouts-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn database(&self) -> Sqlite {
        let path = Some(self.0.join("test.db").to_string_lossy().into_owned());
        Sqlite::open(&DatabaseSettings { path, ..DatabaseSettings::default() }).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn qos(per_measurement: u64) -> RecordSettings {
    RecordSettings { type_name: "qos".to_owned(), per_measurement, seed: 7, ..RecordSettings::default() }
}

/// Columns of every kind; the identity repeats.
fn custom(per_measurement: u64) -> RecordSettings {
    let column = |name: &str, kind: &str, fill: Fill, hot: bool| CustomColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        fill,
        hot,
    };
    RecordSettings {
        type_name: "custom".to_owned(),
        per_measurement,
        identity: vec![column("probe", "int", Fill::Uniform(1.0, 3.0), true)],
        values: vec![
            column("order", "bigint", Fill::Sequence(-5, 3), true),
            column("note \"ä\"", "text", Fill::RandomText(12), false),
            column("rtt_ms", "float", Fill::Normal(20.0, 5.0), true),
            column("raw", "blob", Fill::RandomBytes(9), false),
            column("small", "smallint", Fill::Zipf(-3, 300, 1.1), true),
        ],
        ..RecordSettings::default()
    }
}

fn session(database: &Sqlite, layout: &dyn Layout) -> Box<dyn Session> {
    let mut session = database.connect().unwrap();
    for table in &layout.program().tables {
        create_table(database.dialect(), table).iter().for_each(|sql| session.run(sql).unwrap());
    }
    session.prepare(layout.program()).unwrap();
    session
}

/// The values of cells, texts resolved.
fn values(cells: &Cells) -> Vec<String> {
    cells
        .as_slice()
        .iter()
        .map(|cell| format!("{:?}", (cells.to_json(*cell), matches!(cell, Cell::Float(_)))))
        .collect()
}

/// A record as it must be read when `written` records exist. Where the identity is stored once, its end is that of the
/// whole measurement, or null until there is one.
fn expected(generator: &dyn Generator, record: u64, written: u64, stored_once: bool) -> Vec<String> {
    let per_measurement = generator.records_per_measurement();
    let measurement = generator.measurement_of(record);
    let is_over = (measurement + 1) * per_measurement <= written;
    let so_far = match (stored_once, is_over) {
        (false, _) => record - measurement * per_measurement + 1,
        (true, true) => per_measurement,
        (true, false) => 0,
    };
    let mut cells = Cells::new();
    generator.identity(measurement, so_far, &mut cells);
    generator.values(record, &mut cells);
    values(&cells)
}

fn write_and_read_back(name: &str, settings: &RecordSettings, batches: &[u32]) {
    let place = Place::new(&format!("{name}-{}-{}", settings.type_name, settings.per_measurement));
    let database = place.database();
    let generator = data::build(settings).unwrap();
    let layout = layout::build(name, generator.record_type(), "t", 100).unwrap();
    let mut session = session(&database, &*layout);
    let mut request = Request::default();
    let mut written = 0;
    for records in batches {
        request.clear();
        layout.bind(&Operation::Insert { first: written, records: *records }, &*generator, &mut request);
        let answer = session.execute(&request, None).unwrap();
        assert!(answer.changed >= u64::from(*records));
        written += u64::from(*records);
    }
    for record in 0..written {
        request.clear();
        layout.bind(&Operation::Read { record }, &*generator, &mut request);
        let mut rows = Cells::new();
        let answer = session.execute(&request, Some(&mut rows)).unwrap();
        assert_eq!((answer.rows, answer.empty), (1, 0), "{name}: record {record}");
        let wanted = expected(&*generator, record, written, name != "wide");
        assert_eq!(values(&rows), wanted, "{name}: record {record} of {written}");
    }
    request.clear();
    layout.bind(&Operation::Read { record: written }, &*generator, &mut request);
    assert_eq!(session.execute(&request, None).unwrap().empty, 1, "there is no record behind the last");
    let violations = session.query("PRAGMA foreign_key_check").unwrap();
    assert_eq!(violations, Vec::<Vec<Option<String>>>::new());
}

#[test]
fn every_layout_gives_back_what_was_written_however_it_was_divided() {
    let divisions: [&[u32]; 4] = [&[1; 23], &[5, 5, 5, 5], &[7, 1, 30, 2, 60, 3], &[100]];
    for entry in layout::REGISTRY {
        for batches in divisions {
            write_and_read_back(entry.name, &qos(10), batches);
            write_and_read_back(entry.name, &custom(10), batches);
        }
        write_and_read_back(entry.name, &qos(1), &[3, 1, 1]);
        write_and_read_back(entry.name, &custom(50), &[20, 20, 20]);
    }
}

#[test]
fn an_identity_is_stored_once_for_each_measurement() {
    let place = Place::new("once");
    let database = place.database();
    let generator = data::build(&qos(10)).unwrap();
    let layout = layout::build("star", generator.record_type(), "qos", 10).unwrap();
    let mut session = session(&database, &*layout);
    let mut request = Request::default();
    let mut ended = Vec::new();
    for record in 0..25 {
        request.clear();
        layout.bind(&Operation::Insert { first: record, records: 1 }, &*generator, &mut request);
        session.execute(&request, None).unwrap();
        let counts = session.query("SELECT count(*), count(measurementEndTime) FROM qos_identity").unwrap();
        ended.push(counts[0].iter().map(|count| count.clone().unwrap()).collect::<Vec<_>>().join(" "));
    }
    assert_eq!([&ended[0], &ended[8], &ended[9], &ended[10], &ended[24]], ["1 0", "1 0", "1 1", "2 1", "3 2"]);
}

#[test]
fn preloaded_records_are_read_and_written_behind_by_all_clients() {
    for layout_name in ["wide", "star", "star-hot"] {
        let place = Place::new(&format!("work-{layout_name}"));
        let database = place.database();
        let mut settings = Settings { record: qos(10), ..Settings::default() };
        settings.record.table = "qos".to_owned();
        settings.record.rows = 1234;
        settings.layout.name = layout_name.to_owned();
        settings.workload.batch = 2;
        settings.workload.name = "write".to_owned();
        let write = Work::new(&settings).unwrap();
        settings.workload.name = "read".to_owned();
        let read = Work::new(&settings).unwrap();
        let mut session = database.connect().unwrap();
        for table in &write.program().tables {
            create_table(database.dialect(), table).iter().for_each(|sql| session.run(sql).unwrap());
        }
        session.prepare(write.program()).unwrap();
        let mut request = Request::default();
        for operation in write.preload() {
            request.clear();
            write.bind(&operation, &mut request);
            session.execute(&request, None).unwrap();
        }
        for number in 0..3 {
            let client = Client { number, of: 3, seed: 1 };
            let mut writer = write.workload(client).unwrap();
            let mut reader = read.workload(client).unwrap();
            for _ in 0..20 {
                request.clear();
                write.next(&mut *writer, &mut request);
                session.execute(&request, None).unwrap();
                request.clear();
                read.next(&mut *reader, &mut request);
                assert_eq!(session.execute(&request, None).unwrap().rows, 1);
            }
        }
        let table = write.program().tables.last().unwrap().name.clone();
        let count = session.query(&format!("SELECT count(*) FROM {table}")).unwrap();
        assert_eq!(count, [[Some((1234 + 3 * 20 * 2).to_string())]]);
    }
}
