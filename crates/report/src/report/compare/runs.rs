//! Makes samples from runs: the alternatives of one run, or the same cases of two runs.
//!
//! Main functions: [`within`] and [`between`]. Invariant: everything left out of a comparison is reported in a note; a run without anything
//! to compare is rejected.

use std::collections::BTreeSet;

use serde_json::Value;

use super::note::{CompareNote, some_of};
use super::sample::{Figures, Sample};
use crate::measurement::Measurement;
use crate::metric::{LOAD_LINE, METRICS, Metric, background_name};
use crate::report::analyse::{group, kind_name};
use crate::report::answers::{is_empty, rows_per_query, unlike};
use crate::report::case_trials::{CaseTrials, is_overloaded};
use crate::report::factors::{Factors, same_level, short_level, show_level, show_levels};
use crate::report::load_lines::{load_lines, verdicts};
use crate::report::verdicts::metric_of;
use crate::statistics::TrialValue;
use crate::statistics::noise::{CaseError, Series, Stopping, log_errors};
use crate::study::repeat::stopping;
use crate::study::{Factor, Study, goal, setting_value};
use crate::trial::{Case, Levels};

/// A run to be compared.
#[derive(Debug, Clone, Copy)]
pub struct RunInput<'a> {
    /// The directory of the run, for messages.
    pub path: &'a str,
    /// The name of the run, for people; different from that of another run with which it is compared.
    pub label: &'a str,
    /// The name of the machine, or of the run if two runs come from one machine.
    pub machine: &'a str,
    /// The study as measured, with the rates that a search chose.
    pub study: &'a Study,
    /// The study as written.
    pub written: &'a Study,
    /// All trials of the run.
    pub measurements: &'a [Measurement],
}

/// The samples chosen for comparison.
#[derive(Clone)]
pub struct Chosen {
    /// The samples.
    pub samples: Vec<Sample>,
    /// The metric.
    pub metric: &'static Metric,
    /// The factors whose levels are the alternatives; empty between runs.
    pub factors: Vec<String>,
    /// Notes on what was left out, and on further differences.
    pub notes: Vec<CompareNote>,
    /// Whether all trials are valid.
    pub valid: bool,
}

/// Returns the study as measured: the arrival rates of a search are levels of a factor.
pub fn unfolded(study: &Study, measurements: &[Measurement]) -> Study {
    goal::unfold(study, measurements)
}

