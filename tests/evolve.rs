//! Schema changes while a load runs: a run of the program reports how long they took and what the other operations did meanwhile,
//! and leaves the tables as they were.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "evolve/retention.rs"]
mod retention;

use std::process::Command;

use serde_json::Value;

/// Runs a study; its document and its page.
fn run_study(name: &str, study: &str, is_valid: bool) -> (Value, String) {
    let directory = std::env::temp_dir().join(format!("loadline-evolve-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("study.toml"), study).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["run", "--json"])
        .arg(directory.join("study.toml"))
        .arg("--out")
        .arg(directory.join("run"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    let status = Some(i32::from(!is_valid));
    assert_eq!((output.status.code(), document["valid"].as_bool()), (status, Some(is_valid)), "{document} {told}");
    let report = std::fs::read_to_string(directory.join("run/report.html")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    (document, report)
}

/// Runs selections and updates with a schema change every tenth of a second, two trials for each layout.
fn run(database: &str, layouts: &str) -> Value {
    let study = format!(
        "name = \"evolve\"\n[database]\nname = \"{database}\"\n[record]\ntype = \"wisconsin\"\nrows = 500\n\
         [workload]\nname = \"mix\"\nmix = {{ select = 3, update = 1 }}\nevolve = \"200ms\"\nevolve_records = 5\n\
         [load]\nclients = 2\nduration = \"1s\"\nwarmup = \"50ms\"\n[factors]\n\"layout.name\" = {layouts}\n\
         [repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n"
    );
    let (document, report) = run_study(database, &study, true);
    assert!(report.contains("Schema changes"));
    document
}

/// One trial of 300 ms beside a change that begins after 100 ms.
fn short(database: &str, evolve: &str) -> String {
    format!(
        "name = \"evolve\"\n[database]\n{database}\n[record]\ntype = \"wisconsin\"\nrows = 500\n[layout]\nname = \"wide\"\n\
         [workload]\nname = \"select\"\nevolve = \"200ms\"\n{evolve}\n[load]\nclients = 2\nduration = \"300ms\"\n\
         warmup = \"10ms\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

/// Answers after 10 ms: to write a field to 100 records takes at least a second.
const SLOW: &str = "name = \"simulated\"\nconfig = { service = \"10us\", servers = 64, delay = \"10ms\" }";

#[test]
fn the_load_lasts_as_long_as_the_change() {
    let (document, _) = run_study("long", &short(SLOW, "evolve_records = 100"), true);
    let case = &document["cases"][0];
    let measured_s =
        case["operations"]["select"]["count"].as_f64().unwrap() / case["throughput_per_s"]["mean"].as_f64().unwrap();
    let changes = &case["evolution"]["changes"];
    assert!(changes["write"]["mean_s"].as_f64().unwrap() >= 1.0, "{changes}");
    assert!(measured_s >= 1.1, "100 ms until the change, and a second of writing: {measured_s}");
    let write = &case["evolution"]["operations"]["select"]["each"]["write"];
    assert!(write["count"].as_u64().unwrap() >= 100, "two clients of 10 ms each beside it: {write}");
}

#[test]
fn a_change_that_outlasts_the_load_makes_the_trial_invalid_with_the_remedy() {
    let evolve = "evolve_records = 100\nevolve_at_most = \"100ms\"";
    let (document, _) = run_study("outlasted", &short(SLOW, evolve), false);
    let why = document["cases"][0]["invalid_because"].to_string();
    assert!(why.contains("outlasted the load; raise workload.evolve_at_most"), "{why}");
}

#[test]
fn columns_with_defaults_and_indexes_are_made_and_taken_back() {
    for (change, words) in [
        ("default", "TEXT DEFAULT 'none'"),
        ("not-null", "TEXT NOT NULL DEFAULT 'none'"),
        ("index", "CREATE INDEX \"evolved\" ON"),
    ] {
        let evolve = format!("evolve_change = \"{change}\"");
        let (document, _) = run_study(change, &short("name = \"sqlite\"", &evolve), true);
        let changes = document["cases"][0]["evolution"]["changes"].as_object().unwrap().clone();
        assert!(changes["add"]["statements"][0].as_str().unwrap().contains(words), "{changes:?}");
        assert!(!changes.contains_key("write"), "nothing is filled in: {changes:?}");
    }
}

#[test]
fn mariadb_makes_an_index_with_the_algorithm_that_was_chosen() {
    let evolve = "evolve_change = \"index\"\nevolve_algorithm = \"copy\"";
    let (document, _) = run_study("copy", &short("name = \"mariadb\"", evolve), true);
    let add = &document["cases"][0]["evolution"]["changes"]["add"];
    assert!(
        add["statements"][0].as_str().unwrap().ends_with("ADD INDEX `evolved` (`unique1`), ALGORITHM=COPY"),
        "{add}"
    );
}

#[test]
fn postgresql_makes_an_index_concurrently() {
    let evolve = "evolve_change = \"index\"\nevolve_algorithm = \"concurrently\"";
    let (document, _) = run_study("concurrently", &short("name = \"postgres\"", evolve), true);
    let add = &document["cases"][0]["evolution"]["changes"]["add"];
    assert!(add["statements"][0].as_str().unwrap().starts_with("CREATE INDEX CONCURRENTLY"), "{add}");
}

fn reports_changes(database: &str, altered: &str) {
    let layouts = ["wide", "star", "json", "eav", "key-value", "spare"];
    let document = run(database, &format!("{layouts:?}"));
    for (case, layout) in document["cases"].as_array().unwrap().iter().zip(layouts) {
        assert_eq!(case["levels"]["layout.name"], layout);
        let evolution = &case["evolution"];
        let changes = evolution["changes"].as_object().unwrap();
        let has_own = |what: &str| changes.contains_key(what);
        match layout {
            "wide" | "star" => {
                assert!(has_own("add") && has_own("write") && !has_own("erase"), "{changes:?}");
                let statement = changes["add"]["statements"][0].as_str().unwrap();
                assert!(statement.starts_with("ALTER TABLE") && statement.ends_with(altered), "{statement}");
            }
            "spare" => assert!(has_own("add") && has_own("write"), "{changes:?}"),
            _ => assert!(has_own("write") && !has_own("add") && !has_own("remove"), "{changes:?}"),
        }
        for (what, change) in changes {
            assert_eq!(change["failed"], 0, "{layout}: {what}");
            assert!(change["mean_s"].as_f64().unwrap() > 0.0);
        }
        assert_eq!(changes["write"]["records"], 5);
        for kind in ["select", "update"] {
            let operation = &evolution["operations"][kind];
            let parts = ["during", "outside"].map(|part| operation[part]["count"].as_u64().unwrap());
            let all = case["operations"][kind]["count"].as_u64().unwrap();
            assert_eq!(parts[0] + parts[1], all, "{layout}: every {kind} is on one side");
        }
    }
}

#[test]
fn schema_changes_on_sqlite_are_reported_and_undone() {
    reports_changes("sqlite", "TEXT");
}

#[test]
fn schema_changes_on_mariadb_are_made_online() {
    reports_changes("mariadb", "ALGORITHM=INSTANT");
}

#[test]
fn schema_changes_on_postgresql_are_reported_and_undone() {
    reports_changes("postgres", "TEXT");
}
