//! What a report says repeats the run, and what a run stored is a study.

use crate::program::Scratch;

const STUDY: &str = "name = \"again\"\n[load]\noperations = 5\nwarmup = \"0s\"\n[workload]\nbatch = 2\n[repeat]\nrule = \"fixed\"\nleast = 2\n";

/// The command lines that the page of a run names.
fn commands(scratch: &Scratch, run: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(scratch.path(&format!("{run}/report.html"))).unwrap();
    let (_, rest) = page.split_once("To repeat this run</h3><pre>").unwrap();
    let lines = rest.split("</pre>").next().unwrap().lines().filter(|line| line.starts_with("loadline "));
    lines.map(|line| line.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect()).collect()
}

fn ids(scratch: &Scratch, run: &str) -> Vec<String> {
    scratch.stored(run).into_iter().map(|trial| trial.trial.id).collect()
}

#[test]
fn every_command_of_the_report_repeats_the_same_trials() {
    let scratch = Scratch::new();
    scratch.write("own.toml", STUDY);
    let set = ["--set", "load.clients=[1,2]", "--set", "layout.name=star", "--seed", "7"];
    // Trials may be invalid on a machine that does other things too; they are the same trials.
    scratch.run(&[&["run", "own.toml", "--out", "first"], &set[..]].concat());
    let lines = commands(&scratch, "first");
    assert_eq!(lines[0][1..], [&["run", "own.toml"], &set[..]].concat());
    assert_eq!(lines[1][1..], ["run", "first/run.toml"]);
    for (number, line) in lines[..2].iter().enumerate() {
        let out = format!("again{number}");
        let words: Vec<&str> = line[1..].iter().map(String::as_str).chain(["--out", &out]).collect();
        scratch.run(&words);
        assert_eq!(ids(&scratch, &out), ids(&scratch, "first"), "{words:?}");
    }
    let words: Vec<&str> = lines[2][1..].iter().map(String::as_str).collect();
    assert_eq!(words, ["report", "first"]);
}

#[test]
fn a_stored_run_is_planned_like_its_study_and_is_not_changed_on_the_way() {
    let scratch = Scratch::new();
    scratch.write("own.toml", STUDY);
    scratch.run(&["run", "own.toml", "--out", "first"]);
    let from_study = scratch.run(&["plan", "own.toml", "--json"]).expect(0).json();
    assert_eq!(scratch.run(&["plan", "first/run.toml", "--json"]).expect(0).json(), from_study);
    assert_eq!(scratch.run(&["plan", "first", "--json"]).expect(0).json(), from_study);
    scratch.run(&["plan", "first", "--set", "load.clients=9"]).refused(&["--set load.clients=9", "file of a run"]);
    scratch.run(&["plan", "first", "--quick"]).refused(&["--quick", "file of a run"]);
}

#[test]
fn what_plan_accepts_run_does_not_refuse() {
    let scratch = Scratch::new();
    scratch.write("own.toml", STUDY);
    for sets in [
        &["--set", "database.name=postgres", "--set", "database.encryption=aes128"][..],
        &["--set", "database.name=mariadb", "--set", "database.binary=/nowhere/mariadbd"],
        &["--set", "load.cpus=4095"],
    ] {
        let planned = scratch.run(&[&["plan", "own.toml"], sets].concat()).expect(2).stderr;
        let ran = scratch.run(&[&["run", "own.toml", "--out", "never"], sets].concat()).expect(2).stderr;
        assert_eq!(planned, ran, "{sets:?}");
        assert!(!scratch.path("never").exists());
    }
}

#[test]
fn a_budget_is_spent_on_what_is_not_settled_and_is_no_part_of_the_study() {
    let scratch = Scratch::new();
    let open = STUDY.replace("rule = \"fixed\"\nleast = 2", "within = 0.0001\nleast = 2\nmost = 3");
    scratch.write("open.toml", &open);
    let outcome = scratch.run(&["run", "open.toml", "--out", "first", "--budget", "8s"]);
    let stored = scratch.stored("first");
    assert!(
        stored.len() > 3 && outcome.stderr.contains("the budget of 8 s ended the run; 0 of 1 cases"),
        "{outcome:?}"
    );
    assert_eq!(commands(&scratch, "first")[0][1..], ["run", "open.toml", "--seed", "1", "--budget", "8s"]);
    let study = scratch.run(&["plan", "first/run.toml", "--json"]).expect(0).json();
    assert_eq!(study["repeat"]["most"], 3);
    let outcome = scratch.run(&["run", "open.toml", "--resume", "first"]);
    assert!(outcome.stderr.contains("nothing is missing"), "{outcome:?}");
    assert_eq!(scratch.stored("first").len(), stored.len());
    // What is counted stays counted.
    scratch.write("own.toml", STUDY);
    scratch.run(&["run", "own.toml", "--out", "counted", "--budget", "10m"]);
    assert_eq!(scratch.stored("counted").len(), 2);
    for wrong in ["0s", "soon"] {
        scratch.run(&["run", "own.toml", "--budget", wrong]).refused(&["--budget"]);
    }
}
