//! The latest window: in every layout and every database a query of `recent` finds exactly those of the last records for which its
//! conditions hold, before and after more have been written.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use loadline::data;
use loadline::database::dialect::{create_table, drop_table};
use loadline::database::{self, Database};
use loadline::operation::Operation;
use loadline::query::{Constant, Projection, Query, QueryCondition};
use loadline::record::{Cell, Cells, Generator};
use loadline::server::Server;
use loadline::statement::{Comparison, Expect, Request};
use loadline::trial::{Arrivals, BackgroundSettings, DatabaseSettings, RecordSettings, Settings};
use loadline::workload::Work;

const LAYOUTS: [&str; 6] = ["wide", "star", "star-hot", "json", "eav", "spare"];
const ROWS: u64 = 300;
const MORE: u64 = 25;

fn condition(column: &str, comparison: Comparison, value: Constant) -> QueryCondition {
    QueryCondition { column: column.to_owned(), comparison, value }
}

/// The queries of each window: all of it, half of its records, those of one kind of sensor, and some of these.
fn queries() -> Vec<Query> {
    let half = || condition("quality", Comparison::Less, Constant::Int(500));
    let radar = || condition("kind", Comparison::Equal, Constant::Text("radar".to_owned()));
    let mut queries = Vec::new();
    for window in [Some(1), Some(7), Some(100), Some(ROWS + 5), None] {
        for conditions in [vec![], vec![half()], vec![radar()], vec![radar(), half()]] {
            let name = format!("{window:?} {conditions:?}");
            let columns = Projection::Columns(vec!["observed_ns".to_owned()]);
            let (order, limit, rows, straight_join, cache) = (Vec::new(), None, None, false, None);
            queries.push(Query { name, conditions, columns, order, limit, window, rows, straight_join, cache });
        }
    }
    queries
}

fn settings(layout: &str) -> Settings {
    let mut settings = Settings::default();
    let table = "sensor".to_owned();
    let length = Some(120);
    settings.record = RecordSettings {
        type_name: table.clone(),
        table,
        rows: ROWS,
        per_measurement: 5,
        seed: 1,
        length,
        ..settings.record
    };
    settings.layout.name = layout.to_owned();
    settings.workload.name = "recent".to_owned();
    settings.workload.batch = 1;
    settings.workload.queries = queries();
    settings
}

/// When the records were observed that a query must find among the first `rows`: different for each record.
fn expected(query: &Query, generator: &dyn Generator, rows: u64) -> Vec<i64> {
    let mut found = Vec::new();
    for record in rows.saturating_sub(query.window.unwrap_or(u64::MAX))..rows {
        let mut cells = Cells::new();
        generator.identity(generator.measurement_of(record), 1, &mut cells);
        generator.values(record, &mut cells);
        let holds = |condition: &QueryCondition| match condition.column.as_str() {
            "kind" => cells.to_json(cells.get(1)) == "radar",
            _ => matches!(cells.get(5), Cell::Int(quality) if quality < 500),
        };
        if let (true, Cell::Int(observed_ns)) = (query.conditions.iter().all(holds), cells.get(2)) {
            found.push(observed_ns);
        }
    }
    found
}

fn assert_windows_are_right(database: &dyn Database) {
    for layout in LAYOUTS {
        let settings = settings(layout);
        let generator = data::build(&settings.record).unwrap();
        let work = Work::new(&settings).unwrap();
        work.count_rows().unwrap();
        let mut session = database.connect().unwrap();
        for sql in work.program().tables.iter().flat_map(|table| create_table(database.dialect(), table)) {
            session.run(&sql).unwrap();
        }
        session.prepare(work.program()).unwrap();
        let mut execute = |operation: Operation, rows: Option<&mut Cells>| {
            let mut request = Request::default();
            work.bind(&operation, &mut request);
            let mut step = request.steps.last().copied().unwrap();
            if rows.is_some() {
                // Counted below, after writes too.
                step.expect = Expect::Anything;
                *request.steps.last_mut().unwrap() = step;
            }
            session.execute(&request, rows).unwrap_or_else(|error| panic!("{layout}, {operation:?}: {error}"))
        };
        for insert in work.preload() {
            execute(insert, None);
        }
        for rows in [ROWS, ROWS + MORE] {
            for (number, query) in settings.workload.queries.iter().enumerate() {
                let operation = Operation::Query { query: number as u16 };
                let mut cells = Cells::new();
                let answer = execute(operation, Some(&mut cells));
                let right = expected(query, &*generator, rows);
                let width = if answer.rows == 0 { 1 } else { cells.len() / answer.rows as usize };
                let last = cells.as_slice().chunks(width).map(|row| match row.last() {
                    Some(Cell::Int(observed_ns)) => *observed_ns,
                    other => panic!("{layout}: {other:?}"),
                });
                let mut found: Vec<_> = last.collect();
                found.sort_unstable();
                assert_eq!(found, right, "{layout}, {rows} records, {}", query.name);
                if rows == ROWS {
                    assert_eq!(work.rows_found()[number], right.len() as u64, "{layout}, {}", query.name);
                    execute(operation, None);
                }
            }
            if rows == ROWS {
                execute(Operation::Insert { first: ROWS, records: MORE as u32 }, None);
            }
        }
        for table in work.program().tables.iter().rev() {
            session.run(&drop_table(database.dialect(), &table.name)).unwrap();
        }
    }
}

