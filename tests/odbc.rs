//! Databases behind ODBC drivers in studies, as users write them: what is measured, what is refused, and what happens when a driver, a data source or a server is not there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "behind/mod.rs"]
mod behind;
#[path = "fetched/mod.rs"]
#[expect(dead_code, reason = "shared with databases that are fetched")]
mod fetched;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use behind::Behind;
use fetched::study;
use loadline::database::odbc::library::{VARIABLE, find};
use loadline::database::{self, Database, DatabaseError, SessionLimits, Target};
use program::{Outcome, Scratch, outcome};

const LAYOUTS: [&str; 6] = ["wide", "star", "star-hot", "json", "eav", "spare"];
const PASSWORD: &str = "t0p;secret}";

fn is_missing() -> bool {
    let missing = find().err();
    missing.iter().for_each(|missing| eprintln!("{missing}: nothing was checked"));
    missing.is_some()
}

fn run(scratch: &Scratch, arguments: &[&str]) -> Outcome {
    outcome(scratch.command(arguments).env("LOADLINE_STOLEN", "1"))
}

fn at(url: &str) -> String {
    format!("name = \"odbc\"\nurl = \"{url}\"")
}

#[test]
fn without_the_library_of_odbc_it_is_refused_while_planning_with_the_package() {
    let scratch = Scratch::new();
    scratch.write("s.toml", &study("name = \"odbc\"", "wide", "name = \"write\""));
    let absent = outcome(scratch.command(&["plan", "s.toml"]).env(VARIABLE, "/nonexistent/libodbc.so.2"));
    absent.refused(&["database.name is \"odbc\"", VARIABLE, "is no file"]);
    let wrong = outcome(scratch.command(&["run", "s.toml", "--out", "none"]).env(VARIABLE, "/etc/hostname"));
    assert_ne!(wrong.status, Some(0));
    assert!(wrong.stderr.contains("cannot be loaded") && wrong.stderr.contains(VARIABLE), "{}", wrong.stderr);
}

#[test]
fn a_recorder_refuses_it_with_the_reason() {
    let scratch = Scratch::new();
    let url = "odbc://DSN=shop";
    scratch.write("recorder.toml", &format!("[database]\n{}\n[intake.http]\nlisten = \"127.0.0.1:0\"\n", at(url)));
    let told = scratch.run(&["record", "recorder.toml"]);
    told.refused(&["odbc has no transactions that go on after a statement that was refused", "sqlite"]);
}

#[test]
fn records_are_written_to_a_private_file_and_all_of_them_are_there() {
    if is_missing() {
        return;
    }
    let scratch = Scratch::new();
    for layout in LAYOUTS {
        scratch.write("s.toml", &study("name = \"odbc\"", layout, "name = \"write\"\nbatch = 5"));
        let told = run(&scratch, &["run", "s.toml", "--out", layout]).expect(0).stdout;
        let trial = scratch.stored(layout).remove(0);
        assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{layout}: {:?}", trial.errors);
        let version = &trial.database_version;
        assert!(version.starts_with("SQLite 3.") && version.contains("driver sqlite3odbc.so"), "{version}");
        assert!(told.contains("power cut") && told.contains("On the disk"), "{told}");
    }
    scratch.write("s.toml", &study("name = \"odbc\"\ndurability = \"crash\"", "wide", "name = \"write\""));
    let told = run(&scratch, &["run", "s.toml", "--out", "crash"]).expect(0).stdout;
    assert!(told.contains("crash"), "{told}");
    let left: Vec<_> = std::fs::read_dir(scratch.path("wide")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().contains(".db")), "{left:?}");
    scratch.write("s.toml", &study("name = \"odbc\"\nconfig = { journal_mod = \"wal\" }", "wide", "name = \"write\""));
    let wrong = run(&scratch, &["run", "s.toml", "--out", "wrong"]);
    assert!(wrong.stderr.contains("no PRAGMA \"journal_mod\""), "{}", wrong.stderr);
}

