//! Studies of sensor events, the tables and connections of each client's own, and statements as text: each as a user runs it.

use serde_json::Value;

use crate::program::Scratch;

/// A bundled study, rehearsed with so many operations that trials are short on a busy machine too; its findings, all valid.
fn rehearse(study: &str, sets: &[&str]) -> Value {
    let scratch = Scratch::new();
    let mut arguments = vec!["run", study, "--quick", "--json", "--out", "run"];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let findings = scratch.run(&arguments).expect(0).json();
    assert_eq!((&findings["study"], &findings["valid"]), (&study.into(), &true.into()));
    findings
}

/// As [`rehearse`], of a study whose writers have a schedule: on a machine that other tests keep busy they may be late, and a trial
/// that says so does what it should. Nothing else may be wrong.
fn rehearse_beside_other_work(study: &str, sets: &[&str]) {
    let scratch = Scratch::new();
    let mut arguments = vec!["run", study, "--quick", "--json", "--out", "run"];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let outcome = scratch.run(&arguments);
    assert!(matches!(outcome.status, Some(0 | 1)), "{:?}", outcome.status);
    let findings = outcome.json();
    let cases = findings["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    let reasons = cases.iter().flat_map(|case| case["invalid_because"].as_array().unwrap());
    for reason in reasons {
        assert!(is_late(reason), "{reason}");
    }
}

#[test]
fn insert_rates_are_rehearsed_with_tables_of_each_writers_own() {
    let sets = ["load.clients=[1,3]", "load.operations=40", "repeat.least=2", "repeat.most=2"];
    let findings = rehearse("insert-rate", &sets);
    let cases = findings["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3 * 2 * 2);
    for case in cases {
        assert_eq!(
            case["operations"]["insert"]["count"], 80,
            "what was acknowledged is stored, or it were invalid: {case:#}"
        );
        let (rate, bytes) = (&case["records_per_s"]["mean"], &case["content_bytes_per_s"]["mean"]);
        let ratio = bytes.as_f64().unwrap() / rate.as_f64().unwrap();
        assert!((ratio - 200.0).abs() < 1e-6, "{ratio} bytes a record");
    }
}

#[test]
fn tables_have_the_engine_of_their_case_on_a_server_that_cases_share() {
    let study = "name = \"e\"\nquestion = \"\"\n[database]\nname = \"mariadb\"\n[record]\ntype = \"sensor\"\nrows = 3\n\
                 [workload]\nname = \"sql\"\nstatements = [ { sql = \"SELECT 1 FROM information_schema.tables WHERE \
                 table_schema = DATABASE() AND engine = 'MyISAM'\" } ]\n[load]\noperations = 5\n[factors]\n\
                 \"database.engine\" = [\"innodb\", \"myisam\"]\n\"database.socket\" = [\"unix\", \"tcp\"]\n\
                 [repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n";
    let scratch = Scratch::new();
    scratch.write("e.toml", study);
    let outcome = scratch.run(&["run", "e.toml", "--json", "--out", "run"]).expect(1);
    for case in outcome.json()["cases"].as_array().unwrap() {
        let is_myisam = case["levels"]["database.engine"] == "myisam";
        assert_eq!(case["valid_trials"], if is_myisam { 2 } else { 0 }, "{case:#}");
        let reason = case["invalid_because"].to_string();
        assert!(is_myisam || reason.contains("found nothing") || reason.contains("empty"), "{reason}");
    }
}

#[test]
fn client_variants_are_rehearsed_and_new_connections_are_reported_apart() {
    let sets = ["database.socket=[tcp]", "load.operations=40", "load.clients=2", "repeat.least=2", "repeat.most=2"];
    for database in ["mariadb", "postgres"] {
        let name = format!("database.name={database}");
        let config =
            if database == "mariadb" { "database.socket=[tcp]" } else { "database.config={ fsync = \"off\" }" };
        let findings = rehearse("insert-rate-clients", &[&sets[..], &[&name, config]].concat());
        for case in findings["cases"].as_array().unwrap() {
            let opened = &case["operations"]["connect"]["count"];
            let each = case["levels"]["load.connect"] == "each";
            assert_eq!(opened.as_u64(), each.then_some(80), "{case:#}");
            assert_eq!(case["operations"]["insert"]["count"], 80);
        }
    }
}

#[test]
fn latest_windows_and_indexes_are_rehearsed_on_sqlite() {
    let sets = ["database.name=sqlite", "database.config={ synchronous = \"off\" }", "background.rate=20"];
    let windows = ["workload.window=[0,100]", "load.duration=300ms", "load.clients=1", "repeat.most=2"];
    rehearse_beside_other_work("latest-window", &[&sets[..], &windows].concat());
    let indexes = ["load.operations=40", "layout.indexes=[\"\", \"object\"]", "repeat.most=2"];
    rehearse("index-cost", &[&sets[..2], &indexes].concat());
}

#[test]
fn studies_end_with_quick_and_nothing_else_but_fewer_repeats() {
    for (study, cases) in [("insert-rate", 18), ("insert-rate-clients", 16), ("latest-window", 8), ("index-cost", 8)] {
        let scratch = Scratch::new();
        let sets = ["--set", "repeat.rule=fixed", "--set", "repeat.least=1", "--set", "repeat.most=1"];
        let outcome = scratch.run(&[&["run", study, "--quick", "--json", "--out", "run"][..], &sets].concat());
        assert!(matches!(outcome.status, Some(0 | 1)), "{study}: {}", outcome.stderr);
        let findings = outcome.json();
        assert_eq!(findings["cases"].as_array().unwrap().len(), cases, "{study}");
        for case in findings["cases"].as_array().unwrap() {
            let reasons = case["invalid_because"].as_array().unwrap();
            assert!(reasons.iter().all(is_late), "{study}: {case:#}");
        }
    }
}

#[test]
fn the_shortest_operation_is_a_connection_and_a_query() {
    let study = "name = \"c\"\nquestion = \"\"\n[database]\nname = \"postgres\"\n[workload]\nname = \"connect\"\n\
                 [load]\nclients = 2\noperations = 30\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
    let scratch = Scratch::new();
    scratch.write("c.toml", study);
    let findings = scratch.run(&["run", "c.toml", "--json", "--out", "run"]).expect(0).json();
    let operations = &findings["cases"][0]["operations"];
    assert_eq!((&operations["statement-1"]["count"], &operations["connect"]["count"]), (&30.into(), &30.into()));
    let mean = |kind: &str| operations[kind]["residence_time_s"]["mean"].as_f64().unwrap();
    assert!(mean("connect") < mean("statement-1"), "opening is a part of the whole");
}

#[test]
fn combinations_that_make_no_sense_are_refused_before_anything_is_started() {
    let refused = |sections: &str, expected: &str| {
        let scratch = Scratch::new();
        scratch.write("s.toml", &format!("name = \"s\"\nquestion = \"\"\n{sections}"));
        let outcome = scratch.run(&["plan", "s.toml"]).expect(2);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    };
    let sensor = "[record]\ntype = \"sensor\"\nrows = 10\n";
    refused(
        &format!("{sensor}[layout]\ntables = \"per-client\"\n"),
        "s.toml:7: layout.tables is \"per-client\" and record.rows is 10; clients begin with empty tables of their own",
    );
    refused(
        &format!("{sensor}[layout]\ntables = \"per-client\"\n[workload]\nname = \"read\"\n"),
        "workload.name is \"read\"; only \"write\" has tables of each client's own",
    );
    refused(
        &format!("{sensor}[layout]\nname = \"wide\"\ntables = \"recorder\"\n"),
        "s.toml:8: layout.tables is \"recorder\" and record.rows is 10; a recorder begins with empty tables",
    );
    refused(
        "[record]\ntype = \"sensor\"\n[layout]\ntables = \"recorder\"\n[workload]\nname = \"write\"\n",
        "measurements of sensor may have the same tags, which are one identity for a recorder",
    );
    refused(
        "[database]\nname = \"simulated\"\n[load]\nstatements = \"text\"\n",
        "s.toml:6: load.statements is \"text\" and simulated has no statements as text",
    );
    refused(
        "[workload]\nname = \"connect\"\n[load]\nconnect = \"once\"\n",
        "s.toml:6: load.connect is \"once\" and workload.name is \"connect\"; its operations begin with a new connection",
    );
    let queries = "queries = [ { name = \"q\", where = \"object = 1\" } ]\n";
    refused(&format!("{sensor}[workload]\nname = \"recent\"\n{queries}"), "workload.window is missing");
    refused(
        &format!("{sensor}[workload]\nname = \"query\"\nwindow = 5\n{queries}"),
        "s.toml:8: workload.window is 5 and workload.name is \"query\"; write name = \"recent\", or leave it out",
    );
    refused(
        &format!("{sensor}[layout]\nname = \"key-value\"\n[workload]\nname = \"recent\"\nwindow = 5\n{queries}"),
        "layout \"key-value\" cannot select records by what is in them; take another layout.name",
    );
}

/// Whether loadline was late, in the load that is asked about or in the background: a busy machine alone makes it so.
fn is_late(reason: &Value) -> bool {
    reason["kind"] == "sent_late" || reason["reason"]["kind"] == "sent_late"
}
