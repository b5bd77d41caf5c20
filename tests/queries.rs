//! The oracle of queries: every case of Ruottinen 2015, tables 5.1 to 5.5, finds as many rows as the records say, in every layout
//! and every database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "behind/mod.rs"]
#[expect(dead_code, reason = "shared with tests that stop the server")]
mod behind;

use behind::Behind;
use loadline::database::dialect::{create_table, remove_table};
use loadline::database::{self, Database, Endpoint};
use loadline::operation::Operation;
use loadline::server::Server;
use loadline::statement::{Expect, Request};
use loadline::study::{BUNDLED, DatabaseFacts, Names, load_text};
use loadline::trial::{DatabaseSettings, Settings};
use loadline::workload::Work;

const LAYOUTS: [&str; 6] = ["wide", "star", "star-hot", "json", "eav", "spare"];

/// The settings of the bundled study with all its queries, at a scale.
fn settings(layout: &str, scale: &str) -> Settings {
    let facts = DatabaseFacts {
        name: "mariadb".to_owned(),
        engines: vec!["innodb".to_owned()],
        has_private_server: true,
        read_url: None,
    };
    let names = Names::new(vec![facts], &["qos"], &LAYOUTS, &["query"]);
    let study = BUNDLED.iter().find(|study| study.name == "qos-read-paper").unwrap();
    let sets = [format!("record.scale={scale}"), "load.clients=1".to_owned()];
    let (study, _) = load_text("study.toml", study.text, &sets, None, false, &names).unwrap();
    let mut settings = study.base;
    settings.layout.name = layout.to_owned();
    settings
}

fn request_of(work: &Work, query: u16) -> Request {
    let mut request = Request::default();
    work.bind(&Operation::Query { query }, &mut request);
    request
}

/// Fills a database in every layout, and asks all queries twice: an answer may come from a cache.
fn assert_all_found(database: &dyn Database) {
    for layout in LAYOUTS {
        // Rows of single fields are many: 61 to a record.
        let scale = match layout {
            "eav" => "0.001",
            "json" | "spare" => "0.003",
            _ => "0.01",
        };
        let settings = settings(layout, scale);
        let work = Work::new(&settings).unwrap();
        work.count_rows().unwrap();
        let mut session = database.connect().unwrap();
        let dialect = database.dialect();
        for sql in work.program().tables.iter().flat_map(|table| create_table(dialect, table)) {
            session.run(&sql).unwrap();
        }
        session.prepare(work.program()).unwrap();
        for operation in work.preload() {
            let mut request = Request::default();
            work.bind(&operation, &mut request);
            session.execute(&request, None).unwrap();
        }
        for (number, query) in settings.workload.queries.iter().enumerate() {
            let mut request = request_of(&work, number as u16);
            let right = work.rows_found()[number];
            assert_eq!(request.steps.last().unwrap().expect, Expect::RowCount(right));
            for time in 1..=2 {
                let answer = session.execute(&request, None);
                let rows = answer.unwrap_or_else(|error| panic!("{layout}, {}, time {time}: {error}", query.name)).rows;
                assert_eq!(rows, right, "{layout}, {}, time {time}", query.name);
            }
            request.steps.last_mut().unwrap().expect = Expect::RowCount(right + 1);
            let error = session.execute(&request, None).unwrap_err().to_string();
            assert!(error.contains(&format!("found {right} rows instead of {}", right + 1)), "{error}");
        }
        for table in work.program().tables.iter().rev() {
            remove_table(dialect, &table.name).iter().for_each(|sql| session.run(sql).unwrap());
        }
    }
}

fn assert_all_found_by_server(name: &str, config: &[(&str, &str)]) {
    let entry = database::find(name).unwrap();
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = DatabaseSettings { name: name.to_owned(), config, ..DatabaseSettings::default() };
    let server = Server::start(entry.recipe.unwrap(), &settings, None)
        .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
    let endpoint: Endpoint = server.endpoint().clone();
    assert_all_found(&*entry.open_sql(&settings, Some(&endpoint)).unwrap());
}

#[test]
fn every_case_finds_its_rows_in_every_layout_on_mariadb_with_the_query_cache() {
    assert_all_found_by_server("mariadb", &[("query_cache_type", "2"), ("query_cache_size", "67108864")]);
}

#[test]
fn every_case_finds_its_rows_in_every_layout_on_postgresql() {
    assert_all_found_by_server("postgres", &[("fsync", "off")]);
}

#[test]
fn every_case_finds_its_rows_in_every_layout_on_sqlite() {
    let path = std::env::temp_dir().join(format!("loadline-queries-{}.db", std::process::id()));
    let mut settings = DatabaseSettings { path: Some(path.display().to_string()), ..DatabaseSettings::default() };
    settings.config.insert("synchronous".to_owned(), "off".to_owned());
    assert_all_found(&*database::find("sqlite").unwrap().open_sql(&settings, None).unwrap());
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

#[test]
fn every_case_finds_its_rows_in_every_layout_on_duckdb() {
    if let Err(missing) = database::duckdb::library::find() {
        return eprintln!("{missing}: nothing was checked");
    }
    let directory = std::env::temp_dir().join(format!("loadline-queries-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = Some(directory.join("database.db").display().to_string());
    let settings = DatabaseSettings { name: "duckdb".to_owned(), path, ..DatabaseSettings::default() };
    assert_all_found(&*database::find("duckdb").unwrap().open_sql(&settings, None).unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn every_case_finds_its_rows_in_every_layout_on_postgresql_behind_odbc() {
    Behind::start("postgres", &[("fsync", "off")]).iter().for_each(|behind| assert_all_found(&*behind.open()));
}

#[test]
fn every_case_finds_its_rows_in_every_layout_on_mariadb_behind_odbc() {
    let config = [("innodb_flush_log_at_trx_commit", "0")];
    Behind::start("mariadb", &config).iter().for_each(|behind| assert_all_found(&*behind.open()));
}

#[test]
fn the_records_of_table_4_3_have_the_published_number_of_rows_for_every_case() {
    let settings = settings("wide", "1");
    assert_eq!(settings.record.rows, 2_032_000);
    assert_eq!(settings.record.runs, [(1, 600_000), (5, 86_400), (50, 10_000), (500, 1000)]);
    let work = Work::new(&settings).unwrap();
    assert_eq!(work.count_rows(), Ok(()), "each query states what its table says");
    let published: Vec<u64> = settings.workload.queries.iter().filter_map(|query| query.rows).collect();
    assert_eq!(work.rows_found(), published);
    assert_eq!(published.len(), 36 + 4, "36 cases and four straight joins");
    let mut wrong = settings;
    wrong.workload.queries[0].rows = Some(999);
    let error = Work::new(&wrong).unwrap().count_rows().unwrap_err().to_string();
    assert!(error.contains("query \"Q1.1\": finds 1000 records and rows = 999"), "{error}");
}
