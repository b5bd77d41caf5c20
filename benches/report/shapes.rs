//! Runs of different shapes, made up by the generator of the tests.

use std::io::{BufWriter, Write};
use std::path::Path;

use loadline::histogram::Histogram;
use loadline::measurement::{FreshnessMeasurement, GroupMeasurement, Measurement, OperationMeasurement};
use loadline::queueing::load_line::{Step, next};
use loadline::statistics::random::Random;
use loadline::store::RunDirectory;
use loadline::study::{Goal, Study, bound, goal};
use loadline::trial::{Arrivals, Case, Trial};
use serde_json::{Value, json};

use crate::synthetic;

/// What a run may look like: 18 cases; two cases of many trials each; many cases of ten trials each, where a ramp or a setting of the server
/// has many levels; arrival rates; readers of events at arrival rates; and searches for the load line.
pub const SHAPES: [&str; 7] = ["layouts", "pair", "ramp", "settings", "open", "freshness", "search"];

/// Trials of each case where there are many cases.
const FEW: usize = 10;
/// Clients of an open loop.
const CLIENTS: u32 = 16;

/// Writes a run directory of so many trials, without the sync that each has in a run.
pub fn write_run(directory: &Path, shape: &str, trials: usize) {
    let study = study(shape, trials);
    RunDirectory::create(directory, &study, synthetic::environment(), "2026-01-01T00:00:00Z").unwrap();
    let mut lines = BufWriter::new(std::fs::File::create(directory.join("trials.jsonl")).unwrap());
    let mut written = 0;
    let mut write = |mut trial: Measurement| {
        trial.sequence = written as u64;
        serde_json::to_writer(&mut lines, &trial).unwrap();
        lines.write_all(b"\n").unwrap();
        written += 1;
        written < trials
    };
    match study.goal {
        Some(_) => search(&study, &mut write),
        None => rounds(&study, shape, &mut write),
    }
}

fn study(shape: &str, trials: usize) -> Study {
    let levels = |count: usize| (1..=count.max(2)).map(|level| json!(level)).collect::<Vec<Value>>();
    let layouts = || ("layout.name", vec![json!("wide"), json!("star"), json!("star-hot")]);
    let mut study = match shape {
        "layouts" => synthetic::layouts_and_clients(),
        "pair" => synthetic::study(&[("layout.name", vec![json!("wide"), json!("star")])]),
        "ramp" => synthetic::study(&[layouts(), ("load.clients", levels(trials / FEW / 3))]),
        "settings" => synthetic::study(&[layouts(), ("database.config.pool", levels(trials / FEW / 3))]),
        "open" | "freshness" => {
            synthetic::study(&[layouts(), ("load.rate", (1..=10).map(|step| json!(150 * step)).collect())])
        }
        "search" => synthetic::study(&[layouts(), ("database.config.pool", levels(trials / 20 / 3))]),
        _ => panic!("there is no shape {shape}; there are {SHAPES:?}"),
    };
    if ["open", "freshness", "search"].contains(&shape) {
        study.base.load.arrivals = Arrivals::Poisson;
        let open = |case: &mut Case| {
            let mut settings = case.settings.clone();
            (settings.load.arrivals, settings.load.clients) = (Arrivals::Poisson, CLIENTS);
            settings.load.rate_per_s = case.levels.get("load.rate").and_then(Value::as_f64);
            *case = Case::new(case.levels.clone(), settings);
        };
        study.cases.iter_mut().for_each(open);
    }
    study.goal = (shape == "search").then_some(Goal { quantile: 0.99, below_s: 0.02, within: 0.1 });
    study
}

