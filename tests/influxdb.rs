//! InfluxDB in studies, as users write them: a store whose points are told apart by tags and time, on private servers and on somebody's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "existing/mod.rs"]
mod existing;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use existing::{assert_answers_are_right, table};
use loadline::database::influxdb::recipe::INFLUXDB;
use loadline::database::{self, TargetSession};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use program::Scratch;

const SHORT: &str = "operations = 150\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, scan = 1, write = 1 }\nbatch = 5";

fn study(database: &str, layout: &str, workload: &str) -> String {
    format!(
        "name = \"points\"\n[database]\n{database}\n[record]\nrows = 300\n[layout]\nname = \"{layout}\"\n[workload]\n{workload}\n[load]\n{SHORT}"
    )
}

/// A server that plays somebody's own.
struct Own(Server);

impl Own {
    fn start() -> Own {
        let settings = DatabaseSettings { name: "influxdb".to_owned(), ..DatabaseSettings::default() };
        Own(Server::start(&INFLUXDB, &settings, None)
            .unwrap_or_else(|error| panic!("an installed server is needed: {error}")))
    }

    /// Opens a connection as a study does; the first one makes the account and the database.
    fn open(&self) -> Box<dyn TargetSession> {
        let entry = database::find("influxdb").unwrap();
        let settings = DatabaseSettings { name: "influxdb".to_owned(), ..DatabaseSettings::default() };
        entry.open(&settings, Some(self.0.endpoint())).unwrap().open().unwrap()
    }

    /// Returns the setting that names it, with another account or database.
    fn database(&self, account: &str, database: &str) -> String {
        let (host, port) = self.0.endpoint().tcp.clone().unwrap();
        format!("name = \"influxdb\"\nurl = \"influxdb://{account}{host}:{port}{database}\"")
    }

    fn account(&self) -> String {
        format!("{}:{}@", self.0.endpoint().user, self.0.endpoint().password)
    }
}

#[test]
fn records_are_written_and_all_of_them_are_there_with_their_size_and_what_they_survive() {
    let scratch = Scratch::new();
    let factors = "[factors]\n\"layout.name\" = [\"wide\", \"key-value\"]\n\"workload.batch\" = [1, 100]\n";
    let database = "name = \"influxdb\"\nconfig = { \"data.wal-fsync-delay\" = \"1ms\" }";
    let plain = study(database, "wide", "name = \"write\"").replace("rows = 300\n", "");
    scratch.write("s.toml", &(plain + factors));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    for trial in scratch.stored("run") {
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
        assert!(trial.database_version.starts_with("InfluxDB 1."), "{}", trial.database_version);
        assert!(trial.table_size.is_some(), "{told}");
    }
    assert!(told.contains("crash") && !told.contains("power cut"), "{told}");
    let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
    assert!(stored.contains("\"data.wal_fsync_delay\" = \"1ms\""), "the server says so: {stored}");
}

#[test]
fn what_it_cannot_do_is_refused_before_anything_is_started() {
    let scratch = Scratch::new();
    let database = "name = \"influxdb\"";
    for (layout, workload, words) in [
        ("star", "name = \"read\"", ["influxdb has no updates", "database.name = \"sqlite\""]),
        ("wide", "name = \"update\"", ["influxdb has no updates", "database.name = \"sqlite\""]),
        (
            "eav",
            "name = \"write\"",
            ["the key of the table qos does not end with a number", "take another workload or layout"],
        ),
    ] {
        scratch.write("s.toml", &study(database, layout, workload));
        scratch.run(&["plan", "s.toml"]).refused(&words);
    }
    let sources = study(database, "wide", "name = \"scan\"").replace("rows = 300", "rows = 300\nsources = 5");
    scratch.write("s.toml", &sources);
    scratch.run(&["plan", "s.toml"]).refused(&["it orders rows by their time alone, and not by record_id"]);
    for (given, words) in [
        ("config = { \"data.wal-fsnc-delay\" = \"1s\" }", ["\"data.wal-fsnc-delay\" = \"1s\"", "influxd config"]),
        ("config = { \"data.wal-fsync-delay\" = \"soon\" }", ["cannot read database.config", "invalid duration"]),
        ("config = { \"http.auth-enabled\" = false }", ["http.auth-enabled", "keeps the server private"]),
        ("base = \"/nonexistent\"", ["no server binary influxd", "apt-get install influxdb"]),
        ("durability = \"power-cut\"", ["database.durability", "no settings of influxdb give it"]),
        ("url = \"influxdb://h\"", ["name of the database is missing", "the form is influxdb://"]),
    ] {
        scratch.write("s.toml", &study(&format!("{database}\n{given}"), "wide", MIX));
        scratch.run(&["run", "s.toml", "--out", "none"]).refused(&words);
    }
}