#[test]
fn what_a_driver_would_change_is_refused_while_planning() {
    if is_missing() {
        return;
    }
    let scratch = Scratch::new();
    for database in ["name = \"odbc\"".to_owned(), at("odbc://Driver=SQLite3;Database=/tmp/none.db")] {
        scratch.write("s.toml", &study(&database, "wide", "name = \"read\""));
        run(&scratch, &["plan", "s.toml"]).refused(&["rounds them to 15 digits", "take another workload or layout"]);
    }
    scratch.write("s.toml", &study(&at("odbc://Driver=PostgreSQL Unicode;Server=nowhere"), "wide", "name = \"read\""));
    run(&scratch, &["plan", "s.toml"]).expect(0);
    scratch.write("s.toml", &study("name = \"odbc\"", "wide", "name = \"write\""));
    run(&scratch, &["plan", "s.toml", "--set", "load.statements=text"])
        .refused(&["load.statements is \"text\"", "odbc has no statements as text"]);
    scratch.write("s.toml", &study(&(at("odbc://DSN=a") + "\npath = \"a.db\""), "wide", "name = \"write\""));
    run(&scratch, &["plan", "s.toml"]).refused(&["database.path", "database.url", "leave one of them out"]);
}

/// Runs a study that cannot connect. Returns what it printed, in which the password must not be.
fn cannot_connect(scratch: &Scratch, string: &str) -> String {
    let url = format!("odbc://{string};PWD={{{}}}", PASSWORD.replace('}', "}}"));
    scratch.write("s.toml", &study(&at(&url), "wide", "name = \"write\""));
    let plan = run(scratch, &["plan", "s.toml"]).expect(0);
    let told = run(scratch, &["run", "s.toml", "--out", "none"]);
    assert_ne!(told.status, Some(0));
    let set = run(scratch, &["run", "s.toml", "--out", "other", "--set", &format!("database.url={url};Nonsense")]);
    let all = [plan.stdout, plan.stderr, told.stdout, told.stderr.clone(), set.stdout, set.stderr].concat();
    assert!(!all.contains("t0p"), "{all}");
    for run in ["none", "other"] {
        assert_no_password_in(&scratch.path(run));
    }
    told.stderr
}

fn assert_no_password_in(directory: &std::path::Path) {
    for file in std::fs::read_dir(directory).into_iter().flatten().flatten().filter(|entry| entry.path().is_file()) {
        let content = std::fs::read(file.path()).unwrap();
        assert!(!String::from_utf8_lossy(&content).contains("t0p"), "{}", file.path().display());
    }
}

#[test]
fn a_driver_or_a_data_source_that_is_not_there_is_named_with_the_packages_and_without_the_password() {
    if is_missing() {
        return;
    }
    let scratch = Scratch::new();
    for (string, name) in [("Driver=Nonsense;Server=a", "Nonsense"), ("DSN=nowhere", "nowhere")] {
        let told = cannot_connect(&scratch, string);
        for part in [name, "odbcinst -q -d", "odbc-postgresql", "libsqliteodbc"] {
            assert!(told.contains(part), "{string} does not tell {part}: {told}");
        }
    }
    let told = cannot_connect(&scratch, "Driver=PostgreSQL Unicode;Server=127.0.0.1;Port=1;Database=a;UID=b");
    assert!(told.contains("no connection by odbc://Driver=PostgreSQL Unicode;Server=127.0.0.1"), "{told}");
}

#[test]
fn on_servers_behind_drivers_all_records_are_there_and_what_they_survive_is_known() {
    for name in ["postgres", "mariadb"] {
        let Some(behind) = Behind::start(name, &[]) else { return };
        let scratch = Scratch::new();
        for layout in LAYOUTS {
            let mix = "name = \"mix\"\nmix = { read = 2, select = 1, write = 1 }\nbatch = 5";
            scratch.write("s.toml", &study(&at(&format!("odbc://{}", behind.string)), layout, mix));
            let mut command = scratch.command(&["run", "s.toml", "--out", layout]);
            let told = outcome(command.env("LOADLINE_STOLEN", "1").env("LOADLINE_PASSWORD", &behind.password));
            let told = told.expect(0).stdout;
            let trial = scratch.stored(layout).remove(0);
            assert_eq!(
                (trial.invalid_because.as_slice(), trial.failed()),
                (&[][..], 0),
                "{layout}: {:?}",
                trial.errors
            );
            assert!(trial.database_version.contains(", driver "), "{}", trial.database_version);
            assert!(told.contains("power cut"), "{name}: {told}");
            assert_no_password_of(&behind, &scratch.path(layout));
        }
        assert!(behind.server.is_running());
    }
}

