//! MongoDB's protocol in studies, as users write them, with FerretDB: a store of documents on a private server and on somebody's own; and how its server comes here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "existing/mod.rs"]
mod existing;
#[path = "fetched/mod.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod fetched;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use std::os::unix::fs::PermissionsExt;

use fetched::study;
use loadline::database::mongodb::module::{VARIABLE, module};
use program::{Outcome, Scratch, outcome};

#[test]
fn without_its_server_it_is_refused_while_planning_with_the_command_that_fetches_it() {
    let scratch = Scratch::new();
    scratch.write("s.toml", &study("name = \"mongodb\"", "wide", "name = \"write\""));
    let plan = |more: &[&str]| scratch.command(&[&["plan", "s.toml"], more].concat());
    outcome(plan(&[]).env(VARIABLE, "/nonexistent")).refused(&[VARIABLE, "no executable file"]);
    let absent = outcome(plan(&[]).env_remove(VARIABLE).env("PATH", "/nonexistent"));
    absent.refused(&["no server of MongoDB is here", "loadline fetch mongodb", "database.binary"]);
    outcome(&mut plan(&["--set", "database.binary=/nonexistent"])).refused(&["database.binary", "no executable file"]);
    outcome(&mut plan(&["--set", "database.base=/nonexistent"])).refused(&["database.base", "ferretdb or mongod"]);
    scratch
        .write("s.toml", &study("name = \"mongodb\"\nurl = \"mongodb://127.0.0.1:1/d\"", "wide", "name = \"write\""));
    outcome(plan(&[]).env_remove(VARIABLE)).expect(0);
    scratch.run(&["run", "s.toml", "--out", "none"]).refused(&["cannot connect to 127.0.0.1:1"]);
}

