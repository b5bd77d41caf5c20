//! ClickHouse in studies, as users write them: a store without updates, joins and transactions, on private servers and on somebody's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "existing/mod.rs"]
#[expect(dead_code, reason = "shared with tests that ask questions")]
mod existing;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use existing::table;
use loadline::database::clickhouse::recipe::CLICKHOUSE;
use loadline::database::{self, Target, TargetSession};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use program::{Scratch, outcome};

const SHORT: &str = "operations = 200\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, scan = 1, write = 1 }\nbatch = 5";

/// A server that plays somebody's own.
struct Own(Server);

impl Own {
    fn start() -> Own {
        let settings = DatabaseSettings { name: "clickhouse".to_owned(), ..DatabaseSettings::default() };
        Own(Server::start(&CLICKHOUSE, &settings, None)
            .unwrap_or_else(|error| panic!("an installed server is needed: {error}")))
    }

    fn url(&self) -> String {
        let (host, port) = self.0.endpoint().tcp.clone().unwrap();
        format!("clickhouse://default:{}@{host}:{port}", self.0.endpoint().password)
    }

    fn session(&self) -> Box<dyn TargetSession> {
        let entry = database::find("clickhouse").unwrap();
        let target: Box<dyn Target> = entry.open(&DatabaseSettings::default(), Some(self.0.endpoint())).unwrap();
        target.open().unwrap()
    }
}

fn study(database: &str, layout: &str, workload: &str) -> String {
    format!(
        "name = \"parts\"\n[database]\n{database}\n[record]\nrows = 500\n[layout]\nname = \"{layout}\"\n[workload]\n{workload}\n[load]\n{SHORT}"
    )
}

#[test]
fn records_are_written_and_read_and_all_of_them_are_there() {
    let scratch = Scratch::new();
    for (engine, layout) in [("mergetree", "wide"), ("mergetree", "key-value"), ("log", "wide"), ("memory", "wide")] {
        let workload = if layout == "wide" { MIX } else { "name = \"mix\"\nmix = { read = 2, write = 1 }" };
        scratch.write("s.toml", &study(&format!("name = \"clickhouse\"\nengine = \"{engine}\""), layout, workload));
        let name = format!("{engine}-{layout}");
        let told = scratch.run_study("s.toml", &name).expect(0).stdout;
        let trial = scratch.stored(&name).remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{name}: {:?}", trial.errors);
        assert!(trial.database_version.starts_with("ClickHouse "), "{}", trial.database_version);
        assert!(!told.contains("power cut"), "nothing is synced: {told}");
    }
}

#[test]
fn bytes_on_the_disk_are_those_of_the_parts() {
    let scratch = Scratch::new();
    for engine in ["mergetree", "memory"] {
        let database = format!("name = \"clickhouse\"\nengine = \"{engine}\"");
        scratch.write("s.toml", &study(&database, "wide", "name = \"write\"\nbatch = 50").replace("rows = 500\n", ""));
        let told = scratch.run_study("s.toml", engine).expect(0).stdout;
        let size = scratch.stored(engine).remove(0).table_size;
        assert_eq!(size.is_some(), engine == "mergetree", "{engine}: {told}");
    }
}

#[test]
fn partitions_are_dropped_while_readings_come_in_and_make_themselves() {
    let scratch = Scratch::new();
    let text = |engine: &str, by: &str| {
        format!(
            "name = \"old\"\n[database]\nname = \"clickhouse\"\nengine = \"{engine}\"\n[record]\ntype = \"qos\"\nrows = 1500\nsources = 10\n[layout]\nname = \"wide\"\n\
             partition = \"2s\"\n[retention]\nkeep = \"60s\"\nby = \"{by}\"\n[workload]\nname = \"write\"\nbatch = 50\n[load]\nclients = 1\nduration = \"600ms\"\nwarmup = \"0s\"\n\
             [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
        )
    };
    scratch.write("s.toml", &text("mergetree", "drop"));
    scratch.run_study("s.toml", "drop").expect(0);
    let trial = scratch.stored("drop").remove(0);
    let retention = trial.retention.unwrap();
    let changes = &retention.meanwhile.changes;
    assert!(retention.steps > 0 && changes.iter().all(|change| change.what == "drop"), "{changes:?}");
    let statement = changes[0].statement.as_deref().unwrap();
    assert!(statement.starts_with("ALTER TABLE ") && statement.contains(" DROP PARTITION 8500000"), "{statement}");
    scratch.write("s.toml", &text("mergetree", "delete"));
    scratch.run(&["plan", "s.toml"]).refused(&["retention.by is \"delete\"", "write by = \"drop\""]);
    scratch.write("s.toml", &text("log", "drop"));
    let told = scratch.run_study("s.toml", "log").expect(2);
    assert!(told.stderr.contains("only tables of the engine MergeTree have partitions"), "{}", told.stderr);
}

