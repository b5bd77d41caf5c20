//! Synthetic measurements for the tests of reports: made by a seeded generator, measured nowhere.

use std::collections::BTreeMap;

use loadline::histogram::Histogram;
use loadline::measurement::{
    ClientMeasurement, Environment, IntervalMeasurement, LoopMeasurement, Measurement, OperationMeasurement,
    ResourceSample, Resources,
};
use loadline::statistics::random::Random;
use loadline::study::{Claim, ClaimedRatio, Factor, Repeat, RepeatRule, Study};
use loadline::trial::{Case, Levels, Settings, Trial};
use serde_json::{Value, json};

/// A study of these factors; every combination is a case.
pub fn study(factors: &[(&str, Vec<Value>)]) -> Study {
    let factors: Vec<Factor> = factors
        .iter()
        .map(|(setting, levels)| Factor { setting: (*setting).to_owned(), levels: levels.clone() })
        .collect();
    let mut all = vec![Levels::new()];
    for factor in &factors {
        let extended = |levels: &Levels| {
            let with = |level: &Value| {
                let mut more = levels.clone();
                more.insert(factor.setting.clone(), level.clone());
                more
            };
            factor.levels.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extended).collect();
    }
    let base = Settings::default();
    Study {
        name: "synthetic".to_owned(),
        question: "Which layout takes the most rows per second?".to_owned(),
        source: "made up by tests/report".to_owned(),
        cases: all.into_iter().map(|levels| Case::new(levels.clone(), settings(&levels))).collect(),
        base,
        factors,
        repeat: Repeat { rule: RepeatRule::Interval, within: 0.05, least: 10, most: 40, discard_first: false },
        goal: None,
        durability: None,
        claims: Vec::new(),
        quick: false,
        shrunk: Default::default(),
        left_out: Vec::new(),
        patience: loadline::study::Patience::default(),
        seed: 7,
    }
}

/// The layouts of the Oulu study under a growing number of clients, with three claims.
pub fn layouts_and_clients() -> Study {
    let mut study = study(&[
        ("layout.name", vec![json!("wide"), json!("star"), json!("star-hot")]),
        ("load.clients", vec![json!(1), json!(2), json!(4), json!(8), json!(16), json!(32)]),
    ]);
    let layout = |name: &str| -> Levels { [("layout.name".to_owned(), json!(name))].into() };
    let claim = |says: &str, of: &str, to: &str, low: f64, high: Option<f64>, best: bool| Claim {
        says: says.to_owned(),
        metric: "throughput".to_owned(),
        ratio: Some(ClaimedRatio { of: layout(of), to: layout(to), only: Levels::new(), best, low, high }),
        bound: None,
        model: None,
    };
    study.claims = vec![
        claim("Three tables write about a third slower than two", "star-hot", "star", 0.55, Some(0.8), false),
        claim("One table writes at least as fast as two", "wide", "star", 1.0, None, true),
        claim("Two tables are within 5 % of one", "star", "wide", 0.95, Some(1.05), false),
    ];
    study
}

fn settings(levels: &Levels) -> Settings {
    let mut settings = Settings::default();
    settings.workload.batch = levels.get("workload.batch").and_then(Value::as_u64).unwrap_or(1) as u32;
    settings.load.clients = clients(levels) as u32;
    settings.layout.name = text(levels, "layout.name");
    settings.database.name = text(levels, "database.name");
    let config = levels.iter().filter_map(|(setting, level)| Some((setting.strip_prefix("database.config.")?, level)));
    settings.database.config = config.map(|(name, level)| (name.to_owned(), level.to_string())).collect();
    settings
}

fn text(levels: &Levels, setting: &str) -> String {
    levels.get(setting).and_then(Value::as_str).unwrap_or("none").to_owned()
}

fn clients(levels: &Levels) -> f64 {
    levels.get("load.clients").and_then(Value::as_f64).unwrap_or(4.0)
}

/// `rounds` trials of every case, in rounds.
pub fn measurements(study: &Study, rounds: u32) -> Vec<Measurement> {
    let mut random = Random::new(11);
    let mut out = Vec::new();
    for round in 0..rounds {
        for case in &study.cases {
            let trial = Trial::new(case.clone(), round, random.next_u64());
            out.push(measurement(trial, out.len() as u64, &mut random));
        }
    }
    out
}

/// Roughly normal, mean 0 and standard deviation 1.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// How fast an alternative is, against 1.
fn speed(levels: &Levels) -> f64 {
    let layout = match text(levels, "layout.name").as_str() {
        "star" => 1.24,
        "star-hot" => 0.86,
        _ => 1.0,
    };
    let database = match text(levels, "database.name").as_str() {
        "sqlite" => 1.7,
        "postgres" => 0.9,
        _ => 1.0,
    };
    layout * database
}

