//! PostgreSQL, the real one: the suite that every database passes, and what is peculiar to our codec.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

#[path = "server/port.rs"]
mod port;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use loadline::database::conformance::conformance;
use loadline::database::dialect::create_table;
use loadline::database::postgres::{Postgres, PostgresDialect};
use loadline::database::{Answer, Database, DatabaseError, Endpoint, Session};
use loadline::record::{Cells, ColumnKind};
use loadline::statement::{Expect, Program, Request, SqlForm, Statement, Step, Table, TableColumn};

/// A private server, stopped and removed when dropped.
struct Server {
    directory: PathBuf,
    port: u16,
    process: Child,
}

const BINARIES: &str = "/usr/lib/postgresql/15/bin";

/// Users for each way of authentication, and one who is let in by TLS only.
const RULES: &str = "local all all trust
hostssl all guest all trust
host all scram all scram-sha-256
host all old all md5
host all clear all password
host all postgres all trust
";

impl Server {
    fn start() -> Server {
        let port = port::free();
        let directory = std::env::temp_dir().join(format!("loadline-postgres-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let owner = owner();
        if let Some((user, group)) = owner {
            std::os::unix::fs::chown(&directory, Some(user), Some(group)).unwrap();
        }
        let data = directory.join("data");
        let run = |name: &str| {
            let mut command = Command::new(format!("{BINARIES}/{name}"));
            command.current_dir(&directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if let Some((user, group)) = owner {
                command.gid(group).uid(user);
            }
            command
        };
        let mut initdb = run("initdb");
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]).arg(&data);
        assert!(initdb.status().unwrap().success());
        std::fs::write(data.join("pg_hba.conf"), RULES).unwrap();
        let mut postgres = run("postgres");
        postgres.args(["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-p", &port.to_string()]);
        let process = postgres.arg("-k").arg(&directory).arg("-D").arg(&data).spawn().unwrap();
        let server = Server { directory, port, process };
        let deadline = Instant::now() + Duration::from_secs(240);
        while let Err(error) = Postgres::new(server.unix()).connect() {
            assert!(Instant::now() < deadline, "the server does not start: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// The server that tests running at the same time share.
    fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    fn unix(&self) -> Endpoint {
        let socket = self.directory.join(format!(".s.PGSQL.{}", self.port));
        Endpoint { unix: Some(socket), user: "postgres".into(), database: "postgres".into(), ..Endpoint::default() }
    }

    fn tcp(&self, user: &str, password: &str) -> Endpoint {
        Endpoint {
            tcp: Some(("127.0.0.1".into(), self.port)),
            user: user.into(),
            password: password.into(),
            database: "postgres".into(),
            ..Endpoint::default()
        }
    }

    fn connect(&self) -> Box<dyn Session> {
        Postgres::new(self.unix()).connect().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = i32::try_from(self.process.id()).unwrap();
        // SAFETY: signals a process that we started and have not waited for, so its number is still its own.
        unsafe { libc::kill(process, libc::SIGQUIT) };
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// User and group of `postgres` when we are root, as whom the server refuses to run.
fn owner() -> Option<(u32, u32)> {
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let fields: Vec<_> = users.lines().find(|line| line.starts_with("postgres:")).unwrap().split(':').collect();
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

fn column(name: &str, kind: ColumnKind) -> TableColumn {
    TableColumn { name: name.into(), kind, nullable: false }
}

/// Two tables `{name}_a` and `{name}_b` of a key and a text, with an insert into each (0, 1) and an update of the second (2).
fn two_tables(session: &mut dyn Session, name: &str) {
    let columns = vec![column("id", ColumnKind::Int32), column("note", ColumnKind::Text(10_000))];
    let tables = ["a", "b"].map(|end| Table {
        name: format!("{name}_{end}"),
        columns: columns.clone(),
        primary_key: vec!["id".into()],
        numbered: false,
        unique: vec![],
        indexes: vec![],
        foreign_keys: vec![],
        time: None,
    });
    let insert = |table: &Table| Statement::Insert { table: table.name.clone(), columns: columns.clone() };
    let mut statements: Vec<_> = tables.iter().map(insert).collect();
    let (set, key) = (columns[1..].to_vec(), columns[..1].to_vec());
    statements.push(Statement::Update { table: tables[1].name.clone(), set, key });
    for sql in tables.iter().flat_map(|table| create_table(&PostgresDialect, table)) {
        session.run(&sql).unwrap();
    }
    session.prepare(&Program { tables: tables.into(), statements, rows_max: 10_000, ..Program::default() }).unwrap();
}

/// Adds a step that inserts these keys.
fn insert(request: &mut Request, statement: u16, keys: impl IntoIterator<Item = i64>, note: &str) {
    let first_cell = request.cells.len() as u32;
    let mut rows = 0;
    for key in keys {
        request.cells.int(key);
        request.cells.text(note);
        rows += 1;
    }
    request.steps.push(Step { statement, rows, first_cell, expect: Expect::Changed(u64::from(rows)) });
}

fn count(session: &mut dyn Session, table: &str) -> String {
    session.query(&format!("SELECT count(*) FROM {table}")).unwrap()[0][0].clone().unwrap()
}

fn code(outcome: Result<Answer, DatabaseError>) -> String {
    match outcome {
        Err(DatabaseError::Refused { code, .. }) => code,
        Err(DatabaseError::Miscounted(_)) => "rows".to_owned(),
        other => panic!("expected a refusal, not {other:?}"),
    }
}

#[test]
fn postgres_conforms_over_unix_and_tcp_sockets() {
    let server = Server::shared();
    for endpoint in [server.unix(), server.tcp("postgres", "")] {
        let failures = conformance(&Postgres::new(endpoint));
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

#[test]
fn rows_copied_into_two_tables_are_stored_together_or_not_at_all() {
    let server = Server::shared();
    let session = &mut *server.connect();
    two_tables(session, "together");
    let mut request = Request::default();
    insert(&mut request, 0, 0..1000, "päivä");
    insert(&mut request, 1, 0..5000, &"x".repeat(100));
    let answer = session.execute(&request, None).unwrap();
    assert_eq!(answer, Answer { rows: 0, changed: 6000, empty: 0 });
    assert_eq!(session.query("SELECT note FROM together_a WHERE id = 999").unwrap()[0][0].as_deref(), Some("päivä"));

    // The last row of the second table is already there.
    request.clear();
    insert(&mut request, 0, 1000..1100, "");
    insert(&mut request, 1, (5000..5100).chain([7]), "");
    assert_eq!(code(session.execute(&request, None)), "23505");
    // The first row of the first table is: megabytes of data behind it are discarded.
    request.clear();
    insert(&mut request, 0, (7..8).chain(1000..4000), &"y".repeat(1000));
    insert(&mut request, 1, 5000..9000, &"y".repeat(1000));
    assert_eq!(code(session.execute(&request, None)), "23505");
    // A plain insert fails before a COPY begins.
    request.clear();
    insert(&mut request, 0, [7], "");
    insert(&mut request, 1, 5000..9000, &"y".repeat(1000));
    assert_eq!(code(session.execute(&request, None)), "23505");
    // A value that does not fit is seen before anything is sent.
    request.clear();
    insert(&mut request, 0, 1000..1100, "");
    insert(&mut request, 1, [5000, 1 << 40], "");
    assert_eq!(code(session.execute(&request, None)), "22003");
    request.clear();
    insert(&mut request, 0, 1000..1100, "a\0b");
    assert_eq!(code(session.execute(&request, None)), "22021");

    assert_eq!((count(session, "together_a").as_str(), count(session, "together_b").as_str()), ("1000", "5000"));
    request.clear();
    insert(&mut request, 0, 1000..1100, "");
    assert_eq!(session.execute(&request, None).unwrap().changed, 100, "the connection is still good");
}

#[test]
fn an_update_that_finds_no_row_undoes_the_inserts_before_it() {
    let server = Server::shared();
    let session = &mut *server.connect();
    two_tables(session, "undo");
    let execute = |session: &mut dyn Session, key: i64| {
        let mut request = Request::default();
        insert(&mut request, 0, key * 100..key * 100 + 2, "");
        insert(&mut request, 1, [key % 2 * key], "");
        let first_cell = request.cells.len() as u32;
        request.cells.text("new");
        request.cells.int(key);
        request.steps.push(Step { statement: 2, rows: 1, first_cell, expect: Expect::Changed(1) });
        session.execute(&request, None)
    };
    assert_eq!(execute(session, 1).unwrap().changed, 4);
    assert_eq!(code(execute(session, 2)), "rows");
    assert_eq!(code(execute(session, 2)), "rows");
    assert_eq!((count(session, "undo_a").as_str(), count(session, "undo_b").as_str()), ("2", "1"));
    assert_eq!(session.query("SELECT note FROM undo_b").unwrap()[0][0].as_deref(), Some("new"));
    assert_eq!(execute(session, 3).unwrap().changed, 4);
}

/// Prepares one statement of a study and executes it.
fn execute_sql(session: &mut dyn Session, sql: &str, fill: impl FnOnce(&mut Cells)) -> Result<Cells, DatabaseError> {
    let statements = vec![Statement::Sql { sql: sql.into(), allow_empty: true, form: SqlForm::Prepared }];
    session.prepare(&Program { statements, rows_max: 1, ..Program::default() })?;
    let mut request = Request::default();
    fill(&mut request.cells);
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Anything });
    let mut rows = Cells::new();
    session.execute(&request, Some(&mut rows))?;
    Ok(rows)
}

#[test]
fn sql_of_a_study_gets_its_parameters_in_the_types_of_the_server() {
    let server = Server::shared();
    let session = &mut *server.connect();
    let sql =
        "SELECT ?::bool, ?::int2, ?::float4, ?::numeric * 2, ?::date + 1, ?::varchar || '?', ?::bytea, ?::json -- ?";
    let rows = execute_sql(session, sql, |cells| {
        cells.int(1);
        cells.float(-3.0);
        cells.int(2);
        cells.float(0.25);
        cells.text("2026-11-30");
        cells.int(12);
        cells.blob(&[0, 255]);
        cells.text("{}");
    });
    let rows = rows.unwrap();
    let values: Vec<_> = rows.as_slice().iter().map(|cell| rows.to_json(*cell).to_string()).collect();
    let expected = ["1", "-3", "2.0", "\"0.50\"", "\"2026-12-01\"", "\"12?\"", "\"00ff\"", "\"{}\""];
    assert_eq!(values, expected);
    let operators = "SELECT '{\"a\": 1}'::jsonb ?? ?, '[\"a\", \"b\"]'::jsonb ??| ARRAY[?]";
    let has = |key: &'static str| move |cells: &mut Cells| (0..2).for_each(|_| cells.text(key));
    for (key, right) in [("a", ["1", "1"]), ("b", ["0", "1"])] {
        let rows = execute_sql(session, operators, has(key)).unwrap();
        let values: Vec<_> = rows.as_slice().iter().map(|cell| rows.to_json(*cell).to_string()).collect();
        assert_eq!(values, right, "{key}");
    }
    let wrong = execute_sql(session, "SELECT ?::int + 1", |cells| cells.text("four")).unwrap_err().to_string();
    assert!(wrong.contains("value \"four\" cannot be given to parameter 1, integer"), "{wrong}");
}

#[test]
fn statements_that_are_not_for_pipelines_leave_the_connection_good() {
    let server = Server::shared();
    let session = &mut *server.connect();
    session.run("CREATE TABLE odd (id int PRIMARY KEY); INSERT INTO odd VALUES (1), (2)").unwrap();
    for (sql, expected) in [
        ("COPY odd FROM STDIN", "57014"),
        ("SELECT 1 / (id - 1) FROM odd", "22012"),
        ("INSERT INTO odd VALUES (1)", "23505"),
        ("SELEKT", "42601"),
    ] {
        let failure = execute_sql(session, sql, |_| ()).map(|_| Answer::default());
        assert_eq!(code(failure), expected, "{sql}");
        assert!(session.run(&format!("{sql}; SELECT 1")).is_err(), "{sql}");
    }
    let notice = "DO $$ BEGIN RAISE NOTICE 'hello'; END $$";
    for sql in ["COPY odd TO STDOUT", "", notice, "SET work_mem = '1MB'", "VACUUM odd"] {
        execute_sql(session, sql, |_| ()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        session.run(sql).unwrap();
    }
    assert_eq!(session.query("SELECT id FROM odd ORDER BY id").unwrap().len(), 2);
    assert!(session.version().unwrap().starts_with("PostgreSQL 1"));
}

#[test]
fn a_connection_that_the_server_ends_is_lost() {
    let server = Server::shared();
    let (session, other) = (&mut *server.connect(), &mut *server.connect());
    execute_sql(session, "SELECT 1", |_| ()).unwrap();
    let process = session.query("SELECT pg_backend_pid()").unwrap()[0][0].clone().unwrap();
    other.run(&format!("SELECT pg_terminate_backend({process}, 10000)")).unwrap();
    let step = Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Rows };
    let request = Request { steps: vec![step], ..Request::default() };
    let lost = session.execute(&request, None).unwrap_err();
    assert!(matches!(&lost, DatabaseError::Lost(why) if why.contains("57P01")), "{lost}");
}

#[test]
fn every_way_of_authentication_lets_in_with_the_right_password_only() {
    let server = Server::shared();
    let session = &mut *server.connect();
    session.run("CREATE USER scram PASSWORD 'sesämé'; CREATE USER clear PASSWORD 'open'; CREATE USER guest").unwrap();
    session.run("SET password_encryption = md5; CREATE USER old PASSWORD 'barley'").unwrap();
    let connect = |user, password| Postgres::new(server.tcp(user, password)).connect();
    for (user, password) in [("scram", "sesämé"), ("clear", "open"), ("old", "barley")] {
        let who = connect(user, password).unwrap().query("SELECT current_user").unwrap();
        assert_eq!(who[0][0].as_deref(), Some(user));
        for (wrong, part) in [("wrong", "check user and password"), ("", "none is given")] {
            let error = connect(user, wrong).map(drop).unwrap_err();
            assert!(matches!(&error, DatabaseError::Unavailable(text) if text.contains(part)), "{user}: {error}");
        }
    }
    for (user, part) in [("guest", "with TLS only"), ("nobody", "pg_hba.conf")] {
        let error = connect(user, "").map(drop).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let absent = Endpoint { database: "absent".into(), ..server.unix() };
    let error = Postgres::new(absent).connect().map(drop).unwrap_err();
    assert!(error.to_string().contains("create the database"), "{error}");
}
