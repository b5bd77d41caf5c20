//! A run from which a recorder takes its load line.

use loadline::measurement::Measurement;
use loadline::store::RunDirectory;
use loadline::trial::{Arrivals, Case};
use serde_json::json;

use super::harness::Directory;
use super::synthetic::{environment, measurements, study};

/// A run at rising rates of an imagined M/M/1 server that takes 1,000 transactions of `batch` rows a second, with so many trials of each rate.
pub fn run_of(directory: &Directory, name: &str, rounds: u32, batch: u32) -> String {
    let rates = [200.0, 400.0, 600.0, 800.0];
    let mut study = study(&[("load.rate", rates.map(|rate| json!(rate)).to_vec())]);
    study.base.workload.batch = batch;
    for (case, rate) in study.cases.iter_mut().zip(rates) {
        (case.settings.load.arrivals, case.settings.load.rate_per_s) = (Arrivals::Poisson, Some(rate));
        case.settings.workload.batch = batch;
        *case = Case::new(case.levels.clone(), case.settings.clone());
    }
    let path = directory.path(name);
    let mut run =
        RunDirectory::create(std::path::Path::new(&path), &study, environment(), "2026-11-22T00:00:00Z").unwrap();
    for (place, mut trial) in measurements(&study, rounds).into_iter().enumerate() {
        let rate = trial.trial.case.settings.load.rate_per_s.unwrap();
        let spread = 1.0 + 0.01 * (place / rates.len()) as f64;
        let time_s = |share: f64| -(1.0 - share).ln() / (1000.0 - rate) * spread;
        let times_s: Vec<f64> = (0..1000).map(|place| time_s((f64::from(place) + 0.5) / 1000.0)).collect();
        answered(&mut trial, &times_s);
        run.append(&trial, &[]).unwrap();
    }
    path
}

/// Puts the response times of a server into a trial of inserts at a rate, which answered all that arrived.
pub fn answered(trial: &mut Measurement, times_s: &[f64]) {
    let rate = trial.trial.case.settings.load.rate_per_s.unwrap();
    let arrived = (rate * trial.measured_s) as u64;
    trial.carried = Some(arrived);
    let insert = trial.operations.get_mut("insert").unwrap();
    (insert.scheduled, insert.completed, insert.abandoned) = (arrived, arrived, 0);
    (insert.response_time, insert.censored_time) = Default::default();
    times_s.iter().for_each(|time_s| insert.response_time.record((time_s * 1e9) as u64));
    let interval = arrived / trial.series.len() as u64;
    trial.series.iter_mut().for_each(|one| (one.completed, one.scheduled) = (interval, interval));
}