#[test]
fn only_the_published_module_is_built_and_only_where_it_can_be_kept() {
    let scratch = Scratch::new();
    let fetch = ["fetch", "mongodb"];
    scratch.run(&fetch).refused(&["no place to keep it", "LOADLINE_CACHE", VARIABLE]);
    scratch.run(&["fetch", "mongodb", "--from", "."]).refused(&["built here from its source", "--from"]);
    let with_go = |text: &str| -> Outcome {
        let go = scratch.write("go", &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&go, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", scratch.0.display());
        let told = outcome(scratch.command(&fetch).env("LOADLINE_CACHE", scratch.path("cache")).env("PATH", path));
        let left: Vec<_> = std::fs::read_dir(scratch.path("cache/libraries")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        told.expect(1)
    };
    let old = with_go("echo go1.21.3").stderr;
    assert!(old.contains("Go is \"go1.21.3\" here") && old.contains("Go 1.22 or newer"), "{old}");
    let broken = with_go("exit 3").stderr;
    assert!(broken.contains("Go 1.22 or newer") && broken.contains("database.binary"), "{broken}");
    let other = "if [ \"$1\" = env ]; then echo go1.26.1; else echo '{\"Sum\": \"h1:other\", \"Dir\": \"/\"}'; fi";
    let told = with_go(other).stderr;
    assert!(
        told.contains("h1:other") && told.contains(module().sum) && told.contains("fetching FerretDB v1.24.0"),
        "{told}"
    );
}

/// Tests that need the server.
mod with_mongodb {
    use std::time::{Duration, Instant};

    use loadline::database::mongodb::module::find;
    use loadline::database::mongodb::recipe::MONGODB;
    use loadline::database::{self, TargetSession};
    use loadline::server::Server;
    use loadline::trial::DatabaseSettings;

    use super::VARIABLE;
    use super::existing::{assert_answers_are_right, table};
    use super::fetched::{is_missing, study};
    use super::program::{Outcome, Scratch, outcome};

    const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, scan = 1, write = 1, update = 1 }\nbatch = 5";

    /// Runs the program, with the server that is here.
    fn run(scratch: &Scratch, arguments: &[&str]) -> Outcome {
        let own = find(&DatabaseSettings::default()).unwrap();
        outcome(scratch.command(arguments).env(VARIABLE, own).env("LOADLINE_STOLEN", "1"))
    }

    /// A server that plays somebody's own.
    struct Own(Server);

    impl Own {
        fn start() -> Own {
            Own(Server::start(&MONGODB, &settings(), None).unwrap())
        }

        fn open(&self) -> Box<dyn TargetSession> {
            let entry = database::find("mongodb").unwrap();
            entry.open(&settings(), Some(self.0.endpoint())).unwrap().open().unwrap()
        }

        fn database(&self) -> String {
            let (host, port) = self.0.endpoint().tcp.clone().unwrap();
            format!("name = \"mongodb\"\nurl = \"mongodb://{host}:{port}/loadline\"")
        }
    }

    fn settings() -> DatabaseSettings {
        DatabaseSettings { name: "mongodb".to_owned(), ..DatabaseSettings::default() }
    }

    #[test]
    fn what_it_cannot_do_is_refused_before_anything_is_started() {
        if is_missing(&MONGODB) {
            return;
        }
        let scratch = Scratch::new();
        for (layout, workload, words) in [
            ("star", "name = \"read\"", ["mongodb has no joins", "database.name = \"sqlite\""]),
            ("wide", "name = \"write\"\nevolve = \"1s\"", ["mongodb has no changes of a table", "workload.evolve"]),
            ("eav", "name = \"scan\"", ["mongodb cannot do that", "no command for such a statement"]),
            ("key-value", "name = \"update\"", ["mongodb has no transactions", "take another workload or layout"]),
        ] {
            scratch.write("s.toml", &study("name = \"mongodb\"", layout, workload));
            run(&scratch, &["plan", "s.toml"]).refused(&words);
        }
        for (given, words) in [
            ("config = { synchronus = \"off\" }", ["synchronus", "there are synchronous"]),
            ("config = { synchronous = \"soon\" }", ["synchronous = \"soon\"", "normal"]),
            ("durability = \"none\"", ["database.durability", "no settings of mongodb give it"]),
            ("url = \"mongodb://h\"", ["the database is missing", "the form is mongodb://"]),
        ] {
            scratch.write("s.toml", &study(&format!("name = \"mongodb\"\n{given}"), "wide", MIX));
            run(&scratch, &["run", "s.toml", "--out", "none"]).refused(&words);
        }
    }

    #[test]
    fn records_are_written_and_all_of_them_are_there_with_what_they_survive() {
        if is_missing(&MONGODB) {
            return;
        }
        let scratch = Scratch::new();
        let factors =
            "[factors]\n\"layout.name\" = [\"wide\", \"key-value\", \"eav\"]\n\"workload.batch\" = [1, 100]\n";
        let plain = study("name = \"mongodb\"", "wide", "name = \"write\"").replace("rows = 300\n", "");
        let plain = plain.replace("operations = 300", "operations = 60");
        scratch.write("s.toml", &(plain + factors));
        let told = run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0).stdout;
        for trial in scratch.stored("run") {
            assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
            assert_eq!(trial.database_version, "FerretDB 1.24.0 (as MongoDB 7.0.42)");
        }
        assert!(told.contains("power cut"), "{told}");
        assert!(told.replace("\n  ", " ").contains("these figures say nothing about mongodb itself"), "{told}");
    }

    /// One server for all of it.
    #[test]
    fn on_a_server_of_somebody_else_all_answers_are_right_and_what_was_there_stays() {
        if is_missing(&MONGODB) {
            return;
        }
        let (own, scratch) = (Own::start(), Scratch::new());
        scratch.write("s.toml", &study(&own.database(), "wide", MIX));
        let told = run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0).stdout;
        let trial = scratch.stored("run").remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
        assert!(!told.contains("power cut"), "nobody knows the settings of that server: {told}");
        // Of documents, members are read and changed by the server.
        scratch.write("d.toml", &study(&own.database(), "json", MIX));
        run(&scratch, &["run", "d.toml", "--out", "documents"]).expect(0);
        let trial = scratch.stored("documents").remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
        let mut session = own.open();
        assert!(session.count_rows("qos").is_err(), "what was made is gone");
        questions_are_answered(&own, &scratch);
        session.create_table(&table("qos")).unwrap();
        run(&scratch, &["run", "s.toml", "--out", "refused"]).refused(&["table \"qos\" cannot be made", "exists"]);
        assert_eq!(session.count_rows("qos").unwrap(), Some(0), "it is there as it was");
        let stranger = own.database().replace("mongodb://", "mongodb://me:secret@");
        scratch.write("s.toml", &study(&stranger, "wide", MIX));
        let refused = run(&scratch, &["run", "s.toml", "--out", "none"]);
        assert!(!refused.stderr.contains("secret"), "{refused:?}");
        refused.refused(&["no connection to MongoDB"]);
    }

    /// The answers to questions over late, repeated and missing readings are those of the records, before and while more come in.
    fn questions_are_answered(own: &Own, scratch: &Scratch) {
        let text = |questions: &str| {
            format!(
                "name = \"asked\"\n[database]\n{}\n[record]\ntype = \"sensor\"\nrows = 600\nsources = 20\nmissing = 0.02\n\
                 late = {{ share = 0.05, up_to = \"20s\" }}\nrepeated = 0.03\n[layout]\nname = \"wide\"\n[workload]\nname = \"questions\"\n\
                 questions = [{questions}]\n[load]\nclients = 2\nduration = \"4s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
                own.database()
            )
        };
        let own_run = |study: &str, out: &str| drop(run(scratch, &["run", study, "--out", out]));
        assert_answers_are_right(scratch, own_run, text, (QUESTIONS, QUESTIONS));
        for (question, words) in [
            ("ask = \"aggregate\", of = [\"object\"]", "one sum for a group"),
            ("ask = \"newest\", of = [\"object\"], sources = \"all\"", "one source at a time"),
            ("ask = \"top\", of = [\"value_1\"], by = \"max\"", "by = \"sum\""),
        ] {
            scratch.write("other.toml", &text(&format!("{{ name = \"q\", {question} }}")));
            run(scratch, &["plan", "other.toml"]).refused(&[words]);
        }
    }

    const QUESTIONS: &str = r#"
    { name = "last", ask = "newest", of = ["value_2", "quality"] },
    { name = "hour", ask = "range", of = ["value_1", "object", "kind"], span = "1h" },
    { name = "all", ask = "range", of = ["payload"], span = "20s", sources = "all" },
    { name = "above", ask = "above", of = ["quality"], above = 500, span = "20s" },
    { name = "far", ask = "above", of = ["value_3"], above = 0.5, span = "20s", sources = "all" },
    { name = "top", ask = "top", of = ["value_1"], span = "30s", by = "sum" },
