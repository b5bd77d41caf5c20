//! The bundled studies of cameras, rehearsed: every acknowledged block is accounted for, and every claim is one that such data can judge.

use serde_json::Value;

use super::program::{loadline, place};

/// A bundled study with few cases and a trial of each; its findings and its trials.
fn rehearse(study: &str, sets: &[&str]) -> (Value, Vec<Value>) {
    let place = place(study, "");
    let mut arguments = vec!["run", study, "--quick", "--json", "--out", "run"];
    let once = ["repeat.rule=fixed", "repeat.least=1", "repeat.most=1"];
    once.iter().chain(sets).for_each(|set| arguments.extend(["--set", set]));
    let output = loadline(&place, &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{study}: {said}"));
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap();
    let page = std::fs::read_to_string(place.join("run/report.html")).unwrap();
    assert!(page.contains("Blocks taken in") && page.contains("bit/s"), "{study}");
    std::fs::remove_dir_all(&place).unwrap();
    (findings, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// What holds of every trial on a machine however busy: nothing was lost, and nothing is wrong but times.
fn check(study: &str, cases: usize, (findings, trials): &(Value, Vec<Value>)) {
    assert_eq!((&findings["study"], trials.len()), (&study.into(), cases));
    for trial in trials {
        let (levels, recorded) = (&trial["trial"]["case"]["levels"], &trial["recorded"]);
        let count =
            |name: &str| recorded[name].as_u64().unwrap_or_else(|| panic!("{study}: {}", trial["invalid_because"]));
        assert!(count("acknowledged") > 0 && count("found") >= count("acknowledged"), "{study} {levels}: {recorded}");
        assert_eq!((count("missing"), count("surplus"), count("quarantined")), (0, 0, 0), "{study} {levels}");
        let reasons = trial["invalid_because"].as_array().unwrap();
        let is_time = |reason: &&Value| reason["kind"] == "sent_late" || reason["kind"] == "recorder_unanswered";
        assert!(reasons.iter().all(|reason| is_time(&reason)), "{study} {levels}: {reasons:?}");
    }
    for claim in findings["claims"].as_array().unwrap() {
        let evidence = claim["evidence"].as_str().unwrap();
        assert!(!evidence.contains("there is no metric"), "{study}: {claim}");
    }
}

#[test]
fn block_intake_is_rehearsed_over_a_link_with_a_tunnel_and_without() {
    if !super::is_root() {
        return;
    }
    let sets = ["link.rate=[\"100Mbit/s\"]", "link.tunnel=[\"none\",\"aes128-sha1\"]", "load.clients=[3]"];
    let seen = rehearse("block-intake", &sets);
    check("block-intake", 2, &seen);
    // An intake of the link's rate would be one of frames, with their headers.
    for case in seen.0["cases"].as_array().unwrap() {
        let bytes_per_s = case["uploads"]["intake_bytes_per_s"]["mean"].as_f64();
        assert!(bytes_per_s.is_none_or(|intake| 8.0 * intake < 100e6), "{case:#}");
    }
}

#[test]
fn block_intake_limit_is_rehearsed_with_limit_and_writer_and_without() {
    if !super::is_root() {
        return;
    }
    check("block-intake-limit", 4, &rehearse("block-intake-limit", &["load.clients=[3]"]));
}

#[test]
fn a_camera_fleet_is_rehearsed_and_tells_what_of_the_offered_is_carried() {
    if !super::is_root() {
        return;
    }
    let sets = ["load.clients=[3]", "link.rate=[\"384kbit/s\",\"5.76Mbit/s\"]"];
    let seen = rehearse("camera-fleet", &sets);
    check("camera-fleet", 2, &seen);
    let uploads = |place: usize, name: &str| seen.0["cases"][place]["uploads"][name].clone();
    let offered = uploads(0, "offered_bytes_per_s").as_f64();
    let carried = uploads(0, "intake_bytes_per_s")["mean"].as_f64();
    // 3 x 384 kbit/s are 144 kB/s, and the cameras make more than three times that.
    assert!(offered.is_none_or(|offered| offered > 400e3), "{offered:?}");
    assert!(
        carried.zip(offered).is_none_or(|(carried, offered)| carried < 0.7 * offered),
        "{carried:?} of {offered:?}"
    );
    let verdict = seen.0["verdicts"].to_string();
    assert!(offered.is_none() || verdict.contains("that 3 cameras offer"), "{verdict}");
}