/// Returns the default metric of a run: the load line if there was a search for one, otherwise the metric of its report.
pub fn usual_metric(run: &RunInput<'_>) -> &'static Metric {
    match run.written.goal {
        Some(_) => &LOAD_LINE,
        None => metric_of(&group(run.study, run.measurements)),
    }
}

/// Returns the alternatives of a run: the levels of the given factor, or of every factor that is a choice (of every factor, if none is).
///
/// # Errors
/// A sentence with the run, the factor and the remedy, if there is no such factor or nothing to compare.
pub fn within(run: &RunInput<'_>, factor: Option<&str>, metric: &'static Metric) -> Result<Chosen, String> {
    check_goal(run, metric)?;
    let mut figures = Values::of(run, metric);
    let varied = varied_factors(run.study);
    let chosen = choose(run, &varied, factor)?;
    let mut samples = Vec::new();
    for factor in &chosen {
        let mut known: Vec<(Sample, Option<f64>)> = Vec::new();
        for case in &figures.cases {
            let variant = short_level(factor, &case.level(&factor.setting));
            let others = varied.iter().filter(|other| other.setting != factor.setting);
            let sample = case.sample(run.machine, &factor.setting, &variant, case.label(others), metric);
            let Some(sample) = sample else { continue };
            let first = known.iter().find(|(first, _)| first.is_alternative_to(&sample));
            match first.and_then(|(first, rows)| Some((first, unlike(*rows, case.rows)?))) {
                Some((first, why)) => figures.notes.push(not_compared(&sample, first, why)),
                None => known.push((sample, case.rows)),
            }
        }
        samples.extend(known.into_iter().map(|(sample, _)| sample));
    }
    let has_pair = samples.iter().enumerate().any(|(at, a)| samples[at + 1..].iter().any(|b| a.is_alternative_to(b)));
    if !has_pair {
        return Err(format!(
            "{}: no two levels of {} have two valid trials each in the same case, so there is nothing to compare{}{}",
            run.path,
            chosen.iter().map(|factor| factor.setting.as_str()).collect::<Vec<_>>().join(" or "),
            figures.reasons(),
            untold(run, metric)
        ));
    }
    let factors = chosen.iter().map(|factor| factor.setting.clone()).collect();
    Ok(Chosen { samples, metric, factors, notes: figures.notes, valid: figures.valid })
}

/// Returns the note that a sample is not compared with the first of its alternatives, with the reason.
fn not_compared(sample: &Sample, first: &Sample, why: String) -> CompareNote {
    let Sample { factor, variant: level, case, .. } = sample.clone();
    CompareNote::Unlike { factor, level, other: first.variant.clone(), case, why }
}

/// Returns the remark that another tool measured and does not state this metric; otherwise empty.
fn untold(run: &RunInput<'_>, metric: &Metric) -> String {
    let tool = run.measurements.iter().find_map(|trial| Some(trial.imported.as_ref()?.tool.as_str()));
    let is_told = |metric: &Metric| run.measurements.iter().any(|trial| metric.of(trial).is_some());
    let Some(tool) = tool.filter(|_| !is_told(metric)) else { return String::new() };
    let others = METRICS.iter().filter(|other| is_told(other)).map(|other| other.name).collect::<Vec<_>>().join(", ");
    format!("; {tool} does not tell {}, but {others}", metric.name)
}

/// Returns the same cases of two runs, which differ in version, setting or time.
///
/// # Errors
/// A sentence with both runs and the remedy, if they share no case.
pub fn between(a: &RunInput<'_>, b: &RunInput<'_>, metric: &'static Metric) -> Result<Chosen, String> {
    check_goal(a, metric)?;
    check_goal(b, metric)?;
    let (of, to) = (Values::of(a, metric), Values::of(b, metric));
    let mut factors = varied_factors(a.study);
    for factor in varied_factors(b.study) {
        if factors.iter().all(|known| known.setting != factor.setting) {
            factors.push(factor);
        }
    }
    let machine = if a.machine == b.machine { a.machine.to_owned() } else { format!("{}, {}", a.machine, b.machine) };
    let is_same = |x: &CaseValues, y: &CaseValues| {
        let is_same_level = |factor: &Factor| same_level(&x.level(&factor.setting), &y.level(&factor.setting));
        x.operation == y.operation && factors.iter().all(is_same_level)
    };
    let mut samples = Vec::new();
    let mut alone: Vec<String> = Vec::new();
    for x in &of.cases {
        match to.cases.iter().find(|y| is_same(x, y)) {
            None => alone.push(format!("{} only in {}", x.label(factors.iter()), a.label)),
            Some(y) => {
                let label = x.label(factors.iter());
                if let Some(why) = unlike(x.rows, y.rows) {
                    alone.push(format!("{label}, because {why}"));
                    continue;
                }
                let (noise_of, noise_to) = (x.noise, y.noise);
                let both = (
                    x.sample(&machine, "run", a.label, label.clone(), metric),
                    y.sample(&machine, "run", b.label, label, metric),
                );
                if let (Some(x), Some(y)) = both {
                    // Round 3 of one run is unrelated to round 3 of the other.
                    samples.extend([x.without_rounds(noise_of), y.without_rounds(noise_to)]);
                }
            }
        }
    }
    let unmatched = to.cases.iter().filter(|y| !of.cases.iter().any(|x| is_same(x, y)));
    alone.extend(unmatched.map(|y| format!("{} only in {}", y.label(factors.iter()), b.label)));
    if samples.is_empty() {
        let reasons = [of.reasons(), to.reasons()].concat();
        let seen = if alone.is_empty() { String::new() } else { format!(" ({})", some_of(&alone)) };
        return Err(format!(
            "{} and {} share no case with two valid trials each{seen}{reasons}; name two runs of the same study",
            a.path, b.path
        ));
    }
    let mut notes = of.notes;
    notes.extend(to.notes);
    notes.extend((!alone.is_empty()).then_some(CompareNote::OnlyInOne { cases: alone }));
    notes.extend(differing_settings(a, b, &factors));
    notes.push(CompareNote::NotInterleaved {});
    Ok(Chosen { samples, metric, factors: Vec::new(), notes, valid: of.valid && to.valid })
}

/// Rejects load lines, which have brackets and no trials to test. The message contains the run's lines, so that they can be compared by
/// hand.
fn check_goal(run: &RunInput<'_>, metric: &Metric) -> Result<(), String> {
    if metric.name != LOAD_LINE.name {
        return Ok(());
    }
    if run.written.goal.is_none() {
        return Err(format!(
            "--metric: {} has no load line, because its study has no [goal]; choose another metric",
            run.path
        ));
    }
    let said: Vec<String> =
        verdicts(&load_lines(run.written, run.measurements)).iter().map(ToString::to_string).collect();
    let said = said.join("; ");
    Err(format!(
        "--metric: load lines are compared by their brackets, which `loadline report` does for the alternatives of one run, and not by \
         trials; choose another metric, as in --metric response_time_p99. {}: {said}",
        run.path
    ))
}

/// Returns the factors that vary, in the study's order.
fn varied_factors(study: &Study) -> Vec<Factor> {
    study.factors.iter().filter(|factor| factor.levels.len() > 1).cloned().collect()
}

/// Returns the factors to be compared.
fn choose(run: &RunInput<'_>, varied: &[Factor], factor: Option<&str>) -> Result<Vec<Factor>, String> {
    let names: Vec<&str> = varied.iter().map(|factor| factor.setting.as_str()).collect();
    if names.is_empty() {
        return Err(format!(
            "{}: the run has one case only, so there is nothing to compare within it; vary a setting, as in --set \
             \"layout.name=[wide, star]\", or name a second run",
            run.path
        ));
    }
    if let Some(wanted) = factor {
        let found = varied.iter().find(|factor| factor.setting == wanted);
        let meant = crate::written::closest(wanted, names.iter().copied());
        let meant = meant.map_or(";".to_owned(), |meant| format!("; did you mean \"{meant}\"?"));
        let refusal = || format!("--factor: {} varies no \"{wanted}\"{meant} it varies {}", run.path, names.join(", "));
        return found.cloned().map(|factor| vec![factor]).ok_or_else(refusal);
    }
    let mut factors = Factors::of(run.study);
    factors.choices.retain(|factor| names.contains(&factor.setting.as_str()));
    let judged: Vec<Factor> = factors.judged().cloned().collect();
    Ok(if judged.is_empty() { varied.to_vec() } else { judged })
}

/// Returns a note on the settings in which two runs differ in addition to their factors.
fn differing_settings(a: &RunInput<'_>, b: &RunInput<'_>, factors: &[Factor]) -> Option<CompareNote> {
    let flat = |study: &Study| {
        let mut found = std::collections::BTreeMap::new();
        flatten(&serde_json::to_value(&study.base).unwrap_or_default(), "", &mut found);
        found
    };
    let (of, to) = (flat(a.study), flat(b.study));
    let settings: BTreeSet<&String> = of.keys().chain(to.keys()).collect();
    let differing: Vec<String> = settings
        .into_iter()
        .filter(|setting| of.get(*setting) != to.get(*setting))
        .filter(|setting| factors.iter().all(|factor| factor.setting != **setting))
        .map(|setting| {
            let show = |side: &std::collections::BTreeMap<String, String>| {
                side.get(setting).cloned().unwrap_or_else(|| "not set".to_owned())
            };
            format!("{setting} is {} in {} and {} in {}", show(&of), a.label, show(&to), b.label)
        })
        .collect();
    (!differing.is_empty()).then_some(CompareNote::SettingsDiffer { settings: differing })
}

fn flatten(value: &Value, name: &str, out: &mut std::collections::BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (field, inner) in fields {
                let dotted = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(inner, &dotted, out);
            }
        }
        other => drop(out.insert(name.to_owned(), show_level(other))),
    }
}