fn measurement(trial: Trial, sequence: u64, random: &mut Random) -> Measurement {
    let levels = &trial.case.levels;
    let (clients, batch) = (clients(levels), f64::from(trial.case.settings.workload.batch));
    // Rises, bends and falls a little: the universal scalability law.
    let capacity =
        2100.0 * speed(levels) * clients / (1.0 + 0.18 * (clients - 1.0) + 0.0035 * clients * (clients - 1.0));
    let throughput = capacity / (1.0 + 0.1 * (batch - 1.0)) * (1.0 + 0.03 * normal(random));
    let seconds = 5.0;
    let completed = (throughput * seconds) as u64;
    let operation = operation(completed, batch as u64, clients / throughput, random);
    let series = series(throughput, clients, seconds, random);
    let busy = 1.0 - 1.0 / (1.0 + 0.8 * clients);
    let share = |part: f64, random: &mut Random| (part * (1.0 + 0.05 * normal(random))).clamp(0.0, 1.0);
    let (user, system) = (share(0.55 * busy, random), share(0.22 * busy, random));
    let iowait = share(0.16 * clients / (1.0 + clients * clients / 16.0), random);
    let mean = ResourceSample {
        at_s: seconds,
        user,
        system,
        iowait,
        idle: (1.0 - user - system - iowait).max(0.0),
        stolen: 0.0,
        server_cpu: 1.6 * share(busy, random),
        recorder_cpu: 0.0,
        client_cpu: throughput * 12e-6,
        write_requests_per_s: throughput * share(1.1 / clients.sqrt(), random),
        written_bytes_per_s: throughput * batch * 900.0 * share(0.95, random),
        server_written_bytes_per_s: throughput * batch * 850.0,
        memory_used_bytes: 1.1e9 + 6e6 * clients,
        server_memory_bytes: 2.4e8 + 3e6 * clients,
        recorder_memory_bytes: 0.0,
        client_memory_bytes: 1.2e7,
        received_bytes_per_s: throughput * 700.0,
        sent_bytes_per_s: throughput * 90.0,
        context_switches_per_s: throughput * 2.2,
    };
    let mut late = Histogram::new();
    (0..200).for_each(|_| late.record(2_000 + random.below(6_000) as u64));
    let each = ClientMeasurement { completed: completed / clients as u64, elapsed_s: seconds, ..Default::default() };
    Measurement {
        sequence,
        started: format!("2026-11-21T06:{:02}:{:02}Z", sequence / 10 % 60, sequence % 10 * 6),
        total_s: seconds + 1.2,
        measured_s: seconds,
        operations: BTreeMap::from([("insert".to_owned(), Box::new(operation))]),
        clients: vec![each; clients as usize],
        generator_late: late,
        loops: vec![LoopMeasurement {
            driver: "epoll".to_owned(),
            clients: clients as u32,
            cpu: None,
            cpu_s: throughput * 12e-6 * seconds,
            wall_s: seconds,
            pass_s_p99: 4e-5,
            ..LoopMeasurement::default()
        }],
        series,
        client_cpu_s: throughput * 12e-6 * seconds,
        resources: Some(Resources { mean, samples: 25, monitor_cpu_s: 0.004, ..Default::default() }),
        database_version: "0.0-synthetic".to_owned(),
        ..Measurement::unmeasured(&trial)
    }
}

fn operation(completed: u64, batch: u64, mean_s: f64, random: &mut Random) -> OperationMeasurement {
    let mut times = Histogram::new();
    for place in 0..2000 {
        let stalled = if place % 400 == 0 { 18.0 } else { 1.0 };
        times.record((mean_s * 0.85 * (0.42 * normal(random)).exp() * stalled * 1e9) as u64);
    }
    OperationMeasurement {
        scheduled: completed,
        completed,
        records: completed * batch,
        residence_time: times.clone(),
        response_time: times,
        ..OperationMeasurement::default()
    }
}

fn series(throughput: f64, clients: f64, seconds: f64, random: &mut Random) -> Vec<IntervalMeasurement> {
    let stall = random.below(400);
    (1..=50)
        .map(|place| {
            let slow = if stall == place || stall + 1 == place { 0.12 } else { 1.0 };
            let completed = throughput * seconds / 50.0 * slow * (1.0 + 0.05 * normal(random));
            IntervalMeasurement {
                end_s: seconds * place as f64 / 50.0,
                completed: completed as u64,
                scheduled: completed as u64,
                failed: 0,
                response_time_mean_s: clients / throughput / slow,
                response_time_max_s: 6.0 * clients / throughput / slow,
                response_time_quantiles_s: None,
            }
        })
        .collect()
}

/// The machine that nothing ran on.
pub fn environment() -> Environment {
    let settings = |text: &str| BTreeMap::from([("journal_mode".to_owned(), text.to_owned())]);
    Environment {
        links: Default::default(),
        loadline: "0.1.0".to_owned(),
        machine: "imagined".to_owned(),
        cpu: "Imagined CPU @ 3.0 GHz".to_owned(),
        cpus: 2,
        governor: Some("performance".to_owned()),
        memory_bytes: 8 << 30,
        kernel: "Linux 6.12".to_owned(),
        disk: Some("ext4 on /dev/imagined".to_owned()),
        disk_sync: None,
        databases: BTreeMap::from([("simulated".to_owned(), settings("wal"))]),
        servers: Vec::new(),
        command: Vec::new(),
    }
}
