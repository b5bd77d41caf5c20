//! Schema changes while a load runs: a run of the program reports how long they took and what the other operations did meanwhile,
//! and leaves the tables as they were.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use serde_json::Value;

/// Runs selections and updates with a schema change every tenth of a second, two trials for each layout.
fn run(database: &str, layouts: &str) -> Value {
    let directory = std::env::temp_dir().join(format!("loadline-evolve-{database}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let study = format!(
        "name = \"evolve\"\n[database]\nname = \"{database}\"\n[record]\ntype = \"wisconsin\"\nrows = 500\n\
         [workload]\nname = \"mix\"\nmix = {{ select = 3, update = 1 }}\nevolve = \"200ms\"\nevolve_records = 5\n\
         [load]\nclients = 2\nduration = \"1s\"\nwarmup = \"50ms\"\n[factors]\n\"layout.name\" = {layouts}\n\
         [repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n"
    );
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
    assert_eq!((output.status.code(), document["valid"].as_bool()), (Some(0), Some(true)), "{document} {told}");
    let report = std::fs::read_to_string(directory.join("run/report.html")).unwrap();
    assert!(report.contains("Schema changes"));
    std::fs::remove_dir_all(&directory).unwrap();
    document
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
