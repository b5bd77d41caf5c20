//! Trials made by a seeded generator, measured nowhere: what the tests of comparing share.

use std::collections::BTreeMap;

use loadline::histogram::Histogram;
use loadline::measurement::{Environment, Measurement, OperationMeasurement};
use loadline::statistics::random::Random;
use loadline::study::{Factor, Repeat, RepeatRule, Study, plan};
use loadline::trial::{Case, Levels, Settings, Trial};
use serde_json::{Value, json};

/// A study of these factors; every combination is a case.
pub fn study(factors: &[(&str, &[&str])]) -> Study {
    let mut all = vec![Levels::new()];
    for (setting, levels) in factors {
        let with = |known: &Levels, level: &&str| {
            let mut more = known.clone();
            more.insert((*setting).to_owned(), json!(level));
            more
        };
        all = all.iter().flat_map(|known| levels.iter().map(|level| with(known, level)).collect::<Vec<_>>()).collect();
    }
    let factors = factors.iter().map(|(setting, levels)| Factor {
        setting: (*setting).to_owned(),
        levels: levels.iter().map(|level| json!(level)).collect(),
    });
    Study {
        name: "made-up".to_owned(),
        question: "Which is faster?".to_owned(),
        source: String::new(),
        base: Settings::default(),
        factors: factors.collect(),
        repeat: Repeat { rule: RepeatRule::Fixed, within: 0.05, least: 2, most: 2, discard_first: false },
        goal: None,
        durability: None,
        claims: Vec::new(),
        quick: false,
        shrunk: Default::default(),
        left_out: Vec::new(),
        patience: loadline::study::Patience::default(),
        seed: 7,
        cases: all.into_iter().map(|levels| Case::new(levels.clone(), settings(&levels))).collect(),
    }
}

fn settings(levels: &Levels) -> Settings {
    let text = |setting: &str| levels.get(setting).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut settings = Settings::default();
    settings.layout.name = text("layout.name");
    settings.database.name = text("database.name");
    settings.workload.name = text("workload.name");
    settings.workload.batch = 1;
    settings
}

/// Roughly normal, mean 0 and standard deviation 1.
pub fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// How trials come about.
pub struct Machine {
    /// Relative standard deviation from trial to trial.
    pub noise: f64,
    /// Relative standard deviation from round to round, which all trials of a round share.
    pub drift: f64,
    /// Whether trials are interleaved by round; else all of a case come together.
    pub is_interleaved: bool,
    /// How much of its noise a trial hands on to the next one, 0..1.
    pub echo: f64,
    /// Share of the trials that are 30 % slower.
    pub slow: f64,
    /// Speed of a case against others.
    pub speed: fn(&Levels) -> f64,
}

/// The noise of one trial after the other.
pub struct Noise<'a> {
    machine: &'a Machine,
    last: f64,
}

impl<'a> Noise<'a> {
    pub fn new(machine: &'a Machine, random: &mut Random) -> Self {
        Noise { machine, last: normal(random) }
    }

    /// The factor of the next trial; 1 on average.
    pub fn next(&mut self, random: &mut Random) -> f64 {
        let echo = self.machine.echo;
        self.last = echo * self.last + (1.0 - echo * echo).sqrt() * normal(random);
        let slowed = if random.unit() < self.machine.slow { 0.7 } else { 1.0 };
        (1.0 + self.machine.noise * self.last).max(0.01) * slowed / (1.0 - 0.3 * self.machine.slow)
    }
}

/// Measures a study as the program does: round by round, until every case meets the study's rule or has had its most trials.
pub fn measure_by_rule(study: &Study, machine: &Machine, random: &mut Random) -> Vec<Measurement> {
    let mut outcomes = plan::Outcomes::new();
    let mut noise = Noise::new(machine, random);
    let mut out = Vec::new();
    for round in 0..plan::rounds_max(study) {
        let drift = 1.0 + machine.drift * normal(random);
        for trial in plan::open_round(study, round, &outcomes) {
            let rate = 1e6 * (machine.speed)(&trial.case.levels) * drift * noise.next(random);
            let measurement = measured(&trial, out.len() as u64, rate, random);
            outcomes.insert(trial.id, Some(measurement.settles_by()));
            out.push(measurement);
        }
    }
    out
}

/// `rounds` trials of every case, in the order of execution, cases in random order within a round.
pub fn measure(study: &Study, machine: &Machine, rounds: u32, random: &mut Random) -> Vec<Measurement> {
    let drifts: Vec<f64> = (0..rounds).map(|_| 1.0 + machine.drift * normal(random)).collect();
    let mut order: Vec<(u32, &Case)> =
        (0..rounds).flat_map(|round| study.cases.iter().map(move |case| (round, case))).collect();
    if machine.is_interleaved {
        for round in order.chunks_mut(study.cases.len()) {
            (1..round.len()).for_each(|last| round.swap(last, random.below(last + 1)));
        }
    } else {
        order.sort_by_key(|(_, case)| study.cases.iter().position(|known| known.id == case.id));
    }
    let mut out = Vec::new();
    for (round, case) in order {
        let rate =
            1e6 * (machine.speed)(&case.levels) * drifts[round as usize] * (1.0 + machine.noise * normal(random));
        let trial = Trial::new(case.clone(), round, random.next_u64());
        out.push(measured(&trial, out.len() as u64, rate, random));
    }
    out
}

fn measured(trial: &Trial, sequence: u64, rate: f64, random: &mut Random) -> Measurement {
    let mut measurement = Measurement::unmeasured(trial);
    measurement.sequence = sequence;
    measurement.started = "2026-11-21T06:00:00Z".to_owned();
    measurement.measured_s = 1.0;
    let kinds: &[&str] = if trial.case.settings.workload.name == "mix" { &["read", "update"] } else { &["insert"] };
    measurement.operations =
        kinds.iter().map(|kind| ((*kind).to_owned(), Box::new(operation(kind, rate, random)))).collect();
    measurement
}

/// Exponential response times; updates take ten times as long as the others.
fn operation(kind: &str, rate: f64, random: &mut Random) -> OperationMeasurement {
    let mean_ns = if kind == "update" { 1e10 } else { 1e9 } / rate;
    let mut times = Histogram::new();
    (0..100).for_each(|_| times.record((-(1.0 - random.unit()).ln() * mean_ns * 1e3) as u64));
    OperationMeasurement {
        scheduled: rate as u64,
        completed: rate as u64,
        records: rate as u64,
        residence_time: times.clone(),
        response_time: times,
        ..OperationMeasurement::default()
    }
}

/// A machine of this name.
pub fn environment(machine: &str) -> Environment {
    Environment {
        loadline: "0.1.0".to_owned(),
        machine: machine.to_owned(),
        cpus: 2,
        databases: BTreeMap::new(),
        ..Environment::default()
    }
}
