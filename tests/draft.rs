//! `loadline draft` as a user meets it: on servers with tables, rows and traffic of somebody's own, and on a file of SQLite.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;
#[path = "draft/shop.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod shop;
#[path = "draft/views.rs"]
mod views;

use std::fmt::Write;

use program::Scratch;
use serde_json::{Value, json};
use shop::{Shop, TEXT_OF_A_CUSTOMER};

/// The statement that a draft gives this name.
fn statement<'d>(drafted: &'d Value, name: &str) -> &'d Value {
    let statements = drafted["statements"].as_array().unwrap();
    statements.iter().find(|statement| statement["name"] == name).unwrap_or_else(|| panic!("{name}: {drafted:#}"))
}

/// Runs a study. Whether the client had a CPU all the time is not the question here.
fn run(scratch: &Scratch, arguments: &[&str]) -> program::Outcome {
    program::outcome(scratch.command(arguments).env("LOADLINE_STOLEN", "1"))
}

/// A drafted study without its search: one short trial of it at a time.
fn trial_of(study: &str) -> String {
    let (before, _) = study.split_once("\n[load]").unwrap();
    format!(
        "{before}\n[load]\noperations = 4000\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

#[test]
fn what_is_drafted_from_counters_does_what_ran() {
    for name in ["postgres", "mariadb"] {
        let shop = Shop::open(name);
        let scratch = Scratch::new();
        shop.trade(400);
        let before = shop.counted();
        let drafted = scratch.run(&["draft", &shop.url("writer"), "--out", "shop.toml", "--json"]).expect(0).json();
        assert_eq!((&drafted["study"], &drafted["statements_are_seen"]), (&json!("shop.toml"), &json!(true)), "{name}");
        for (statement_name, rows) in
            [("select orders by id", 1.0), ("select items by order_id", 3.0), ("select measured by probe", 61.0)]
        {
            let seen = statement(&drafted, statement_name);
            assert!((seen["rows_per_call"].as_f64().unwrap() / rows - 1.0).abs() < 0.02, "{name}: {seen:#}");
            assert_eq!(seen["writes"], false);
        }
        assert_eq!(statement(&drafted, "update orders by id")["writes"], true);
        let statements = drafted["statements"].as_array().unwrap();
        assert_eq!(statements.len(), if name == "postgres" { 8 } else { 7 }, "{name}: {drafted:#}");
        assert_eq!(shop.counted().len(), before.len(), "{name}: what loadline asks is not counted as the shop's own");

        let study = std::fs::read_to_string(scratch.path("shop.toml")).unwrap();
        for secret in [shop::PASSWORD, "@example.org", "shipped"] {
            assert!(!study.contains(secret), "{name}: {secret} is in {study}");
        }
        scratch.write("trial.toml", &trial_of(&study));
        scratch.run(&["plan", "trial.toml"]).expect(0);
        shop.forget_counted();
        // MariaDB counts no digests of what is prepared.
        let text = "load.statements=text";
        let mut run =
            scratch.command(&["run", "trial.toml", "--set", "workload.writes=true", "--set", text, "--out", "run"]);
        program::outcome(run.env("LOADLINE_PASSWORD", shop::PASSWORD)).expect(0);
        let after = shop.counted();
        let total = |counted: &[(String, f64, f64)]| counted.iter().map(|(_, calls, _)| calls).sum::<f64>();
        let is_drafted = |text: &String| {
            drafted["statements"].as_array().unwrap().iter().any(|one| shop::same(text, one["sql"].as_str().unwrap()))
        };
        let (before, after): (Vec<_>, Vec<_>) = (
            before.into_iter().filter(|one| is_drafted(&one.0)).collect(),
            after.into_iter().filter(|one| is_drafted(&one.0)).collect(),
        );
        assert!(before.len() >= 6 && before.len() == after.len(), "{name}: {before:?} {after:?}");
        for (text, calls, rows) in &before {
            let again = after
                .iter()
                .find(|(other, ..)| shop::same(other, text))
                .unwrap_or_else(|| panic!("{name}: {text}: {after:?}"));
            let (share, share_again) = (calls / total(&before), again.1 / total(&after));
            // Of 4,000 statements a share of a sixth has a standard error of 3.5 % of itself.
            assert!((share_again / share - 1.0).abs() < 0.16, "{name}: {text}: {share} and {share_again}");
            let (rows, rows_again) = (rows / calls, again.2 / again.1);
            assert!((rows_again / rows - 1.0).abs() < 0.05, "{name}: {text}: {rows} rows and {rows_again}");
        }
    }
}

#[test]
fn nothing_is_written_but_by_a_study_that_says_so() {
    for name in ["postgres", "mariadb"] {
        let shop = Shop::open(name);
        let scratch = Scratch::new();
        shop.trade(50);
        let before = shop.fingerprint();
        scratch.run(&["draft", &shop.url("writer"), "--out", "shop.toml"]).expect(0);
        let study = std::fs::read_to_string(scratch.path("shop.toml")).unwrap();
        assert!(study.contains("\nwrites = false\n") && study.contains("with_writes = true"), "{study}");
        scratch.write("trial.toml", &trial_of(&study));
        let mut run = scratch.command(&["run", "trial.toml", "--out", "run"]);
        program::outcome(run.env("LOADLINE_PASSWORD", shop::PASSWORD)).expect(0);
        assert_eq!(shop.fingerprint(), before, "{name}");
        let stored = &scratch.stored("run")[0];
        assert!(stored.operations.keys().all(|kind| kind.starts_with("select")), "{:?}", stored.operations.keys());

        // Who may only read gets what reads, and is told of the rest where the database refuses to prepare it.
        scratch.run(&["draft", &shop.url("reader"), "--out", "reader.toml"]).expect(0);
        scratch.write("reader.toml", &trial_of(&std::fs::read_to_string(scratch.path("reader.toml")).unwrap()));
        let mut run = scratch.command(&["run", "reader.toml", "--out", "read"]);
        program::outcome(run.env("LOADLINE_PASSWORD", shop::PASSWORD)).expect(0);
        assert_eq!(shop.fingerprint(), before, "{name}");
    }
}

#[test]
fn logs_tell_the_values_that_statements_are_asked_with() {
    let shop = Shop::open("mariadb");
    let scratch = Scratch::new();
    shop.trade(300);
    for (number, log) in shop.logs().iter().enumerate() {
        let out = format!("shop{number}.toml");
        let log = log.display().to_string();
        let drafted = scratch
            .run(&["draft", &shop.url("writer"), "--statements", &log, "--out", &out, "--json"])
            .expect(0)
            .json();
        let study = std::fs::read_to_string(scratch.path(&out)).unwrap();
        let measured = &study[study.find("name = \"select measured by probe\"").unwrap()..];
        assert!(measured.contains("{ plus = [2, 600] }"), "{log}: ten minutes: {measured}");
        let count = &statement(&drafted, "select orders by customer_id")["sql"];
        assert!(count.as_str().unwrap().ends_with("LIMIT 5"), "{log}: what is always the same stays: {count}");
        assert!(!study.contains(TEXT_OF_A_CUSTOMER), "{log}");
        let with_values = format!("values{number}.toml");
        scratch.run(&["draft", &shop.url("writer"), "--statements", &log, "--values", "--out", &with_values]).expect(0);
        let study = std::fs::read_to_string(scratch.path(&with_values)).unwrap();
        assert!(study.contains("\"paid\"") || study.contains("'paid'"), "{log}: {study}");
    }
}

#[test]
fn a_file_of_sqlite_is_drafted_with_a_file_of_sql_or_without() {
    let scratch = Scratch::new();
    let file = rusqlite::Connection::open(scratch.path("lab.db")).unwrap();
    file.execute_batch(
        "CREATE TABLE readings (sensor TEXT, at TIMESTAMP, value REAL, PRIMARY KEY (sensor, at)) WITHOUT ROWID;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
         INSERT INTO readings SELECT printf('s-%02d', i % 20), datetime('2026-11-01', (i / 20) || ' minutes'), i % 7 FROM n;",
    )
    .unwrap();
    drop(file);
    let bytes = || std::fs::read(scratch.path("lab.db")).unwrap();
    let before = bytes();
    let told = scratch.run(&["draft", "lab.db", "--out", "keys.toml"]).expect(0);
    assert!(told.stdout.contains("only look rows up by their keys"), "{}", told.stdout);

    let mut sql = String::new();
    for number in 0..200 {
        let (sensor, hour) = (number % 20, number % 15);
        writeln!(sql, "SELECT avg(value) FROM readings WHERE sensor = 's-{sensor:02}' AND at >= '2026-11-01 {hour:02}:00:00' AND at < '2026-11-01 {:02}:00:00';", hour + 1).unwrap();
    }
    writeln!(sql, "SELECT frobnicate(?) FROM readings;").unwrap();
    scratch.write("app.sql", &sql);
    let drafted = scratch.run(&["draft", "lab.db", "--statements", "app.sql", "--json"]).expect(0).json();
    assert_eq!(drafted["study"], "lab.toml", "named after the file");
    let because = drafted["left_out"][0]["because"].as_str().unwrap();
    assert!(because.contains("not understood") || because.contains("no such function"), "{because}");
    assert_eq!(bytes(), before, "the file is as it was");
    let study = std::fs::read_to_string(scratch.path("lab.toml")).unwrap();
    assert!(study.contains("{ plus = [2, 3600] }") && !study.contains("s-07"), "{study}");
    scratch.run(&["draft", "lab.db"]).refused(&["lab.toml", "is there already", "--out"]);

    scratch.write("trial.toml", &trial_of(&study));
    scratch.run(&["run", "trial.toml", "--out", "run"]).expect(0);
    let stored = &scratch.stored("run")[0];
    assert_eq!((stored.is_valid(), stored.completed()), (true, 4000));
    // The run repeats itself, with fills of every kind that is drafted.
    scratch.run(&["run", "run/run.toml", "--out", "again"]).expect(0);
    assert_eq!(scratch.stored("again")[0].trial.case.settings, stored.trial.case.settings);
    assert_eq!(bytes(), before);
}

#[test]
fn a_first_contact_that_fails_says_what_to_do() {
    let scratch = Scratch::new();
    let refused = |arguments: &[&str], words: &[&str]| scratch.run(&[&["draft"], arguments].concat()).refused(words);
    refused(&["nothing.db"], &["nothing.db", "no such file", "postgres://"]);
    refused(&["oracle://me@here/shop"], &["oracle://", "mariadb://"]);
    refused(&["postgres://me:hidden@127.0.0.1:1/shop"], &["127.0.0.1:1", "check the address"]);
    scratch.write("empty.log", "");
    let shop = Shop::open("postgres");
    let url = shop.url("writer");
    refused(&[&url, "--statements", "empty.log"], &["empty.log", "no statement", "log_statement = 'all'"]);
    refused(&[&url, "--statements", "gone.log"], &["gone.log", "cannot be read", "pg_stat_statements"]);
    refused(&[&url, "--statements", "performance_schema"], &["is for MySQL and MariaDB"]);
    refused(&[&url, "--for", "soon"], &["--for", "\"soon\""]);
    refused(&[&url, "--for", "100ms"], &["no statement ran", "leave --for out"]);
    shop.session("postgres").run("DROP EXTENSION pg_stat_statements").unwrap();
    let remedy = ["pg_stat_statements is not in this database", "CREATE EXTENSION", "shared_preload_libraries"];
    refused(&[&url, "--statements", "pg_stat_statements"], &remedy);
    // Without being asked for they are done without, and the study says why.
    scratch.run(&["draft", &url, "--out", "keys.toml"]).expect(0);
    let study = std::fs::read_to_string(scratch.path("keys.toml")).unwrap();
    assert!(remedy.iter().all(|word| study.contains(word)) && study.contains("SELECT * FROM"), "{study}");
}

#[test]
fn a_private_study_of_a_file_is_as_the_file_is() {
    let scratch = Scratch::new();
    let series =
        "CREATE TABLE readings (sensor TEXT, at TIMESTAMP, value REAL, PRIMARY KEY (sensor, at)) WITHOUT ROWID";
    let rows = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 11999) \
                INSERT INTO readings SELECT 'sensor-' || (i % 60), datetime('2026-11-01', (i / 60) || ' minutes'), i * 0.5 FROM n";
    let names = "CREATE TABLE sensors (name TEXT PRIMARY KEY, place TEXT NOT NULL)";
    let of_names = "INSERT INTO sensors SELECT DISTINCT sensor, 'hall' FROM readings";
    let mut session = loadline::database::find("sqlite")
        .map(|entry| {
            let path = Some(scratch.path("own.db").display().to_string());
            let settings = loadline::trial::DatabaseSettings { path, ..Default::default() };
            entry.open_sql(&settings, None).unwrap()
        })
        .unwrap()
        .connect()
        .unwrap();
    for sql in [series, rows, names, of_names] {
        session.run(sql).unwrap();
    }
    scratch.write("app.sql", "SELECT value FROM readings WHERE sensor = 'sensor-7' ORDER BY at DESC LIMIT 3;\nSELECT place FROM sensors WHERE name = 'sensor-9';\n");
    let drafted = scratch
        .run(&["draft", "own.db", "--statements", "app.sql", "--private", "--out", "own.toml", "--json"])
        .expect(0)
        .json();
    assert_eq!(drafted["tables"].as_array().unwrap().len(), 2, "{drafted:#}");
    let study = std::fs::read_to_string(scratch.path("own.toml")).unwrap();
    for kept in
        ["WITHOUT ROWID", "PRIMARY KEY (\"sensor\", \"at\")", "journal_mode", "cycle = [1, 1, 60]", "rows = 12000"]
    {
        assert!(study.contains(kept), "{kept} is not in {study}");
    }
    // Without ANALYZE a statement is planned once, as in the original.
    for original in ["sensor-", "hall", "ANALYZE", "own.db"] {
        assert!(!study.contains(original), "{original} is in {study}");
    }
    scratch.write(
        "trial.toml",
        &trial_of(&study).replace("allow_empty = true", "").replacen("[workload]", "[workload]\n", 1),
    );
    run(&scratch, &["run", "trial.toml", "--out", "run"]).expect(0);
    let stored = scratch.stored("run");
    assert_eq!(stored[0].invalid_because, []);
    assert!(
        stored[0].operations.values().all(|kind| kind.failed + kind.empty == 0),
        "{:?}",
        stored[0].operations.keys()
    );
}

#[test]
fn a_private_study_gives_the_rows_of_the_original_without_a_text_of_it() {
    for name in ["postgres", "mariadb"] {
        let scratch = Scratch::new();
        let (drafted, address) = {
            let shop = Shop::open(name);
            shop.trade(400);
            let url = shop.url("writer");
            let address = url.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
            (scratch.run(&["draft", &url, "--private", "--out", "shop.toml", "--json"]).expect(0).json(), address)
        };
        let tables = drafted["tables"].as_array().unwrap();
        assert_eq!(tables.len(), 4, "{name}: {drafted:#}");
        assert!(tables.iter().all(|table| table["remarks"] == json!([])), "{name}: {tables:?}");
        let study = std::fs::read_to_string(scratch.path("shop.toml")).unwrap();
        // What the original is set to can be taken over as it stands.
        let set = study.lines().find_map(|line| line.strip_prefix("# config = ")).unwrap_or_else(|| panic!("{study}"));
        let set_up = study.replacen(
            "[workload]",
            &format!("[database.config]\n{}\n[workload]", set.trim_matches(['{', '}', ' ']).replace(", ", "\n")),
            1,
        );
        scratch.write("set_up.toml", &set_up);
        scratch.run(&["plan", "set_up.toml"]).expect(0);
        for original in [shop::PASSWORD, "@example.org", "shipped", TEXT_OF_A_CUSTOMER, &address, "url"] {
            assert!(!study.contains(original), "{name}: {original} is in {study}");
        }
        // The original is gone; a server of loadline's own has tables that look alike.
        scratch.write("trial.toml", &trial_of(&study));
        scratch.run(&["plan", "trial.toml"]).expect(0);
        run(&scratch, &["run", "trial.toml", "--out", "run"]).expect(0);
        assert_eq!(scratch.stored("run")[0].invalid_because, [], "{name}");
        // On a server that counts, each call gives about as many rows as it did.
        let server = Shop::empty(name);
        let there = format!("[database]\nurl = \"{}\"", server.own_url());
        scratch.write("counted.toml", &trial_of(&study).replacen("[database]", &there, 1));
        let text = "load.statements=text";
        run(&scratch, &["run", "counted.toml", "--set", text, "--out", "counted"]).expect(0);
        let counted = server.counted();
        for (statement_name, rows) in [
            ("select orders by id", 1.0),
            ("select orders by customer_id", 5.0),
            ("select items by order_id", 3.0),
            ("select measured by probe", 61.0),
        ] {
            let sql = statement(&drafted, statement_name)["sql"].as_str().unwrap();
            let (_, calls, found) = counted
                .iter()
                .find(|(text, ..)| shop::same(text, sql))
                .unwrap_or_else(|| panic!("{name}: {sql}: {counted:?}"));
            assert!(
                (found / calls / rows - 1.0).abs() < 0.1,
                "{name}: {sql}: {found} rows of {calls} calls, not {rows} each"
            );
        }
    }
}
