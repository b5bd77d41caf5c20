//! Redis in studies, as users write them: a store without SQL, without joins and without ranges, on private servers and on somebody's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use loadline::database::redis::recipe::REDIS;
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use program::{Outcome, Scratch, outcome};

const SHORT: &str = "operations = 300\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

/// A server that plays somebody's own.
struct Own(Server);

impl Own {
    fn start() -> Own {
        let settings = DatabaseSettings { name: "redis".to_owned(), ..DatabaseSettings::default() };
        Own(Server::start(&REDIS, &settings, None)
            .unwrap_or_else(|error| panic!("an installed server is needed: {error}")))
    }

    fn url(&self) -> String {
        let (host, port) = self.0.endpoint().tcp.clone().unwrap();
        format!("redis://:{}@{host}:{port}", self.0.endpoint().password)
    }

    /// What it answers to a command in plain words: one line, or the byte string behind it.
    fn ask(&self, command: &str) -> String {
        let (host, port) = self.0.endpoint().tcp.clone().unwrap();
        let mut stream = TcpStream::connect((host, port)).unwrap();
        write!(stream, "AUTH {}\r\n{command}\r\nQUIT\r\n", self.0.endpoint().password).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "+OK\r\n");
        line.clear();
        lines.read_line(&mut line).unwrap();
        match line.trim_end().strip_prefix('$').map(|length| length.parse::<usize>()) {
            Some(Ok(length)) => {
                let mut bytes = vec![0; length];
                lines.read_exact(&mut bytes).unwrap();
                String::from_utf8(bytes).unwrap()
            }
            _ => line.trim_end().to_owned(),
        }
    }
}

fn study(database: &str, layout: &str, workload: &str) -> String {
    format!(
        "name = \"keys\"\n[database]\n{database}\n[record]\nrows = 500\n[layout]\nname = \"{layout}\"\n[workload]\n{workload}\n[load]\n{SHORT}"
    )
}

const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, update = 1, write = 1 }\nbatch = 5";

#[test]
fn records_are_written_read_and_changed_and_all_of_them_are_there() {
    let scratch = Scratch::new();
    for layout in ["wide", "spare"] {
        scratch.write("s.toml", &study("name = \"redis\"", layout, MIX));
        let told = scratch.run_study("s.toml", layout).expect(0).stdout;
        let trial = scratch.stored(layout).remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{layout}: {:?}", trial.errors);
        assert!(trial.database_version.starts_with("Redis ") || trial.database_version.starts_with("Valkey "));
        assert!(told.contains("power cut"), "what is acknowledged is on the disk: {told}");
    }
    let config = "name = \"redis\"\nconfig = { appendfsync = \"everysec\" }";
    scratch.write("s.toml", &study(config, "wide", "name = \"write\""));
    let told = scratch.run_study("s.toml", "lazy").expect(0).stdout;
    assert!(!told.contains("power cut"), "{told}");
}

#[test]
fn ycsb_runs_where_it_needs_no_ranges() {
    let scratch = Scratch::new();
    for (workload, status) in [("a", 0), ("b", 0), ("e", 2)] {
        let set = format!("workload.name=ycsb-{workload}");
        scratch.write(
            "s.toml",
            &format!("name = \"keys\"\n[database]\nname = \"redis\"\n[record]\ntype = \"usertable\"\nrows = 500\n[layout]\nname = \"wide\"\n[workload]\nname = \"ycsb-a\"\n[load]\n{SHORT}"),
        );
        let ended =
            outcome(scratch.command(&["run", "s.toml", "--set", &set, "--out", workload]).env("LOADLINE_STOLEN", "1"));
        assert_eq!(ended.status, Some(status), "{workload}: {ended:?}");
    }
}

