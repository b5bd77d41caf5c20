//! The oracle of layouts: what is written through each of them, over any division into transactions, is read back as the
//! generator made it. SQLite checks keys and references meanwhile.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;

use loadline::data;
use loadline::database::dialect::create_table;
use loadline::database::{Database, Session, sqlite::Sqlite};
use loadline::layout::{self, Access, Layout};
use loadline::operation::{Fields, Operation};
use loadline::record::{Cell, Cells, Generator};
use loadline::statement::Request;
use loadline::trial::{CustomColumn, DatabaseSettings, Fill, RecordSettings, Settings};
use loadline::workload::{Client, Work};

/// The layouts that give a record's columns as they are; `operations.rs` looks at all.
fn in_columns() -> impl Iterator<Item = &'static layout::Entry> {
    let names = ["wide", "star", "star-hot"];
    names.into_iter().map(|name| layout::find(name).unwrap())
}

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

fn wisconsin(rows: u64) -> RecordSettings {
    RecordSettings { type_name: "wisconsin".to_owned(), rows, per_measurement: 1, seed: 1, ..RecordSettings::default() }
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
    let mut layout = layout::build(name, generator.record_type(), "t", 100).unwrap();
    layout.add_access(&Access { read: true, ..Access::default() }, generator.record_type());
    if settings.per_measurement > 1 {
        layout.add_ends(generator.record_type());
    }
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
    for entry in in_columns() {
        for batches in divisions {
            write_and_read_back(entry.name, &qos(10), batches);
            write_and_read_back(entry.name, &custom(10), batches);
        }
        write_and_read_back(entry.name, &qos(1), &[3, 1, 1]);
        write_and_read_back(entry.name, &custom(50), &[20, 20, 20]);
        write_and_read_back(entry.name, &wisconsin(100), &[100]);
        write_and_read_back(entry.name, &wisconsin(50), &[7, 1, 30, 2, 60]);
    }
}

#[test]
fn an_identity_is_stored_once_for_each_measurement() {
    let place = Place::new("once");
    let database = place.database();
    let generator = data::build(&qos(10)).unwrap();
    let mut layout = layout::build("star", generator.record_type(), "qos", 10).unwrap();
    layout.add_ends(generator.record_type());
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
fn a_wide_wisconsin_table_has_its_16_attributes_and_the_key_unique2() {
    let generator = data::build(&wisconsin(10)).unwrap();
    let layout = layout::build("wide", generator.record_type(), "wisconsin", 10).unwrap();
    let [table] = &layout.program().tables[..] else { panic!("one table") };
    let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let expected = "unique2 unique1 two four ten twenty onePercent tenPercent twentyPercent fiftyPercent unique3 \
                    evenOnePercent oddOnePercent stringu1 stringu2 string4";
    assert_eq!(names.join(" "), expected);
    assert_eq!(table.primary_key, ["unique2"]);
    assert_eq!(layout.record_table(), Some("wisconsin"));
}

/// A hundred records, then selections of all columns or one, and updates of one column.
fn select_and_update(layout_name: &str, record: &RecordSettings, attribute: Option<&str>) {
    let place = Place::new(&format!("access-{layout_name}-{}-{}", record.type_name, attribute.is_some()));
    let database = place.database();
    let mut settings = Settings { record: record.clone(), ..Settings::default() };
    settings.record.table = "t".to_owned();
    settings.record.rows = 100;
    settings.layout.name = layout_name.to_owned();
    settings.workload.name = "mix".to_owned();
    settings.workload.mix = [("select".to_owned(), 0.5), ("update".to_owned(), 0.5)].into();
    settings.workload.attribute = attribute.map(str::to_owned);
    settings.workload.batch = 1;
    let work = Work::new(&settings).unwrap();
    let generator = work.generator().unwrap();
    let columns = &generator.record_type().values;
    let hot = columns.iter().position(|column| column.hot).unwrap();
    let updated = attribute.map_or(hot, |name| columns.iter().position(|column| column.name == name).unwrap());
    let selected = attribute.map_or(Fields::All, |_| Fields::One(updated as u16));
    let mut session = database.connect().unwrap();
    for table in &work.program().tables {
        create_table(database.dialect(), table).iter().for_each(|sql| session.run(sql).unwrap());
    }
    session.prepare(work.program()).unwrap();
    let mut request = Request::default();
    let mut execute = |operation: &Operation| {
        request.clear();
        work.bind(operation, &mut request);
        assert!(matches!(operation, Operation::Insert { .. }) || request.steps.len() == 1);
        let mut rows = Cells::new();
        session.execute(&request, Some(&mut rows)).map(|answer| (answer, values(&rows)))
    };
    work.preload().for_each(|operation| assert!(execute(&operation).is_ok()));
    let value_of = |record: u64, value: usize| {
        let mut cells = Cells::new();
        generator.values(record, &mut cells);
        format!("{:?}", (cells.to_json(cells.get(value)), matches!(cells.get(value), Cell::Float(_))))
    };
    let identity = generator.record_type().identity.len();
    let mut now: Vec<u64> = (0..100).collect();
    let mut workload = work.workload(Client { number: 0, of: 1, seed: 4 }).unwrap();
    for _ in 0..150 {
        let operation = workload.next(&mut Cells::new());
        let (answer, row) = execute(&operation).unwrap();
        match operation {
            Operation::Update { record, like, .. } => {
                assert_eq!((answer.changed, answer.rows), (1, 0));
                now[record as usize] = like;
            }
            Operation::Select { record, .. } => {
                assert_eq!((answer.rows, answer.empty), (1, 0));
                let source = now[record as usize];
                match attribute {
                    Some(_) => assert_eq!(row, [value_of(source, updated)]),
                    None => {
                        let of = |value| if value == updated { source } else { record };
                        let whole: Vec<_> = (0..columns.len()).map(|value| value_of(of(value), value)).collect();
                        assert_eq!(row[identity..], whole, "{layout_name}: record {record}");
                    }
                }
            }
            other => panic!("{other:?} is not in the mix"),
        }
    }
    assert!(now.iter().zip(0..).filter(|(like, record)| **like != *record).count() > 30, "updates have been seen");
    let missing =
        execute(&Operation::Update { record: 100, like: 0, fields: Fields::One(updated as u16) }).unwrap_err();
    assert!(missing.to_string().contains("changed 0 rows instead of 1"), "{missing}");
    assert_eq!(execute(&Operation::Select { record: 100, fields: selected }).unwrap().0.empty, 1);
}

#[test]
fn selections_see_what_updates_have_set_in_every_layout() {
    for entry in in_columns() {
        for (record, attribute) in [(qos(10), "dl_mos"), (custom(10), "note \"ä\""), (wisconsin(100), "unique3")] {
            select_and_update(entry.name, &record, None);
            select_and_update(entry.name, &record, Some(attribute));
        }
        select_and_update(entry.name, &wisconsin(100), Some("stringu1"));
    }
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
        let write = Work::with_reads(&settings).unwrap();
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
