//! Databases that are somebody's own: servers at an address, with a password, and files.

use std::path::Path;

use loadline::database::{self, Database, Endpoint, Session};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

use crate::program::{Scratch, outcome, small_study};

const FAST: &str = "[load]\noperations = 50\nclients = 2\nwarmup = \"0s\"";

/// A server that plays somebody's own.
struct Own {
    name: &'static str,
    endpoint: Endpoint,
    database: Box<dyn Database>,
    _server: Server,
}

impl Own {
    fn start(name: &'static str) -> Self {
        let entry = database::find(name).unwrap();
        let settings = DatabaseSettings { name: name.to_owned(), ..DatabaseSettings::default() };
        let server = Server::start(entry.recipe.unwrap(), &settings, None)
            .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
        let endpoint = Endpoint { unix: None, ..server.endpoint().clone() };
        let database = entry.open_sql(&settings, Some(&endpoint)).unwrap();
        Own { name, endpoint, database, _server: server }
    }

    /// The address, with a password or without.
    fn url(&self, password: Option<&str>) -> String {
        let Endpoint { user, database, tcp: Some((host, port)), .. } = &self.endpoint else {
            panic!("it listens on TCP")
        };
        let scheme = if self.name == "mariadb" { "mysql" } else { "postgres" };
        let password = password.map_or(String::new(), |password| format!(":{password}"));
        format!("{scheme}://{user}{password}@{host}:{port}/{database}")
    }

    fn session(&self) -> Box<dyn Session> {
        self.database.connect().unwrap()
    }

    /// The only figure that a query answers.
    fn figure(&self, query: &str) -> i64 {
        self.session().query(query).unwrap()[0][0].as_ref().unwrap().parse().unwrap()
    }

    fn table_names(&self) -> Vec<String> {
        let schema = if self.name == "mariadb" { "DATABASE()" } else { "'public'" };
        let query =
            format!("SELECT table_name FROM information_schema.tables WHERE table_schema = {schema} ORDER BY 1");
        self.session().query(&query).unwrap().into_iter().map(|row| row[0].clone().unwrap()).collect()
    }

    /// A table of the user's with a thousand rows.
    fn make_table(&self) {
        let mut session = self.session();
        session.run("CREATE TABLE readings (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)").unwrap();
        let rows: Vec<String> = (1..=1000).map(|id| format!("({id}, {id})")).collect();
        session.run(&format!("INSERT INTO readings VALUES {}", rows.join(", "))).unwrap();
    }
}

/// Asserts that a word is in none of the files below a directory.
#[track_caller]
fn assert_nowhere(word: &str, directory: &Path) {
    let mut looked_at = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_nowhere(word, &path);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(word), "{word} is in {}", path.display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 0, "{} is empty", directory.display());
}

#[test]
fn own_statements_on_an_own_table_change_it_by_what_they_say_and_by_nothing_else() {
    for name in ["mariadb", "postgres"] {
        let own = Own::start(name);
        own.make_table();
        let scratch = Scratch::new();
        let workload = "[workload]\nname = \"sql\"\nwrites = true\nstatements = [\n\
                        { sql = \"SELECT n FROM readings WHERE id = ?\", weight = 3, params = [ { uniform = [1, 1000] } ] },\n\
                        { sql = \"UPDATE readings SET n = n + 1 WHERE id = ?\", params = [ { zipf = [1, 1000, 0.99] } ] } ]";
        let url = own.url(Some(&own.endpoint.password));
        let database = format!("[database]\nname = \"{name}\"\nurl = \"{url}\"");
        scratch.write("study.toml", &small_study(&format!("{database}\n{workload}\n{FAST}")));
        let outcome = scratch.run(&["run", "study.toml", "--out", "run", "--json"]).expect(0);
        assert_eq!(outcome.stderr, "");
        let operations = outcome.json()["cases"][0]["operations"].clone();
        let count = |kind: &str| operations[kind]["count"].as_u64().unwrap();
        assert_eq!(count("statement-1") + count("statement-2"), 100, "{operations:#}");
        let updated = i64::try_from(count("statement-2")).unwrap();
        assert!(updated > 0);
        assert_eq!(own.figure("SELECT COUNT(*) FROM readings"), 1000);
        assert_eq!(own.figure("SELECT SUM(n) FROM readings"), 500_500 + updated, "each update happened once");
        assert_eq!(own.table_names(), ["readings"]);
        assert_nowhere(&own.endpoint.password, &scratch.path("run"));
    }
}

#[test]
fn own_tables_of_loadline_are_dropped_and_those_of_others_are_left_alone() {
    for name in ["mariadb", "postgres"] {
        let own = Own::start(name);
        let scratch = Scratch::new();
        let url = own.url(Some(&own.endpoint.password));
        let database = format!("[database]\nname = \"{name}\"\nurl = \"{url}\"\n[record]\nrows = 500");
        let factor = "[factors]\n\"layout.name\" = [\"wide\", \"star-hot\"]";
        scratch
            .write("study.toml", &small_study(&format!("{database}\n[workload]\nname = \"read\"\n{FAST}\n{factor}")));
        scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
        assert_eq!(own.table_names(), [""; 0], "loadline's tables are gone");

        own.session().run("CREATE TABLE qos (id INTEGER PRIMARY KEY)").unwrap();
        own.session().run("INSERT INTO qos VALUES (7)").unwrap();
        let arguments = ["run", "study.toml", "--set", "layout.name=wide", "--out", "again"];
        scratch.run(&arguments).refused(&["table \"qos\" cannot be made", "already exists", "record.table"]);
        assert!(!scratch.path("again").exists());
        assert_eq!((own.table_names(), own.figure("SELECT SUM(id) FROM qos")), (vec!["qos".to_owned()], 7));
        scratch.run(&[&arguments[..], &["--set", "record.table=mine"]].concat()).expect(0);
        assert_eq!(own.table_names(), ["qos"]);
    }
}