#[test]
fn events_are_followed_by_the_numbers_that_it_gives_them() {
    let scratch = Scratch::new();
    for poll in ["key", "window"] {
        let workload = format!("name = \"freshness\"\nbatch = 3\n[freshness]\npoll = \"{poll}\"\ntables = 1");
        let load = "duration = \"2s\"\nclients = 2\narrivals = \"constant\"\nrate = 200\nwarmup = \"0s\"\n";
        let text = study("name = \"redis\"", "wide", &workload).replace("rows = 500\n", "");
        scratch.write("s.toml", &text.replace("operations = 300\nclients = 2\nwarmup = \"0s\"\n", load));
        scratch.run_study("s.toml", poll).expect(0);
        let trial = scratch.stored(poll).remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{poll}: {:?}", trial.errors);
        let seen = trial.freshness.unwrap();
        let group = seen.groups.values().next().unwrap();
        assert!(group.expected > 0, "{poll}");
        assert_eq!((group.lost, group.duplicates), (0, 0), "{poll}");
    }
}

#[test]
fn what_it_cannot_do_is_refused_before_anything_is_started_with_who_can() {
    let scratch = Scratch::new();
    let sql = "name = \"sql\"\nstatements = [ { sql = \"SELECT 1\" } ]";
    for (layout, workload, why) in [
        ("star", "name = \"read\"", "redis has no joins"),
        ("wide", "name = \"scan\"", "redis has no ranges of keys"),
        ("json", "name = \"update\"", "redis has no members of documents"),
        ("wide", "name = \"write\"\nevolve = \"1s\"", "redis has no changes of a table in use"),
        ("wide", sql, "redis has no SQL"),
    ] {
        let text = study("name = \"redis\"", layout, workload);
        let text = if workload == sql { text.replace("rows = 500", "rows = 0") } else { text };
        scratch.write("s.toml", &text);
        scratch.run(&["plan", "s.toml"]).refused(&[why, "database.name = \"sqlite\""]);
        scratch.run(&["run", "s.toml", "--out", "none"]).refused(&[why]);
    }
    let text = study("name = \"redis\"\ntls = \"verify\"\nsocket = \"tcp\"", "wide", "name = \"write\"");
    scratch.write("s.toml", &text);
    scratch.run(&["run", "s.toml", "--out", "none"]).refused(&["database.tls", "database.url"]);
}

#[test]
fn on_a_server_of_somebody_else_what_was_made_goes_and_what_was_there_stays() {
    let (own, scratch) = (Own::start(), Scratch::new());
    own.ask("SET qos2:7 mine");
    own.ask("SET other mine");
    let database = format!("name = \"redis\"\nurl = \"{}\"", own.url());
    scratch.write("s.toml", &study(&database, "wide", MIX));
    scratch.run_study("s.toml", "run").expect(0);
    assert_eq!((own.ask("DBSIZE"), own.ask("GET qos2:7")), (":2".to_owned(), "mine".to_owned()));
    let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
    assert!(!stored.contains(&own.0.endpoint().password), "no password is stored");

    for key in ["qos", "qos:7"] {
        own.ask(&format!("SET {key} mine"));
        let refused = scratch.run_study("s.toml", "refused");
        refused.refused(&["table \"qos\" cannot be made", &format!("there is a key \"{key}\" already")]);
        assert_eq!((own.ask(&format!("GET {key}")), own.ask("DBSIZE")), ("mine".to_owned(), ":3".to_owned()));
        own.ask(&format!("DEL {key}"));
    }
}

