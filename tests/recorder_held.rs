//! The rate that the recorder takes from a run keeps the bound that it was given: held against simulated servers, through the program that
//! is started, its log and its `/metrics`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/model.rs"]
mod model;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "report/synthetic.rs"]
mod synthetic;

use std::collections::VecDeque;
use std::process::Command;

use harness::{Directory, Target};
use loadline::measurement::Measurement;
use loadline::queueing::load_line::{Step, next};
use loadline::statistics::random::Random;
use loadline::store::RunDirectory;
use loadline::study::{Goal, Study, bound, goal};
use loadline::trial::{Arrivals, Case, Trial};
use model::answered;
use process::{Process, config_file, database_of};
use serde_json::json;
use synthetic::{environment, measurements, study};

const BATCH: u32 = 50;
const QUANTILE: f64 = 0.99;

/// Response times in seconds of a server at an arrival rate, so many of them, from a seed.
type Server = fn(f64, usize, u64) -> Vec<f64>;

fn exponential(random: &mut Random, rate_per_s: f64) -> f64 {
    -(1.0 - random.unit()).ln() / rate_per_s
}

/// First come first served with one server: Lindley's recursion, after a warm-up.
fn one_server(rate_per_s: f64, count: usize, seed: u64, service_s: impl Fn(&mut Random) -> f64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let mut waits_s = 0.0_f64;
    let mut times_s = Vec::with_capacity(count);
    for place in 0..count + count / 10 {
        let served_s = service_s(&mut random);
        if place >= count / 10 {
            times_s.push(waits_s + served_s);
        }
        waits_s = (waits_s + served_s - exponential(&mut random, rate_per_s)).max(0.0);
    }
    times_s
}

/// M/G/1 with two service times: 2 ms, and 30 ms for one in twenty. It takes 294 a second.
fn two_services(rate_per_s: f64, count: usize, seed: u64) -> Vec<f64> {
    one_server(rate_per_s, count, seed, |random| if random.unit() < 0.05 { 0.030 } else { 0.002 })
}

/// Services of two phases, most short and some very long: its mean is that of M/M/1 scaled by 6.4 beside its capacity of 250 a second.
fn very_variable(rate_per_s: f64, count: usize, seed: u64) -> Vec<f64> {
    let service_s = |random: &mut Random| {
        let mean_s = if random.unit() < 0.1 { 0.0220 } else { 0.0020 };
        exponential(random, 1.0 / mean_s)
    };
    one_server(rate_per_s, count, seed, service_s)
}

/// Kihl and others' load-dependent server in series: eight workers, 1 ms alone, 8 % more for each that is there.
fn load_dependent(rate_per_s: f64, count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let (mut now_s, mut present, mut times_s) = (0.0, VecDeque::new(), Vec::new());
    while times_s.len() < count + count / 10 {
        let at_server = present.len().min(8) as i32;
        let completions = if at_server == 0 { 0.0 } else { 1000.0 / 1.08_f64.powi(at_server - 1) };
        now_s += exponential(&mut random, rate_per_s + completions);
        if random.unit() * (rate_per_s + completions) < rate_per_s {
            present.push_back(now_s);
        } else if let Some(begun_s) = present.pop_front() {
            times_s.push(now_s - begun_s);
        }
    }
    times_s.split_off(count / 10)
}

fn quantile_s(mut times_s: Vec<f64>) -> f64 {
    times_s.sort_by(f64::total_cmp);
    times_s[(QUANTILE * times_s.len() as f64) as usize]
}

fn study_at(rates: &[f64]) -> Study {
    let mut study = study(&[("load.rate", rates.iter().map(|rate| json!(rate)).collect())]);
    study.base.workload.batch = BATCH;
    study.base.load.clients = 8;
    for (case, rate) in study.cases.iter_mut().zip(rates) {
        (case.settings.load.arrivals, case.settings.load.rate_per_s) = (Arrivals::Poisson, Some(*rate));
        (case.settings.load.clients, case.settings.workload.batch) = (8, BATCH);
        *case = Case::new(case.levels.clone(), case.settings.clone());
    }
    study
}

/// A run of a server at these rates, six trials each.
fn run_of(directory: &Directory, name: &str, rates: &[f64], server: Server) -> String {
    run_of_study(directory, name, &study_at(rates), server)
}

