//! The trials of a search for the load line: one search per case, which chooses arrival rates by the trials so far.
//!
//! Main functions: [`open_round`] and [`unfold`]. Invariant: the next trials are a pure function of the study and of the
//! measurements so far, so that an interrupted search continues as if it had never stopped.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::bound::{bound_of, confirmations};
use super::plan;
use super::{Factor, Goal, Repeat, RepeatRule, Study};
use crate::measurement::{Measurement, starved};
use crate::queueing::load_line::{Disturbance, Outcome, Probe, Step, next};
use crate::trial::{Case, Levels, Sought, Trial};
use crate::units::NS_PER_S;

/// The setting that the search chooses.
const RATE: &str = "load.rate";
/// CPUs that other processes may keep busy during a trial if less than [`IDLE_LEAST`] of the machine is idle.
const OTHERS_MOST: f64 = 0.25;
const IDLE_LEAST: f64 = 0.5;
/// Share of the scheduled operations from which on a load counts as carried.
const CARRIED_LEAST: f64 = 0.95;
/// Share of a CPU from which on a load thread counts as the limit.
const SATURATED_SHARE: f64 = 0.85;

/// Returns the case that a search is made for: the case without its arrival rate.
pub fn base_of(case: &Case) -> Case {
    let mut levels = case.levels.clone();
    levels.remove(RATE);
    let mut settings = case.settings.clone();
    settings.load.rate_per_s = None;
    Case::new(levels, settings)
}

/// Returns all cases that searches are made for, in the study's order.
pub fn base_cases(study: &Study) -> Vec<Case> {
    let mut known = HashSet::new();
    study.cases.iter().map(base_of).filter(|base| known.insert(base.id.clone())).collect()
}

/// Groups the trials of each search by the id of the case that it is made for. The base of a case is computed once, however many trials it has.
pub fn by_base<'m>(measurements: impl IntoIterator<Item = &'m Measurement>) -> HashMap<String, Vec<&'m Measurement>> {
    let mut bases: HashMap<&str, String> = HashMap::new();
    let mut found: HashMap<String, Vec<&Measurement>> = HashMap::new();
    for measurement in measurements.into_iter().filter(|measurement| measurement.trial.lost_attempt.is_none()) {
        let case = &measurement.trial.case;
        let base = bases.entry(&case.id).or_insert_with(|| base_of(case).id);
        match found.get_mut(base) {
            Some(own) => own.push(measurement),
            None => drop(found.insert(base.clone(), vec![measurement])),
        }
    }
    found
}

/// Returns whether an invalid trial served everything correctly, so that its fault is how the load was driven.
fn is_not_driven(measurement: &Measurement) -> bool {
    let is_full = measurement.operations.values().all(|operation| operation.empty == 0);
    let is_served = measurement.completed() > 0 && measurement.failed() == 0 && is_full;
    !measurement.is_valid() && is_served && measurement.errors.is_empty()
}

/// Returns the trials of a case in which only the driving of the load was faulty and that the search repeated
/// successfully: they do not speak against the run's result. Always empty for a study without a goal.
pub fn repeated<'m>(study: &Study, trials: &[&'m Measurement]) -> Vec<&'m Measurement> {
    let is_repeated = study.goal.is_some() && trials.iter().any(|trial| trial.is_valid());
    let excused = |trial: &&&Measurement| is_repeated && is_not_driven(trial) && trial.abandoned() == 0;
    trials.iter().filter(excused).copied().collect()
}

/// Returns the trials of a search so far, in the order of their rounds. All of them must have the same base.
pub fn probes(goal: &Goal, own: &[&Measurement]) -> Vec<Probe> {
    let mut own = own.to_vec();
    own.sort_by_key(|measurement| (measurement.trial.round, measurement.sequence));
    own.into_iter().filter_map(|measurement| probe(goal, measurement)).collect()
}

fn probe(goal: &Goal, measurement: &Measurement) -> Option<Probe> {
    let rate_per_s = measurement.trial.case.settings.load.rate_per_s?;
    let times = measurement.response_times();
    let operations = measurement.scheduled();
    let outcome = match measurement.is_valid() {
        true if measurement.is_overloaded() => Outcome::Overloaded { operations },
        true if times.count() > 0 => Outcome::Answered {
            operations: times.count(),
            above: times.count_above((goal.below_s * NS_PER_S) as u64),
            quantile_s: (times.quantile_ns(goal.quantile).max(1)) as f64 / NS_PER_S,
            mean_s: times.mean_ns().max(1.0) / NS_PER_S,
        },
        false if is_not_driven(measurement) && starved::is_stolen(measurement, goal.quantile) => Outcome::Stolen,
        false if is_not_driven(measurement) => Outcome::NotDriven { is_saturated: is_saturated(measurement) },
        _ => Outcome::Invalid,
    };
    let disturbed = disturbance(goal, measurement);
    Some(Probe { rate_per_s, seconds: measurement.measured_s, outcome, disturbed })
}

/// Returns whether a trial of a search was disturbed, so that it can count for its rate and never against it.
pub fn is_disturbed(goal: &Goal, measurement: &Measurement) -> bool {
    disturbance(goal, measurement).is_some()
}

/// Returns what lengthened response times besides the database, unless it does not explain what was lost. Whatever
/// delays the sending of an operation can only delay its end, and both are counted from when it was due.
fn disturbance(goal: &Goal, measurement: &Measurement) -> Option<Disturbance> {
    if measurement.is_late_beside(goal.quantile, goal.below_s) {
        return Some(Disturbance::Client);
    }
    taken(measurement, goal.quantile).filter(|_| !is_lost_anyway(measurement))
}

