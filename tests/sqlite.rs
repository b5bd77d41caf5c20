//! SQLite as a database of studies: its settings, and how it fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;

use loadline::database::sqlite::Sqlite;
use loadline::database::{Answer, Database, DatabaseError, Session, Target};
use loadline::record::{Cell, Cells, ColumnKind};
use loadline::statement::{Expect, Program, Request, SqlForm, Statement, Step, TableColumn};
use loadline::trial::DatabaseSettings;

/// A directory of this test alone, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadline-sqlite-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn open(&self, config: &[(&str, &str)]) -> Result<Sqlite, DatabaseError> {
        open(&self.0.join("test.db").to_string_lossy(), config)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(path: &str, config: &[(&str, &str)]) -> Result<Sqlite, DatabaseError> {
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sqlite::open(&DatabaseSettings { path: Some(path.to_owned()), config, ..DatabaseSettings::default() })
}

fn setting(session: &mut dyn Session, name: &str) -> String {
    session.query(&format!("PRAGMA {name}")).unwrap()[0][0].clone().unwrap()
}

fn column(name: &str, kind: ColumnKind) -> TableColumn {
    TableColumn { name: name.to_owned(), kind, nullable: true }
}

/// Statement 0 inserts (id, text) into t; 1 updates the text of an id; 2 is the given SQL.
fn program(sql: &str) -> Program {
    let columns = || vec![column("id", ColumnKind::Int64), column("v", ColumnKind::Text(100))];
    let [id, v] = [columns().remove(0), columns().remove(1)];
    Program {
        statements: vec![
            Statement::Insert { table: "t".to_owned(), columns: columns() },
            Statement::Update { table: "t".to_owned(), set: vec![v], key: vec![id] },
            Statement::Sql { sql: sql.to_owned(), allow_empty: false, form: SqlForm::Prepared },
        ],
        rows_max: 1000,
        ..Program::default()
    }
}

fn prepared(database: &Sqlite, sql: &str) -> Box<dyn Session> {
    let mut session = database.connect().unwrap();
    session.run("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v TEXT)").unwrap();
    session.prepare(&program(sql)).unwrap();
    session
}

fn inserts(ids: std::ops::Range<i64>, text: &str) -> Request {
    let mut request = Request::default();
    let rows = (ids.end - ids.start) as u32;
    for id in ids {
        request.cells.int(id);
        request.cells.text(text);
    }
    request.steps.push(Step { statement: 0, rows, first_cell: 0, expect: Expect::Changed(u64::from(rows)) });
    request
}

fn count(session: &mut dyn Session) -> String {
    session.query("SELECT count(*) FROM t").unwrap()[0][0].clone().unwrap()
}

