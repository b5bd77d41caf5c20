//! Cassandra in studies, as users write them: a store without SQL, on private servers and on somebody's own; and how its server comes here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "fetched/mod.rs"]
mod fetched;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use loadline::database::cassandra::jars::package;

#[test]
fn without_its_server_it_is_refused_while_planning_with_the_command_that_fetches_it() {
    fetched::is_refused_without_its_server(&package(), "cassandra://127.0.0.1:1/shop");
}

#[test]
fn only_the_published_files_are_taken_and_only_where_they_can_be_kept() {
    fetched::is_taken_only_as_published(&package());
}

/// Tests that need the server.
mod with_cassandra {
    use loadline::database::cassandra::jars::{VARIABLE, find};
    use loadline::database::cassandra::recipe::CASSANDRA;
    use loadline::database::{self, TargetSession};
    use loadline::server::Server;
    use loadline::trial::DatabaseSettings;

    use super::fetched::{is_missing, study};
    use super::program::{Outcome, Scratch, outcome};

    const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, update = 1, write = 1 }\nbatch = 5";

    /// Runs the program, with the server that is here.
    fn run(scratch: &Scratch, arguments: &[&str]) -> Outcome {
        let own = find(&DatabaseSettings::default()).unwrap();
        let mut command = scratch.command(arguments);
        outcome(command.env(VARIABLE, own.parent().unwrap()).env("LOADLINE_STOLEN", "1"))
    }

    /// A server that plays somebody's own.
    struct Own(Server);

    impl Own {
        fn start() -> Own {
            let own = Own(Server::start(&CASSANDRA, &settings(), None).unwrap());
            // The keyspace is made with the first connection.
            drop(own.open());
            own
        }

        fn open(&self) -> Box<dyn TargetSession> {
            let entry = database::find("cassandra").unwrap();
            entry.open(&settings(), Some(self.0.endpoint())).unwrap().open().unwrap()
        }

        fn url(&self, keyspace: &str) -> String {
            let (host, port) = self.0.endpoint().tcp.clone().unwrap();
            format!("cassandra://{host}:{port}/{keyspace}")
        }
    }

    fn settings() -> DatabaseSettings {
        DatabaseSettings { name: "cassandra".to_owned(), ..DatabaseSettings::default() }
    }

    #[test]
    fn records_are_written_read_and_changed_and_all_of_them_are_there() {
        if is_missing(&CASSANDRA) {
            return;
        }
        let scratch = Scratch::new();
        let factors = "[factors]\n\"layout.name\" = [\"wide\", \"spare\"]\n\"workload.batch\" = [1, 100]\n";
        scratch.write("s.toml", &(study("name = \"cassandra\"", "wide", MIX) + factors));
        let told = run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0).stdout;
        for trial in scratch.stored("run") {
            assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
            assert!(trial.database_version.starts_with("Cassandra "), "{}", trial.database_version);
        }
        assert!(told.contains("power cut"), "what is acknowledged is on the disk: {told}");
    }

    #[test]
    fn what_it_cannot_do_is_refused_before_anything_is_started_with_who_can() {
        if is_missing(&CASSANDRA) {
            return;
        }
        let scratch = Scratch::new();
        for (layout, workload, why) in [
            ("star", "name = \"read\"", "cassandra has no joins"),
            ("wide", "name = \"scan\"", "cassandra has no ranges of keys"),
            ("json", "name = \"update\"", "cassandra has no members of documents"),
            ("wide", "name = \"write\"\nevolve = \"1s\"", "cassandra has no changes of a table in use"),
        ] {
            scratch.write("s.toml", &study("name = \"cassandra\"", layout, workload));
            run(&scratch, &["plan", "s.toml"]).refused(&[why, "database.name = \"sqlite\""]);
        }
    }

    #[test]
    fn on_a_server_of_somebody_else_what_was_made_goes_and_what_was_there_stays() {
        if is_missing(&CASSANDRA) {
            return;
        }
        let (own, scratch) = (Own::start(), Scratch::new());
        let keyspace = own.0.endpoint().database.clone();
        let database = format!("name = \"cassandra\"\nurl = \"{}?consistency=one\"", own.url(&keyspace));
        scratch.write("s.toml", &study(&database, "wide", MIX));
        run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0);
        assert!(own.open().count_rows("qos").is_err(), "what was made is gone");

        let mut table = loadline::statement::Table {
            name: "qos".to_owned(),
            columns: Vec::new(),
            primary_key: vec!["a".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        };
        let kind = loadline::record::ColumnKind::Int64;
        table.columns.push(loadline::statement::TableColumn { name: "a".to_owned(), kind, nullable: false });
        own.open().create_table(&table).unwrap();
        run(&scratch, &["run", "s.toml", "--out", "refused"]).refused(&["table \"qos\" cannot be made"]);
        assert_eq!(own.open().count_rows("qos").unwrap(), Some(0), "it is there as it was");

        let elsewhere = format!("name = \"cassandra\"\nurl = \"{}\"", own.url("shop"));
        scratch.write("s.toml", &study(&elsewhere, "wide", MIX));
        run(&scratch, &["run", "s.toml", "--out", "none"]).refused(&["there is no keyspace \"shop\"", "make it"]);
    }
}
