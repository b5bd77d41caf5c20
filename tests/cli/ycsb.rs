//! YCSB's property files, and tables that are not as they should be.

use crate::program::Scratch;

const SMALL: [&str; 6] = ["--set", "repeat.rule=fixed", "--set", "repeat.least=1", "--set", "threadcount=2"];

fn run_with<'a>(workload: &'a str, sets: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--ycsb", workload, "--out", "run"];
    arguments.extend(SMALL);
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    arguments
}

#[test]
fn the_six_workloads_run_as_they_are() {
    for (workload, kinds) in [
        ("workloada", vec!["read", "update"]),
        ("workloadb", vec!["read", "update"]),
        ("workloadc", vec!["read"]),
        ("workloadd", vec!["insert", "read"]),
        ("workloade", vec!["insert", "scan"]),
        ("workloadf", vec!["read", "read-modify-write", "update"]),
    ] {
        let scratch = Scratch::new();
        scratch.run(&run_with(workload, &[])).expect(0);
        let findings = scratch.run(&["report", "run", "--json"]).expect(0).json();
        let operations = findings["cases"][0]["operations"].as_object().unwrap();
        assert_eq!(operations.keys().collect::<Vec<_>>(), kinds, "{workload}");
        let measurement = &scratch.stored("run")[0];
        assert_eq!((measurement.completed(), measurement.failed()), (1000, 0), "{workload}: operationcount");
        assert_eq!(measurement.trial.case.settings.record.rows, 1000);
    }
}

#[test]
fn a_read_modify_write_counts_once_in_throughput_and_its_parts_have_their_times() {
    let scratch = Scratch::new();
    scratch.run(&run_with("workloadf", &[])).expect(0);
    let findings = scratch.run(&["report", "run", "--json"]).expect(0).json();
    let count = |kind: &str| findings["cases"][0]["operations"][kind]["count"].as_u64().unwrap();
    assert_eq!(count("read"), 1000, "every operation reads");
    assert_eq!(count("update"), count("read-modify-write"));
    let measurement = &scratch.stored("run")[0];
    assert_eq!(measurement.completed(), 1000);
    let throughput = findings["cases"][0]["throughput_per_s"]["mean"].as_f64().unwrap();
    assert!((throughput * measurement.measured_s / 1000.0 - 1.0).abs() < 1e-6);
}

#[test]
fn the_load_phase_inserts_every_record_once() {
    let scratch = Scratch::new();
    scratch.run(&run_with("workloada", &["dotransactions=false", "recordcount=500"])).expect(0);
    let measurement = &scratch.stored("run")[0];
    assert_eq!(measurement.operations["insert"].completed, 500);
}

#[test]
fn a_property_that_is_wrong_is_named_with_its_line_before_anything_starts() {
    let scratch = Scratch::new();
    scratch.write(
        "mine",
        "recordcount=10\noperationcount=10\nreadproportoin=1\ndataintegrity=true\nbasicdb.verbose=true\n",
    );
    let outcome = scratch.run(&["run", "--ycsb", "mine", "--set", "maxscanlength=some"]).expect(2);
    for part in
        ["mine:3: unknown property", "mine:4: dataintegrity", "--set maxscanlength=some: maxscanlength is \"some\""]
    {
        assert!(outcome.stderr.contains(part), "{part} is missing: {}", outcome.stderr);
    }
    assert!(!scratch.path("runs").exists());
    scratch.write("mine", "recordcount=10\noperationcount=10\nbasicdb.verbose=true\n");
    let outcome = scratch.run(&["plan", "--ycsb", "mine"]).expect(0);
    assert!(outcome.stderr.contains("note: mine:3: basicdb.verbose=true has no effect"), "{}", outcome.stderr);
    assert!(scratch.run(&["run", "--ycsb", "no/such"]).expect(2).stderr.contains("cannot be read"));
}

/// Makes YCSB's table with some of the records of `loadline data`.
fn table(scratch: &Scratch, keys: &[&str]) {
    let file = rusqlite::Connection::open(scratch.path("own.db")).unwrap();
    let fields: Vec<String> = (0..10).map(|field| format!("field{field} TEXT")).collect();
    file.execute_batch(&format!("CREATE TABLE usertable (ycsb_key VARCHAR(255) PRIMARY KEY, {})", fields.join(", ")))
        .unwrap();
    for key in keys {
        file.execute("INSERT INTO usertable (ycsb_key) VALUES (?)", [key]).unwrap();
    }
}

fn own<'a>(sets: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["record.existing=true", "database.path=own.db", "operationcount=50"];
    all.extend(sets);
    run_with("workloadc", &all)
}

#[test]
fn a_missing_table_is_an_invalid_run() {
    let scratch = Scratch::new();
    let outcome = scratch.run(&own(&[])).expect(1);
    assert!(outcome.stdout.contains("usertable"), "{}", outcome.stdout);
    assert_eq!(scratch.stored("run")[0].completed(), 0);
}

#[test]
fn an_empty_table_is_an_invalid_run() {
    let scratch = Scratch::new();
    table(&scratch, &[]);
    let outcome = scratch.run(&own(&[])).expect(1);
    assert!(outcome.stdout.contains("50 reads found nothing"), "{}", outcome.stdout);
    assert_eq!(scratch.stored("run")[0].operations["read"].empty, 50);
}

#[test]
fn reads_of_missing_keys_make_a_run_invalid_and_those_that_are_there_are_found() {
    let scratch = Scratch::new();
    table(&scratch, &["user6284781860667377211", "user8517097267634966620"]);
    scratch.run(&own(&["recordcount=2"])).expect(0);
    std::fs::remove_dir_all(scratch.path("run")).unwrap();
    scratch.run(&own(&["recordcount=3"])).expect(1);
    let read = &scratch.stored("run")[0].operations["read"];
    assert!(read.empty > 0 && read.empty < 50, "{}", read.empty);
    let rows: u32 = rusqlite::Connection::open(scratch.path("own.db"))
        .unwrap()
        .query_row("SELECT COUNT(*) FROM usertable", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 2, "somebody else's table is neither filled nor dropped");
}
