//! sysbench: report lines, histogram, errors, rates.

use loadline::imported::TimeKind::ResidenceTime;
use loadline::trial::Arrivals;

use crate::command::{Place, assert_near, loadline};

const SELECTS: [&str; 9] = [
    "select-1-1.txt",
    "select-1-2.txt",
    "select-1-3.txt",
    "select-2-1.txt",
    "select-2-2.txt",
    "select-2-3.txt",
    "select-4-1.txt",
    "select-4-2.txt",
    "select-4-3.txt",
];

#[test]
fn numbers_of_threads_are_a_factor_and_can_be_fitted() {
    let place = Place::new();
    let run = place.import("sysbench", &SELECTS, &[], 0);
    let factor = &run.file.study.factors[0];
    assert_eq!((factor.setting.as_str(), &factor.levels), ("load.clients", &vec![1.into(), 2.into(), 4.into()]));
    let operation = &run.measurements[0].operations["transaction"];
    let stated = &operation.stated[&ResidenceTime];
    // The sum is printed to 10 µs, so that the mean is finer than the printed one.
    assert_near(stated.mean_s.unwrap() * operation.completed as f64, 0.98967, 0.01);
    let findings = place.report();
    assert!(findings["cases"][0]["operations"]["transaction"]["empty"].is_null(), "sysbench does not look");
    assert!(findings["cases"][0]["records_per_s"]["mean"].is_null());
    let fit = loadline(&["fit", &place.path("run"), "--json"]);
    let fit: serde_json::Value = serde_json::from_slice(&fit.stdout).unwrap();
    assert_eq!(fit["points"], 3);
}

#[test]
fn the_histogram_is_rebuilt_with_the_exact_sum() {
    let trial = Place::new().trial("sysbench", &["histogram.txt"], 0);
    let times = &trial.operations["transaction"].residence_time;
    assert_eq!((times.count(), times.max_ns()), (298_407, 10_540_000));
    assert_near(times.mean_ns() * 298_407.0, 5_955.56e6, 1e-6);
    assert_near(times.quantile_ns(0.99) as f64, 42_000.0, 0.05);
    assert_eq!(trial.series.len(), 3);
    assert_near(trial.series.iter().map(|each| each.completed as f64).sum(), 298_215.0, 0.001);
}

#[test]
fn with_a_rate_times_are_response_times_and_arrivals_are_open() {
    let trial = Place::new().trial("sysbench", &["rate.txt"], 0);
    let operation = &trial.operations["transaction"];
    assert_eq!((operation.response_time.count(), operation.residence_time.count()), (582, 0));
    let load = &trial.trial.case.settings.load;
    assert_eq!((load.arrivals, load.rate_per_s, trial.carried), (Arrivals::Poisson, Some(200.0), Some(582)));
}

#[test]
fn ignored_errors_missed_rates_and_dead_runs_are_invalid() {
    let errors = Place::new().trial("sysbench", &["errors.txt"], 1);
    assert_eq!((errors.failed(), errors.completed()), (133, 5213));
    assert!(errors.invalid_because[0].to_string().starts_with("133 of 5346 operations failed"));
    let overload = Place::new().trial("sysbench", &["overload.txt"], 1);
    assert!(
        overload.invalid_because.iter().any(|why| why.to_string().contains("of 3,000/s were reached")),
        "{:?}",
        overload.invalid_because
    );
    let place = Place::new();
    let dead = place.trial("sysbench", &["full.txt"], 1);
    assert!(
        dead.invalid_because[0].to_string().starts_with("sysbench ended with \"The event queue is full"),
        "{:?}",
        dead.invalid_because
    );
    assert_eq!(place.report()["valid"], false);
}
