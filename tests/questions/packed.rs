//! Packed readings: damage is noticed, and they take few bytes.

use loadline::measurement::Measurement;

use super::noticed_by;
use crate::program::Scratch;

#[test]
fn packed_readings_that_are_gone_damaged_or_there_twice_make_every_answer_wrong() {
    let columns = "source_id, first_ns, last_ns, readings, source, kind, packed";
    let harms = [
        ("gone", "DELETE FROM sensor".to_owned()),
        ("twice", format!("INSERT INTO sensor SELECT record_id + 900000, {columns} FROM sensor WHERE record_id = 0")),
        ("zeros", "UPDATE sensor SET packed = zeroblob(length(packed))".to_owned()),
        ("cut", "UPDATE sensor SET packed = substr(packed, 1, length(packed) - 1)".to_owned()),
        ("exchanged", "UPDATE sensor SET packed = (SELECT packed FROM sensor AS other WHERE other.source_id <> sensor.source_id LIMIT 1)".to_owned()),
    ];
    for (what, sql) in &harms {
        for (question, has_noticed) in noticed_by("gorilla", sql) {
            assert!(has_noticed, "{what}: {} did not notice", question.name);
        }
    }
}

/// Slow changes of sensors' values: what the layout `gorilla` is for.
const SLOW: &str = r#"
name = "slow"
[database]
name = "sqlite"
[record]
type = "custom"
rows = 60000
sources = 50
interval = "10s"
jitter = 0.0
missing = 0.01
late = { share = 0.02, up_to = "5m" }
repeated = 0.005
identity = [ { name = "site", kind = "text", fill = { random_text = 8 } } ]
values = [
    { name = "temperature_c", kind = "float", fill = { drift = [-20.0, 30.0, 0.1] } },
    { name = "humidity", kind = "float", fill = { drift = [0.0, 100.0, 0.5] } },
    { name = "load", kind = "int", fill = { drift = [0, 1000, 1] } },
]
[workload]
name = "questions"
questions = [ { ask = "range", of = ["temperature_c", "site"], span = "30m" }, { ask = "newest", of = ["load"], sources = "all" } ]
[load]
clients = 1
duration = "200ms"
warmup = "0s"
[factors]
"layout.name" = ["wide", "gorilla"]
[repeat]
rule = "fixed"
least = 1
"#;

#[test]
fn packed_readings_take_an_eighth_of_the_bytes_and_none_is_missing() {
    let place = Scratch::new();
    place.write("study.toml", SLOW);
    place.run_study("study.toml", "run").expect(0);
    let size = |trial: &Measurement| trial.table_size.and_then(|size| size.bytes_per_record()).unwrap();
    let bytes: Vec<f64> = place.stored("run").iter().map(size).collect();
    // Which layout comes first in a round is random.
    let (least, most) = (bytes[0].min(bytes[1]), bytes[0].max(bytes[1]));
    assert!(bytes.len() == 2 && most > 8.0 * least, "{bytes:?}");
    for trial in place.stored("run") {
        assert!(trial.operations.values().all(|own| own.wrong == Some(0) && own.completed > 0), "{:?}", trial.errors);
    }
}

/// The records that were written are counted by the rows' numbers of readings: a trial whose rows hold fewer is invalid.
#[test]
fn what_was_acknowledged_is_counted_in_packed_rows() {
    let place = Scratch::new();
    let (before, behind) = SLOW.split_once("[workload]").unwrap();
    let (_, behind) = behind.split_once("[load]").unwrap();
    place.write("study.toml", &format!("{before}[workload]\nname = \"write\"\nbatch = 700\n[load]{behind}"));
    place.run_study("study.toml", "run").expect(0);
    for trial in place.stored("run") {
        let (written, stored) = (trial.operations["insert"].records, trial.table_size.unwrap().records);
        // Some records are acknowledged behind the measured phase.
        assert!(written > 0 && stored >= 60_000 + written && stored % 700 == 60_000 % 700, "{written} {stored}");
    }
}
