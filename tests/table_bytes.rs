//! What records take on the disk: as a database states it, as its files are, and as a run says it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline::database::{self, Target, TargetSession};
use loadline::server::Server;
use loadline::statement::Request;
use loadline::trial::{DatabaseSettings, Settings};
use loadline::workload::Work;

const ROWS: u64 = 20_000;

const TABLES: [&str; 2] = ["qos_identity", "qos_values"];

fn settings(per_measurement: u64) -> Settings {
    let mut settings = Settings::default();
    "qos".clone_into(&mut settings.record.type_name);
    "qos".clone_into(&mut settings.record.table);
    "star".clone_into(&mut settings.layout.name);
    "read".clone_into(&mut settings.workload.name);
    (settings.record.rows, settings.record.per_measurement) = (ROWS, per_measurement);
    settings
}

/// A connection behind which the tables are filled.
fn filled(target: &dyn Target, per_measurement: u64) -> Box<dyn TargetSession> {
    let work = Work::new(&settings(per_measurement)).unwrap();
    let mut session = target.open().unwrap();
    work.program().tables.iter().for_each(|table| session.create_table(table).unwrap());
    session.prepare(work.program()).unwrap();
    let mut request = Request::default();
    for operation in work.preload() {
        request.clear();
        work.bind(&operation, &mut request);
        session.execute(&request, None).unwrap();
    }
    session
}

/// Bytes of the files below a directory that are some table's.
fn bytes_of_files(directory: &Path, is_of_table: &dyn Fn(&Path) -> bool) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes += bytes_of_files(&path, is_of_table);
        } else if is_of_table(&path) {
            bytes += path.metadata().unwrap().len();
        }
    }
    bytes
}

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("loadline-table-bytes-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn sqlite(path: &Path) -> Box<dyn Target> {
    let path = Some(path.display().to_string());
    let settings = DatabaseSettings { name: "sqlite".to_owned(), path, ..DatabaseSettings::default() };
    database::find("sqlite").unwrap().open(&settings, None).unwrap()
}

#[test]
fn sqlite_tells_the_size_of_a_file_that_holds_nothing_else() {
    let directory = scratch("sqlite");
    let path = directory.join("database.db");
    let target = sqlite(&path);
    let mut session = filled(&*target, 10);
    let sql = session.sql().unwrap();
    sql.query("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert_eq!(session.table_bytes(&TABLES), Some(path.metadata().unwrap().len()));
    let sql = session.sql().unwrap();
    sql.run("CREATE TABLE other (a INTEGER)").unwrap();
    assert_eq!(session.table_bytes(&TABLES), None, "what is whose is not known");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn postgres_tells_the_size_of_its_files() {
    let config = [("fsync", "off"), ("autovacuum", "off")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings =
        DatabaseSettings { name: "postgres".to_owned(), config: config.into(), ..DatabaseSettings::default() };
    let entry = database::find("postgres").unwrap();
    let server = Server::start(entry.recipe.unwrap(), &settings, None).unwrap();
    let target = entry.open(&settings, Some(server.endpoint())).unwrap();
    let mut session = filled(&*target, 10);
    let sql = session.sql().unwrap();
    sql.run("CHECKPOINT").unwrap();
    let files = sql.query(
        "WITH own AS (SELECT oid, reltoastrelid FROM pg_class WHERE relkind = 'r' AND relname IN ('qos_identity', 'qos_values')), \
         whole AS (SELECT oid FROM own UNION SELECT reltoastrelid FROM own) SELECT pg_relation_filenode(oid) FROM whole WHERE oid \
         <> 0 UNION SELECT pg_relation_filenode(indexrelid) FROM pg_index WHERE indrelid IN (SELECT oid FROM whole)",
    );
    let nodes: Vec<String> = files.unwrap().into_iter().flatten().flatten().collect();
    assert!(nodes.len() >= 4, "two tables, and an index of each: {nodes:?}");
    // `16390`, its map of free space `16390_fsm`, and `16390.1` behind the first gigabyte.
    let is_of_table = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        path.parent().is_some_and(|parent| parent.parent().is_some_and(|base| base.ends_with("base")))
            && nodes.iter().any(|node| name.split(['_', '.']).next() == Some(node.as_str()))
    };
    let bytes = bytes_of_files(&server.directory(), &is_of_table);
    assert!(bytes > 100 * ROWS, "{bytes}");
    assert_eq!(session.table_bytes(&TABLES), Some(bytes));
    assert_eq!(session.table_bytes(&["qos_values", "nothing"]), None, "a table that is not there has no size");
}

#[test]
fn mariadb_tells_the_size_of_its_files_with_every_engine() {
    for (engine, endings) in [("innodb", &["ibd"][..]), ("myisam", &["MYD", "MYI"]), ("aria", &["MAD", "MAI"])] {
        let config = [("innodb_flush_log_at_trx_commit".to_owned(), "0".to_owned())].into();
        let settings = DatabaseSettings {
            name: "mariadb".to_owned(),
            engine: Some(engine.to_owned()),
            config,
            ..DatabaseSettings::default()
        };
        let entry = database::find("mariadb").unwrap();
        let server = Server::start(entry.recipe.unwrap(), &settings, None).unwrap();
        let target = entry.open(&settings, Some(server.endpoint())).unwrap();
        let mut session = filled(&*target, 10);
        session.sql().unwrap().run("FLUSH TABLES").unwrap();
        let is_of_table = |path: &Path| {
            let [name, ending] =
                [path.file_stem(), path.extension()].map(|part| part.unwrap_or_default().to_string_lossy());
            TABLES.contains(&&*name) && endings.contains(&&*ending)
        };
        let bytes = bytes_of_files(&server.directory(), &is_of_table);
        assert!(bytes > 100 * ROWS, "{engine}: {bytes}");
        assert_eq!(session.table_bytes(&TABLES), Some(bytes), "{engine}");
        assert_eq!(session.table_bytes(&["qos_values", "nothing"]), None, "{engine}");
    }
}

/// The product's own path: what a run says of each record is what the same tables take that were filled here.
#[test]
fn a_run_says_what_records_take() {
    let directory = scratch("run");
    let target = sqlite(&directory.join("database.db"));
    let bytes = filled(&*target, 1).table_bytes(&TABLES).unwrap() as f64;
    let study = directory.join("study.toml");
    let text = format!(
        "name = \"bytes\"\n[database]\nname = \"sqlite\"\n[record]\ntype = \"qos\"\nrows = {ROWS}\nper_measurement = 1\n[layout]\nname = \
         \"star\"\n[load]\nclients = 1\nduration = \"200ms\"\nwarmup = \"0s\"\n[factors]\n\"workload.name\" = [\"read\", \"delete\"]\n\
         [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    );
    fs::write(&study, text).unwrap();
    let out = directory.join("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.env("LOADLINE_STOLEN", "1").args(["run", "--json"]).arg(&study).arg("--out").arg(&out);
    let document: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let of = |workload: &str| {
        let cases = document["cases"].as_array().unwrap();
        let case = cases.iter().find(|case| case["levels"]["workload.name"] == workload).unwrap();
        case["bytes_per_record"]["mean"].as_f64()
    };
    // Statistics of the tables take pages of their own, and others are filled otherwise by other batches.
    let read = of("read").unwrap() * ROWS as f64;
    assert!((0.99 * bytes..1.01 * bytes).contains(&read), "{read} bytes in the run, {bytes} here");
    assert_eq!(of("delete"), None, "nobody knows how many records are left");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("Bytes on the disk"));
    fs::remove_dir_all(directory).unwrap();
}
