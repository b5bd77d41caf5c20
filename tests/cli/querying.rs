//! Queries over records, statements in transactions, and databases that are only read.

use loadline::measurement::Measurement;

use crate::program::{Scratch, small_study};

const FAST: &str = "[load]\noperations = 20\nclients = 2\nwarmup = \"0s\"";
const RUNS: &str = "[record]\nruns = [ [1, 600], [5, 100] ]\n";

fn queries(queries: &str) -> String {
    format!("[workload]\nname = \"query\"\nqueries = [\n{queries}\n]\n")
}

#[test]
fn a_query_is_stated_once_and_asked_in_every_layout_with_its_rows_counted() {
    let scratch = Scratch::new();
    let asked = queries(
        "{ name = \"short\", where = \"ul_delay < 10\", columns = \"hot\" },\n\
         { name = \"late\", where = \"customerId = 1 and ul_dupl >= 590\", order = \"ul_dupl desc\", limit = 5, rows = 5 }",
    );
    let factors =
        "[factors]\n\"layout.name\" = [\"wide\", \"star\", \"star-hot\"]\n\"workload.query\" = [\"short\", \"late\"]";
    let asked = asked.replace("queries = [", "explain = true\nqueries = [");
    scratch.write("study.toml", &small_study(&format!("{RUNS}{asked}{FAST}\n{factors}")));
    let outcome = scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    assert!(outcome.stdout.contains("database's plans of"), "{}", outcome.stdout);
    let stored = scratch.stored("run");
    assert_eq!(stored.len(), 12);
    for Measurement { operations, plans, trial, .. } in &stored {
        assert_eq!(operations["query-1"].completed, 20);
        assert!(!plans["query-1"].is_empty(), "{:?}", trial.case.levels);
    }
    let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
    assert!(page.contains("Execution time per client") && page.contains("id=\"plans\""));
}

#[test]
fn rows_that_the_records_do_not_have_are_found_out_before_anything_is_measured() {
    let scratch = Scratch::new();
    let asked = queries("{ name = \"short\", where = \"ul_delay < 10\", rows = 61 }");
    scratch.write("study.toml", &small_study(&format!("{RUNS}{asked}{FAST}")));
    scratch.run(&["run", "study.toml", "--out", "run"]).refused(&["short", "finds 60 records and rows = 61"]);
    assert!(!scratch.path("run").exists());
}

#[test]
fn plan_refuses_queries_that_record_type_layout_or_database_cannot_answer_with_their_line() {
    let scratch = Scratch::new();
    let refused = |database: &str, query: &str, words: &[&str]| {
        let study = format!("[database]\nname = \"{database}\"\n{RUNS}{}{FAST}", queries(query));
        scratch.write("study.toml", &small_study(&study));
        let line: &[&str] = &["study.toml:"];
        scratch.run(&["plan", "study.toml"]).refused(&[line, words].concat());
    };
    refused("sqlite", "{ name = \"a\", where = \"ul_dealy < 1\" }", &["query \"a\"", "no column \"ul_dealy\""]);
    refused(
        "sqlite",
        "{ name = \"a\", where = \"ul_delay << 1\" }",
        &["study.toml:9", "expected one of = <> < <= > >="],
    );
    refused("sqlite", "{ name = \"a\" }, { name = \"a\" }", &["two queries", "called \"a\""]);
    refused(
        "sqlite",
        "{ name = \"a\", cache = true }",
        &["sqlite has no query cache; leave it out, or take database.name = \"mariadb\""],
    );
    refused("mariadb", "{ name = \"a\", cache = true }", &["query_cache_type = 2"]);
    refused("postgres", "{ name = \"a\", straight_join = true }", &["postgres", "join_collapse_limit"]);
    let opaque = format!("{RUNS}[layout]\nname = \"key-value\"\n{}{FAST}", queries("{ name = \"a\" }"));
    scratch.write("study.toml", &small_study(&opaque));
    scratch.run(&["plan", "study.toml"]).refused(&["layout \"key-value\" cannot select records by what is in them"]);
    let indexes = format!("{RUNS}[layout]\nindexes = [\"ul_dealy\"]\n{}{FAST}", queries("{ name = \"a\" }"));
    scratch.write("study.toml", &small_study(&indexes));
    scratch.run(&["plan", "study.toml"]).refused(&["study.toml:", "layout.indexes", "has a column \"ul_dealy\""]);
    let unknown =
        format!("{RUNS}{}{FAST}", queries("{ name = \"slow\" }").replace("queries =", "query = \"slwo\"\nqueries ="));
    scratch.write("study.toml", &small_study(&unknown));
    scratch.run(&["plan", "study.toml"]).refused(&["workload.query is \"slwo\"", "did you mean \"slow\"?"]);
}

