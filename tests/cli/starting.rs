//! `loadline init`: the first study of a new user.

use std::io::Write;
use std::process::Stdio;

use crate::program::{Outcome, Scratch};

#[test]
fn a_first_study_is_written_and_runs_and_is_never_overwritten() {
    let scratch = Scratch::new();
    let told = scratch.run(&["init"]).expect(0);
    assert!(told.stdout.contains("loadline run study.toml --quick"), "{}", told.stdout);
    assert!(told.stderr.contains("--database is not given: sqlite"), "{}", told.stderr);
    let small = ["--set", "load.operations=20", "--set", "load.duration=", "--set", "load.warmup=0s"];
    let once = ["--set", "repeat.rule=fixed", "--set", "repeat.least=1", "--set", "repeat.most=1"];
    scratch.run(&[&["run", "study.toml", "--out", "run"], &small[..], &once[..]].concat()).expect(0);
    assert_eq!(scratch.stored("run").len(), 9, "three layouts with three numbers of clients");
    let before = std::fs::read_to_string(scratch.path("study.toml")).unwrap();
    scratch.run(&["init", "--find", "line"]).refused(&["study.toml", "is there already", "--out"]);
    assert_eq!(std::fs::read_to_string(scratch.path("study.toml")).unwrap(), before);

    let told = scratch.run(&["init", "--find", "line", "--record", "custom", "--out", "line.toml", "--json"]).expect(0);
    assert_eq!(told.json()["study"], "line.toml");
    scratch.run(&["plan", "line.toml"]).expect(0);
    scratch.run(&["init", "--record", "csv", "--out", "csv.toml"]).refused(&["--record", "\"csv\"", "custom"]);
    assert!(!scratch.path("csv.toml").exists());
}

#[test]
fn whoever_sits_at_a_terminal_is_asked() {
    let scratch = Scratch::new();
    // `script` runs a command at a terminal of its own.
    let program = format!("{} init", env!("CARGO_BIN_EXE_loadline"));
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &program, "/dev/null"]).current_dir(scratch.path(""));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"3\nnothing\nsensor\n\n").unwrap();
    let outcome = Outcome::of(child.wait_with_output().unwrap()).expect(0);
    assert!(outcome.stdout.contains("\"nothing\" is none of them"), "{}", outcome.stdout);
    let study = std::fs::read_to_string(scratch.path("study.toml")).unwrap();
    for words in ["name     = \"clients-sensor\"", "name = \"sqlite\"", "type = \"sensor\""] {
        assert!(study.contains(words), "{words}: {study}");
    }
}

#[test]
fn a_statement_with_another_number_of_rows_has_failed() {
    let scratch = Scratch::new();
    let run = |name: &str, statement: &str| {
        let load = "[load]\noperations = 50\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1";
        let record = "[record]\ntype = \"sensor\"\nrows = 100\n[layout]\nname = \"wide\"";
        let study = format!(
            "name = \"s\"\nquestion = \"?\"\n{record}\n[workload]\nname = \"sql\"\nstatements = [ {{ {statement} }} ]\n{load}\n"
        );
        scratch.write("study.toml", &study);
        scratch.run(&["run", "study.toml", "--out", name])
    };
    // Parameters from the table, and several of one statement that depend on each other.
    let from = "params = [ { from = \"SELECT record_id FROM sensor WHERE record_id <= 90\" }, { plus = [1, 9] } ]";
    let ten = "sql = \"SELECT * FROM sensor WHERE record_id BETWEEN ? AND ?\"";
    run("ten", &format!("{ten}, rows = 10, {from}")).expect(0);
    run("nine", &format!("{ten}, rows = 9, {from}")).expect(1);
    let stored = &scratch.stored("nine")[0];
    assert_eq!((stored.failed(), stored.completed()), (50, 0), "{:?}", stored.errors);
    let update =
        "sql = \"UPDATE sensor SET record_id = record_id WHERE record_id = ?\", params = [ { uniform = [1, 90] } ]";
    run("one", &format!("{update}, rows = 1")).expect(0);
    run("two", &format!("{update}, rows = 2")).expect(1);
    run("both", &format!("{ten}, rows = 0, allow_empty = true, {from}")).refused(&["rows is 0", "allow_empty is true"]);
}

#[test]
fn sql_around_each_trial_is_executed_and_cleans_up_whatever_happened() {
    let scratch = Scratch::new();
    let file = rusqlite::Connection::open(scratch.path("own.db")).unwrap();
    file.execute_batch("CREATE TABLE kept (id INTEGER PRIMARY KEY); CREATE TABLE told (what TEXT)").unwrap();
    let study = |writes: bool, statement: &str| {
        let around = "set_up = [ \"CREATE TABLE t (id INTEGER PRIMARY KEY, n INT)\", \"INSERT INTO told VALUES ('up')\" ]\n\
                      clean_up = [ \"DROP TABLE IF EXISTS t\", \"INSERT INTO told VALUES ('clean')\" ]";
        let load = "[load]\noperations = 20\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2";
        let text = format!(
            "name = \"s\"\nquestion = \"?\"\n[database]\npath = \"own.db\"\n[workload]\nname = \"sql\"\nwrites = {writes}\n{around}\n\
             statements = [ {{ {statement} }} ]\n{load}\n"
        );
        scratch.write("study.toml", &text);
    };
    let told = || {
        let mut rows = file.prepare("SELECT what FROM told").unwrap();
        let told: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let tables: u32 =
            file.query_row("SELECT count(*) FROM sqlite_master WHERE name = 't'", [], |row| row.get(0)).unwrap();
        (told.join(" "), tables)
    };
    let insert = "sql = \"INSERT INTO t VALUES (?, 1)\", params = [ { sequence = [1, 1] } ]";
    study(false, "sql = \"SELECT count(*) FROM kept\"");
    scratch.run(&["run", "study.toml", "--out", "refused"]).refused(&[
        "workload.set_up",
        "CREATE TABLE t",
        "writes = true",
    ]);
    assert_eq!(told(), (String::new(), 0));
    study(true, insert);
    scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    assert_eq!(told(), ("up clean up clean".to_owned(), 0), "two trials, each with a table of its own");
    study(true, "sql = \"SELECT nothing_there FROM t\"");
    scratch.run(&["run", "study.toml", "--out", "broken"]).refused(&["nothing_there"]);
    let (told, tables) = told();
    assert!(told.ends_with("up clean") && tables == 0, "{told}, {tables}");
}