fn run_of_study(directory: &Directory, name: &str, study: &Study, server: Server) -> String {
    let path = directory.path(name);
    let mut run =
        RunDirectory::create(std::path::Path::new(&path), study, environment(), "2026-11-22T00:00:00Z").unwrap();
    for (place, mut trial) in measurements(study, 6).into_iter().enumerate() {
        let rate = trial.trial.case.settings.load.rate_per_s.unwrap();
        answered(&mut trial, &server(rate, 8_000, 100 + place as u64));
        run.append(&trial, &[]).unwrap();
    }
    path
}

fn admission(run: &str, below_ms: f64) -> String {
    format!("[admission]\nmodel = \"{run}\"\nquantile = {QUANTILE}\nbelow = \"{below_ms}ms\"\n")
}

/// The rate that a recorder holds, in transactions a second, and what it says of it.
fn held(directory: &Directory, run: &str, below_ms: f64) -> (f64, String) {
    let target = Target::sqlite(directory);
    let process = Process::start(&config_file(directory, &database_of(&target), &admission(run, below_ms)), "");
    let rate = process.metric("loadline_admission_rate_rows_per_second") / f64::from(BATCH);
    let said = process.said();
    assert_eq!(process.stop(), Some(0));
    assert!(said.contains(&format!("p99 of commit times below {below_ms}")), "{said}");
    (rate, said)
}

fn refused(directory: &Directory, run: &str, below_ms: f64) -> String {
    let database = format!("path = \"{}\"", directory.path("refused.db"));
    let config = config_file(directory, &database, &admission(run, below_ms));
    let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    said
}

#[test]
fn a_bound_that_was_exceeded_at_the_lowest_rate_measured_is_refused() {
    let directory = Directory::new();
    // A server that is slow for one in fifty: p99 is 135 ms at 20/s, while means grow as in M/M/1.
    let server: Server = |rate, count, seed| {
        let mut random = Random::new(seed);
        let time_s = |_| if random.unit() < 0.02 { 0.135 } else { exponential(&mut random, 100.0 - rate) };
        (0..count).map(time_s).collect()
    };
    let run = run_of(&directory, "slow", &[20.0, 30.0, 40.0, 50.0, 60.0, 70.0], server);
    let said = refused(&directory, &run, 100.0);
    assert!(said.contains("13") && said.contains("the lowest rate measured; measure at lower rates"), "{said}");
}

/// Holds a server at a bound: the rate must keep it, in a simulation of its own, and must not be far below what would.
fn assert_held(server: Server, rates: &[f64], below_ms: f64, least: f64) {
    let directory = Directory::new();
    let run = run_of(&directory, "run", rates, server);
    let (rate, said) = held(&directory, &run, below_ms);
    let true_ms = 1e3 * quantile_s(server(rate, 400_000, 1));
    // The quantiles of six trials of 8,000 times at the rates around it are themselves uncertain.
    assert!(true_ms <= 1.08 * below_ms, "{rate}/s: {true_ms} ms for a bound of {below_ms} ms; {said}");
    let more_ms = 1e3 * quantile_s(server(rate / least, 400_000, 2));
    assert!(more_ms > below_ms, "{rate}/s is less than {least} of what keeps the bound; {said}");
}

#[test]
fn services_of_two_lengths_are_held_or_refused_by_what_was_measured() {
    let rates = [40.0, 80.0, 120.0, 160.0, 200.0, 230.0];
    assert_held(two_services, &rates, 70.0, 0.8);
    // Nothing keeps 25 ms: one in twenty takes 30.
    let directory = Directory::new();
    let run = run_of(&directory, "run", &rates, two_services);
    assert!(refused(&directory, &run, 25.0).contains("lowest rate measured"));
}

#[test]
fn a_model_of_means_alone_does_not_put_the_mean_below_the_bound() {
    assert_held(very_variable, &[20.0, 50.0, 80.0, 110.0, 140.0, 170.0, 200.0], 160.0, 0.75);
}

#[test]
fn a_load_dependent_server_is_held_with_the_workers_that_the_run_knows() {
    assert_held(load_dependent, &[150.0, 250.0, 350.0, 420.0, 480.0, 530.0], 12.0, 0.8);
}

