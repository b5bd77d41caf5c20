//! What a plan says of the time that a study takes, before and after it was run.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Outcome, Scratch, outcome};

/// A study of one case, each of whose two trials fills the tables anew.
const STUDY: &str = r#"
name = "filled"
[database]
name = "sqlite"
[record]
type = "qos"
rows = 3_000
[layout]
name = "LAYOUT"
[workload]
name = "write"
batch = 10
[load]
clients = 1
operations = 20
warmup = "0s"
[repeat]
rule = "fixed"
least = 2
"#;

/// The program with a cache of the test's own.
fn command(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = scratch.command(arguments);
    command.env("LOADLINE_CACHE", scratch.path("cache")).env("LOADLINE_STOLEN", "1");
    command
}

fn run(scratch: &Scratch, arguments: &[&str]) -> Outcome {
    outcome(&mut command(scratch, arguments)).expect(0)
}

fn planned(scratch: &Scratch, study: &str) -> Value {
    run(scratch, &["plan", study, "--json"]).json()
}

/// How long fillings took, as they were kept.
fn kept_s(scratch: &Scratch, layout: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(scratch.path("cache/paces.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["pace"]["subject"]["filling"]["layout"] == layout)
        .map(|line| line["pace"]["lasted_s"].as_f64().unwrap())
        .collect()
}

/// Whether two times are the same but for rounding.
fn is_near(one: &Value, other: f64) -> bool {
    (one.as_f64().unwrap() / other - 1.0).abs() < 1e-6
}

#[test]
fn a_plan_stands_on_what_an_earlier_run_measured() {
    let scratch = Scratch::new();
    scratch.write("s.toml", &STUDY.replace("LAYOUT", "eav"));
    let before = planned(&scratch, "s.toml");
    assert_eq!(before["estimate_parts"]["filling"]["basis"], "guessed", "{before:#}");
    assert!(before["notes"].to_string().contains("a guess"), "{before:#}");

    run(&scratch, &["run", "s.toml", "--out", "run"]);
    let (kept, after) = (kept_s(&scratch, "eav"), planned(&scratch, "s.toml"));
    let filling = &after["estimate_parts"]["filling"];
    assert_eq!((kept.len(), &filling["basis"]), (2, &"measured".into()), "{after:#}");
    assert!(is_near(&filling["least_s"], kept.iter().sum()), "{kept:?}: {after:#}");
    // The mean of two trials, twice, is what both took together.
    let took_s: f64 = scratch.stored("run").iter().map(|trial| trial.total_s).sum();
    assert!(kept.iter().sum::<f64>() < took_s && is_near(&after["estimate_s"]["least"], took_s), "{took_s}: {after:#}");
    assert!(!after["notes"].to_string().contains("a guess"), "{after:#}");
    let text = run(&scratch, &["plan", "s.toml"]).stdout;
    assert!(text.contains(" of it, as measured here\n"), "{text}");

    scratch.write("other.toml", &STUDY.replace("LAYOUT", "wide"));
    let other = planned(&scratch, "other.toml");
    assert_eq!(other["estimate_parts"]["filling"]["basis"], "related", "{other:#}");
    let without = scratch.run(&["plan", "s.toml", "--json"]).expect(0).json();
    assert_eq!(without["estimate_parts"], before["estimate_parts"], "a user without a cache has measured nothing");
}

#[test]
fn two_runs_at_once_keep_what_both_measured() {
    let scratch = Scratch::new();
    let layouts = ["wide", "star"];
    let start = |layout: &&str| {
        let study = format!("{layout}.toml");
        scratch.write(&study, &STUDY.replace("LAYOUT", layout));
        command(&scratch, &["run", &study, "--out", layout]).stdout(Stdio::null()).spawn().unwrap()
    };
    let runs: Vec<_> = layouts.iter().map(start).collect();
    runs.into_iter().for_each(|mut run| assert!(run.wait().unwrap().success()));
    for layout in layouts {
        assert_eq!(kept_s(&scratch, layout).len(), 2, "{layout}");
    }
}

#[test]
fn a_damaged_memory_of_paces_harms_no_run_and_no_plan() {
    let scratch = Scratch::new();
    scratch.write("s.toml", &STUDY.replace("LAYOUT", "wide"));
    let paces = scratch.path("cache/paces.jsonl");
    std::fs::create_dir_all(&paces).unwrap();
    let harmless = |out: &str| {
        let ran = run(&scratch, &["run", "s.toml", "--out", out]);
        assert_eq!(ran.stderr, "");
        planned(&scratch, "s.toml")["estimate_parts"]["filling"]["basis"].clone()
    };
    assert_eq!(harmless("directory"), "guessed", "where a directory stands nothing is kept");
    std::fs::remove_dir(&paces).unwrap();
    std::fs::write(&paces, b"{\"version\":1,\n\xff\xfe\n[[[[").unwrap();
    assert_eq!(harmless("damaged"), "measured", "what is damaged makes place for what is not");
}