/// The values of all cases of a run.
struct Values {
    cases: Vec<CaseValues>,
    notes: Vec<CompareNote>,
    valid: bool,
}

/// The values of one case, of all operations or of one kind.
struct CaseValues {
    case: Case,
    operation: String,
    values: Vec<TrialValue>,
    /// The error of its mean logarithm by the noise of all cases; `None` if trials have no rounds.
    noise: Option<CaseError>,
    /// The mean number of rows per query; `None` if rows were not counted.
    rows: Option<f64>,
}

impl Values {
    fn of(run: &RunInput<'_>, metric: &Metric) -> Values {
        let groups = group(run.study, run.measurements);
        let trials = groups.iter().flat_map(|group| &group.trials);
        let (all, invalid) =
            trials.fold((0, 0), |(all, invalid), trial| (all + 1, invalid + usize::from(!trial.is_valid())));
        let mut notes = Vec::new();
        if invalid > 0 {
            notes.push(CompareNote::Invalid { run: run.label.to_owned(), invalid, all });
        }
        let mut cases = case_values(run, &groups, metric, &mut notes);
        tell_noise(&mut cases, stopping(run.study));
        let few: Vec<&CaseValues> = cases.iter().filter(|case| case.values.len() < 2).collect();
        if !few.is_empty() {
            let factors: Vec<Factor> =
                run.study.factors.iter().filter(|factor| factor.levels.len() > 1).cloned().collect();
            let cases = few.iter().map(|case| case.label(factors.iter())).collect();
            notes.push(CompareNote::TooFewTrials { run: run.label.to_owned(), metric: metric.title, cases });
        }
        Values { cases, notes, valid: all > 0 && invalid == 0 }
    }