"#;

    #[test]
    fn a_server_that_is_killed_keeps_what_it_has_acknowledged() {
        if is_missing(&MONGODB) {
            return;
        }
        let scratch = Scratch::new();
        let text = study("name = \"mongodb\"", "wide", "name = \"write\"\nbatch = 10").replace("rows = 300\n", "");
        let text = text.replace("operations = 300", "duration = \"4s\"");
        scratch.write("s.toml", &format!("{text}\n[[events]]\nat = \"1s\"\ndo = \"kill\"\n"));
        let begun = Instant::now();
        let told = run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0).stdout;
        let trial = scratch.stored("run").remove(0);
        assert_eq!(trial.invalid_because.as_slice(), &[][..], "{:?}: {told}", trial.errors);
        assert!(begun.elapsed() > Duration::from_secs(4) && told.contains("kill"), "{told}");
    }

    /// FerretDB with accounts, ended with the value.
    struct WithAccounts(std::process::Child);

    impl WithAccounts {
        fn start(scratch: &Scratch, port: u16) -> Self {
            let place = scratch.0.display();
            let mut command = std::process::Command::new(find(&DatabaseSettings::default()).unwrap());
            command
                .arg("--handler=sqlite")
                .arg(format!("--sqlite-url=file:{place}/"))
                .arg(format!("--state-dir={place}"));
            command.arg(format!("--listen-addr=127.0.0.1:{port}")).args(["--debug-addr=-", "--telemetry=disable"]);
            command.args(["--test-enable-new-auth", "--setup-username=ann", "--setup-password=pen,cil="]);
            command.args(["--setup-database=loadline", "--log-level=error"]);
            WithAccounts(command.spawn().unwrap())
        }
    }

    impl Drop for WithAccounts {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn users_prove_their_passwords_and_nobody_else_is_let_in() {
        if is_missing(&MONGODB) {
            return;
        }
        let scratch = Scratch::new();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let _server = WithAccounts::start(&scratch, port);
        let until = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let asked = |account: &str| {
            let url = format!("mongodb://{account}127.0.0.1:{port}/loadline?authSource=loadline");
            let text = study(&format!("name = \"mongodb\"\nurl = \"{url}\""), "key-value", "name = \"write\"");
            scratch.write("s.toml", &text);
            run(&scratch, &["run", "s.toml", "--out", "run"])
        };
        asked("ann:pencil@").refused(&["no connection to MongoDB", "check the user and the password"]);
        asked("bob:pen%2Ccil%3D@").refused(&["check the user and the password"]);
        asked("").refused(&["requires authentication", "mongodb://user:password@host/database"]);
        asked("ann:pen%2Ccil%3D@").expect(0);
        let stored = std::fs::read_to_string(scratch.path("run/run.toml")).unwrap();
        assert!(!stored.contains("cil"), "no password is stored: {stored}");
    }
}
