//! VictoriaMetrics in studies, as users write them: a store of numbers at times, whose points are seen after a while, on private servers and on somebody's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "existing/mod.rs"]
mod existing;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use existing::{assert_answers_are_right, table};
use loadline::database::victoriametrics::recipe::VICTORIAMETRICS;
use loadline::database::{self, TargetSession};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use program::Scratch;

/// Records of numbers with few decimal digits.
const RECORD: &str = "type = \"custom\"\nidentity = [{ name = \"site\", kind = \"int\", fill = { uniform = [1, 9] } }]\nvalues = [\
    { name = \"value_1\", kind = \"float\", fill = { drift = [-20.0, 30.0, 0.1] } }, \
    { name = \"value_2\", kind = \"float\", fill = { drift = [0.0, 5.0, 0.001] } }, \
    { name = \"object\", kind = \"int\", fill = { uniform = [0, 1000000] } }, \
    { name = \"quality\", kind = \"int\", fill = { drift = [0, 1000, 1] } }]";
/// Readings at whole milliseconds.
const SOURCES: &str = "sources = 20\ninterval = \"1s\"\njitter = 0.0\nmissing = 0.02";
const SHORT: &str = "operations = 150\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, write = 1 }\nbatch = 5";
const OWN: &str = "name = \"victoriametrics\"";

fn study(database: &str, record: &str, layout: &str, workload: &str) -> String {
    format!(
        "name = \"points\"\n[database]\n{database}\n[record]\n{record}\n[layout]\nname = \"{layout}\"\n[workload]\n{workload}\n[load]\n{SHORT}"
    )
}

/// A server that plays somebody's own.
struct Own(Server);

impl Own {
    fn start() -> Own {
        let settings = DatabaseSettings { name: "victoriametrics".to_owned(), ..DatabaseSettings::default() };
        Own(Server::start(&VICTORIAMETRICS, &settings, None)
            .unwrap_or_else(|error| panic!("an installed server is needed: {error}")))
    }

    fn open(&self) -> Box<dyn TargetSession> {
        let entry = database::find("victoriametrics").unwrap();
        let settings = DatabaseSettings { name: "victoriametrics".to_owned(), ..DatabaseSettings::default() };
        entry.open(&settings, Some(self.0.endpoint())).unwrap().open().unwrap()
    }

    /// Returns the setting that names it.
    fn database(&self) -> String {
        let (host, port) = self.0.endpoint().tcp.clone().unwrap();
        format!("name = \"victoriametrics\"\nurl = \"victoriametrics://{host}:{port}\"")
    }
}

#[test]
fn records_are_written_and_all_of_them_are_counted_with_what_they_survive() {
    let scratch = Scratch::new();
    let factors = "[factors]\n\"workload.batch\" = [1, 100, 1000]\n";
    let database = "name = \"victoriametrics\"\nconfig = { \"memory.allowedBytes\" = \"256MiB\" }";
    scratch.write("s.toml", &(study(database, RECORD, "wide", "name = \"write\"") + factors));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    let trials = scratch.stored("run");
    assert_eq!(trials.len(), 3, "{told}");
    for trial in trials {
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
        assert!(trial.database_version.starts_with("VictoriaMetrics"), "{}", trial.database_version);
    }
    assert!(told.contains("nothing") && !told.contains("power cut"), "{told}");
    let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
    assert!(stored.contains("\"memory.allowedBytes\" = \"256MiB\""), "the server says so: {stored}");
    scratch
        .write("r.toml", &study(database, &format!("{RECORD}\n{SOURCES}\nrepeated = 0.1"), "wide", "name = \"write\""));
    scratch.run_study("r.toml", "repeated").expect(0);
    let trial = scratch.stored("repeated").remove(0);
    assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
}