#[test]
fn settings_go_to_the_queries_the_tables_or_the_server_and_others_are_refused() {
    let scratch = Scratch::new();
    let given = "name = \"clickhouse\"\nconfig = { max_threads = 1, index_granularity = 1024, mark_cache_size = 1000000, async_insert = 0 }";
    scratch.write("s.toml", &study(given, "wide", MIX));
    scratch.run_study("s.toml", "run").expect(0);
    let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
    assert!(stored.contains("index_granularity") && stored.contains("1024"), "{stored}");
    let unknown = "name = \"clickhouse\"\nconfig = { max_thread = 1 }";
    scratch.write("s.toml", &study(unknown, "wide", MIX));
    let words = ["database.config.max_thread = \"1\"", "has no such setting", "system.settings"];
    scratch.run_study("s.toml", "unknown").refused(&words);
    let private = "name = \"clickhouse\"\nconfig = { http_port = 1 }";
    scratch.write("s.toml", &study(private, "wide", MIX));
    scratch.run_study("s.toml", "private").refused(&["http_port", "keeps the server private"]);
    scratch.write("s.toml", &study("name = \"clickhouse\"\nengine = \"tinylog\"", "wide", MIX));
    scratch.run_study("s.toml", "engine").refused(&["tinylog", "mergetree"]);
}

#[test]
fn what_it_cannot_do_is_refused_before_anything_is_started_with_who_can() {
    let scratch = Scratch::new();
    let freshness = "name = \"freshness\"\n[freshness]\ntables = 1";
    for (layout, workload, why) in [
        ("star", "name = \"read\"", "clickhouse has no updates"),
        ("star", "name = \"write\"", "clickhouse has no updates"),
        ("wide", "name = \"update\"", "clickhouse has no updates"),
        ("wide", "name = \"turnover\"", "clickhouse has no "),
        ("json", "name = \"update\"", "clickhouse has no updates"),
        ("wide", "name = \"sql\"\nstatements = [ { sql = \"SELECT 1\" } ]", "clickhouse has no SQL"),
        ("wide", freshness, "clickhouse has no rows that it numbers itself"),
    ] {
        let text = study("name = \"clickhouse\"", layout, workload);
        let is_without_rows = workload.contains("sql") || workload == freshness;
        let text = if is_without_rows { text.replace("rows = 500", "rows = 0") } else { text };
        let timed = "duration = \"2s\"\nclients = 2\narrivals = \"constant\"\nrate = 200\n";
        let text = if workload == freshness { text.replace("operations = 200\nclients = 2\n", timed) } else { text };
        scratch.write("s.toml", &text);
        scratch.run(&["plan", "s.toml"]).refused(&[why, "database.name = \""]);
    }
    scratch.write(
        "s.toml",
        &study("name = \"clickhouse\"\ntls = \"verify\"\nsocket = \"tcp\"", "wide", "name = \"write\""),
    );
    scratch.run(&["run", "s.toml", "--out", "none"]).refused(&["database.tls", "database.url"]);
}

#[test]
fn on_a_server_of_somebody_else_what_was_made_goes_and_what_was_there_stays() {
    let (own, scratch) = (Own::start(), Scratch::new());
    let mut session = own.session();
    session.create_table(&table("qos2")).unwrap();
    let database = format!("name = \"clickhouse\"\nurl = \"{}\"", own.url());
    scratch.write("s.toml", &study(&database, "wide", MIX));
    scratch.run_study("s.toml", "run").expect(0);
    assert_eq!(session.count_rows("qos2").unwrap(), Some(0));
    assert!(session.count_rows("qos").is_err(), "what was made is gone");
    let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
    assert!(!stored.contains(&own.0.endpoint().password), "no password is stored");
    session.create_table(&table("qos")).unwrap();
    scratch.run_study("s.toml", "refused").refused(&["table \"qos\" cannot be made", "already exists"]);
    assert_eq!(session.count_rows("qos").unwrap(), Some(0), "it stays");
}

#[test]
fn who_is_not_let_in_learns_what_to_do() {
    let (own, scratch) = (Own::start(), Scratch::new());
    let (host, port) = own.0.endpoint().tcp.clone().unwrap();
    let password = own.0.endpoint().password.clone();
    for (url, words) in [
        (format!("clickhouse://{host}:{port}"), ["no connection to ClickHouse", "LOADLINE_PASSWORD"]),
        (
            format!("clickhouse://default:wrong@{host}:{port}"),
            ["no connection to ClickHouse", "give user and password"],
        ),
        (format!("clickhouse://default:{password}@{host}:{port}/shop"), ["shop", "check the name of the database"]),
        (format!("redis://{host}:{port}"), ["redis://", "the form is clickhouse://"]),
    ] {
        scratch.write("s.toml", &study(&format!("name = \"clickhouse\"\nurl = \"{url}\""), "wide", "name = \"write\""));
        scratch.run_study("s.toml", "none").refused(&words);
    }
    let database = format!("name = \"clickhouse\"\nurl = \"http://{host}:{port}/default\"");
    scratch.write("s.toml", &study(&database, "wide", "name = \"write\""));
    let mut command = scratch.command(&["run", "s.toml", "--out", "run"]);
    outcome(command.env("LOADLINE_PASSWORD", password).env("LOADLINE_STOLEN", "1")).expect(0);
}
