//! What a run shows when something in it is not to be trusted: exit status 1, and the reason before everything else.

use crate::contract::check_findings;
use crate::program::{Outcome, Scratch, small_study};

/// Runs a study that must end with something invalid, and checks that its reason stands first wherever it is shown.
#[track_caller]
fn invalid(scratch: &Scratch, study: &str, sets: &[&str], reason: &str) -> Outcome {
    scratch.write("study.toml", study);
    let _ = std::fs::remove_dir_all(scratch.path("run"));
    let mut arguments = vec!["run", "study.toml", "--out", "run"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    let outcome = scratch.run(&arguments).expect(1);
    assert!(outcome.stderr.contains("invalid: ") && outcome.stderr.contains(reason), "{}", outcome.stderr);
    let words = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = |text: &str, what: &str| text.find(what).unwrap_or_else(|| panic!("{what:?} is missing: {text}"));
    assert!(place(&words, "INVALID: ") < place(&words, reason), "{words}");
    assert!(place(&words, reason) < place(&words, "response"), "the reason stands above the table: {words}");

    let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
    let body = &page[place(&page, "<body")..];
    let shown = reason.replace('"', "&quot;").replace('<', "&lt;");
    assert!(place(body, &shown) < place(body, "<table"), "the reason stands above every table");
    if let Some(figure) = body.find("<svg") {
        assert!(place(body, &shown) < figure, "the reason stands above every figure");
    }

    let findings = scratch.run(&["report", "run", "--json"]).expect(1).json();
    check_findings(&findings);
    assert_eq!(findings["valid"], false);
    let reasons: Vec<String> =
        findings["cases"].as_array().unwrap().iter().map(|case| case["invalid_because"].to_string()).collect();
    assert!(reasons.iter().any(|case| case.contains(&reason.replace('"', "\\\""))), "{reasons:?}");
    outcome
}

const FAST: &str = "[load]\noperations = 50\nwarmup = \"0s\"";

#[test]
fn a_database_that_fails_half_of_the_inserts_invalidates_the_trial() {
    let scratch = Scratch::new();
    let database = "[database]\nname = \"simulated\"\nconfig = { service = \"100us\", fail_share = 0.5 }";
    let outcome = invalid(&scratch, &small_study(&format!("{database}\n{FAST}")), &[], "of 50 operations failed");
    assert!(
        outcome.stdout.contains("as database.config.fail_share asks"),
        "the database's message: {}",
        outcome.stdout
    );
    let findings = scratch.run(&["report", "run", "--json"]).expect(1).json();
    assert_eq!((&findings["cases"][0]["trials"], &findings["cases"][0]["valid_trials"]), (&2.into(), &0.into()));
    assert!(findings["cases"][0]["throughput_per_s"]["mean"].is_null(), "figures of invalid trials are not used");

    let outcome = scratch.run(&["run", "study.toml", "--set", "load.tolerated_failures=1", "--out", "tolerated"]);
    assert_eq!(outcome.expect(0).stderr, "", "what is tolerated is valid");
}

#[test]
fn only_the_cases_that_are_invalid_are_left_out() {
    let scratch = Scratch::new();
    let database = "[database]\nname = \"simulated\"\nconfig = { service = \"100us\" }";
    let study = small_study(&format!("{database}\n{FAST}\n[factors]\n\"database.config.fail_share\" = [0, 1]"));
    let outcome = invalid(&scratch, &study, &[], "no operation was completed");
    assert!(outcome.stdout.contains("INVALID: 2 of 4 trials"), "{}", outcome.stdout);
    let findings = scratch.run(&["report", "run", "--json"]).expect(1).json();
    let valid = |case: usize| findings["cases"][case]["valid_trials"].as_u64().unwrap();
    assert_eq!((valid(0), valid(1)), (2, 0));
}

#[test]
fn reads_that_find_nothing_are_invalid_unless_the_study_permits_them() {
    let scratch = Scratch::new();
    let study = |database: &str, rest: &str| {
        let sql = "SELECT * FROM \\\"qos_values\\\" WHERE record_id = -1";
        let record = "[record]\nrows = 100";
        let statements = format!("[workload]\nname = \"sql\"\nstatements = [ {{ sql = \"{sql}\"{rest} }} ]");
        small_study(&format!("[database]\nname = \"{database}\"\n{record}\n{statements}\n{FAST}"))
            .replace("\\\"", if database == "mariadb" { "`" } else { "\\\"" })
    };
    for database in ["sqlite", "mariadb", "postgres"] {
        let wide = "layout.name=star";
        invalid(&scratch, &study(database, ""), &[wide], "50 reads found nothing although they should have");
        scratch.write("study.toml", &study(database, ", allow_empty = true"));
        let outcome = scratch.run(&["run", "study.toml", "--out", &format!("allowed-{database}"), "--json"]).expect(0);
        let operation = outcome.json()["cases"][0]["operations"]["statement-1"].clone();
        assert_eq!((&operation["count"], &operation["empty"]), (&100.into(), &0.into()), "{database}");
    }
}

#[test]
fn a_table_that_vanishes_invalidates_what_comes_after_it() {
    let scratch = Scratch::new();
    let statements = "statements = [ { sql = \"DROP TABLE t\" }, { sql = \"SELECT * FROM t\", allow_empty = true } ]";
    let workload = format!("[workload]\nname = \"sql\"\nwrites = true\n{statements}");
    let database = rusqlite::Connection::open(scratch.path("mine.db")).unwrap();
    database.execute_batch("CREATE TABLE t (id INTEGER)").unwrap();
    drop(database);
    let study = small_study(&format!("[database]\npath = \"mine.db\"\n{workload}\n{FAST}"));
    let outcome = invalid(&scratch, &study, &[], "no such table: t");
    assert!(
        outcome.stdout.contains("INVALID: 2 of 2 trials"),
        "the second trial finds no table at all: {}",
        outcome.stdout
    );
}

#[test]
fn statements_that_the_database_refuses_are_named_before_anything_is_measured() {
    let scratch = Scratch::new();
    for database in ["sqlite", "mariadb", "postgres"] {
        let of_statement = |sql: &str| {
            let workload = format!("[workload]\nname = \"sql\"\nstatements = [ {{ sql = \"{sql}\" }} ]");
            small_study(&format!("[database]\nname = \"{database}\"\n{workload}\n{FAST}"))
        };
        scratch.write("study.toml", &of_statement("SELECT * FROM nosuch"));
        let arguments = ["run", "study.toml", "--out", "run"];
        scratch.run(&arguments).refused(&["workload.statements: ", "nosuch", "SELECT * FROM nosuch"]);
        assert!(!scratch.path("run").exists());
        scratch.write("study.toml", &of_statement("SELEC 1"));
        scratch.run(&arguments).refused(&["workload.statements: ", "syntax", "SELEC 1"]);
        assert!(!scratch.path("run").exists());
    }
}

#[test]
fn a_contradicted_claim_is_no_failure_unless_asked_to_be_strict() {
    let scratch = Scratch::new();
    let claim = "[[claims]]\nsays = \"eight clients are no faster than one\"\nmetric = \"throughput\"\n\
                 ratio = { of = { \"load.clients\" = 8 }, to = { \"load.clients\" = 1 }, below = 1.5 }";
    let database =
        "[database]\nname = \"simulated\"\nconfig = { service = \"2ms\", distribution = \"constant\", servers = 8 }";
    let factor = "[factors]\n\"load.clients\" = [1, 8]";
    scratch.write("study.toml", &small_study(&format!("{database}\n{FAST}\n{factor}\n{claim}")));
    let run = |rest: &[&str]| {
        scratch.run(&[&["run", "study.toml", "--set", "repeat.least=6", "--json", "--out"], rest].concat())
    };
    let findings = run(&["run"]).expect(0).json();
    assert_eq!(findings["claims"][0]["verdict"], "contradicted", "{findings:#}");
    scratch.run(&["report", "run", "--strict"]).expect(1);
    run(&["again", "--strict"]).expect(1);
}
