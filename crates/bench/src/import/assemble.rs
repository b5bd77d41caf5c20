//! Turns repetitions into a study: equal levels are one case, and settings that differ between cases are factors.
//!
//! Main type: [`Import`]. Invariant: every repetition is a trial, invalid ones included.

use serde_json::Value;

use super::naming::{Level, Naming, apply};
use super::source::ImportError;
use super::{Repetition, Tool, validity};
use crate::measurement::Measurement;
use crate::study::{Factor, Repeat, RepeatRule, Study};
use crate::trial::{Arrivals, Case, Levels, Settings, Trial};

/// Options of turning repetitions into a study.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Name of the study.
    pub name: String,
    /// Whether the first repetition of each case is left out of all analyses.
    pub discard_first: bool,
}

/// A study with its measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The study that the tool's runs correspond to.
    pub study: Study,
    /// The trials of the study, in the order of the files.
    pub measurements: Vec<Measurement>,
}

/// Standard deviations from which on two counts of arrivals count as offered at different rates.
const RATES_SIGMA: f64 = 6.0;

/// Combines repetitions into a study with its measurements.
pub fn assemble(
    tool: Tool,
    repetitions: Vec<Repetition>,
    naming: &Naming,
    options: &Options,
) -> Result<Import, ImportError> {
    let mut told: Vec<(Vec<Level>, Repetition)> = Vec::new();
    for repetition in repetitions {
        told.push((levels_of(&repetition, naming)?, repetition));
    }
    let factors = factors(&told);
    let mut cases: Vec<(Case, u32)> = Vec::new();
    let mut measurements: Vec<Measurement> = Vec::new();
    for (levels, repetition) in told {
        let mut settings = base();
        settings.load.arrivals = repetition.arrivals;
        levels.iter().for_each(|level| apply(&mut settings, level));
        let of_factors = levels.iter().filter(|(setting, _)| factors.iter().any(|factor| factor.setting == *setting));
        let case = Case::new(of_factors.cloned().collect::<Levels>(), settings);
        let known = cases.iter().position(|(known, _)| known.id == case.id).unwrap_or(cases.len());
        if known == cases.len() {
            cases.push((case, 0));
        }
        let (case, round) = &mut cases[known];
        let mut measurement = repetition.measurement;
        measurement.trial = Trial::new(case.clone(), *round, 0);
        measurement.sequence = measurements.len() as u64;
        let rate_per_s = case.settings.load.rate_per_s.filter(|_| case.settings.load.arrivals != Arrivals::Closed);
        let missed =
            rate_per_s.and_then(|rate| validity::missed_rate(measurement.scheduled(), measurement.measured_s, rate));
        let mut reasons = validity::reasons(&measurement, case.settings.load.tolerated_failures);
        reasons.extend(missed);
        measurement.invalid_because.extend(reasons);
        check_clients(&measurement, &measurements)?;
        check_rate(&measurement, &measurements)?;
        *round += 1;
        measurements.push(measurement);
    }
    let (least, most) = cases.iter().fold((u32::MAX, 1), |(least, most), (_, n)| (least.min(*n), most.max(*n)));
    let versions = measurements.iter().filter_map(|trial| trial.imported.as_ref()?.version.clone());
    let mut versions: Vec<String> = versions.collect();
    versions.sort();
    versions.dedup();
    let study = Study {
        name: options.name.clone(),
        question: String::new(),
        source: format!(
            "{}, {} runs, imported",
            [vec![tool.name().to_owned()], versions].concat().join(" "),
            measurements.len()
        ),
        base: base(),
        factors,
        repeat: Repeat { rule: RepeatRule::Fixed, within: 0.05, least, most, discard_first: options.discard_first },
        goal: None,
        durability: None,
        claims: Vec::new(),
        quick: false,
        shrunk: Default::default(),
        left_out: Vec::new(),
        patience: crate::study::Patience::default(),
        seed: 0,
        cases: cases.into_iter().map(|(case, _)| case).collect(),
    };
    Ok(Import { study, measurements })
}