#[test]
fn an_index_is_a_factor() {
    let scratch = Scratch::new();
    let asked =
        queries("{ name = \"short\", where = \"ul_dupl < 2\" }").replace("queries = [", "explain = true\nqueries = [");
    let factors = "[factors]\n\"layout.indexes\" = [\"\", \"ul_dupl\"]\n\"layout.name\" = [\"wide\", \"star-hot\"]";
    scratch.write("study.toml", &small_study(&format!("{RUNS}{asked}{FAST}\n{factors}")));
    scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    for Measurement { plans, trial, .. } in &scratch.stored("run") {
        let is_used = plans["query-1"].iter().any(|line| line.contains("ul_dupl"));
        assert_eq!(is_used, trial.case.levels["layout.indexes"] == "ul_dupl", "{plans:?}");
    }
}

#[test]
fn statements_of_a_transaction_happen_together_and_a_file_is_changed_only_when_asked() {
    let scratch = Scratch::new();
    let make = "CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER); CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER); \
                INSERT INTO a VALUES (1, 0); INSERT INTO b VALUES (1, 0);";
    let open = || rusqlite::Connection::open(scratch.path("own.db")).unwrap();
    open().execute_batch(make).unwrap();
    let figure = |sql: &str| -> i64 { open().query_row(sql, [], |row| row.get(0)).unwrap() };
    let study = |writes: &str, statements: &str| {
        let database = "[database]\npath = \"own.db\"";
        small_study(&format!("{database}\n[workload]\nname = \"sql\"\n{writes}\nstatements = [ {statements} ]\n{FAST}"))
    };
    let both = "{ transaction = [ { sql = \"UPDATE a SET n = n + ?\", params = [2] }, \
                { sql = \"UPDATE b SET n = n + ? WHERE id = ?\", params = [3, 1] }, { sql = \"SELECT n FROM a\" } ] }";
    scratch.write("study.toml", &study("", both));
    scratch.run(&["plan", "study.toml"]).refused(&["study.toml:7", "UPDATE a SET n = n + ?", "writes = true"]);
    scratch.write("study.toml", &study("writes = true", both));
    scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    let completed: u64 = scratch.stored("run").iter().map(|trial| trial.operations["statement-1"].completed).sum();
    assert_eq!(completed, 40);
    assert_eq!((figure("SELECT n FROM a"), figure("SELECT n FROM b")), (80, 120));
    let fails = "{ transaction = [ { sql = \"UPDATE a SET n = 0\" }, { sql = \"INSERT INTO b VALUES (1, 1)\" } ] }";
    scratch.write("study.toml", &study("writes = true", fails));
    scratch.run(&["run", "study.toml", "--out", "failed"]).expect(1);
    assert_eq!(figure("SELECT n FROM a"), 80, "what stands before a refused statement is undone");
    let disguised = "{ sql = \"SELECT 1; \", weight = 1 }, { sql = \"VALUES (1)\" }";
    scratch.write("study.toml", &study("", disguised));
    scratch.run(&["run", "study.toml", "--out", "read"]).expect(0);
    let refused = "{ transaction = [] }, { transaction = [ { sql = \"SELECT ?\" } ], params = [1] }";
    scratch.write("study.toml", &study("", refused));
    scratch.run(&["plan", "study.toml"]).refused(&[
        "has no statements",
        "both params and transaction",
        "1 parameters and 0 fills",
    ]);
}

/// Rows of 400 characters and a number, as many as the longest run has records.
fn long_answer(database: &str) -> &'static str {
    match database {
        "mariadb" => "SELECT seq, REPEAT('x', 400) FROM seq_1_to_600000",
        "postgres" => "SELECT i, repeat('x', 400) FROM generate_series(1, 600000) i",
        _ => {
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600000) \
             SELECT i, substr(hex(zeroblob(200)), 1, 400) FROM n"
        }
    }
}