/// One server for all of it.
#[test]
fn on_a_server_of_somebody_else_all_answers_are_right_and_what_was_there_stays() {
    let (own, scratch) = (Own::start(), Scratch::new());
    let mut session = own.open();
    session.create_table(&table("qos2")).unwrap();
    let database = own.database(&own.account(), "/loadline");
    scratch.write("s.toml", &study(&database, "wide", MIX));
    scratch.run_study("s.toml", "run").expect(0);
    let trial = scratch.stored("run").remove(0);
    assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
    assert!(trial.table_size.is_none(), "the database has a measurement that is none of the study's");
    assert_eq!(session.count_rows("qos2").unwrap(), Some(0));
    assert!(session.count_rows("qos").is_err(), "what was made is gone");
    let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
    assert!(!stored.contains(&own.0.endpoint().password), "no password is stored");
    questions_are_answered(&database, &scratch);
    session.create_table(&table("qos")).unwrap();
    scratch.run_study("s.toml", "refused").refused(&["table \"qos\" cannot be made", "is there already"]);
    assert_eq!(session.count_rows("qos").unwrap(), Some(0), "it stays");
    for (account, name, words) in [
        ("", "/loadline", ["no connection to InfluxDB", "LOADLINE_PASSWORD"]),
        ("loadline:wrong@", "/loadline", ["no connection to InfluxDB", "give user and password"]),
        (&*own.account(), "/shop", ["database not found: shop", "CREATE DATABASE"]),
    ] {
        scratch.write("s.toml", &study(&own.database(account, name), "wide", MIX));
        scratch.run_study("s.toml", "none").refused(&words);
    }
}

/// The answers to questions over late, repeated and missing readings are those of the records, before and while more come in.
fn questions_are_answered(database: &str, scratch: &Scratch) {
    let text = |questions: &str| {
        format!(
            "name = \"asked\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 3000\nsources = 20\nmissing = 0.02\n\
             late = {{ share = 0.05, up_to = \"20s\" }}\nrepeated = 0.03\n[layout]\nname = \"wide\"\n[workload]\nname = \"questions\"\n\
             questions = [{questions}]\n[load]\nclients = 2\nduration = \"2s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
        )
    };
    let both = format!("{IN_SPANS}{OF_ALL_TIMES}");
    let run = |study: &str, out: &str| drop(scratch.run_study(study, out));
    assert_answers_are_right(scratch, run, text, (&both, IN_SPANS));
}

const IN_SPANS: &str = r#"
    { name = "newest", ask = "newest", of = ["value_1"], sources = "all" },
    { name = "last", ask = "newest", of = ["value_2", "quality"] },
    { name = "hour", ask = "range", of = ["value_1", "object", "kind"], span = "1h" },
    { name = "all", ask = "range", of = ["payload"], span = "20s", sources = "all" },
    { name = "buckets", ask = "buckets", of = ["value_1", "object"], span = "1m", bucket = "7s" },
    { name = "long", ask = "buckets", of = ["quality"], span = "10m", bucket = "1m", sources = "all" },
    { name = "top", ask = "top", of = ["object"], span = "30s", by = "max" },
    { name = "sums", ask = "aggregate", of = ["object", "value_2", "quality"], sources = "all", span = "20s" },
    { name = "above", ask = "above", of = ["quality"], above = 500, span = "20s" },
    { name = "ends", ask = "aggregate", of = ["value_1", "object"], span = "1m", figures = ["first", "last", "mean"] },
    { name = "ends of buckets", ask = "buckets", of = ["value_2"], span = "1m", bucket = "7s", figures = ["last", "max", "first"] },
"#;

const OF_ALL_TIMES: &str = r#"
    { name = "ever", ask = "buckets", of = ["value_1"], bucket = "1m", sources = "all" },
    { name = "ranked", ask = "top", of = ["quality"], by = "sum", most = 100 },
    { name = "far", ask = "above", of = ["value_3"], above = 0.5, sources = "all" },
"#;