/// Returns settings with nothing known; the number of clients must not be 0.
fn base() -> Settings {
    let mut settings = Settings::default();
    settings.workload.batch = 1;
    settings.record.per_measurement = 1;
    settings
}

/// Returns the levels of a repetition that the output and the user state.
fn levels_of(repetition: &Repetition, naming: &Naming) -> Result<Vec<Level>, ImportError> {
    let mut levels = repetition.told.clone();
    for (setting, value) in naming.levels_of(&repetition.file)? {
        // The user may choose names; figures of the output must not be contradicted.
        match levels.iter_mut().find(|(known, _)| *known == setting) {
            Some((_, told)) if *told != value && told.is_number() => {
                let found = format!("the file tells {setting} = {told}, and you {value}");
                return Err(ImportError::new(
                    &repetition.file.name,
                    found,
                    "correct --level or --pattern, or leave it out",
                ));
            }
            Some((_, told)) => *told = value,
            None => levels.push((setting, value)),
        }
    }
    Ok(levels)
}

/// Returns the settings that differ between repetitions, in the order in which they are stated; numbers ascend, names keep their order of appearance.
fn factors(told: &[(Vec<Level>, Repetition)]) -> Vec<Factor> {
    let mut factors: Vec<Factor> = Vec::new();
    for (setting, _) in told.iter().flat_map(|(levels, _)| levels) {
        if factors.iter().any(|factor| factor.setting == *setting) {
            continue;
        }
        let mut values: Vec<Value> = Vec::new();
        let find = |levels: &[Level]| levels.iter().find(|(known, _)| known == setting).map(|(_, value)| value.clone());
        let missing = told.iter().any(|(levels, _)| find(levels).is_none());
        for value in told.iter().filter_map(|(levels, _)| find(levels)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.iter().all(Value::is_number) {
            values.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
        }
        if values.len() > 1 || missing {
            factors.push(Factor { setting: setting.clone(), levels: values });
        }
    }
    factors
}

/// Checks that repetitions had the same clients; output that does not state their number cannot be combined.
fn check_clients(measurement: &Measurement, others: &[Measurement]) -> Result<(), ImportError> {
    let case = &measurement.trial.case;
    let Some(other) = others.iter().find(|other| other.trial.case.id == case.id && case.settings.load.clients == 0)
    else {
        return Ok(());
    };
    let found = format!(
        "neither this output nor {} tells how many clients there were: they may be no repetitions of one case",
        file_of(other)
    );
    let remedy = "tell it with {load.clients} in --pattern, or with --level load.clients=N where all had as many";
    Err(ImportError::new(file_of(measurement), found, remedy))
}

/// Returns the file that a trial was read from.
fn file_of(trial: &Measurement) -> String {
    trial.imported.as_ref().and_then(|from| from.files.first().cloned()).unwrap_or_default()
}

/// Checks that repetitions of an open loop were offered the same rate; if a tool does not state its rate, the number of
/// arrivals is compared.
fn check_rate(measurement: &Measurement, others: &[Measurement]) -> Result<(), ImportError> {
    let settings = &measurement.trial.case.settings.load;
    if settings.arrivals == Arrivals::Closed || settings.rate_per_s.is_some() || measurement.measured_s <= 0.0 {
        return Ok(());
    }
    let Some(other) = others.iter().find(|other| other.trial.case.id == measurement.trial.case.id) else {
        return Ok(());
    };
    let count = |trial: &Measurement| (trial.scheduled() as f64, trial.offered_per_s());
    let ((mine, my_rate), (theirs, their_rate)) = (count(measurement), count(other));
    let spread = RATES_SIGMA * (my_rate.powi(2) / mine.max(1.0) + their_rate.powi(2) / theirs.max(1.0)).sqrt();
    if (my_rate - their_rate).abs() <= spread {
        return Ok(());
    }
    let show = crate::units::show_number;
    let found = format!(
        "{}/s were offered, and {}/s in {}: these are no repetitions, and the output does not tell its rate",
        show(my_rate),
        show(their_rate),
        file_of(other)
    );
    let remedy = "tell it with {load.rate} in --pattern, or import the files of one rate with --level load.rate=...";
    Err(ImportError::new(file_of(measurement), found, remedy))
}
