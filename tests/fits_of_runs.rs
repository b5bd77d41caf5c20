//! Fits on the path that users take: trials of simulated servers as a run stores them, their points, and what the fit says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

#[path = "queueing/simulation.rs"]
#[expect(dead_code, reason = "the other tests of queueing use the rest")]
mod simulation;

use loadline::measurement::{Measurement, OperationMeasurement};
use loadline::queueing::fit::{Fit, FitReport, Request, fit};
use loadline::queueing::{Points, Timer};
use loadline::report::analyse::group;
use loadline::report::points::curves;
use loadline::statistics::random::Random;
use loadline::study::Study;
use loadline::trial::{Arrivals, Case, Trial};
use serde_json::json;
use simulation::{exponential, servers_response_s};

#[path = "report/synthetic.rs"]
#[expect(dead_code, reason = "the tests of reports use the rest")]
mod synthetic;

/// A delay in front of the server, in seconds.
const DELTA_S: f64 = 0.0016;
/// Length of a trial: 30 relaxation times of M/M/1 with 1,000/s at 900/s.
const SECONDS: f64 = 12.0;
/// Shares of the capacity.
const SHARES: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9];

/// Response times of so many operations of a simulated server, from the rate of arrivals.
type Server = fn(&mut Random, f64, usize) -> Vec<f64>;

fn mm1(random: &mut Random, rate_per_s: f64, count: usize) -> Vec<f64> {
    simulation::mm1_response_s(random, rate_per_s, 1000.0, count)
}

fn four_servers(random: &mut Random, rate_per_s: f64, count: usize) -> Vec<f64> {
    servers_response_s(random, rate_per_s, 250.0, 4, count)
}

/// A study of six rates of a server of 1,000/s.
fn study() -> Study {
    let rates = SHARES.map(|share| share * 1000.0);
    let mut study = synthetic::study(&[("load.rate", rates.map(|rate| json!(rate)).to_vec())]);
    for (case, rate) in study.cases.iter_mut().zip(rates) {
        (case.settings.load.arrivals, case.settings.load.rate_per_s) = (Arrivals::Poisson, Some(rate));
        case.settings.load.clients = 64;
        *case = Case::new(case.levels.clone(), case.settings.clone());
    }
    study
}

/// One trial as a run stores it: counts and histograms of what arrived within its seconds.
fn trial(trial: Trial, random: &mut Random, server: Server) -> Measurement {
    let rate_per_s = trial.case.settings.load.rate_per_s.unwrap();
    // A Poisson number of arrivals, from the times between them.
    let mut count = 0;
    let mut at_s = exponential(random, rate_per_s);
    while at_s < SECONDS {
        count += 1;
        at_s += exponential(random, rate_per_s);
    }
    let mut read = OperationMeasurement { scheduled: count, completed: count, ..Default::default() };
    // The first tenth warms up.
    let (warm, count) = (count as usize / 10, count as usize);
    for response_s in server(random, rate_per_s, count + warm).split_off(warm) {
        let response_ns = ((response_s + DELTA_S) * 1e9) as u64;
        read.response_time.record(response_ns);
        read.residence_time.record(response_ns);
    }
    Measurement {
        measured_s: SECONDS,
        carried: Some(count as u64),
        operations: [("read".to_owned(), Box::new(read))].into(),
        ..Measurement::unmeasured(&trial)
    }
}

fn points(study: &Study, trials: u32, seed: u64, server: Server) -> Points {
    let mut random = Random::new(seed);
    let mut measurements = Vec::new();
    for round in 0..trials {
        for case in &study.cases {
            measurements.push(trial(Trial::new(case.clone(), round, seed), &mut random, server));
        }
    }
    let groups = group(study, &measurements);
    let mut curves = curves(&groups, Timer::Intended, None, &Default::default());
    assert_eq!(curves.len(), 1);
    curves.remove(0).points
}

fn fitted(points: &Points, model: &str) -> FitReport {
    fit(points, &Request { model: model.to_owned(), ..Request::default() }).unwrap()
}

fn holds(fit: &Fit, name: &str, truth: f64) -> bool {
    let range = fit.parameter(name).unwrap().ci95.unwrap();
    range.low <= truth && truth <= range.high
}

const RUNS: u64 = 40;
/// With 95 % each, fewer of 40 hold the truth once in 1,000.
const HELD_LEAST: usize = 33;

#[test]
fn intervals_of_mm1_from_three_trials_a_rate_hold_the_truth_and_the_true_model_is_not_contradicted() {
    let study = study();
    let (mut mu, mut delta, mut contradicted) = (0, 0, 0);
    for seed in 0..RUNS {
        let points = points(&study, 3, seed, mm1);
        assert!(points.0.iter().all(|point| point.trials == Some(3)), "errors say from how many trials they are");
        let report = fitted(&points, "mm1");
        mu += usize::from(holds(&report.fits[0], "mu_per_s", 1000.0));
        delta += usize::from(holds(&report.fits[0], "delta_s", DELTA_S));
        contradicted += usize::from(report.says_whether("mm1") == Some(false));
    }
    assert!(mu >= HELD_LEAST, "mu lies within its 95 % interval in {mu} of {RUNS}");
    assert!(delta >= HELD_LEAST, "delta lies within its 95 % interval in {delta} of {RUNS}");
    // Asked for are at most 5.5 %, of which 7 of 40 are exceeded once in 1,000.
    assert!(contradicted <= 7, "the true model is contradicted in {contradicted} of {RUNS}");
}

#[test]
fn intervals_of_several_servers_hold_the_truth_though_their_number_is_not_known() {
    let study = study();
    let (mut servers, mut mu, mut capacity) = (0, 0, 0);
    for seed in 0..RUNS / 2 {
        let report = fitted(&points(&study, 3, seed, four_servers), "mmc");
        let fit = &report.fits[0];
        servers += usize::from(holds(fit, "servers", 4.0));
        mu += usize::from(holds(fit, "mu_per_s", 250.0));
        let range = fit.capacity_ci95.unwrap();
        capacity += usize::from(range.low <= 1000.0 && 1000.0 <= range.high);
    }
    // With 95 % each, fewer of 20 hold the truth once in 1,000.
    assert!(servers >= 15 && mu >= 15 && capacity >= 15, "{servers}, {mu} and {capacity} of {}", RUNS / 2);
}
