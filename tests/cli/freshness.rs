//! Freshness with real servers, readers and historian in processes of their own: the bundled studies as rehearsals, notifications, and what is
//! refused.

use serde_json::Value;

use crate::program::Scratch;

/// Processes that work in a test's own directory: those that were started there.
fn left_in(scratch: &Scratch) -> Vec<String> {
    let own = scratch.0.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_there =
        |process: &std::path::PathBuf| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&own));
    processes.filter(is_there).map(|process| process.display().to_string()).collect()
}

/// Runs a study; the findings, whatever the machine made of its trials.
fn run(scratch: &Scratch, study: &str, sets: &[&str]) -> Value {
    let mut arguments = vec!["run", study, "--quick", "--json", "--out", "run"];
    sets.iter().for_each(|set| arguments.extend(["--set", *set]));
    let outcome = scratch.run(&arguments);
    assert!(matches!(outcome.status, Some(0 | 1)), "exit {:?}: {}", outcome.status, outcome.stderr);
    outcome.json()
}

/// Valid trials have lost nothing, and their groups saw events.
fn check_groups(case: &Value, groups: &[&str]) {
    let found = case["freshness_s"].as_object().unwrap();
    assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), groups, "{case:#}");
    if case["valid_trials"].as_u64() == Some(0) {
        return;
    }
    for group in found.values() {
        assert!(group["count"].as_u64().unwrap() > 0, "{case:#}");
        let times = ["p50", "p90", "p99", "p999", "max"].map(|name| group[name].as_f64().unwrap());
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]) && times[0] > 0.0, "{group:#}");
        assert_eq!(group["duplicates"], 0);
    }
}

#[test]
fn the_study_of_freshness_tells_each_group_and_judges_the_slides_claims() {
    let scratch = Scratch::new();
    let findings = run(&scratch, "freshness", &["repeat.least=1", "repeat.most=1", "freshness.results=true"]);
    let cases = findings["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 5, "all rates from 2 to 21 MB/s");
    for case in cases {
        check_groups(case, &["1", "2"]);
        let parts: Vec<&String> = case["cpus"].as_object().unwrap().keys().collect();
        assert!(case["valid_trials"] == 0 || parts == ["database", "readers 1", "readers 2", "writers"], "{parts:?}");
        if case["valid_trials"].as_u64() > Some(0) {
            let lost = case["freshness_s"]["1"]["lost"].as_u64().unwrap();
            assert!(lost == 0 || case["valid_trials"] != case["trials"], "{case:#}");
        }
    }
    let claims = findings["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 7);
    assert_eq!(claims[2]["claimed"], "at most 40 ms");
    let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
    assert!(page.contains("id=\"freshness\"") && page.contains("group 1: "), "histograms of each group");
    let valid = cases.iter().any(|case| case["valid_trials"].as_u64() > Some(0));
    assert!(!valid || page.contains("Histograms of each reader") && page.contains("reader 3: "), "and of each reader");
    assert_eq!(left_in(&scratch), Vec::<String>::new(), "no reader is left behind");
}

#[test]
fn the_study_of_paths_tells_all_components_of_each_architecture() {
    let scratch = Scratch::new();
    let findings = run(&scratch, "event-paths", &["repeat.least=1", "repeat.most=1", "freshness.every=2ms"]);
    let cases = findings["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 9, "all three paths at all three rates");
    for case in cases {
        let path = case["levels"]["freshness.path"].as_str().unwrap();
        let is_overload = case["levels"]["load.rate"] == 16000;
        let groups: &[&str] = match path {
            "database" => &["1"],
            "subscribe" => &["1 subscribing"],
            _ => &["1 polling", "1 subscribing"],
        };
        check_groups(case, groups);
        assert_eq!(case["stored_s"].is_null(), path == "database" || case["valid_trials"] == 0, "{case:#}");
        if path != "database" && case["valid_trials"].as_u64() > Some(0) {
            assert!(
                is_overload || case["stored_s"]["lost"] == 0,
                "what was published at a low rate is stored: {case:#}"
            );
            let parts = case["cpus"].as_object().unwrap();
            assert!(["NATS server", "historian", "database", "writers"].iter().all(|part| parts.contains_key(*part)));
        }
    }
    assert_eq!(left_in(&scratch), Vec::<String>::new(), "no historian is left behind");
}

#[test]
fn readers_are_notified_by_postgres_and_lose_nothing() {
    let scratch = Scratch::new();
    let sets = ["database.name=postgres", "freshness.path=notify", "load.rate=[100]"];
    let findings = run(&scratch, "freshness", &[&sets[..], &["freshness.run_as=threads", "repeat.most=2"]].concat());
    let case = &findings["cases"][0];
    check_groups(case, &["1", "2"]);
    assert!(case["freshness_s"]["2"]["rows_per_sighting"].is_null() || case["valid_trials"].as_u64() > Some(0));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_started() {
    let scratch = Scratch::new();
    let refuse = |sets: &[&str], words: &[&str]| {
        let mut arguments = vec!["run", "freshness"];
        sets.iter().for_each(|set| arguments.extend(["--set", *set]));
        scratch.run(&arguments).refused(words);
    };
    refuse(&["freshness.poll=notify"], &["freshness.poll", "mariadb has no notifications", "postgres"]);
    refuse(
        &["freshness.path=notify"],
        &["freshness.path is \"notify\"", "mariadb has no notifications", "path = \"database\""],
    );
    refuse(&["freshness.path=notify", "freshness.poll=key", "database.name=postgres"], &["leave poll out"]);
    refuse(&["load.arrivals=closed", "load.rate="], &["load.arrivals is \"closed\"", "poisson"]);
    refuse(&["layout.name=star"], &["layout.name is \"star\"", "wide"]);
    refuse(&["record.rows=10"], &["record.rows", "begin empty"]);
    refuse(&["freshness.path=both", "freshness.poll=notify"], &["historian", "poll = \"key\""]);
    refuse(&["freshness.window=10"], &["freshness.window is for freshness.poll = \"window\""]);
    refuse(&["workload.name=write"], &["[freshness] is for the workload freshness"]);
    assert!(!scratch.path("runs").exists());
}