/// Returns what took CPU time that client and server may have needed, for a search that asks about this quantile.
fn taken(measurement: &Measurement, quantile: f64) -> Option<Disturbance> {
    let resources = measurement.resources.as_ref()?;
    let is_full = resources.mean.idle + resources.mean.iowait < IDLE_LEAST;
    match resources.others_cpu.is_some_and(|cpus| cpus > OTHERS_MOST) {
        true if is_full => Some(Disturbance::Others),
        _ => starved::is_stolen(measurement, quantile).then_some(Disturbance::Hypervisor),
    }
}

/// Returns whether the database fell so far behind that it would have done so even with the CPU time that others took. All of that time may have been
/// taken from the one CPU that was its limit; with it, the database would have carried at most proportionally more.
fn is_lost_anyway(measurement: &Measurement) -> bool {
    let Some((resources, cpus)) = measurement.resources.as_ref().and_then(|used| Some((used, used.cpus?))) else {
        return false;
    };
    let taken_cpus = resources.mean.stolen * f64::from(cpus) + resources.others_cpu.unwrap_or_default();
    // Operations answered after the measured phase were not carried in it.
    let carried = measurement.carried.unwrap_or_else(|| measurement.completed()) as f64;
    let most = carried / (1.0 - taken_cpus.clamp(0.0, 1.0));
    measurement.is_overloaded() && most < CARRIED_LEAST * measurement.scheduled() as f64
}

/// Returns whether a load thread used up its CPU.
fn is_saturated(measurement: &Measurement) -> bool {
    measurement.loops.iter().any(|each| each.wall_s > 0.0 && each.cpu_s > SATURATED_SHARE * each.wall_s)
}

/// Returns the next trial of every case whose search continues, in the seeded random order of a round; empty when all searches are over.
pub fn open_round(study: &Study, goal: &Goal, round: u32, measurements: &[Measurement]) -> Vec<Trial> {
    let planned = plan::round(study, round).into_iter();
    let of_base = by_base(measurements);
    planned
        .filter_map(|trial| {
            let base = base_of(&trial.case);
            let probes = probes(goal, of_base.get(&base.id).map_or(&[], Vec::as_slice));
            let step = next(&bound_of(study, goal, &base.settings), &probes);
            let Step::Measure { rate_per_s, seconds } = step else { return None };
            let number = u32::try_from(probes.len()).unwrap_or(u32::MAX);
            let sought = Some(Sought { quantile: goal.quantile, below_s: goal.below_s, seconds });
            Some(Trial { sought, ..plan::trial(study, &at_rate(&base, rate_per_s), number) })
        })
        .collect()
}

/// Returns the case at an arrival rate.
fn at_rate(base: &Case, rate_per_s: f64) -> Case {
    let mut levels: Levels = base.levels.clone();
    levels.insert(RATE.to_owned(), level_of(rate_per_s));
    let mut settings = base.settings.clone();
    settings.load.rate_per_s = Some(rate_per_s);
    Case::new(levels, settings)
}

/// Returns the level of a rate; whole rates have no decimal point.
fn level_of(rate_per_s: f64) -> Value {
    if rate_per_s.fract() == 0.0 { Value::from(rate_per_s as i64) } else { Value::from(rate_per_s) }
}

/// Returns the study as it turned out: the arrival rates that the search chose become levels of a factor, and every
/// case at a rate becomes a case. A study without a goal is returned unchanged.
pub fn unfold(study: &Study, measurements: &[Measurement]) -> Study {
    if study.goal.is_none() {
        return study.clone();
    }
    let (mut cases, mut all): (Vec<Case>, Vec<f64>) = Default::default();
    let of_base = by_base(measurements);
    for base in base_cases(study) {
        let own = of_base.get(&base.id).into_iter().flatten();
        let mut rates: Vec<f64> = own.filter_map(|trial| trial.trial.case.settings.load.rate_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        all.extend(&rates);
        cases.extend(rates.into_iter().map(|rate_per_s| at_rate(&base, rate_per_s)));
    }
    all.sort_by(f64::total_cmp);
    all.dedup();
    let mut factors: Vec<Factor> = study.factors.iter().filter(|factor| factor.setting != RATE).cloned().collect();
    factors.push(Factor { setting: RATE.to_owned(), levels: all.into_iter().map(level_of).collect() });
    // The search decides how often a rate is repeated: a rate that it confirmed is settled, and an intermediate rate is not.
    let least = confirmations(study);
    let repeat = Repeat { rule: RepeatRule::Fixed, least, most: least, discard_first: false, ..study.repeat.clone() };
    Study { cases, factors, repeat, ..study.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Settings;

    #[test]
    fn a_trial_whose_client_sent_late_is_used_and_speaks_for_its_rate() {
        let mut settings = Settings::default();
        settings.load.rate_per_s = Some(50.0);
        let trial = Trial::new(Case::new(Levels::default(), settings), 0, 0);
        let mut late = Measurement { measured_s: 4.0, carried: Some(200), ..Measurement::unmeasured(&trial) };
        let mut read =
            crate::measurement::OperationMeasurement { scheduled: 200, completed: 200, ..Default::default() };
        (0..200).for_each(|_| read.response_time.record(3_000_000));
        late.operations.insert("read".to_owned(), Box::new(read));
        late.invalid_because.clear();
        let goal = Goal { quantile: 0.99, below_s: 0.02, within: 0.1 };
        let seen = |late: &Measurement| probes(&goal, &[late])[0];
        assert_eq!(seen(&late).disturbed, None);
        (0..200).for_each(|_| late.generator_late.record(2_500_000));
        assert_eq!(seen(&late).disturbed, Some(Disturbance::Client));
        assert!(
            matches!(seen(&late).outcome, Outcome::Answered { operations: 200, above: 0, .. }),
            "{:?}",
            seen(&late)
        );
        assert!(is_disturbed(&goal, &late));
    }
}