#[test]
fn a_password_is_needed_and_never_stored() {
    for name in ["mariadb", "postgres"] {
        let own = Own::start(name);
        own.make_table();
        let password = own.endpoint.password.clone();
        let scratch = Scratch::new();
        let workload = "[workload]\nname = \"sql\"\nstatements = [ { sql = \"SELECT COUNT(*) FROM readings\" } ]";
        let database = format!("[database]\nname = \"{name}\"\nurl = \"{}\"", own.url(None));
        scratch.write("study.toml", &small_study(&format!("{database}\n{workload}\n{FAST}")));

        let wrong = format!("database.url={}", own.url(Some("wr0ng")));
        let run = ["run", "study.toml", "--out", "run", "--set"];
        let refused = scratch.run(&[&run[..], &[&wrong]].concat()).expect(2);
        let bare = format!("database.url = \"{}\": ", own.url(None));
        assert!(refused.stderr.contains(&bare) && refused.stderr.contains("password"), "{refused:?}");
        assert!(!refused.stderr.contains("wr0ng"), "{refused:?}");
        scratch.run(&run[..4]).refused(&[&bare]);
        assert!(!scratch.path("run").exists());

        // In the address, also as one of several levels of a factor.
        let right = format!("database.url=[{}]", own.url(Some(&password)));
        let first = scratch.run(&[&run[..], &[&right, "--json"]].concat()).expect(0);
        let plan = scratch.run(&["plan", "study.toml", "--set", &right]).expect(0);
        for text in [&first.stdout, &first.stderr, &plan.stdout] {
            assert!(!text.contains(&password), "{text}");
        }
        assert_nowhere(&password, &scratch.path("run"));

        // In the environment; the run is the same one.
        let without = format!("database.url=[{}]", own.url(None));
        let text = std::fs::read_to_string(scratch.path("run/trials.jsonl")).unwrap();
        let one = text.lines().next().unwrap().to_owned() + "\n";
        std::fs::write(scratch.path("run/trials.jsonl"), one).unwrap();
        let mut resumed = scratch.command(&["run", "study.toml", "--resume", "run", "--set", &without]);
        outcome(resumed.env("LOADLINE_PASSWORD", &password)).expect(0);
        let ids = |text: &str| {
            let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["trial"]["id"].clone();
            text.lines().map(id).collect::<Vec<_>>()
        };
        let again = std::fs::read_to_string(scratch.path("run/trials.jsonl")).unwrap();
        assert_eq!(ids(&again), ids(&text), "ids do not depend on where the password comes from");
        assert_nowhere(&password, &scratch.path("run"));
        for arguments in [&["report", "run"][..], &["report", "run", "--json"]] {
            assert!(!scratch.run(arguments).expect(0).stdout.contains(&password));
        }
    }
}

#[test]
fn an_own_file_keeps_its_tables_and_its_journal() {
    let scratch = Scratch::new();
    let path = scratch.path("mine.db");
    let file = || rusqlite::Connection::open(&path).unwrap();
    file()
        .execute_batch("CREATE TABLE readings (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO readings VALUES (1, 5)")
        .unwrap();
    let state = || {
        let text = |query: &str| file().query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
        let tables = text("SELECT group_concat(name) FROM sqlite_schema");
        (tables, text("SELECT group_concat(id || '=' || n) FROM readings"), text("PRAGMA journal_mode"))
    };
    let before = state();
    assert_eq!(before, ("readings".to_owned(), "1=5".to_owned(), "delete".to_owned()));

    let database = "[database]\npath = \"mine.db\"\n[record]\nrows = 200";
    scratch.write("write.toml", &small_study(&format!("{database}\n{FAST}")));
    scratch.run(&["run", "write.toml", "--set", "load.clients=1", "--out", "written"]).expect(0);
    assert_eq!(state(), before, "loadline's tables are gone, the user's are as they were");

    let sql = "[workload]\nname = \"sql\"\nwrites = true\nstatements = [ { sql = \"UPDATE readings SET n = n + 1 WHERE id = 1\" } ]";
    scratch.write("sql.toml", &small_study(&format!("[database]\npath = \"mine.db\"\n{sql}\n{FAST}")));
    scratch.run(&["run", "sql.toml", "--set", "load.clients=1", "--out", "own"]).expect(0);
    assert_eq!(state(), (before.0, "1=105".to_owned(), before.2));

    file().execute_batch("CREATE TABLE qos (id INTEGER); INSERT INTO qos VALUES (3)").unwrap();
    let arguments = ["run", "write.toml", "--set", "layout.name=wide", "--out", "refused"];
    scratch.run(&arguments).refused(&["table \"qos\" cannot be made", "record.table"]);
    assert_eq!(file().query_row("SELECT SUM(id) FROM qos", [], |row| row.get::<_, i64>(0)).unwrap(), 3);

    scratch.write("text.db", "this is no database");
    let arguments = ["run", "write.toml", "--set", "database.path=text.db", "--out", "refused"];
    scratch.run(&arguments).refused(&["text.db", "not a database"]);
    assert_eq!(std::fs::read_to_string(scratch.path("text.db")).unwrap(), "this is no database");
}
