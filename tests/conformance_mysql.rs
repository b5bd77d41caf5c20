//! MySQL and MariaDB on a live server: the conformance suite with every engine, and what only they have.

#![expect(clippy::unwrap_used, reason = "a test whose server cannot be set up has failed")]

#[path = "server/port.rs"]
mod port;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadline::database::conformance::{conformance, conformance_prepared};
use loadline::database::mysql::dialect::Engine;
use loadline::database::mysql::{MARIADB, MySql};
use loadline::database::{Database, DatabaseError, Endpoint, Session};
use loadline::record::{Cell, Cells};
use loadline::statement::{Expect, Program, Request, SqlForm, Statement, Step};
use loadline::trial::DatabaseSettings;

/// A private server in a temporary directory; ended and removed when dropped.
struct Server {
    process: Child,
    directory: Directory,
    port: u16,
}

/// A directory that is removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    fn start(name: &str, options: &[&str]) -> Server {
        Server::start_binary(name, Path::new("/usr/sbin/mariadbd"), options, |data| {
            let mut install = Command::new("mariadb-install-db");
            install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", data]);
            install
        })
    }

    /// A genuine MySQL from an unpacked distribution.
    fn start_mysql(base: &Path, options: &[&str]) -> Server {
        let binary = base.join("bin/mysqld");
        Server::start_binary("genuine", &binary, options, |data| {
            let mut install = Command::new(&binary);
            install.args(["--no-defaults", "--initialize-insecure", data]);
            install
        })
    }

    fn start_binary(name: &str, binary: &Path, options: &[&str], install: impl FnOnce(&str) -> Command) -> Server {
        let directory = Directory(std::env::temp_dir().join(format!("loadline-{name}-{}", std::process::id())));
        let _ = std::fs::remove_dir_all(&directory.0);
        std::fs::create_dir_all(&directory.0).unwrap();
        let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&directory.0).unwrap()) == 0;
        let user: &[&str] = if is_root { &["--user=mysql"] } else { &[] };
        if is_root {
            assert!(Command::new("chown").arg("mysql").arg(&directory.0).status().unwrap().success());
        }
        let data = format!("--datadir={}", directory.join("data").display());
        let temporary = format!("--tmpdir={}", directory.0.display());
        let install = install(&data).arg(&temporary).args(user).output().expect("install the package mariadb-server");
        assert!(install.status.success(), "{}", String::from_utf8_lossy(&[install.stdout, install.stderr].concat()));
        let port = port::free();
        let process = Command::new(binary)
            .args(["--no-defaults", &data, &temporary, "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M"])
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}", directory.join("socket").display()))
            .arg(format!("--pid-file={}", directory.join("pid").display()))
            .args(user)
            .args(options)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(directory.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut server = Server { process, directory, port };
        server.wait();
        server
    }

    fn wait(&mut self) {
        let begun = Instant::now();
        let admin = MySql::new("mariadb", Endpoint { database: String::new(), ..self.endpoint() }, Engine::InnoDb);
        loop {
            match admin.connect() {
                Ok(mut session) => return session.run("CREATE DATABASE conformance").unwrap(),
                Err(error) => {
                    let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                    assert!(self.process.try_wait().unwrap().is_none(), "the server ended: {log}");
                    assert!(begun.elapsed() < Duration::from_secs(240), "{error}: {log}");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            unix: Some(self.directory.join("socket")),
            user: "root".into(),
            password: String::new(),
            database: "conformance".into(),
            ..Endpoint::default()
        }
    }

    fn database(&self, engine: Engine) -> MySql {
        MySql::new("mariadb", self.endpoint(), engine)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn conforms(database: &dyn Database) {
    let failures = conformance(database);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn mariadb_conforms_with_every_engine_with_bulks_and_without() {
    let server = Server::start("engines", &[]);
    // InnoDB with bulks: tests/conformance.rs.
    for engine in [Engine::MyIsam, Engine::Aria] {
        conforms(&server.database(engine));
    }
    conforms(&server.database(Engine::InnoDb).without_bulk());
    let tcp = Endpoint { unix: None, tcp: Some(("127.0.0.1".into(), server.port)), ..server.endpoint() };
    conforms(&*MARIADB.open_sql(&DatabaseSettings::default(), Some(&tcp)).unwrap());
}

#[test]
fn mariadb_conforms_when_packets_are_small_and_transactions_are_implicit() {
    // The suite's largest value is 1 MiB, and a row has to fit.
    let server = Server::start("small", &["--max-allowed-packet=2M", "--autocommit=0", "--sql-mode=ANSI_QUOTES"]);
    for database in [server.database(Engine::InnoDb), server.database(Engine::InnoDb).without_bulk()] {
        let failures = conformance_prepared(&database);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

/// A lock that is not given undoes the whole transaction where a server is set so; what was sent behind it must not be stored.
#[test]
fn nothing_of_a_dry_run_stays_when_the_server_undoes_its_transaction_on_the_way() {
    let server = Server::start("undoes", &["--innodb-rollback-on-timeout=ON", "--innodb-lock-wait-timeout=1"]);
    let database = server.database(Engine::InnoDb);
    let mut other = database.connect().unwrap();
    other.run("CREATE TABLE samples (id BIGINT PRIMARY KEY)").unwrap();
    let mut session = prepared(&database, "INSERT INTO samples VALUES (?)");
    for _ in 0..2 {
        other.run("BEGIN").unwrap();
        other.run("INSERT INTO samples VALUES (50)").unwrap();
        session.begin_dry_run().unwrap();
        let requests: Vec<_> = [40, 50, 41, 42].map(|id| request(|cells| cells.int(id))).into();
        let outcomes = session.attempt_each(&requests);
        let is_refused: Vec<_> = outcomes.iter().map(Result::is_err).collect();
        assert_eq!(is_refused, [false, true, false, false], "{outcomes:?}");
        assert!(format!("{outcomes:?}").contains("1205"), "{outcomes:?}");
        session.end_dry_run().unwrap();
        other.run("ROLLBACK").unwrap();
        assert_eq!(other.query("SELECT COUNT(*) FROM samples").unwrap(), [[Some("0".to_owned())]]);
    }
    // What is kept where nothing was undone is all that was taken.
    session.begin_dry_run().unwrap();
    let requests: Vec<_> = [60, 61, 60, 62].map(|id| request(|cells| cells.int(id))).into();
    let is_refused: Vec<_> = session.attempt_each(&requests).iter().map(Result::is_err).collect();
    assert_eq!(is_refused, [false, false, true, false]);
    session.keep_dry_run().unwrap();
    assert_eq!(other.query("SELECT COUNT(*) FROM samples").unwrap(), [[Some("3".to_owned())]]);
    session.run("DELETE FROM samples").unwrap();
    session.execute(&request(|cells| cells.int(1)), None).unwrap();
    assert_eq!(other.query("SELECT COUNT(*) FROM samples").unwrap(), [[Some("1".to_owned())]]);
}

/// Runs where `LOADLINE_MYSQL_BASE` names an unpacked MySQL, which no Debian package brings.
#[test]
fn genuine_mysql_conforms_and_passwords_reach_it_encrypted() {
    let Some(base) = std::env::var_os("LOADLINE_MYSQL_BASE") else {
        eprintln!("LOADLINE_MYSQL_BASE names no MySQL: nothing was checked");
        return;
    };
    let server = Server::start_mysql(Path::new(&base), &["--mysqlx=OFF"]);
    for engine in [Engine::InnoDb, Engine::MyIsam] {
        conforms(&MySql::new("mysql", server.endpoint(), engine));
    }
    let mut admin = server.database(Engine::InnoDb).connect().unwrap();
    admin.run("CREATE USER ann IDENTIFIED WITH caching_sha2_password BY 'p@ss'").unwrap();
    admin.run("GRANT ALL ON conformance.* TO ann").unwrap();
    let log_in = |unix: bool, password: &str| {
        let mut endpoint = Endpoint { user: "ann".into(), password: password.into(), ..server.endpoint() };
        if !unix {
            (endpoint.unix, endpoint.tcp) = (None, Some(("127.0.0.1".into(), server.port)));
        }
        MySql::new("mysql", endpoint, Engine::InnoDb).connect().map(drop)
    };
    // The first time the server does not have the password in its cache, the second time it does.
    for unix in [false, true] {
        admin.run("FLUSH PRIVILEGES").unwrap();
        assert!(log_in(unix, "wrong").unwrap_err().to_string().contains("1045"));
        log_in(unix, "p@ss").unwrap();
        log_in(unix, "p@ss").unwrap();
        assert!(log_in(unix, "wrong").unwrap_err().to_string().contains("1045"));
    }
    admin.run("SET GLOBAL require_secure_transport = ON").unwrap();
    let error = log_in(false, "p@ss").unwrap_err().to_string();
    assert!(error.contains("3159") && error.contains("plain sockets only"), "{error}");
}

fn request(sql_parameters: impl FnOnce(&mut Cells)) -> Request {
    let mut request = Request::default();
    sql_parameters(&mut request.cells);
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Anything });
    request
}

fn prepared(database: &MySql, sql: &str) -> Box<dyn Session> {
    let mut session = database.connect().unwrap();
    let statement = Statement::Sql { sql: sql.into(), allow_empty: true, form: SqlForm::Prepared };
    session.prepare(&Program { statements: vec![statement], rows_max: 1, ..Program::default() }).unwrap();
    session
}

/// The values of the rows that a statement reads, as JSON.
fn values(database: &MySql, sql: &str, parameters: impl FnOnce(&mut Cells)) -> Vec<serde_json::Value> {
    let mut rows = Cells::new();
    prepared(database, sql).execute(&request(parameters), Some(&mut rows)).unwrap();
    rows.as_slice().iter().map(|cell| rows.to_json(*cell)).collect()
}

#[test]
fn what_only_this_protocol_has_works() {
    let server = Server::start("own", &["--max-allowed-packet=64M"]);
    let database = server.database(Engine::InnoDb);
    values_of_all_types_are_read(&database);
    parameters_may_change_their_types(&database);
    values_longer_than_a_packet_go_both_ways(&database);
    a_value_that_is_too_long_is_an_error(&database);
    procedures_with_several_results_are_read_to_the_end(&database);
    columns_that_change_are_noticed(&database);
    accounts_are_let_in_or_not(&server);
}

fn values_of_all_types_are_read(database: &MySql) {
    let sql = "SELECT CAST(-5 AS DECIMAL(9,2)), DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.25', TIME '-26:03:04', \
               CAST(18446744073709551615 AS UNSIGNED), CAST('1e3' AS FLOAT), NULL, X'00ff', b'101', JSON_OBJECT('a', 1), ?, ?, ?";
    let values = values(database, sql, |cells| {
        cells.float(-0.0);
        cells.int(i64::MIN);
        cells.null();
    });
    assert_eq!(values[0], "-5.00");
    assert_eq!(values[1], "2024-02-29");
    assert!(values[2].as_str().unwrap().starts_with("2024-02-29 01:02:03.25"), "{}", values[2]);
    assert_eq!(values[3], "-26:03:04");
    assert_eq!(values[4], "18446744073709551615");
    assert_eq!(values[5], 1000.0);
    assert_eq!(values[6], serde_json::Value::Null);
    assert_eq!(values[7], "00ff");
    assert_eq!(values[10], 0.0);
    assert_eq!(values[11], i64::MIN);
    assert_eq!(values[12], serde_json::Value::Null);
}

fn parameters_may_change_their_types(database: &MySql) {
    let mut session = prepared(database, "SELECT CONCAT(?, '')");
    type Fill = fn(&mut Cells);
    let fills: [(Fill, &str); 6] = [
        (|cells| cells.null(), "null"),
        (|cells| cells.int(-7), "\"-7\""),
        (|cells| cells.text("text"), "\"text\""),
        (|cells| cells.null(), "null"),
        (|cells| cells.float(0.5), "\"0.5\""),
        (|cells| cells.int(8), "\"8\""),
    ];
    for (fill, right) in fills {
        let mut rows = Cells::new();
        session.execute(&request(fill), Some(&mut rows)).unwrap();
        assert_eq!(rows.to_json(rows.get(0)).to_string(), right);
    }
}

fn values_longer_than_a_packet_go_both_ways(database: &MySql) {
    let mut session = prepared(database, "SELECT ?, ?");
    // The command is up to 28 bytes longer than the value: on both sides of the length at which it is divided, with an empty
    // last packet among them; and so the answer.
    let divided = (1 << 24) - 1;
    for length in (divided - 29..divided - 20).chain([divided, 20 << 20, 2 * divided + 5]) {
        let long: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        let request = request(|cells| {
            cells.blob(&long);
            cells.int(length as i64);
        });
        let mut rows = Cells::new();
        let answer = session.execute(&request, Some(&mut rows)).unwrap();
        assert_eq!((answer.rows, rows.get(1)), (1, Cell::Int(length as i64)));
        let Cell::Blob(span) = rows.get(0) else { panic!("not a blob: {:?}", rows.get(0)) };
        assert!(rows.bytes_of(span) == long, "{length} bytes came back changed");
        assert_eq!(session.execute(&request, None).unwrap().rows, 1);
    }
}

fn a_value_that_is_too_long_is_an_error(database: &MySql) {
    let mut session = prepared(database, "SELECT LENGTH(?)");
    let outcome = session.execute(&request(|cells| cells.blob(&vec![0; 65 << 20])), None);
    assert!(matches!(outcome, Err(DatabaseError::Lost(_))), "{outcome:?}");
}

fn procedures_with_several_results_are_read_to_the_end(database: &MySql) {
    let mut session = database.connect().unwrap();
    session.run("CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2, 3; END").unwrap();
    assert_eq!(values(database, "CALL two()", |_| ()), [1, 2, 3]);
    assert_eq!(session.query("CALL two()").unwrap().len(), 2);
    let mut session = prepared(database, "CALL two()");
    for _ in 0..3 {
        assert_eq!(session.execute(&request(|_| ()), None).unwrap().rows, 2);
    }
}

fn columns_that_change_are_noticed(database: &MySql) {
    let mut other = database.connect().unwrap();
    other.run("CREATE TABLE changing (a INT)").unwrap();
    other.run("INSERT INTO changing VALUES (5)").unwrap();
    let mut session = prepared(database, "SELECT * FROM changing");
    for (change, right) in
        [("", "[5]"), ("MODIFY a VARCHAR(9)", "[\"5\"]"), ("ADD b DOUBLE DEFAULT 0.5", "[\"5\",0.5]")]
    {
        if !change.is_empty() {
            other.run(&format!("ALTER TABLE changing {change}")).unwrap();
            // Changes are also noticed by answers whose rows are only counted.
            session.execute(&request(|_| ()), None).unwrap();
        }
        for _ in 0..2 {
            let mut rows = Cells::new();
            session.execute(&request(|_| ()), Some(&mut rows)).unwrap();
            let values: Vec<_> = rows.as_slice().iter().map(|cell| rows.to_json(*cell)).collect();
            assert_eq!(serde_json::Value::from(values).to_string(), right);
        }
    }
}

fn accounts_are_let_in_or_not(server: &Server) {
    let mut admin = server.database(Engine::InnoDb).connect().unwrap();
    for sql in [
        "CREATE USER ann@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('p@ss')",
        "GRANT ALL ON conformance.* TO ann@localhost",
        "INSTALL SONAME 'auth_ed25519'",
        "CREATE USER ed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('x')",
        "CREATE USER tls@localhost REQUIRE SSL",
    ] {
        admin.run(sql).unwrap();
    }
    let log_in = |user: &str, password: &str, database: &str| {
        let (user, password, database) = (user.into(), password.into(), database.into());
        let endpoint = Endpoint { user, password, database, ..server.endpoint() };
        MySql::new("mariadb", endpoint, Engine::InnoDb).connect().map(drop)
    };
    log_in("ann", "p@ss", "conformance").unwrap();
    for (user, password, database, right) in [
        ("ann", "wrong", "conformance", "1045"),
        ("nobody", "", "conformance", "1045"),
        ("ann", "p@ss", "absent", "absent"),
        ("ed", "x", "", "ed25519"),
        ("tls", "", "", "REQUIRE SSL"),
    ] {
        let error = log_in(user, password, database).unwrap_err().to_string();
        assert!(error.contains(right) && error.contains("socket") && error.contains(user), "{user}: {error}");
    }
}
