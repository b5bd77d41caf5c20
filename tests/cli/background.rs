//! A load in the background: both sides are measured, and neither counts for the other.

use loadline::said::Said;
use serde_json::Value;

use crate::program::Scratch;

const STUDY: &str = "name = \"both\"\n[record]\nrows = 500\nper_measurement = 10\n[workload]\nname = \"read\"\n[load]\n\
    clients = 2\nduration = \"600ms\"\nwarmup = \"100ms\"\n[background]\nworkload = \"write\"\narrivals = \"constant\"\n\
    rate = 40\nbatch = 5\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

#[test]
fn readers_and_writers_are_measured_apart_and_every_written_record_is_found() {
    for database in ["sqlite", "mariadb"] {
        let scratch = Scratch::new();
        scratch.write("both.toml", STUDY);
        let set = format!("database.name={database}");
        let outcome = scratch.run(&["run", "both.toml", "--set", &set, "--out", "both", "--json"]);
        let trial = &scratch.stored("both")[0];
        let (reads, inserts) = (&trial.operations["read"], &trial.background["insert"]);
        assert_eq!(trial.operations.len(), 1, "the background is in no total: {:?}", trial.operations.keys());
        assert!(reads.completed > 0 && (20..=26).contains(&inserts.scheduled), "{database}: {}", inserts.scheduled);
        assert_eq!(inserts.scheduled, inserts.completed + inserts.failed + inserts.abandoned);
        assert_eq!(inserts.records, inserts.completed * 5);
        // A machine that is busy with other things may make the generator late; records that are missing are another matter.
        assert!(!trial.invalid_because.iter().any(|why| why.kind() == "records_differ"), "{:?}", trial.invalid_because);
        let findings = outcome.json();
        if trial.invalid_because.is_empty() {
            let operations = &findings["cases"][0]["operations"];
            assert_eq!(operations["insert beside"]["count"], Value::from(inserts.completed));
            let throughput = findings["cases"][0]["throughput_per_s"]["mean"].as_f64().unwrap();
            assert!((throughput - reads.completed as f64 / trial.measured_s).abs() < 1.0, "{throughput}");
        }
        let exported = scratch.run(&["export", "both", "--format", "csv", "--out", "csv"]).expect(0);
        assert!(exported.stderr.is_empty() || !exported.stderr.contains("error"));
    }
}

#[test]
fn a_background_that_cannot_be_is_refused_where_it_stands() {
    let refusal = |change: (&str, &str)| {
        let scratch = Scratch::new();
        scratch.write("both.toml", &STUDY.replace(change.0, change.1));
        scratch.run(&["plan", "both.toml"]).expect(2).stderr
    };
    assert!(refusal(("rate = 40\n", "")).contains("both.toml:11: background.rate is missing"));
    assert!(refusal(("duration = \"600ms\"", "operations = 50")).contains("[background] goes with load.duration"));
    assert!(refusal(("name = \"read\"", "name = \"write\"")).contains("inserts records too"));
    assert!(refusal(("workload = \"write\"", "workload = \"wirte\"")).contains("did you mean \"write\"?"));
}