#[test]
fn what_it_cannot_do_is_refused_before_anything_is_started() {
    let scratch = Scratch::new();
    let read = "name = \"read\"";
    let rows = |record: &str| format!("{record}\nrows = 300");
    let sources = rows(&format!("{RECORD}\n{SOURCES}"));
    for (record, layout, workload, words) in [
        (&*rows(RECORD), "star", read, ["victoriametrics has no joins", "database.name = "]),
        (&*rows(RECORD), "wide", "name = \"update\"", ["victoriametrics has no updates", "database.name = "]),
        (&*rows(RECORD), "key-value", read, ["victoriametrics has no texts and bytes", "database.name = "]),
        ("type = \"sensor\"\nrows = 300", "wide", read, ["victoriametrics has no texts and bytes", "database.name = "]),
        (&*rows(RECORD), "wide", "name = \"scan\"", ["limited number of rows", "take another workload or layout"]),
        (
            &*sources,
            "wide",
            read,
            ["by their source and their time alone, and not by record_id", "take another workload"],
        ),
        ("type = \"qos\"", "wide", "name = \"write\"", ["would come back rounded", "take other records"]),
        (
            &*sources.replace("jitter = 0.0", "jitter = 0.1"),
            "wide",
            "name = \"write\"",
            ["time_ns is given a time that is no whole millisecond", "record.jitter = 0"],
        ),
    ] {
        scratch.write("s.toml", &study(OWN, record, layout, workload));
        scratch.run(&["plan", "s.toml"]).refused(&words);
    }
    for (given, words) in [
        ("config = { \"memory.allowedBites\" = \"1\" }", ["\"memory.allowedBites\" = \"1\"", "-help"]),
        ("config = { \"precisionBits\" = \"8\" }", ["precisionBits", "keeps the server private"]),
        ("base = \"/nonexistent\"", ["no server binary victoria-metrics", "apt-get install victoria-metrics"]),
        ("durability = \"crash\"", ["database.durability", "no settings of victoriametrics give it"]),
        ("url = \"victoriametrics://h/shop\"", ["names a database", "the form is victoriametrics://"]),
    ] {
        scratch.write("s.toml", &study(&format!("{OWN}\n{given}"), &rows(RECORD), "wide", MIX));
        scratch.run(&["run", "s.toml", "--out", "none"]).refused(&words);
    }
    let asked = |questions: &str| format!("name = \"questions\"\nquestions = [{questions}]");
    for (question, words) in [
        (
            "{ name = \"above\", ask = \"above\", of = [\"quality\"], above = 500, span = \"20s\" }",
            "single readings above a bound",
        ),
        ("{ name = \"ever\", ask = \"buckets\", of = [\"quality\"], bucket = \"1m\" }", "only within a span"),
        (
            "{ name = \"fine\", ask = \"buckets\", of = [\"quality\"], bucket = \"1500us\", span = \"3s\" }",
            "whole number of milliseconds",
        ),
    ] {
        scratch.write(
            "s.toml",
            &study(OWN, &sources, "wide", &asked(question)).replace("operations = 150", "duration = \"1s\""),
        );
        scratch.run(&["plan", "s.toml"]).refused(&[words]);
    }
}

/// One server for all of it.
#[test]
fn on_a_server_of_somebody_else_all_answers_are_right_and_what_was_there_stays() {
    let (own, scratch) = (Own::start(), Scratch::new());
    let mut session = own.open();
    session.create_table(&table("points2")).unwrap();
    let record = format!("table = \"points\"\n{RECORD}\nrows = 300");
    scratch.write("s.toml", &study(&own.database(), &record, "wide", MIX));
    scratch.run_study("s.toml", "run").expect(0);
    let trial = scratch.stored("run").remove(0);
    assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
    assert_eq!(session.count_rows("points2").unwrap(), Some(0));
    assert!(session.count_rows("points").is_err(), "what was made is gone");
    questions_are_answered(&own.database(), &scratch);
    session.create_table(&table("points")).unwrap();
    scratch.run_study("s.toml", "refused").refused(&["table \"points\" cannot be made", "are there already"]);
    assert_eq!(session.count_rows("points").unwrap(), Some(0), "it stays");
}

#[test]
fn a_server_that_drops_old_points_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let database = "name = \"victoriametrics\"\nconfig = { retentionPeriod = \"1\" }";
    scratch.write("s.toml", &study(database, RECORD, "wide", "name = \"write\""));
    scratch.run_study("s.toml", "run").refused(&["drops points of the year 2001", "-retentionPeriod"]);
}

/// The answers to questions over repeated and missing readings are those of the records, before and while more come in.
fn questions_are_answered(database: &str, scratch: &Scratch) {
    let text = |questions: &str| {
        format!(
            "name = \"asked\"\n[database]\n{database}\n[record]\n{RECORD}\n{SOURCES}\nrepeated = 0.03\nrows = 3000\n[layout]\nname = \"wide\"\n[workload]\n\
             name = \"questions\"\nquestions = [{questions}]\n[load]\nclients = 2\nduration = \"2s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
        )
    };
    let both = format!("{IN_SPANS}{OF_ALL_TIMES}");
    let run = |study: &str, out: &str| drop(scratch.run_study(study, out));
    assert_answers_are_right(scratch, run, text, (&both, IN_SPANS));
}

const IN_SPANS: &str = r#"
    { name = "newest", ask = "newest", of = ["value_1"], sources = "all" },
    { name = "last", ask = "newest", of = ["value_2", "quality"] },
    { name = "hour", ask = "range", of = ["value_1", "object", "site"], span = "1h" },
    { name = "all", ask = "range", of = ["value_2"], span = "20s", sources = "all" },
    { name = "buckets", ask = "buckets", of = ["value_1", "object"], span = "70s", bucket = "7s" },
    { name = "long", ask = "buckets", of = ["quality"], span = "2m", bucket = "1m", sources = "all" },
    { name = "top", ask = "top", of = ["object"], span = "30s", by = "max" },
    { name = "sums", ask = "aggregate", of = ["object", "value_2", "quality"], sources = "all", span = "20s" },
    { name = "sum", ask = "aggregate", of = ["value_1"], span = "20s" },
"#;

const OF_ALL_TIMES: &str = r#"
    { name = "ranked", ask = "top", of = ["quality"], by = "sum", most = 100 },
    { name = "means", ask = "top", of = ["value_1"], by = "mean" },
    { name = "ever", ask = "aggregate", of = ["quality"], sources = "all" },
"#;
