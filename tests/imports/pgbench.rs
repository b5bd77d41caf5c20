//! pgbench: summaries, logs of transactions, aggregated logs.

use loadline::imported::TimeKind::{ResidenceTime, ResponseTime, ScheduleLag};
use loadline::store::Run;
use loadline::trial::Arrivals;

use crate::command::{Place, assert_near, loadline};

#[test]
fn a_log_with_schedule_lag_gives_all_three_times_of_every_transaction() {
    let place = Place::new();
    let trial = place.trial("pgbench", &["rate.txt", "rate.17126", "rate.17126.1"], 0);
    let operation = &trial.operations["transaction"];
    assert_eq!((operation.completed, trial.client_count()), (240, 4));
    let sum_us = |column: usize| -> u64 {
        let text = ["rate.17126", "rate.17126.1"]
            .map(|name| std::fs::read_to_string(crate::command::sample("pgbench", name)).unwrap())
            .concat();
        text.lines().map(|line| line.split(' ').nth(column).unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(operation.response_time.sum_ns(), u128::from(sum_us(2)) * 1000);
    assert_eq!(operation.schedule_lag.sum_ns(), u128::from(sum_us(6)) * 1000);
    assert_eq!(operation.residence_time.sum_ns(), u128::from(sum_us(2) - sum_us(6)) * 1000);
    assert_eq!(trial.trial.case.settings.load.arrivals, Arrivals::Poisson);
    assert!(trial.started.starts_with("2026-11-21T"), "{}", trial.started);
    assert_eq!(trial.series.iter().map(|each| each.completed).sum::<u64>(), 240);
    let findings = place.report();
    assert!(findings["cases"][0]["offered_per_s"].as_f64().unwrap() > 100.0);
}

#[test]
fn scripts_are_kinds_of_operation_with_times_from_sending() {
    let trial = Place::new().trial("pgbench", &["scripts.txt", "scripts.17172"], 0);
    assert_eq!(trial.operations.keys().collect::<Vec<_>>(), ["select-only", "simple-update"]);
    assert_eq!(trial.completed(), 80);
    let select = &trial.operations["select-only"];
    assert!(select.residence_time.count() == select.completed && select.response_time.count() == 0);
}

#[test]
fn a_summary_alone_gives_throughput_mean_and_course() {
    let trial = Place::new().trial("pgbench", &["progress.txt"], 0);
    let operation = &trial.operations["transaction"];
    assert_near(trial.throughput_per_s() * trial.measured_s, operation.completed as f64, 1e-9);
    assert!(operation.stated[&ResidenceTime].mean_s.is_some() && operation.stated[&ResidenceTime].quantiles.is_empty());
    assert_eq!(trial.series.len(), 2);
    assert_eq!(
        (trial.trial.case.settings.workload.name.as_str(), trial.trial.case.settings.record.rows),
        ("tpcb-like", 100_000)
    );
}

#[test]
fn an_aggregated_log_gives_the_course_and_no_percentiles() {
    let both = Place::new().trial("pgbench", &["aggregated.txt", "aggregated.17140"], 0);
    let operation = &both.operations["transaction"];
    assert_eq!(operation.completed, 786, "the summary counts the interval that the log lacks too");
    assert_near(operation.stated[&ResponseTime].mean_s.unwrap(), 0.000_682, 1e-9);
    assert_near(operation.stated[&ScheduleLag].max_s.unwrap(), 0.008_37, 1e-9);
    assert_eq!(both.series.iter().map(|each| each.completed).sum::<u64>(), 128 + 189 + 184 + 200);
    let alone = Place::new().trial("pgbench", &["aggregated.17140"], 0);
    assert_eq!(
        (alone.completed(), alone.measured_s),
        (189 + 184 + 200, 3.0),
        "without the interval that the run began in"
    );
    assert!(alone.operations["transaction"].stated[&ResponseTime].quantiles.is_empty());
}

#[test]
fn failed_and_skipped_transactions_make_a_run_invalid() {
    let failed = Place::new().trial("pgbench", &["failed.txt", "failed.17179"], 1);
    assert_eq!((failed.completed(), failed.failed(), failed.errors["serialization failure"]), (81, 19, 19));
    let skipped = Place::new().trial("pgbench", &["limit.txt", "limit.17136"], 1);
    assert!(skipped.failed() > 0 && skipped.scheduled() == skipped.completed() + skipped.failed());
    assert!(skipped.errors.keys().any(|reason| reason.starts_with("skipped")), "{:?}", skipped.errors);
}

#[test]
fn summaries_of_several_numbers_of_clients_are_a_ramp() {
    let names: Vec<String> = [1, 2, 4]
        .iter()
        .flat_map(|clients| (1..=3).map(move |round| format!("select-{clients}-{round}.txt")))
        .collect();
    let place = Place::new();
    let run = place.import("pgbench", &names.iter().map(String::as_str).collect::<Vec<_>>(), &[], 0);
    assert_eq!(run.file.study.cases.len(), 3);
    let report = loadline(&["report", &place.path("run")]);
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("residence") && !text.contains("response   "), "{text}");
    let page = std::fs::read_to_string(place.0.join("run/report.html")).unwrap();
    assert!(page.contains("as the tool states it") && page.contains("loadline import") || page.contains("Imported"));
    assert!(!page.contains("0 CPUs"), "nothing is known of the machine");
}

#[test]
fn the_log_of_a_single_thread_is_a_whole_run() {
    let trial = Place::new().trial("pgbench", &["scripts.17172"], 0);
    assert!(trial.is_valid() && trial.completed() == 80, "{} transactions", trial.completed());
}

#[test]
fn the_logs_of_all_threads_are_one_run_and_those_of_some_are_invalid() {
    let text = std::fs::read_to_string(crate::command::sample("pgbench", "scripts.17172")).unwrap();
    let imported = |names: &[&str]| {
        let place = Place::new();
        let files: Vec<String> = names.iter().map(|name| place.write(name, &text)).collect();
        let out = place.path("run");
        let mut arguments = vec!["import", "pgbench", "--out", &out];
        arguments.extend(files.iter().map(String::as_str));
        let status = loadline(&arguments).status.code();
        let mut run = Run::open(&place.0.join("run")).unwrap();
        assert_eq!(run.measurements.len(), 1, "{names:?} are one run");
        (status, run.measurements.remove(0))
    };
    let (status, all) = imported(&["log.500.1", "log.500"]);
    assert_eq!((status, all.completed(), all.imported.unwrap().files.len()), (Some(0), 160, 1));
    let (status, some) = imported(&["log.500.1"]);
    assert_eq!((status, some.is_valid()), (Some(1), false));
    let reason = &some.invalid_because[0].to_string();
    assert!(reason.contains("log.500 is missing") && reason.ends_with("give all of them"), "{reason}");
}

#[test]
fn different_numbers_of_threads_are_different_cases() {
    let place = Place::new();
    let text = std::fs::read_to_string(crate::command::sample("pgbench", "select-4-1.txt")).unwrap();
    let (one, two) = (place.write("one.txt", &text), text.replace("number of threads: 1", "number of threads: 2"));
    let two = place.write("two.txt", &two);
    let output = loadline(&["import", "pgbench", "--out", &place.path("run"), &one, &two]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cases = &place.report()["cases"];
    assert_eq!(cases.as_array().unwrap().len(), 2, "{cases}");
    assert_eq!((&cases[0]["levels"]["load.loops"], &cases[1]["levels"]["load.loops"]), (&1.into(), &2.into()));
}