fn code(outcome: Result<Answer, DatabaseError>) -> String {
    match outcome {
        Err(DatabaseError::Refused { code, .. }) => code,
        Err(DatabaseError::Miscounted(_)) => "rows".to_owned(),
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn every_connection_is_durable_and_checks_references() {
    let place = Place::new("defaults");
    let database = place.open(&[]).unwrap();
    for _ in 0..2 {
        let mut session = database.connect().unwrap();
        assert_eq!(setting(&mut *session, "journal_mode"), "wal");
        assert_eq!(setting(&mut *session, "synchronous"), "2");
        assert_eq!(setting(&mut *session, "foreign_keys"), "1");
        assert_eq!(setting(&mut *session, "busy_timeout"), "10000");
    }
    assert!(database.is_embedded());
}

#[test]
fn settings_of_the_study_have_their_effect() {
    let place = Place::new("config");
    let config =
        [("page_size", "8192"), ("synchronous", "normal"), ("cache_size", "-4000"), ("journal_mode", "DELETE")];
    let mut session = place.open(&config).unwrap().connect().unwrap();
    let read: Vec<_> = ["page_size", "synchronous", "cache_size", "journal_mode"]
        .map(|name| setting(&mut *session, name))
        .into_iter()
        .collect();
    assert_eq!(read, ["8192", "1", "-4000", "delete"]);
}

#[test]
fn settings_that_sqlite_would_ignore_are_refused() {
    let place = Place::new("ignored");
    let refusal = |name, value| place.open(&[(name, value)]).err().unwrap().to_string();
    let unknown = refusal("cache_sizes", "1");
    assert_eq!(unknown, "database.config: SQLite has no PRAGMA \"cache_sizes\"; did you mean \"cache_size\"?");
    assert!(refusal("cache_size", "1; DROP TABLE t").contains("cannot be set; write a number or a word"));
    assert!(refusal("journal_mode", "wall").contains("cannot have journal_mode wall"));
}

#[test]
fn files_that_cannot_be_opened_are_named_with_the_remedy() {
    let place = Place::new("unavailable");
    let directory = place.0.to_string_lossy().into_owned();
    let refusal = |path: &str| open(path, &[]).err().unwrap().to_string();
    assert!(refusal(&format!("{directory}/no/such.db")).contains("there is no directory"));
    assert!(refusal(&directory).contains("is a directory; name a file in it"));
    assert!(refusal(":memory:").contains("/dev/shm"));
    assert!(refusal("").contains("database.path is missing"));
    let text = format!("{directory}/text.db");
    std::fs::write(
        &text,
        "this is not a database, but it is longer than the header of one, which has 100 bytes".repeat(3),
    )
    .unwrap();
    let not_a_database = refusal(&text);
    assert!(not_a_database.contains("text.db") && not_a_database.contains("SQLITE_NOTADB"), "{not_a_database}");
    let forbidden = refusal("/proc/loadline.db");
    assert!(forbidden.contains("/proc/loadline.db") && forbidden.contains("SQLITE_CANTOPEN"), "{forbidden}");
}

#[test]
fn a_full_disk_is_a_refusal_and_stores_nothing_of_the_transaction() {
    let place = Place::new("full");
    let database = place.open(&[("max_page_count", "50")]).unwrap();
    let mut session = prepared(&database, "SELECT 1");
    let text = "x".repeat(1000);
    session.execute(&inserts(0..10, &text), None).unwrap();
    assert_eq!(code(session.execute(&inserts(10..1000, &text), None)), "SQLITE_FULL");
    assert_eq!(count(&mut *session), "10");
    session.execute(&inserts(10..20, &text), None).unwrap();
    assert_eq!(count(&mut *session), "20", "the session is still good");
}

#[test]
fn a_refused_step_undoes_the_steps_before_it() {
    let place = Place::new("undo");
    let mut session = prepared(&place.open(&[]).unwrap(), "SELECT 1");
    session.execute(&inserts(5..6, "there"), None).unwrap();
    assert_eq!(code(session.execute(&inserts(0..10, "new"), None)), "SQLITE_CONSTRAINT_PRIMARYKEY");
    assert_eq!(count(&mut *session), "1");
    // An update of a row that is not there is no error to SQLite, but it is to whoever expects one row.
    let mut request = inserts(100..101, "new");
    let first_cell = request.cells.len() as u32;
    request.cells.text("changed");
    request.cells.int(77);
    request.steps.push(Step { statement: 1, rows: 1, first_cell, expect: Expect::Changed(1) });
    assert_eq!(code(session.execute(&request, None)), "rows");
    assert_eq!(count(&mut *session), "1");
}

#[test]
fn a_single_update_that_changes_too_many_rows_is_undone() {
    let place = Place::new("too-many");
    let mut session = prepared(&place.open(&[]).unwrap(), "UPDATE t SET v = 'all'");
    session.execute(&inserts(0..3, "old"), None).unwrap();
    let step = Step { statement: 2, rows: 1, first_cell: 0, expect: Expect::Changed(1) };
    let request = Request { steps: vec![step], ..Request::default() };
    assert_eq!(code(session.execute(&request, None)), "rows");
    assert_eq!(session.query("SELECT DISTINCT v FROM t").unwrap(), [[Some("old".to_owned())]]);
}

#[test]
fn texts_and_blobs_are_bound_for_one_request_only() {
    let place = Place::new("bound");
    let mut session = prepared(&place.open(&[]).unwrap(), "SELECT ?, ?, ?, ?, ?");
    let step = Step { statement: 2, rows: 1, first_cell: 0, expect: Expect::Rows };
    for round in 0..50 {
        let mut request = Request { steps: vec![step], ..Request::default() };
        request.cells.text(&"päivä\0".repeat(round));
        request.cells.blob(&vec![round as u8; round * 10]);
        request.cells.null();
        request.cells.float(f64::MIN_POSITIVE);
        request.cells.int(i64::MIN);
        let mut rows = Cells::new();
        let answer = session.execute(&request, Some(&mut rows)).unwrap();
        assert_eq!(answer, Answer { rows: 1, changed: 0, empty: 0 });
        let shown = |cells: &Cells| cells.as_slice().iter().map(|cell| cells.to_json(*cell)).collect::<Vec<_>>();
        assert_eq!(shown(&rows), shown(&request.cells));
        assert!(matches!(rows.get(1), Cell::Blob(_)));
    }
}

#[test]
fn empty_answers_are_counted_where_rows_are_expected() {
    let place = Place::new("empty");
    let mut session = prepared(&place.open(&[]).unwrap(), "SELECT v FROM t WHERE id = ?");
    let mut answer = |expect| {
        let mut request = Request::default();
        request.cells.int(1);
        request.steps.push(Step { statement: 2, rows: 1, first_cell: 0, expect });
        session.execute(&request, None).unwrap()
    };
    assert_eq!(answer(Expect::Rows), Answer { rows: 0, changed: 0, empty: 1 });
    assert_eq!(answer(Expect::Anything), Answer::default());
}

#[test]
fn statements_that_cannot_be_prepared_are_refused_with_their_text() {
    let place = Place::new("prepare");
    let mut session = prepared(&place.open(&[]).unwrap(), "SELECT 1");
    let mut refusal = |sql: &str| session.prepare(&program(sql)).unwrap_err().to_string();
    assert_eq!(refusal("SELECT * FROM nowhere"), "no such table: nowhere in: SELECT * FROM nowhere (SQLITE_ERROR)");
    assert!(refusal("DELETE FROM t; DELETE FROM t").contains("more than one statement"));
    assert!(refusal("-- nothing").contains("no statement"));
    assert!(session.prepare(&program("SELECT 1 ;\n ")).is_ok());
    assert_eq!(session.query("SELEKT").unwrap_err(), session.run("SELEKT").unwrap_err());
}

#[test]
fn requests_with_too_few_values_are_refused() {
    let place = Place::new("few");
    let mut session = prepared(&place.open(&[]).unwrap(), "SELECT 1");
    let mut request = inserts(0..2, "x");
    request.steps[0].rows = 3;
    assert_eq!(code(session.execute(&request, None)), "SQLITE_RANGE");
    assert_eq!(count(&mut *session), "0");
}

#[test]
fn writers_wait_for_each_other() {
    let place = Place::new("wait");
    let database = place.open(&[]).unwrap();
    drop(prepared(&database, "SELECT 1"));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let database = &database;
            scope.spawn(move || {
                let mut session = prepared(database, "SELECT 1");
                for round in 0..10 {
                    let first = writer * 1000 + round * 10;
                    session.execute(&inserts(first..first + 10, "x"), None).unwrap();
                }
            });
        }
    });
    assert_eq!(count(&mut *prepared(&database, "SELECT 1")), "400");
}

#[test]
fn an_embedded_session_has_no_wire() {
    let place = Place::new("wire");
    let session = place.open(&[]).unwrap().connect().unwrap();
    let mut session = session.into_wire().err().unwrap();
    assert!(session.version().unwrap().starts_with("SQLite 3."));
}
