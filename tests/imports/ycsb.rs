//! YCSB: what its text and JSON output, its status lines and its histograms become.

use loadline::imported::TimeKind::{ResidenceTime, ResponseTime};
use loadline::trial::Arrivals;

use crate::command::{Place, assert_near, loadline};

const RUNS: [&str; 6] = ["osc-a-1.txt", "osc-a-2.txt", "osc-a-3.txt", "json-a-1.txt", "json-a-2.txt", "json-a-3.txt"];

#[test]
fn files_of_the_same_levels_are_repetitions_and_the_alternatives_are_compared() {
    let place = Place::new();
    let run = place.import("ycsb", &RUNS, &["--pattern", "{layout.name}-a-*"], 0);
    assert_eq!((run.file.study.cases.len(), run.measurements.len()), (2, 6));
    let settings = &run.measurements[0].trial.case.settings;
    assert_eq!((settings.load.clients, settings.workload.name.as_str()), (1, "ycsb-a"));
    let findings = place.report();
    let first = &findings["cases"][0];
    assert_eq!(first["levels"]["layout.name"], "osc");
    assert_eq!((&first["trials"], &findings["imported_from"]), (&3.into(), &"YCSB".into()));
    let verdict = findings["verdicts"][0]["says"].as_str().unwrap();
    assert!(verdict.starts_with("osc is fastest: 1.5"), "{verdict}");
    let score = loadline(&["score", &place.path("run"), "--json"]);
    let score: serde_json::Value = serde_json::from_slice(&score.stdout).unwrap();
    assert_eq!(score["ranking"], serde_json::json!(["osc", "json"]));
    assert!(score["alternatives"][1]["total_ci95"].is_array());
}

#[test]
fn the_first_repetition_can_be_discarded_as_in_the_paper() {
    let place = Place::new();
    place.import("ycsb", &RUNS, &["--pattern", "{layout.name}-a-*", "--discard-first"], 0);
    let findings = place.report();
    assert_eq!((&findings["cases"][0]["trials"], &findings["cases"][0]["discarded"]), (&2.into(), &1.into()));
}

#[test]
fn what_is_not_told_is_null_and_never_zero() {
    let place = Place::new();
    place.import("ycsb", &RUNS, &["--pattern", "{layout.name}-a-*"], 0);
    let findings = place.report();
    let read = &findings["cases"][0]["operations"]["read"];
    assert!(read["response_time_s"]["mean"].is_null() && read["schedule_lag_s"]["p99"].is_null());
    // Percentiles of three runs do not give that of all; means do.
    assert!(read["residence_time_s"]["p99"].is_null() && read["residence_time_s"]["mean"].is_number());
    assert_eq!(read["empty"], 0, "YCSB tells of reads that found nothing");
    assert!(findings["cases"][0]["client_cpu_s_per_operation"].is_null());
    assert!(findings["cases"][0]["resources"].is_null() && findings["cases"][0]["generator_late_s"]["p99"].is_null());
    let exported = loadline(&["export", &place.path("run"), "--format", "csv", "--out", &place.path("csv")]);
    assert!(exported.status.success());
    let csv = std::fs::read_to_string(place.0.join("csv/trials.csv")).unwrap();
    assert!(!csv.contains("NaN") && !csv.contains("inf"), "{csv}");
    let column = |name: &str, line: usize| {
        let place = csv.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
        csv.lines().nth(line).unwrap().split(',').nth(place).unwrap().to_owned()
    };
    assert_eq!((column("response_time_s_mean", 1), column("client_cpu_s", 1)), (String::new(), String::new()));
    assert!(column("residence_time_s_p99", 1).parse::<f64>().unwrap() > 0.0, "a run's own percentile is known");
}

#[test]
fn reads_that_found_nothing_make_a_run_invalid_although_ycsb_exits_with_0() {
    let place = Place::new();
    let trial = place.trial("ycsb", &["missing.txt"], 1);
    assert_eq!((trial.completed(), trial.failed()), (900, 100));
    assert_eq!(trial.errors["READ returned NOT_FOUND"], 100);
    assert!(
        trial.invalid_because[0].to_string().starts_with("100 of 1000 operations failed"),
        "{:?}",
        trial.invalid_because
    );
    let tolerant = Place::new();
    tolerant.import("ycsb", &["missing.txt"], &["--level", "load.tolerated_failures=0.2"], 0);
}