    /// Joins the notes into the reasons of a rejection.
    fn reasons(&self) -> String {
        self.notes.iter().map(|note| format!("; {note}")).collect()
    }
}

/// Returns the values of every case; for response times, those of every kind of operation if there are several.
fn case_values(
    run: &RunInput<'_>,
    groups: &[CaseTrials<'_>],
    metric: &Metric,
    notes: &mut Vec<CompareNote>,
) -> Vec<CaseValues> {
    let mut kinds: Vec<String> = Vec::new();
    let all = groups.iter().flat_map(CaseTrials::valid);
    let own_and_beside = |trial: &'_ Measurement| -> Vec<String> {
        let own = trial.operations.keys().chain(trial.parts.keys()).cloned();
        own.chain(trial.background.keys().map(|kind| background_name(kind))).collect()
    };
    for kind in all.flat_map(own_and_beside) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut found = Vec::new();
    for group in groups {
        let valid: Vec<&Measurement> = group.valid().collect();
        let rows = rows_per_query(&valid);
        if is_empty(rows) {
            let case = show_levels(&group.case.levels);
            notes.push(CompareNote::FoundNothing { run: run.label.to_owned(), case });
            continue;
        }
        if metric.is_time() && is_overloaded(&valid) {
            let factors: Vec<Factor> = run.study.factors.clone();
            let label = CaseValues {
                case: group.case.clone(),
                operation: String::new(),
                values: Vec::new(),
                noise: None,
                rows: None,
            };
            let case = label.label(factors.iter());
            notes.push(CompareNote::Overloaded { run: run.label.to_owned(), case });
            continue;
        }
        let values = |value: &dyn Fn(&Measurement) -> Option<f64>| -> Vec<TrialValue> {
            let placed = |trial: &&&Measurement| {
                let place = Some((trial.trial.round, trial.sequence));
                value(trial).map(|value| TrialValue { place, value })
            };
            valid.iter().collect::<Vec<_>>().iter().filter_map(placed).collect()
        };
        let mut push = |operation: &str, values: Vec<TrialValue>| {
            let (case, operation) = (group.case.clone(), operation.to_owned());
            found.push(CaseValues { case, operation, values, noise: None, rows });
        };
        if metric.is_time() && kinds.len() > 1 {
            for kind in &kinds {
                let own = values(&|trial| metric.of_operation(trial, kind));
                if !own.is_empty() {
                    push(&kind_name(group.case, kind), own);
                }
            }
        } else {
            push("", values(&|trial| metric.of(trial)));
        }
    }
    found
}

/// Sets the error of each case by the noise of all cases of the same kind of operation.
fn tell_noise(cases: &mut [CaseValues], stopping: Stopping) {
    let operations: BTreeSet<String> = cases.iter().map(|case| case.operation.clone()).collect();
    for operation in operations {
        let mut own: Vec<&mut CaseValues> = cases.iter_mut().filter(|case| case.operation == operation).collect();
        let series = |case: &&mut CaseValues| -> Series {
            case.values.iter().filter_map(|trial| Some((trial.place?.0, trial.value))).collect()
        };
        let errors = log_errors(&own.iter().map(series).collect::<Vec<_>>(), stopping);
        own.iter_mut().zip(errors).for_each(|(case, error)| case.noise = error);
    }
}

impl CaseValues {
    /// Returns the level of a setting: that of the factor, or else the value of the case.
    fn level(&self, setting: &str) -> Value {
        let levels: &Levels = &self.case.levels;
        levels.get(setting).cloned().or_else(|| setting_value(&self.case.settings, setting)).unwrap_or(Value::Null)
    }

    /// Returns the name of the case by these factors: `ycsb-a, clients = 4, read`.
    fn label<'f>(&self, factors: impl Iterator<Item = &'f Factor>) -> String {
        let known = factors.map(|factor| (factor, self.level(&factor.setting))).filter(|(_, level)| !level.is_null());
        let levels = known.map(|(factor, level)| short_level(factor, &level));
        let operation = Some(self.operation.clone()).filter(|operation| !operation.is_empty());
        let parts: Vec<String> = levels.chain(operation).collect();
        if parts.is_empty() { "the only case".to_owned() } else { parts.join(", ") }
    }

    /// Returns the sample; `None` with fewer than two values.
    fn sample(
        &self,
        machine: &str,
        factor: &str,
        variant: &str,
        case: String,
        metric: &'static Metric,
    ) -> Option<Sample> {
        (self.values.len() >= 2).then(|| Sample {
            machine: machine.to_owned(),
            case,
            variant: variant.to_owned(),
            factor: factor.to_owned(),
            metric,
            operation: self.operation.clone(),
            figures: Figures::Trials(self.values.clone()),
            noise: None,
        })
    }
}
