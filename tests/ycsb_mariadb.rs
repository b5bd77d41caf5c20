//! YCSB's table and workloads on a private MariaDB server, and tables there that are not as they should be.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use loadline::database::dialect::create_table;
use loadline::database::{self, Database, mysql};
use loadline::measurement::Measurement;
use loadline::operation::Operation;
use loadline::server::Server;
use loadline::statement::Request;
use loadline::store::Run;
use loadline::trial::{DatabaseSettings, Settings};
use loadline::workload::{Client, Work};

/// A directory of this test alone, removed at its end.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    (settings.record.type_name, settings.record.table) = ("usertable".to_owned(), "usertable".to_owned());
    (settings.record.rows, settings.record.per_measurement, settings.record.seed) = (200, 1, 1);
    settings.layout.name = "wide".to_owned();
    (settings.workload.name, settings.workload.batch) = ("ycsb-a".to_owned(), 1);
    settings
}

/// Makes the table as the layout `wide` does, and fills it with `rows` records.
fn make(database: &dyn Database, rows: u32) {
    let work = Work::new(&settings()).unwrap();
    let mut session = database.connect().unwrap();
    session.run("DROP TABLE IF EXISTS usertable").unwrap();
    let tables = &work.program().tables;
    assert_eq!(tables.len(), 1);
    for sql in create_table(database.dialect(), &tables[0]) {
        session.run(&sql).unwrap();
    }
    session.prepare(work.program()).unwrap();
    if rows > 0 {
        let mut request = Request::default();
        work.bind(&Operation::Insert { first: 0, records: rows }, &mut request);
        session.execute(&request, None).unwrap();
    }
}

/// Runs a workload on the table that is there; the exit status, what was printed, and the only trial.
fn run(place: &Path, url: &str, workload: &str, sets: &[&str]) -> (Option<i32>, String, Measurement) {
    let out = place.join("run");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["run", "--ycsb", workload, "--set", "record.existing=true", "--set", "database.name=mariadb"]);
    command.args(["--set", "recordcount=200", "--set", "operationcount=400", "--set", "threadcount=3"]);
    command.args(["--set", "repeat.rule=fixed", "--set", "repeat.least=1", "--set", &format!("database.url={url}")]);
    sets.iter().for_each(|set| {
        command.args(["--set", set]);
    });
    let output = command.arg("--out").arg(&out).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let mut measurements = Run::open(&out).unwrap_or_else(|error| panic!("{error}: {text}")).measurements;
    (output.status.code(), text, measurements.remove(0))
}