/// Rounds of all cases, until there are enough.
fn rounds(study: &Study, shape: &str, write: &mut dyn FnMut(Measurement) -> bool) {
    let mut random = Random::new(5);
    for round in 0.. {
        for mut trial in synthetic::measurements(study, 1) {
            trial.trial = Trial::new(trial.trial.case.clone(), round, u64::from(round));
            trial.measured_s *= 1.0 + 0.01 * f64::from(round % 7) + 0.01 * random.unit();
            if study.base.load.arrivals == Arrivals::Poisson {
                trial = driven(trial, &mut random);
            }
            trial.freshness = (shape == "freshness").then(|| seen(&mut random));
            if !write(trial) {
                return;
            }
        }
    }
}

/// Searches for the load line of one case after the other.
fn search(study: &Study, write: &mut dyn FnMut(Measurement) -> bool) {
    let wanted = study.goal.clone().unwrap();
    let mut random = Random::new(5);
    let like = synthetic::measurements(study, 1);
    for (base, like) in goal::base_cases(study).iter().zip(like.iter().cycle()) {
        let bound = bound::bound_of(study, &wanted, &base.settings);
        let mut probes = Vec::new();
        while let Step::Measure { rate_per_s, seconds } = next(&bound, &probes) {
            let Case { mut levels, mut settings, .. } = base.clone();
            levels.insert("load.rate".to_owned(), json!(rate_per_s));
            settings.load.rate_per_s = Some(rate_per_s);
            let case = Case::new(levels, settings);
            let trial = Trial::new(case, probes.len() as u32, 1);
            let trial = driven(
                Measurement { trial, measured_s: seconds.unwrap_or(like.measured_s), ..like.clone() },
                &mut random,
            );
            probes.extend(goal::probes(&wanted, &[&trial]));
            if !write(trial) {
                return;
            }
        }
    }
}

/// A trial at its arrival rate: response times of an M/M/1 server that carries 1,000 to 1,300 a second, or falls behind.
fn driven(mut trial: Measurement, random: &mut Random) -> Measurement {
    let case = &trial.trial.case;
    let rate_per_s = case.settings.load.rate_per_s.unwrap();
    let pool = case.levels.get("database.config.pool").and_then(Value::as_f64).unwrap_or(0.0);
    let capacity_per_s = 1_000.0 + (37.0 * pool + case.settings.layout.name.len() as f64 * 50.0) % 300.0;
    let scheduled = (rate_per_s * trial.measured_s * (1.0 + 0.02 * (random.unit() - 0.5))).max(30.0) as u64;
    let carried = (0.97 * capacity_per_s * trial.measured_s).min(scheduled as f64) as u64;
    let slack_per_s = (capacity_per_s - rate_per_s).max(0.03 * capacity_per_s);
    let draws = 500.min(scheduled);
    let mut times = Histogram::new();
    for draw in 0..draws {
        let count = scheduled / draws + u64::from(draw < scheduled % draws);
        times.record_many((-(1.0 - random.unit()).ln() / slack_per_s * 1e9) as u64 + 1, count);
    }
    let operation = OperationMeasurement {
        scheduled,
        completed: scheduled,
        records: scheduled,
        residence_time: times.clone(),
        schedule_lag: times.clone(),
        response_time: times,
        ..OperationMeasurement::default()
    };
    trial.operations.insert("insert".to_owned(), Box::new(operation));
    trial.carried = Some(carried);
    trial
}

/// What two groups of four readers saw.
fn seen(random: &mut Random) -> FreshnessMeasurement {
    let mut group = |scale_ns: f64| {
        let mut group = GroupMeasurement { readers: 4, expected: 800, polls: 800, rows: 900, ..Default::default() };
        for reader in 0..4 {
            let each = group.each.entry(reader).or_default();
            (0..200).for_each(|_| each.record((-(1.0 - random.unit()).ln() * scale_ns) as u64));
            group.freshness.merge(each);
        }
        group
    };
    let groups = [("near".to_owned(), Box::new(group(2e6))), ("far".to_owned(), Box::new(group(2e7)))].into();
    FreshnessMeasurement {
        groups,
        record_bytes: 200.0,
        stored: Some(group(4e7)),
        cpus: [("reader".to_owned(), 0.4)].into(),
        protection: None,
    }
}
