//! Recorders on hosts of their own: they share a stream over the links, and nothing is left behind when a run is ended.

use serde_json::Value;

use super::program::{interrupt, loadline, place};

const STUDY: &str = r#"
name = "numbers"
[database]
name = "postgres"
[record]
type = "qos"
[workload]
name = "write"
[load]
arrivals = "sources"
source_rate = 5
clients = 24
warmup = "200ms"
duration = "800ms"
[recorder]
path = "http"
through = "stream"
count = 2
hosts = "own"
[link]
delay = "20ms"
[repeat]
rule = "fixed"
least = 1
most = 1
"#;

#[test]
fn a_record_crosses_three_links_before_it_is_acknowledged_and_is_stored_once() {
    if !super::is_root() {
        return;
    }
    let place = place("numbers", STUDY);
    let output = loadline(&place, &["run", "study.toml", "--out", "run", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap_or_else(|_| panic!("{said}"));
    let trial: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let recorded = &trial["recorded"];
    let count = |name: &str| recorded[name].as_u64().unwrap();
    assert_eq!((count("acknowledged"), count("found"), count("missing"), count("surplus")), (120, 120, 0, 0), "{said}");
    let each = recorded["recorders"].as_array().unwrap();
    assert!(each.len() == 2 && each.iter().all(|one| one["committed"].as_u64().unwrap() > 0), "{recorded}");
    let times = trial["operations"]["insert"]["response_time"].clone();
    let times: loadline::histogram::Histogram = serde_json::from_value(times).unwrap();
    // From the sources' host to the recorder's and back, twice 20 ms each way; from there to the stream and back, 20 ms each way.
    assert!(times.min_ns() >= 120_000_000, "{} ns", times.min_ns());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn recorders_on_hosts_of_their_own_are_gone_when_a_run_is_interrupted() {
    if !super::is_root() {
        return;
    }
    let place = place("numbers-interrupted", &STUDY.replace("800ms", "60s"));
    // The database, the NATS server, and two recorders.
    interrupt(&place, &[], 4);
    std::fs::remove_dir_all(&place).unwrap();
}

/// A recorder that others reach keeps the connections of at most 1,000 clients that have shown no token.
#[test]
fn sources_that_send_later_than_a_thousand_others_have_connected_are_not_put_out() {
    if !super::is_root() {
        return;
    }
    let study =
        STUDY.replace("clients = 24", "clients = 1100").replace("count = 2", "").replace("delay = \"20ms\"", "");
    let place = place("numbers-many", &study.replace("source_rate = 5", "source_rate = 1"));
    let output = loadline(&place, &["run", "study.toml", "--out", "run", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap_or_else(|_| panic!("{said}"));
    let trial: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(trial["recorded"]["acknowledged"], Value::from(1_100), "{said}");
    assert_eq!(
        (&trial["recorded"]["found"], &trial["errors"]),
        (&Value::from(1_100), &serde_json::json!({})),
        "{said}"
    );
    std::fs::remove_dir_all(&place).unwrap();
}
