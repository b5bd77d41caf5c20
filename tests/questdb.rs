//! QuestDB in studies, as users write them: a store without updates, joins and keys, on a private server and on somebody's own; and how its server comes here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "existing/mod.rs"]
mod existing;
#[path = "fetched/mod.rs"]
mod fetched;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use loadline::database::questdb::jar::package;

#[test]
fn without_its_server_it_is_refused_while_planning_with_the_command_that_fetches_it() {
    fetched::is_refused_without_its_server(&package(), "questdb://admin@127.0.0.1:1/qdb");
}

#[test]
fn only_the_published_files_are_taken_and_only_where_they_can_be_kept() {
    fetched::is_taken_only_as_published(&package());
}

/// Tests that need the server.
mod with_questdb {
    use loadline::database::questdb::jar::{VARIABLE, find};
    use loadline::database::questdb::recipe::QUESTDB;
    use loadline::database::{self, TargetSession};
    use loadline::server::Server;
    use loadline::trial::DatabaseSettings;

    use super::existing::{assert_answers_are_right, table};
    use super::fetched::{is_missing, study};
    use super::program::{Outcome, Scratch, outcome};

    const MIX: &str = "name = \"mix\"\nmix = { read = 2, select = 1, scan = 1, write = 1 }\nbatch = 5";

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
            Own(Server::start(&QUESTDB, &settings(&[]), None).unwrap())
        }

        fn open(&self, config: &[(&str, &str)]) -> Result<Box<dyn TargetSession>, String> {
            let entry = database::find("questdb").unwrap();
            let target = entry.open(&settings(config), Some(self.0.endpoint())).unwrap();
            target.open().map_err(|error| error.to_string())
        }

        fn url(&self) -> String {
            let endpoint = self.0.endpoint();
            let (host, port) = endpoint.tcp.clone().unwrap();
            format!("questdb://{}:{}@{host}:{port}/qdb", endpoint.user, endpoint.password)
        }

        fn database(&self) -> String {
            format!("name = \"questdb\"\nurl = \"{}\"", self.url())
        }
    }

    fn settings(config: &[(&str, &str)]) -> DatabaseSettings {
        let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        DatabaseSettings { name: "questdb".to_owned(), config, ..DatabaseSettings::default() }
    }

    #[test]
    fn what_it_cannot_do_is_refused_before_anything_is_started_with_who_can() {
        if is_missing(&QUESTDB) {
            return;
        }
        let scratch = Scratch::new();
        for (layout, workload, why) in [
            ("star", "name = \"read\"", "questdb has no "),
            ("wide", "name = \"update\"", "questdb has no updates"),
            ("wide", "name = \"write\"\nevolve = \"1s\"", "questdb has no "),
        ] {
            scratch.write("s.toml", &study("name = \"questdb\"", layout, workload));
            run(&scratch, &["plan", "s.toml"]).refused(&[why, "database.name = \"sqlite\""]);
        }
        scratch.write("s.toml", &study("name = \"questdb\"\nconfig = { \"http.enabled\" = true }", "wide", MIX));
        run(&scratch, &["run", "s.toml", "--out", "open"]).refused(&["http.enabled", "keeps the server private"]);
    }

    #[test]
    fn records_are_written_and_all_of_them_are_there_with_their_size_and_what_they_survive() {
        if is_missing(&QUESTDB) {
            return;
        }
        let scratch = Scratch::new();
        let factors = "[factors]\n\"layout.name\" = [\"wide\", \"key-value\"]\n\"workload.batch\" = [1, 100]\n";
        let plain = study("name = \"questdb\"", "wide", "name = \"write\"").replace("rows = 300\n", "");
        scratch.write("s.toml", &(plain + factors));
        let told = run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0).stdout;
        for trial in scratch.stored("run") {
            assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
            assert!(trial.database_version.starts_with("QuestDB "), "{}", trial.database_version);
            assert!(trial.table_size.is_some(), "{told}");
        }
        assert!(told.contains("crash") && !told.contains("power cut"), "nothing is synced: {told}");
    }

    /// One server for all of it, since it takes seconds to start.
    #[test]
    fn on_a_server_of_somebody_else_all_answers_are_right_and_what_was_there_stays() {
        if is_missing(&QUESTDB) {
            return;
        }
        let (own, scratch) = (Own::start(), Scratch::new());
        scratch.write("s.toml", &study(&own.database(), "wide", MIX));
        run(&scratch, &["run", "s.toml", "--out", "run"]).expect(0);
        let trial = scratch.stored("run").remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{:?}", trial.errors);
        assert!(own.open(&[]).unwrap().count_rows("qos").is_err(), "what was made is gone");
        questions_are_answered(&own, &scratch);
        others_stay(&own, &scratch);
        let unknown = own.open(&[("cairo.comit.mode", "sync")]).err().unwrap();
        assert!(
            unknown.contains("database.config.cairo.comit.mode") && unknown.contains("SHOW PARAMETERS"),
            "{unknown}"
        );
        own.open(&[("cairo.commit.mode", "sync")]).unwrap();
        let other = own.database().replace(&own.0.endpoint().password, "wrong");
        scratch.write("s.toml", &study(&other, "wide", MIX));
        run(&scratch, &["run", "s.toml", "--out", "none"]).refused(&["no connection to QuestDB"]);
    }

    /// The answers to questions over late, repeated and missing readings are those of the records, before and while more come in.
    fn questions_are_answered(own: &Own, scratch: &Scratch) {
        let text = |questions: &str| {
            format!(
                "name = \"asked\"\n[database]\n{}\n[record]\ntype = \"sensor\"\nrows = 3000\nsources = 20\nmissing = 0.02\n\
                 late = {{ share = 0.05, up_to = \"20s\" }}\nrepeated = 0.03\n[layout]\nname = \"wide\"\n[workload]\nname = \"questions\"\n{questions}\n\
                 [load]\nclients = 2\nduration = \"1s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n",
                own.database()
            )
        };
        let own_run = |study: &str, out: &str| drop(run(scratch, &["run", study, "--out", out]));
        assert_answers_are_right(scratch, own_run, text, (QUESTIONS, QUESTIONS));
    }

    const QUESTIONS: &str = r#"questions = [
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
]"#;

    /// A table that was there is neither used nor removed.
    fn others_stay(own: &Own, scratch: &Scratch) {
        let mut session = own.open(&[]).unwrap();
        session.create_table(&table("qos")).unwrap();
        run(scratch, &["run", "s.toml", "--out", "refused"]).refused(&["table \"qos\" cannot be made"]);
        assert_eq!(session.count_rows("qos").unwrap(), Some(0), "it is there as it was");
        session.drop_table("qos").unwrap();
    }
}
