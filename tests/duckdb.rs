//! DuckDB in studies, as users write them: what is measured, what is refused, and how its library comes here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "fetched/mod.rs"]
#[expect(dead_code, reason = "shared with databases that have a server")]
mod fetched;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use fetched::study;
use loadline::database::duckdb::library::{VARIABLE, package};
use program::{Scratch, outcome};

#[test]
fn without_its_library_it_is_refused_while_planning_with_the_command_that_fetches_it() {
    let scratch = Scratch::new();
    scratch.write("s.toml", &study("name = \"duckdb\"", "wide", "name = \"write\""));
    let plan = |variable: &str, value: &str| outcome(scratch.command(&["plan", "s.toml"]).env(variable, value));
    plan(VARIABLE, "/nonexistent/libduckdb.so").refused(&["database.name is \"duckdb\"", VARIABLE, "is no file"]);
    let absent = outcome(scratch.command(&["plan", "s.toml"]).env_remove(VARIABLE));
    // Some systems have the library among their own.
    if absent.status != Some(0) {
        absent.refused(&["DuckDB's library is not here", "loadline fetch duckdb", VARIABLE]);
    }
}

#[test]
fn only_the_published_package_is_taken_and_only_where_it_can_be_kept() {
    let scratch = Scratch::new();
    let Some(package) = package() else {
        return scratch.run(&["fetch", "duckdb"]).refused(&["no package of DuckDB is known", VARIABLE]);
    };
    scratch.run(&["fetch", "oracle"]).refused(&["oracle", "duckdb"]);
    fetched::is_taken_only_as_published(&package);
}

#[test]
fn a_recorder_refuses_it_with_the_reason() {
    let scratch = Scratch::new();
    scratch.write(
        "recorder.toml",
        "[database]\nname = \"duckdb\"\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n",
    );
    let told = scratch.run(&["record", "recorder.toml"]);
    told.refused(&["duckdb has no transactions that go on after a statement that was refused", "sqlite"]);
    assert!(!scratch.path("m.db").exists());
}

/// Tests that need the library.
mod with_duckdb {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use loadline::database::duckdb::{Duckdb, library};
    use loadline::database::{Database, DatabaseError, SessionLimits, Target};
    use loadline::trial::DatabaseSettings;

    use super::program::{Outcome, Scratch, outcome};
    use super::study;

    fn is_missing() -> bool {
        let missing = library::find().err();
        missing.iter().for_each(|missing| eprintln!("{missing}: nothing was checked"));
        missing.is_some()
    }

    /// Runs the program, with the library that is here.
    fn run(scratch: &Scratch, arguments: &[&str]) -> Outcome {
        let library = library::find().unwrap();
        outcome(scratch.command(arguments).env(library::VARIABLE, library).env("LOADLINE_STOLEN", "1"))
    }

    fn open(scratch: &Scratch) -> Duckdb {
        let path = Some(scratch.path("own.db").display().to_string());
        Duckdb::open(&DatabaseSettings { name: "duckdb".to_owned(), path, ..DatabaseSettings::default() }).unwrap()
    }