#[test]
fn beyond_what_was_measured_a_model_is_followed_no_further_than_a_tenth() {
    let directory = Directory::new();
    let server: Server = |rate, count, seed| one_server(rate, count, seed, |random| exponential(random, 1000.0));
    let run = run_of(&directory, "run", &[100.0, 200.0, 300.0, 400.0, 500.0], server);
    let (rate, said) = held(&directory, &run, 100.0);
    assert!((rate / 550.0 - 1.0).abs() < 0.02 && said.contains("nothing was measured above"), "{rate} {said}");
    assert!(said.contains("that of the study's own tables"), "{said}");
}

#[test]
fn a_line_of_a_recorders_own_tables_is_held_as_it_is() {
    let directory = Directory::new();
    let server: Server = |rate, count, seed| one_server(rate, count, seed, |random| exponential(random, 1000.0));
    let mut study = study_at(&[100.0, 200.0, 300.0, 400.0, 500.0]);
    study.base.layout.tables_as_recorded = true;
    for case in &mut study.cases {
        case.settings.layout.tables_as_recorded = true;
        *case = Case::new(case.levels.clone(), case.settings.clone());
    }
    let run = run_of_study(&directory, "run", &study, server);
    let (rate, said) = held(&directory, &run, 100.0);
    assert!((rate / 550.0 - 1.0).abs() < 0.02 && !said.contains("own tables"), "{rate} {said}");
}

#[test]
fn a_verified_load_line_is_held_for_its_bound_and_for_weaker_ones() {
    let directory = Directory::new();
    let server: Server = |rate, count, seed| one_server(rate, count, seed, |random| exponential(random, 1000.0));
    let mut study = study_at(&[100.0]);
    (study.cases[0].settings.load.rate_per_s, study.base.load.rate_per_s) = (None, Some(100.0));
    (study.base.load.arrivals, study.factors) = (Arrivals::Poisson, Vec::new());
    study.cases[0] = Case::new(Default::default(), study.cases[0].settings.clone());
    let wanted = Goal { quantile: QUANTILE, below_s: 0.02, within: 0.05 };
    study.goal = Some(wanted.clone());
    let path = directory.path("line");
    let mut run =
        RunDirectory::create(std::path::Path::new(&path), &study, environment(), "2026-11-22T00:00:00Z").unwrap();
    let base = goal::base_of(&study.cases[0]);
    let mut trials: Vec<Measurement> = Vec::new();
    while let Step::Measure { rate_per_s: rate, seconds } = next(
        &bound::bound_of(&study, &wanted, &base.settings),
        &goal::probes(&wanted, &trials.iter().collect::<Vec<_>>()),
    ) {
        assert!(trials.len() < 200);
        let at_rate = study_at(&[rate]).cases.remove(0);
        let mut trial = measurements(&Study { cases: vec![at_rate.clone()], ..study.clone() }, 1).remove(0);
        trial.trial = Trial::new(at_rate, trials.len() as u32, 1);
        let count = if rate < 1000.0 { 8_000 } else { 100 };
        answered(&mut trial, &if rate < 1000.0 { server(rate, count, trials.len() as u64) } else { vec![1.0; count] });
        trial.measured_s = trial.measured_s.max(seconds.unwrap_or(0.0));
        run.append(&trial, &[]).unwrap();
        trials.push(trial);
    }
    // 99 % of an M/M/1 server's response times are below 20 ms at 1000 - ln(100) / 0.02 a second.
    let line = 1000.0 - 100_f64.ln() / 0.02;
    for below_ms in [20.0, 40.0] {
        let (rate, said) = held(&directory, &path, below_ms);
        assert!((rate / line - 1.0).abs() < 0.1 && said.contains("the verified load line"), "{rate} {line} {said}");
    }
    // For a stricter bound that line says nothing; what the trials measured does.
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), &admission(&path, 10.0));
    let ended =
        Command::new("timeout").args(["-s", "TERM", "3", env!("CARGO_BIN_EXE_loadline"), "record", &config]).output();
    assert!(!String::from_utf8_lossy(&ended.unwrap().stderr).contains("the verified load line"));
}
