//! Studies whose recorder is at the other end of a link: cameras that upload to it, lines with a token, and what is left behind when one is ended.

use serde_json::Value;

use super::program::{interrupt, loadline, place};

const STUDY: &str = r#"
name = "cameras"
[database]
name = "sqlite"
[record]
type = "violation"
[workload]
name = "write"
[load]
arrivals = "sources"
source_rate = 20
clients = 3
warmup = "200ms"
duration = "1s"
drain = "120s"
[recorder]
path = "ftp"
[blocks]
size = "20KB"
[link]
rate = "5.76Mbit/s"
hosts = "each"
[repeat]
rule = "fixed"
least = 1
most = 1
"#;

/// The trials of a study that is run with these settings besides; all of them are as they should be.
fn trials(name: &str, sets: &[&str]) -> Vec<Value> {
    let place = place(name, STUDY);
    let mut arguments = vec!["run", "study.toml", "--out", "run", "--json"];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let output = loadline(&place, &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap_or_else(|_| panic!("{said}"));
    let trials: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let run = std::fs::read_to_string(place.join("run/run.toml")).unwrap();
    assert!(run.contains("up_bits_per_s"), "what the links carried stands beside the study: {run}");
    std::fs::remove_dir_all(&place).unwrap();
    trials
}

#[test]
fn cameras_upload_over_links_of_their_own_and_every_block_is_accounted_for() {
    if !super::is_root() {
        return;
    }
    let seen = trials("cameras", &["recorder.path=[\"ftp\",\"ftps\",\"put\"]", "blocks.process=[true,false]"]);
    assert_eq!(seen.len(), 6);
    for trial in seen {
        let recorded = &trial["recorded"];
        let count = |name: &str| recorded[name].as_u64().unwrap();
        let levels = &trial["trial"]["case"]["levels"];
        assert!(count("acknowledged") >= 3, "{levels}: {recorded}");
        let accounted = count("committed") + count("spooled") + count("quarantined");
        assert!(
            (count("acknowledged")..=count("acknowledged") + count("unknown")).contains(&accounted),
            "{levels}: {recorded}"
        );
        assert_eq!((count("missing"), count("surplus"), count("quarantined")), (0, 0, 0), "{levels}: {recorded}");
        let processed = levels["blocks.process"] == true;
        assert_eq!(count("spooled") == 0, processed, "{levels}: {recorded}");
        let bytes = recorded["block_bytes"].as_f64().unwrap();
        assert!((10e3..40e3).contains(&bytes), "{levels}: {bytes}");
    }
}

#[test]
fn a_recorder_on_a_link_takes_lines_from_whoever_has_its_token() {
    if !super::is_root() {
        return;
    }
    let ways = ["recorder.path=[\"http\",\"nats\"]", "recorder.tls=[\"none\",\"verify\"]"];
    let line = [&ways[..], &["record.type=qos", "link.hosts=1", "blocks.size="]].concat();
    for trial in trials("lines", &line) {
        let recorded = &trial["recorded"];
        let is_protected = trial["trial"]["case"]["levels"]["recorder.tls"] == "verify";
        assert_eq!(recorded["protection"].is_string(), is_protected, "{recorded}");
        assert!(recorded["acknowledged"].as_u64().unwrap() > 0, "{recorded}");
        assert_eq!((&recorded["missing"], &recorded["surplus"]), (&Value::from(0), &Value::from(0)), "{recorded}");
    }
}

#[test]
fn a_fast_link_and_postgres_over_one() {
    if !super::is_root() {
        return;
    }
    let place = place(
        "fast",
        &STUDY.replace("sqlite", "postgres").replace("[recorder]\npath = \"ftp\"\n[blocks]\nsize = \"20KB\"\n", ""),
    );
    let sets = ["--set", "link.rate=[\"1Gbit/s\",\"5.76Mbit/s\"]", "--set", "link.hosts=1"];
    let arguments = [&["run", "study.toml", "--out", "run"][..], &sets].concat();
    let output = loadline(&place, &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap_or_else(|_| panic!("{said}"));
    for trial in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let rate = trial["trial"]["case"]["levels"]["link.rate"].as_str().unwrap().to_owned();
        let carried = trial["link"]["up_bits_per_s"].as_f64().unwrap();
        // A machine that is busy carries less, and no machine more than the rate.
        assert!(carried < if rate == "1Gbit/s" { 1.1e9 } else { 6.4e6 }, "{rate}: {carried}");
        assert!(trial["operations"]["insert"]["completed"].as_u64().unwrap() > 0, "{rate}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_run_that_is_interrupted_leaves_no_process_and_no_file() {
    if !super::is_root() {
        return;
    }
    let place = place("interrupted", &STUDY.replace("duration = \"1s\"", "duration = \"60s\""));
    // A daemon on each of four hosts, and the recorder.
    interrupt(&place, &["--set", "link.tunnel=aes128-sha1"], 5);
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_thread_that_panics_on_a_link_leaves_no_namespace() {
    if !super::is_root() {
        return;
    }
    let wanted = super::wanted(super::link(8e6, 0.01, Some("aes128-sha1")));
    let paniced = std::thread::spawn(move || {
        let network = loadline::link::Network::open(&wanted).unwrap();
        std::panic::panic_any(network.pids());
    });
    let pids = *paniced.join().unwrap_err().downcast::<Vec<u32>>().unwrap();
    assert_eq!(pids.len(), 2);
    // A namespace without a name is there as long as a process is in it or has it open.
    let is_there = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(!pids.iter().any(is_there), "{pids:?} are still there");
}