#[test]
fn workloads_run_on_tables_that_are_there_and_tables_without_what_is_asked_for_make_them_invalid() {
    let place = Place(std::env::temp_dir().join(format!("loadline-ycsb-mariadb-{}", std::process::id())));
    std::fs::create_dir_all(&place.0).unwrap();
    let server = Server::start(&mysql::recipe::MARIADB, &DatabaseSettings::default(), None).unwrap();
    let own = DatabaseSettings { name: "mariadb".to_owned(), ..DatabaseSettings::default() };
    let database = database::find("mariadb").unwrap().open_sql(&own, Some(server.endpoint())).unwrap();
    let endpoint = server.endpoint();
    let (host, port) = endpoint.tcp.clone().unwrap();
    let url = format!("mysql://{}:{}@{host}:{port}/{}", endpoint.user, endpoint.password, endpoint.database);

    let (status, text, trial) = run(&place.0, &url, "workloadc", &[]);
    assert_eq!((status, trial.completed()), (Some(1), 0), "a missing table: {text}");
    assert!(text.contains("usertable"), "{text}");

    make(&*database, 0);
    let (status, text, trial) = run(&place.0, &url, "workloadc", &[]);
    assert_eq!((status, trial.operations["read"].empty), (Some(1), 400), "an empty table: {text}");

    make(&*database, 150);
    let (status, text, trial) = run(&place.0, &url, "workloadc", &[]);
    assert!(status == Some(1) && (1..400).contains(&trial.operations["read"].empty), "missing records: {text}");

    make(&*database, 200);
    let mut session = database.connect().unwrap();
    let grant = "GRANT SELECT ON *.* TO reader@'%' IDENTIFIED BY 'only-reads'";
    session.run(grant).unwrap();
    let reader = format!("mysql://reader:only-reads@{host}:{port}/{}", endpoint.database);
    let (status, text, trial) = run(&place.0, &reader, "workloadc", &[]);
    assert_eq!((status, trial.completed(), trial.failed()), (Some(0), 400, 0), "an account that may only read: {text}");

    for (workload, kind) in
        [("workloada", "update"), ("workloadf", "read-modify-write"), ("workloade", "scan"), ("workloadd", "insert")]
    {
        // What is inserted stays, so that only one workload may.
        let sets: &[&str] = if kind == "insert" { &[] } else { &["insertproportion=0"] };
        let (status, text, trial) = run(&place.0, &url, workload, sets);
        assert_eq!((status, trial.completed(), trial.failed()), (Some(0), 400, 0), "{workload}: {text}");
        assert!(trial.operations[kind].completed > 0, "{workload}");
    }
    let count = session.query("SELECT COUNT(*) FROM usertable").unwrap();
    assert!(count[0][0].as_ref().unwrap().parse::<u32>().unwrap() > 200, "the table stays, with what was inserted");
}

#[test]
fn wide_is_the_table_of_ycsb_with_its_keys_and_characters() {
    let server = Server::start(&mysql::recipe::MARIADB, &DatabaseSettings::default(), None).unwrap();
    let own = DatabaseSettings { name: "mariadb".to_owned(), ..DatabaseSettings::default() };
    let database = database::find("mariadb").unwrap().open_sql(&own, Some(server.endpoint())).unwrap();
    make(&*database, 200);
    let mut session = database.connect().unwrap();
    let mut ask = |sql: &str| {
        let rows = session.query(sql).unwrap();
        rows.into_iter()
            .map(|row| row.into_iter().map(Option::unwrap).collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    let columns = ask(
        "SELECT column_name, data_type, column_key FROM information_schema.columns WHERE table_name = 'usertable' \
         ORDER BY ordinal_position",
    );
    let mut expected = vec!["ycsb_key varchar PRI".to_owned()];
    expected.extend((0..10).map(|field| format!("field{field} varchar ")));
    assert_eq!(columns, expected);
    assert_eq!(ask("SELECT COUNT(*) FROM usertable WHERE ycsb_key = 'user6284781860667377211'"), ["1"]);
    assert_eq!(ask("SELECT COUNT(*) FROM usertable WHERE ycsb_key NOT REGEXP '^user[0-9]+$'"), ["0"]);
    assert_eq!(ask("SELECT MIN(LENGTH(field0)), MAX(LENGTH(field9)) FROM usertable"), ["100 100"]);
    assert_eq!(ask("SELECT COUNT(*) FROM usertable WHERE field3 NOT REGEXP '^[ -~\x7f]+$'"), ["0"]);

    // What clients insert together are the records that follow, each once.
    let mut settings = settings();
    settings.workload.name = "ycsb-d".to_owned();
    let work = Arc::new(Work::new(&settings).unwrap());
    let mut inserted = Vec::new();
    for number in 0..2 {
        let mut workload = work.workload(Client { number, of: 2, seed: 1 }).unwrap();
        let mut request = Request::default();
        for _ in 0..200 {
            request.clear();
            if let Operation::Insert { first, .. } = work.next(&mut *workload, &mut request) {
                inserted.push(first);
            }
            work.done(&mut *workload, true, &mut request);
        }
    }
    assert_eq!(inserted, (200..200 + inserted.len() as u64).collect::<Vec<_>>());
}