#[test]
fn connections_that_are_cut_are_told_and_what_they_were_asked_is_not_counted_as_done() {
    let (own, scratch) = (Own::start(), Scratch::new());
    let database = format!("name = \"redis\"\nurl = \"{}\"", own.url());
    let text = study(&database, "wide", "name = \"write\"").replace("operations = 300", "duration = \"3s\"");
    scratch.write("s.toml", &text);
    let mut command = scratch.command(&["run", "s.toml", "--out", "run"]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // When rows are there, the clients write them.
    program::wait_for("the load", || own.ask("DBSIZE").trim_start_matches(':').parse::<u64>().unwrap() > 600);
    own.ask("CLIENT KILL TYPE normal");
    let ended = Outcome::of(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let trial = scratch.stored("run").remove(0);
    let why: Vec<String> = trial.invalid_because.iter().map(ToString::to_string).collect();
    assert!(trial.failed() > 0 && !why.is_empty(), "{why:?}");
    assert_eq!(own.ask("DBSIZE"), ":0", "what was made is gone all the same");
}

#[test]
fn who_is_not_let_in_learns_what_to_do() {
    let (own, scratch) = (Own::start(), Scratch::new());
    let (host, port) = own.0.endpoint().tcp.clone().unwrap();
    for (url, words) in [
        (format!("redis://{host}:{port}"), ["NOAUTH", "LOADLINE_PASSWORD"]),
        (format!("redis://:wrong@{host}:{port}"), ["WRONGPASS", "check the user and the password"]),
        (format!("redis://{host}:{port}/shop"), ["is no number", "the form is redis://"]),
    ] {
        scratch.write("s.toml", &study(&format!("name = \"redis\"\nurl = \"{url}\""), "wide", "name = \"write\""));
        scratch.run_study("s.toml", "none").refused(&words);
    }
    let password = own.0.endpoint().password.clone();
    scratch.write(
        "s.toml",
        &study(&format!("name = \"redis\"\nurl = \"redis://{host}:{port}/3\""), "wide", "name = \"write\""),
    );
    let mut command = scratch.command(&["run", "s.toml", "--out", "run"]);
    outcome(command.env("LOADLINE_PASSWORD", password).env("LOADLINE_STOLEN", "1")).expect(0);
}

#[test]
fn what_cannot_run_here_is_left_out_where_the_study_says_so() {
    let scratch = Scratch::new();
    let study = |head: &str, databases: &str, workloads: &str| {
        format!(
            "name = \"list\"\n{head}\n[record]\nrows = 200\n[layout]\nname = \"wide\"\n[load]\n{SHORT}\n\
             [factors]\n\"database.name\" = {databases}\n\"workload.name\" = {workloads}\n"
        )
    };
    let both = "[\"sqlite\", \"redis\"]";
    let words = "workload.name is \"scan\" on layout.name = \"wide\" and redis has no ranges of keys";
    scratch.write("strict.toml", &study("", both, "[\"read\", \"scan\"]"));
    scratch.run(&["plan", "strict.toml"]).refused(&[words]);

    scratch.write("s.toml", &study("where_possible = true", both, "[\"read\", \"scan\"]"));
    let plan = scratch.run(&["plan", "s.toml"]).expect(0).stdout;
    let told = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(&format!("left out: database.name = redis, workload.name = scan: {words}")), "{plan}");
    let ended = outcome(scratch.command(&["run", "s.toml", "--out", "run", "--json"]).env("LOADLINE_STOLEN", "1"));
    let findings = ended.expect(0).json();
    assert_eq!(findings["cases"].as_array().unwrap().len(), 3);
    let note = findings["notes"].as_array().unwrap().iter().find(|note| note["kind"] == "left_out").unwrap();
    assert_eq!(note["cases"][0]["workload.name"], "scan");
    // What was left out stays so when the run is told again, and when it is repeated from its file.
    assert!(scratch.run(&["report", "run"]).expect(0).stdout.contains("left out: "));
    let again = scratch.run(&["plan", "run/run.toml"]).expect(0).stdout;
    assert!(again.contains("left out: "), "{again}");

    // A server that is not installed.
    let nowhere = |arguments: &[&str]| outcome(scratch.command(arguments).env("PATH", "/nowhere"));
    let plan = nowhere(&["plan", "s.toml"]).expect(0).stdout;
    assert!(plan.contains("left out: database.name = redis: no server binary redis-server on the PATH"), "{plan}");
    scratch.write("none.toml", &study("where_possible = true", "[\"redis\"]", "[\"read\"]"));
    nowhere(&["plan", "none.toml"]).refused(&["no case can be carried out here", "apt-get install redis-server"]);
}