#[test]
fn answers_of_600_000_rows_are_not_held_in_memory() {
    for database in ["sqlite", "mariadb", "postgres"] {
        let scratch = Scratch::new();
        let load = "[load]\noperations = 4\nclients = 2\nwarmup = \"0s\"\ndrain = \"10m\"";
        let statement = format!("statements = [ {{ sql = \"{}\" }} ]", long_answer(database));
        let study = format!("[database]\nname = \"{database}\"\n[workload]\nname = \"sql\"\n{statement}\n{load}");
        scratch.write("study.toml", &small_study(&study).replace("least = 2", "least = 1\nmost = 1"));
        let outcome = scratch.run(&["run", "study.toml", "--out", "run"]);
        let stored = scratch.stored("run");
        let completed = stored[0].operations["statement-1"].completed;
        assert_eq!(completed, 4, "{database}: {} {:?}", outcome.stderr, stored[0].errors);
        let memory_bytes = stored[0].resources.as_ref().unwrap().mean.client_memory_bytes;
        assert!((1e6..60e6).contains(&memory_bytes), "{database}: {memory_bytes} bytes for answers of 240 MB");
    }
}

#[test]
fn filled_tables_are_kept_for_the_next_run_and_made_anew_when_anything_is_different() {
    for database in ["sqlite", "mariadb", "postgres"] {
        let scratch = Scratch::new();
        let run = |out: &str, cache: &str, set: &str| {
            let mut command = scratch.command(&["run", "study.toml", "--out", out, "--set", set]);
            crate::program::outcome(command.env("LOADLINE_CACHE", cache)).expect(0).stderr
        };
        let record = "[record]\ntype = \"wisconsin\"\nrows = 100000\n[layout]\nname = \"wide\"";
        let select = "[workload]\nname = \"select\"\n[load]\noperations = 20\nwarmup = \"0s\"";
        let study = format!("[database]\nname = \"{database}\"\n{record}\n{select}");
        scratch.write("study.toml", &small_study(&study));
        let cache = scratch.path("cache").display().to_string();
        let kept = |text: &str| text.contains("filled tables are kept in");
        let taken = |text: &str| text.contains("were filled by an earlier run");
        assert_eq!(run("off", "off", "record.seed=1"), "", "{database}: nothing is kept");
        let first = run("first", &cache, "record.seed=1");
        assert!(kept(&first) && !taken(&first), "{database}: {first}");
        let second = run("second", &cache, "load.clients=2");
        assert!(kept(&second) && taken(&second), "{database}: {second}");
        let other = run("other", &cache, "record.seed=2");
        assert!(kept(&other) && !taken(&other), "{database}: {other}");
        let written = run("written", &cache, "workload.name=update");
        assert!(!kept(&written) && !taken(&written), "{database}: what is changed is not taken from the cache");
        let fixtures = std::fs::read_dir(scratch.path("cache/fixtures")).unwrap().count();
        assert_eq!(fixtures, 2, "{database}: each in its place, none in anybody's hands");
    }
}

#[test]
fn statements_are_called_as_their_study_calls_them() {
    let scratch = Scratch::new();
    let study = |names: [&str; 2]| {
        let statement = |name: &str, sql: &str| format!("{{ name = \"{name}\", sql = \"{sql}\" }}");
        let [first, second] = [statement(names[0], "SELECT 1"), statement(names[1], "SELECT 2")];
        let statements = format!("statements = [ {first}, {second}, {{ sql = \"SELECT 3\" }} ]");
        small_study(&format!(
            "[workload]\nname = \"sql\"\n{statements}\n[load]\noperations = 300\nclients = 2\nwarmup = \"0s\"\nsamples = true"
        ))
    };
    scratch.write("study.toml", &study(["look up", "other"]));
    let run = scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    for line in ["look up  SELECT 1", "other  SELECT 2", "statement-3  SELECT 3"] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    let trials = scratch.stored("run");
    let kinds: Vec<&str> = trials[0].operations.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["look up", "other", "statement-3"]);
    scratch.run(&["export", "run", "--format", "csv", "--out", "exported"]).expect(0);
    let samples = std::fs::read_dir(scratch.path("exported")).unwrap().find_map(|file| {
        let text = std::fs::read_to_string(file.unwrap().path()).ok()?;
        text.contains("look up").then_some(text)
    });
    assert!(samples.is_some());
    for (names, word) in
        [(["read", "x"], "\"read\""), (["x", "x"], "two of"), (["9x", "y"], "\"9x\""), (["a\\tb", "y"], "letters")]
    {
        scratch.write("study.toml", &study(names));
        scratch.run(&["run", "study.toml", "--out", "refused"]).refused(&["workload.statements", word]);
    }
}