#[test]
fn a_read_modify_write_is_one_operation_as_ycsb_counts() {
    let place = Place::new();
    let trial = place.trial("ycsb", &["f.txt"], 0);
    assert!(trial.operations["read-modify-write"].composite);
    assert_near(trial.throughput_per_s(), 1000.0 / 0.9, 1e-12);
    assert_eq!(trial.completed(), 1500, "reads and updates, each once");
    assert_eq!(trial.trial.case.settings.workload.name, "ycsb-f");
}

#[test]
fn a_verbose_histogram_is_rebuilt_and_percentiles_alone_are_not() {
    let place = Place::new();
    let verbose = place.trial("ycsb", &["verbose.txt"], 0);
    let read = &verbose.operations["read"];
    assert!(read.stated.is_empty() && read.response_time.count() == 0);
    assert_eq!((read.residence_time.count(), read.residence_time.max_ns()), (1000, 2_503_000));
    assert_near(read.residence_time.quantile_ns(0.5) as f64, 250_000.0, 0.005);
    assert_near(read.residence_time.quantile_ns(0.99) as f64, 1_011_000.0, 0.005);
    let json = Place::new().trial("ycsb", &["measurements.json"], 0);
    let stated = &json.operations["read"].stated[&ResidenceTime];
    assert_eq!((stated.mean_s, stated.quantile_s(0.99)), (Some(0.000_312_5), Some(0.0009)));
    assert_eq!(json.operations["read"].residence_time.count(), 0);
    let coarse = Place::new().trial("ycsb", &["milliseconds.txt"], 0);
    assert_eq!(coarse.operations["read"].stated[&ResidenceTime].quantiles, [(0.95, 0.031), (0.99, 0.057)]);
    let raw = Place::new().trial("ycsb", &["raw.txt"], 0);
    assert_eq!(raw.operations["read"].residence_time.sum_ns(), (100..120).map(|us| us * 1000).sum());
}

#[test]
fn intended_times_are_response_times_under_a_target() {
    let trial = Place::new().trial("ycsb", &["target.txt"], 0);
    let read = &trial.operations["read"];
    assert_eq!(trial.trial.case.settings.load.arrivals, Arrivals::Constant);
    assert_eq!(trial.trial.case.settings.load.rate_per_s, Some(1000.0));
    assert_eq!(
        (read.stated[&ResidenceTime].mean_s, read.stated[&ResponseTime].mean_s),
        (Some(0.000_29), Some(0.000_64))
    );
    assert_eq!(trial.series.iter().map(|each| each.completed).collect::<Vec<_>>(), [990, 1010]);
}

#[test]
fn alternatives_are_compared_by_what_is_told_and_the_rest_is_named() {
    let place = Place::new();
    place.import("ycsb", &RUNS, &["--pattern", "{layout.name}-a-*"], 0);
    let run = place.path("run");
    let found = loadline(&["compare", &run, "--metric", "residence_time_p99", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let comparisons = found["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2, "reading and updating");
    assert!(comparisons.iter().all(|one| one["verdict"] == "faster"), "{found}");
    let refused = loadline(&["compare", &run, "--metric", "response_time_p99"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("YCSB does not tell response_time_p99, but throughput"), "{message}");
}

#[test]
fn the_log_of_ycsbs_own_cleanup_is_no_operation() {
    let place = Place::new();
    let copy = |sample: &str, name: &str| {
        let text = std::fs::read_to_string(crate::command::sample("ycsb", sample)).unwrap();
        place.write(name, &text)
    };
    // What is in it does not matter: it tells how long YCSB's clients took to end.
    let (output, cleanup) = (copy("osc-a-1.txt", "osc.txt"), place.write("CLEANUP.hdr", "#[CLEANUP]\n"));
    let imported = loadline(&["import", "ycsb", "--out", &place.path("run"), &output, &cleanup]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let operations = &place.report()["cases"][0]["operations"];
    assert_eq!(operations.as_object().unwrap().keys().collect::<Vec<_>>(), ["read", "update"]);
}

#[test]
fn different_numbers_of_threads_are_no_repetitions() {
    let place = Place::new();
    let text = std::fs::read_to_string(crate::command::sample("ycsb", "osc-a-1.txt")).unwrap();
    let one = place.write("one.txt", &text);
    let eight = place.write("eight.txt", &text.replace("-threads 1", "-threads 8"));
    let imported = loadline(&["import", "ycsb", "--out", &place.path("run"), &one, &eight]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let cases = &place.report()["cases"];
    let clients: Vec<_> = cases.as_array().unwrap().iter().map(|case| case["levels"]["load.clients"].clone()).collect();
    assert_eq!(clients, [serde_json::json!(1), serde_json::json!(8)]);
}