fn assert_windows_are_right_on(name: &str, engines: &[Option<&str>], config: &[(&str, &str)]) {
    let entry = database::find(name).unwrap();
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut settings = DatabaseSettings { name: name.to_owned(), config, ..DatabaseSettings::default() };
    let server = Server::start(entry.recipe.unwrap(), &settings, None)
        .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
    for engine in engines {
        settings.engine = engine.map(str::to_owned);
        assert_windows_are_right(&*entry.open_sql(&settings, Some(server.endpoint())).unwrap());
    }
}

#[test]
fn windows_hold_the_last_records_in_every_layout_on_every_engine_of_mariadb() {
    let config = [("innodb_flush_log_at_trx_commit", "0")];
    assert_windows_are_right_on("mariadb", &[Some("innodb"), Some("myisam"), Some("aria")], &config);
}

#[test]
fn windows_hold_the_last_records_in_every_layout_on_postgresql() {
    assert_windows_are_right_on("postgres", &[None], &[("fsync", "off")]);
}

#[test]
fn windows_hold_the_last_records_in_every_layout_on_sqlite() {
    let path = std::env::temp_dir().join(format!("loadline-recent-{}.db", std::process::id()));
    let mut settings = DatabaseSettings { path: Some(path.display().to_string()), ..DatabaseSettings::default() };
    settings.config.insert("synchronous".to_owned(), "off".to_owned());
    assert_windows_are_right(&*database::find("sqlite").unwrap().open_sql(&settings, None).unwrap());
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

#[test]
fn while_records_are_added_a_plain_query_finds_at_least_those_that_were_there() {
    let mut settings = settings("wide");
    settings.background = Some(BackgroundSettings {
        workload: "write".to_owned(),
        clients: 1,
        arrivals: Arrivals::Constant,
        rate_per_s: 10.0,
        batch: 1,
    });
    let work = Work::new(&settings).unwrap();
    work.count_rows().unwrap();
    let generator = data::build(&settings.record).unwrap();
    for (number, query) in settings.workload.queries.iter().enumerate() {
        let mut request = Request::default();
        work.bind(&Operation::Query { query: number as u16 }, &mut request);
        let found = expected(query, &*generator, ROWS).len() as u64;
        let right = if query.window.is_some() { Expect::Anything } else { Expect::RowsAtLeast(found) };
        assert_eq!(request.steps.last().unwrap().expect, right, "{}", query.name);
    }
    let least = Expect::RowsAtLeast(5);
    let told = |rows| least.miscount(rows, 0).map(|miscount| miscount.to_string());
    assert_eq!(told(4).as_deref(), Some("the statement found 4 rows instead of at least 5"));
    assert_eq!((told(5), told(6)), (None, None));
}

#[test]
fn layouts_without_numbers_by_which_records_are_the_latest_say_so() {
    let refusal = |layout: &str, record: &str| {
        let mut settings = settings(layout);
        settings.record.type_name = record.to_owned();
        settings.record.length = None;
        settings.workload.queries.truncate(1);
        settings.workload.queries[0].columns = Projection::All;
        Work::new(&settings).err()
    };
    let key_value = "layout \"key-value\" cannot select records by what is in them; take another layout.name";
    assert_eq!(refusal("key-value", "sensor").unwrap(), key_value);
    let hashed = "layout \"json\" has no numbers by which records are the latest, as its key is \"ycsb_key\"; take another \
                  layout.name";
    assert_eq!(refusal("json", "usertable").unwrap(), hashed);
    assert_eq!(refusal("star", "usertable"), None);
    assert_eq!(refusal("wide", "qos"), None, "it gets an index over the records' numbers");
}
