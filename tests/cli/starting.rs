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
