//! `loadline size` as a user calls it: the paper's table, the bottleneck, the reverse, a run's load line, wrong requests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output};

use serde_json::Value;

fn loadline(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments.split_whitespace()).output().unwrap()
}

fn document(arguments: &str) -> Value {
    let output = loadline(&format!("size --json {arguments}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(arguments: &str) -> String {
    let output = loadline(&format!("size {arguments}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn is_near(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-6 * expected
}

const CAMERA: &str = "--block 2MB --blocks 2 --every 5s";

#[test]
fn a_hundred_cameras_offer_what_table_2_says() {
    for (link, offered) in [("", 640e6), ("--link 5.76Mbit/s", 576e6), ("--link 384kbit/s", 38.4e6)] {
        let answer = document(&format!("{CAMERA} {link} --server-link 1Gbit/s --sources 100"));
        assert!(is_near(&answer["needs"]["offered_bits_per_s"], offered), "{answer}");
    }
    let slow = text(&format!("{CAMERA} --link 384kbit/s"));
    assert!(slow.contains("6.0 % of its blocks arrive in time, and its backlog grows"), "{slow}");
}

#[test]
fn the_papers_server_is_limited_by_its_disk() {
    let known = "--server-link 1Gbit/s --disk 85MB --writes 1 --processing 5ms --use-at-most 1";
    let answer = document(&format!("{CAMERA} {known}"));
    assert_eq!((answer["bottleneck"].as_str(), answer["sources"].as_u64()), (Some("disk"), Some(106)));
    let said = text(&format!("{CAMERA} {known} --sources 200"));
    assert!(said.contains("This server takes 106 such sources; the bottleneck is the disk"), "{said}");
    assert!(said.contains("They need 2 such servers, because of the disk"), "{said}");
}

#[test]
fn intervals_are_carried_on() {
    let answer = document(&format!("{CAMERA} --processing 18ms..22ms --cores 2 --use-at-most 1 --sources 230"));
    let ends: Vec<u64> = answer["sources_ci95"].as_array().unwrap().iter().map(|end| end.as_u64().unwrap()).collect();
    assert_eq!((answer["sources"].as_u64(), ends), (Some(250), vec![227, 277]));
    assert_eq!((answer["needs"]["servers"].as_u64(), answer["needs"]["servers_safe"].as_u64()), (Some(1), Some(2)));
}

#[test]
fn a_runs_load_line_is_taken_with_its_interval() {
    let place = std::env::temp_dir().join(format!("loadline-sizing-{}", std::process::id()));
    let study = "name = \"line\"\n[database]\nname = \"simulated\"\nconfig = { service = \"2ms\" }\n[workload]\nname = \"write\"\n\
                 [load]\nclients = 8\nduration = \"1s\"\nwarmup = \"200ms\"\n[repeat]\nleast = 2\nmost = 3\nwithin = 0.3\n";
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("line.toml"), study).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    let run = command.current_dir(&place).args(["run", "line.toml", "--out", "run"]).output().unwrap();
    assert!(place.join("run/trials.jsonl").exists(), "{}", String::from_utf8_lossy(&run.stderr));
    let answer = document(&format!("--block 4KB --every 100ms --run {}", place.join("run").display()));
    assert_eq!(answer["bottleneck"], "database");
    let (low, high) = (answer["sources_ci95"][0].as_u64().unwrap(), answer["sources_ci95"][1].as_u64().unwrap());
    // A server of 2 ms carries 500 operations a second: 50 sources of 10 blocks each. On a busy machine it carries what the run says.
    let report =
        Command::new(env!("CARGO_BIN_EXE_loadline")).current_dir(&place).args(["report", "run", "--json"]).output();
    let report: serde_json::Value = serde_json::from_slice(&report.unwrap().stdout).unwrap();
    let carried = report["cases"][0]["throughput_per_s"]["mean"].as_f64().unwrap();
    let usable = answer["limits"][0]["usable"].as_f64().unwrap();
    assert!((usable / carried - 1.0).abs() < 0.01 && usable < 600.0, "{carried}: {answer}");
    assert!(low <= high && answer["sources"].as_u64() == Some((usable / 10.0) as u64), "{answer}");
    assert!(answer["notes"][0]["kind"] == "no_load_line", "{answer}");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn wrong_requests_name_option_value_and_remedy() {
    for (arguments, expected) in [
        ("--block 2MB", "nothing is told of the server; name at least one of --server-link"),
        ("--block 2 --server-link 1GB", "--server-link: \"1GB\" is not a rate; write a number and a unit"),
        ("--block x --server-link 1Gbit/s", "--block: \"x\" is not a size"),
        ("--block 0 --server-link 1Gbit/s", "--block: 0 is not possible; it must be more than zero"),
        ("--block 2MB --processing 22ms..18ms", "--processing: \"22ms..18ms\" begins above its end"),
        ("--block 2MB --disk 85MB --use-at-most 1.5", "--use-at-most: 1.5 is more than all"),
        ("--block 2MB --load-line many", "--load-line: \"many\" is not a number"),
        ("--block 2MB --run nowhere", "nowhere"),
    ] {
        let output = loadline(&format!("size {arguments}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(expected), "{arguments}: {said}");
    }
}
