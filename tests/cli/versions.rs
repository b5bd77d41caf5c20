//! Runs that earlier versions stored: they are reported, compared and continued like any other.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::contract::check_findings;
use crate::program::{Scratch, small_study};

const SAYS: &str = "9 of 20 operations failed; 9 times: refused, as database.config.fail_share asks (simulated)";

#[test]
fn a_run_of_version_1_says_what_it_said_then() {
    let scratch = Scratch::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/run-of-version-1");
    for run in ["run", "other"] {
        fs::create_dir(scratch.path(run)).unwrap();
        for name in ["run.toml", "trials.jsonl"] {
            fs::copy(kept.join(name), scratch.path(run).join(name)).unwrap();
        }
    }
    let findings = scratch.run(&["report", "run", "--json"]).expect(1).json();
    check_findings(&findings);
    let says = format!("rounds 0, 1: {SAYS}");
    let told = json!([{ "kind": "other", "rounds": [0, 1], "says": says }]);
    assert_eq!(findings["cases"][1]["invalid_because"], told, "{findings:#}");
    let text = scratch.run(&["report", "run"]).expect(1).stdout;
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&says), "{text}");
    let compared = scratch.run(&["compare", "run", "other", "--json"]).expect(1).json();
    assert_eq!(compared["comparisons"].as_array().unwrap().len(), 1, "{compared:#}");
}

/// Makes the lines of a run those of version 1.
fn downgrade(trials: &Path, lines: usize) {
    let text = fs::read_to_string(trials).unwrap();
    let old = text.lines().take(lines).map(|line| {
        let mut trial: Value = serde_json::from_str(line).unwrap();
        assert_eq!(trial["version"], 2);
        trial["version"] = 1.into();
        trial.as_object_mut().unwrap().remove("crc32").unwrap();
        let reasons = trial["invalid_because"].as_array_mut().unwrap();
        reasons.iter_mut().for_each(|reason| *reason = reason["says"].clone());
        format!("{trial}\n")
    });
    let old: String = old.collect();
    fs::write(trials, old).unwrap();
}

#[test]
fn a_run_that_version_1_began_is_continued_and_its_reasons_stand_beside_the_new_ones() {
    let scratch = Scratch::new();
    let database = "[database]\nname = \"simulated\"\nconfig = { service = \"100us\", fail_share = 0.5 }";
    scratch.write("study.toml", &small_study(&format!("{database}\n[load]\noperations = 20\nwarmup = \"0s\"")));
    scratch.run(&["run", "study.toml", "--out", "run"]).expect(1);
    downgrade(&scratch.path("run/trials.jsonl"), 1);
    let findings = scratch.run(&["run", "study.toml", "--resume", "run", "--json"]).expect(1).json();
    let case = &findings["cases"][0];
    assert_eq!((&case["trials"], &case["valid_trials"]), (&2.into(), &0.into()));
    let failed = case["errors"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
    let reasons = case["invalid_because"].as_array().unwrap();
    let of_kind = |kind: &str| reasons.iter().filter(|reason| reason["kind"] == kind).collect::<Vec<_>>();
    match of_kind("other")[..] {
        // Of equal sentences the first stands for both.
        [only] if reasons.len() == 1 => assert_eq!(only["rounds"], json!([0, 1])),
        [old] => {
            let new = of_kind("operations_failed")[0];
            assert_eq!((&old["rounds"], &new["rounds"]), (&json!([0]), &json!([1])));
            assert!(new["failed"].as_u64().unwrap() < failed && new["scheduled"] == 20, "{new:#}");
        }
        _ => panic!("{case:#}"),
    }
    let versions = |trials: String| -> Vec<Value> {
        trials.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["version"].clone()).collect()
    };
    assert_eq!(versions(fs::read_to_string(scratch.path("run/trials.jsonl")).unwrap()), [1, 2]);
}

#[test]
fn figures_that_were_changed_are_left_out_and_named_by_every_command_that_reads_them() {
    let scratch = Scratch::new();
    let database = "[database]\nname = \"simulated\"\nconfig = { service = \"100us\" }";
    let study = small_study(&format!("{database}\n[load]\noperations = 20\nwarmup = \"0s\""));
    scratch.write("study.toml", &study);
    scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    let trials = scratch.path("run/trials.jsonl");
    let whole = fs::read_to_string(&trials).unwrap();
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    let kept = lines.len() - 1;
    lines[0] = lines[0].replacen("\"completed\":20,", "\"completed\":200,", 1);
    fs::write(&trials, lines.join("\n") + "\n").unwrap();
    for command in [&["report", "run"][..], &["export", "run", "--format", "csv", "--out", "files"]] {
        let told = scratch.run(command).expect(1).stderr;
        assert!(
            told.contains("run/trials.jsonl:1: the trial is left out: its checksum is wrong"),
            "{command:?}: {told}"
        );
    }
    let table = fs::read_to_string(scratch.path("files/trials.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + kept, "{table}");
    let findings = scratch.run(&["report", "run", "--json"]).expect(1).json();
    assert_eq!((&findings["valid"], &findings["cases"][0]["trials"]), (&json!(false), &json!(kept)));
    // What is missing then is measured again.
    scratch.run(&["run", "study.toml", "--resume", "run"]).expect(1);
    assert_eq!(fs::read_to_string(&trials).unwrap().lines().count(), kept + 2);
    fs::remove_file(&trials).unwrap();
    let told = scratch.run(&["export", "run", "--format", "csv", "--out", "none"]).expect(1).stderr;
    assert!(told.contains("run/trials.jsonl: it is missing"), "{told}");
}