fn assert_no_password_of(behind: &Behind, directory: &std::path::Path) {
    for file in std::fs::read_dir(directory).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let content = std::fs::read(file.path()).unwrap();
        assert!(!String::from_utf8_lossy(&content).contains(&behind.password), "{}", file.path().display());
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_fails_the_trial_and_the_program_ends() {
    for name in ["postgres", "mariadb"] {
        let Some(behind) = Behind::start(name, &[]) else { return };
        let scratch = Scratch::new();
        let text = study(&at(&behind.url()), "wide", "name = \"write\"");
        let text = text.split("[load]").next().unwrap().to_owned()
            + "[load]\nclients = 2\nduration = \"8s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
        scratch.write("s.toml", &text);
        let begun = Instant::now();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(4));
            for pid in behind.server.pids() {
                // SAFETY: the call has no precondition; the process is one of the server that this test has started.
                unsafe { libc::kill(pid as i32, libc::SIGKILL) };
            }
            behind
        });
        let told = run(&scratch, &["run", "s.toml", "--out", "killed"]);
        assert_eq!(told.status, Some(1), "{}{}", told.stdout, told.stderr);
        assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
        let trial = scratch.stored("killed").remove(0);
        assert!(!trial.invalid_because.is_empty(), "{name}");
        drop(killer.join().unwrap());
    }
}

static TOLD: AtomicBool = AtomicBool::new(false);

#[test]
fn what_a_server_executes_when_loadline_is_told_to_end_is_cancelled_and_what_follows_is_not() {
    for (name, long) in [("postgres", "SELECT pg_sleep(600)"), ("mariadb", "SELECT SLEEP(600)")] {
        let Some(behind) = Behind::start(name, &[]) else { return };
        TOLD.store(false, Ordering::Relaxed);
        let entry = database::find("odbc").unwrap();
        let endpoint = entry.read_url.unwrap()(&behind.url()).unwrap();
        let mut database = entry.open_sql(&Default::default(), Some(&endpoint)).unwrap();
        let limits = SessionLimits::of_trials(Duration::from_secs(600), || TOLD.load(Ordering::Relaxed));
        database.set_limits(Arc::new(limits));
        let mut session = database.connect().unwrap();
        let teller = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            TOLD.store(true, Ordering::Relaxed);
        });
        let begun = Instant::now();
        let ended = session.query(long);
        // MariaDB's SLEEP() answers 1 when it is ended.
        let is_cancelled = matches!(&ended, Err(DatabaseError::Refused { .. })) || name == "mariadb";
        assert!(is_cancelled && begun.elapsed() < Duration::from_secs(60), "{ended:?} after {:?}", begun.elapsed());
        teller.join().unwrap();
        session.run("CREATE TABLE t (a INTEGER)").unwrap();
        assert_eq!(session.query("SELECT COUNT(*) FROM t").unwrap(), [[Some("0".to_owned())]]);
    }
}

#[test]
fn errors_have_the_state_of_sql_and_the_databases_own_code() {
    for (name, state) in [("postgres", "23505"), ("mariadb", "23000")] {
        let Some(behind) = Behind::start(name, &[]) else { return };
        let database = behind.open();
        let mut session = database.connect().unwrap();
        session.run("CREATE TABLE t (a INTEGER PRIMARY KEY)").unwrap();
        session.run("INSERT INTO t VALUES (1)").unwrap();
        let Err(DatabaseError::Refused { code, message }) = session.run("INSERT INTO t VALUES (1)") else { panic!() };
        assert_eq!(code, state, "{message}");
        let is_named = name == "postgres" || message.contains("code 1062");
        assert!(is_named, "{message}");
        let unknown = session.query("SELECT a FROM nowhere").unwrap_err();
        assert!(unknown.is_refusal(), "{unknown}");
        assert_eq!(Target::name(&*database), "odbc");
        let lists: &dyn Database = &*database;
        assert!(!lists.is_embedded());
    }
}