    #[test]
    fn records_are_written_read_and_changed_and_all_of_them_are_there() {
        if is_missing() {
            return;
        }
        let scratch = Scratch::new();
        let mix = "name = \"mix\"\nmix = { read = 2, select = 1, write = 1 }\nbatch = 5";
        for layout in ["wide", "star", "star-hot", "json", "eav", "spare"] {
            scratch.write("s.toml", &study("name = \"duckdb\"", layout, mix));
            run(&scratch, &["run", "s.toml", "--out", layout]).expect(0);
            let trial = scratch.stored(layout).remove(0);
            assert_eq!(
                (trial.invalid_because.as_slice(), trial.failed()),
                (&[][..], 0),
                "{layout}: {:?}",
                trial.errors
            );
            assert!(trial.database_version.starts_with("DuckDB v"), "{}", trial.database_version);
        }
        scratch.write("s.toml", &study("name = \"duckdb\"", "wide", "name = \"write\"\nbatch = 5"));
        let told = run(&scratch, &["run", "s.toml", "--out", "written"]).expect(0).stdout;
        assert!(told.contains("power cut") && told.contains("On the disk"), "{told}");
        let left: Vec<_> = std::fs::read_dir(scratch.path("wide")).unwrap().flatten().collect();
        assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().contains(".db")), "{left:?}");
    }

    #[test]
    fn what_it_cannot_do_is_refused_while_planning_with_who_can() {
        if is_missing() {
            return;
        }
        let scratch = Scratch::new();
        let evolving = study("name = \"duckdb\"", "wide", "name = \"write\"\nevolve = \"1s\"");
        let readers = "name = \"seen\"\n[database]\nname = \"duckdb\"\n[record]\ntype = \"sensor\"\n[layout]\nname = \"wide\"\n[workload]\nname = \"freshness\"\n[freshness]\nrun_as = \"processes\"\n[load]\narrivals = \"constant\"\nrate = 10\nduration = \"1s\"\n";
        for (text, why) in [
            (evolving.as_str(), "duckdb has no changes of a table in use"),
            (readers, "duckdb has no access for several processes at once"),
        ] {
            scratch.write("s.toml", text);
            run(&scratch, &["plan", "s.toml"]).refused(&[why, "database.name = \"sqlite\""]);
        }
        let text = study("name = \"duckdb\"\nconfig = { treads = 2 }", "wide", "name = \"write\"");
        scratch.write("s.toml", &text);
        let told = run(&scratch, &["run", "s.toml", "--out", "none"]);
        told.refused(&["has no setting \"treads\"", "did you mean \"threads\"?"]);
    }

    #[test]
    fn the_second_of_two_transactions_that_change_a_row_has_a_conflict() {
        if is_missing() {
            return;
        }
        let scratch = Scratch::new();
        let database = open(&scratch);
        let (mut one, mut two) = (database.connect().unwrap(), database.connect().unwrap());
        one.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER); INSERT INTO t VALUES (1, 1)").unwrap();
        one.run("BEGIN; UPDATE t SET b = 2 WHERE a = 1").unwrap();
        let lost = two.run("UPDATE t SET b = 3 WHERE a = 1").unwrap_err();
        assert!(lost.is_conflict() && lost.is_refusal(), "{lost}");
        let duplicate = two.run("INSERT INTO t VALUES (1, 1)").unwrap_err();
        assert!(!duplicate.is_conflict() && duplicate.is_refusal(), "{duplicate}");
        one.run("COMMIT").unwrap();
        two.run("UPDATE t SET b = 3 WHERE a = 1").unwrap();
        assert_eq!(one.query("SELECT b, sum(b) OVER (), 1.5 FROM t").unwrap()[0][0].as_deref(), Some("3"));
    }

    static TOLD: AtomicBool = AtomicBool::new(false);

    #[test]
    fn what_runs_when_loadline_is_told_to_end_is_interrupted_and_what_follows_is_not() {
        if is_missing() {
            return;
        }
        let scratch = Scratch::new();
        let mut database = open(&scratch);
        let limits = SessionLimits::of_trials(Duration::from_secs(600), || TOLD.load(Ordering::Relaxed));
        database.set_limits(Arc::new(limits));
        let mut session = database.connect().unwrap();
        // If it is told before the statement has begun, the statement has the time that is left for the last ones.
        let teller = std::thread::spawn(|| TOLD.store(true, Ordering::Relaxed));
        // It would take days.
        let ended =
            session.query("SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range * b.range = 7");
        assert!(matches!(&ended, Err(DatabaseError::Refused { code, .. }) if code == "INTERRUPT Error"), "{ended:?}");
        session.run("CREATE TABLE t (a INTEGER)").unwrap();
        teller.join().unwrap();
    }

    #[test]
    fn the_file_is_whole_and_free_for_others_when_nobody_uses_it() {
        if is_missing() {
            return;
        }
        let scratch = Scratch::new();
        let database = open(&scratch);
        let mut session = database.connect().unwrap();
        session.run("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)").unwrap();
        let log = scratch.path("own.db.wal");
        assert!(std::fs::metadata(&log).is_ok_and(|log| log.len() > 0), "a commit is in the log");
        let again = open(&scratch);
        assert_eq!(again.connect().unwrap().query("SELECT a FROM t").unwrap(), [[Some("1".to_owned())]]);
        drop(session);
        assert!(!log.exists());
        // Removed by others, as trials do: a new file begins.
        std::fs::remove_file(scratch.path("own.db")).unwrap();
        assert!(again.connect().unwrap().query("SELECT a FROM t").is_err());
    }
}
