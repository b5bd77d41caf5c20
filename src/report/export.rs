//! Export: the trials as tables for other programs.
//!
//! Main functions: [`csv`] and [`jsonl`]. Invariant: one line per trial and kind of operation, invalid trials included and
//! marked; a figure that was not observed is an empty field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::histogram::Histogram;
use crate::imported::{ImportedFrom, TimeKind};
use crate::measurement::{Measurement, OperationMeasurement, RecordedMeasurement, ResourceSample};
use crate::report::analyse::background_name;
use crate::report::factors::show_level;
use crate::units::NS_PER_S;

/// Columns behind the levels.
const COLUMNS: [&str; 14] = [
    "operation",
    "throughput_per_s",
    "records_per_s",
    "scheduled",
    "completed",
    "failed",
    "abandoned",
    "empty",
    "records",
    "measured_s",
    "client_cpu_s",
    "generator_late_s_p99",
    "valid",
    "invalid_because",
];
/// A column and how its figure is read.
type Column<T> = (&'static str, fn(&T) -> f64);
/// Columns for each of the three times.
const TIMES: [Column<Histogram>; 6] = [
    ("mean", |times| times.mean_ns()),
    ("p50", |times| times.quantile_ns(0.5) as f64),
    ("p90", |times| times.quantile_ns(0.9) as f64),
    ("p99", |times| times.quantile_ns(0.99) as f64),
    ("p999", |times| times.quantile_ns(0.999) as f64),
    ("max", |times| times.max_ns() as f64),
];
/// Columns of resources.
const RESOURCES: [Column<ResourceSample>; 17] = [
    ("server_cpu", |mean| mean.server_cpu),
    ("client_cpu", |mean| mean.client_cpu),
    ("user", |mean| mean.user),
    ("system", |mean| mean.system),
    ("iowait", |mean| mean.iowait),
    ("idle", |mean| mean.idle),
    ("write_requests_per_s", |mean| mean.write_requests_per_s),
    ("written_bytes_per_s", |mean| mean.written_bytes_per_s),
    ("server_written_bytes_per_s", |mean| mean.server_written_bytes_per_s),
    ("memory_used_bytes", |mean| mean.memory_used_bytes),
    ("server_memory_bytes", |mean| mean.server_memory_bytes),
    ("client_memory_bytes", |mean| mean.client_memory_bytes),
    ("received_bytes_per_s", |mean| mean.received_bytes_per_s),
    ("sent_bytes_per_s", |mean| mean.sent_bytes_per_s),
    ("context_switches_per_s", |mean| mean.context_switches_per_s),
    ("recorder_cpu", |mean| mean.recorder_cpu),
    ("recorder_memory_bytes", |mean| mean.recorder_memory_bytes),
];

/// Columns of records on their way through a recorder; empty where nothing was kept of them.
const RECORDED: [Column<RecordedMeasurement>; 8] = [
    ("stored_per_s", |recorded| recorded.stored_per_s),
    ("buffer_s", |recorded| recorded.buffer_s),
    ("acknowledged", |recorded| recorded.acknowledged as f64),
    ("found", |recorded| recorded.found as f64),
    ("missing", |recorded| recorded.missing as f64),
    ("surplus", |recorded| recorded.surplus as f64),
    ("out_of_order", |recorded| recorded.out_of_order as f64),
    ("spooled_max", |recorded| recorded.spooled_max as f64),
];

/// Comma-separated values after RFC 4180, a heading first, lines in the order in which the trials are given. Without
/// measurements only the heading.
pub fn csv(measurements: &[Measurement]) -> String {
    let settings: BTreeSet<&String> = measurements.iter().flat_map(|trial| trial.trial.case.levels.keys()).collect();
    let mut out = String::new();
    let first = ["sequence", "started", "trial", "case", "round", "seed"].into_iter().map(str::to_owned);
    let levels = settings.iter().map(|setting| (*setting).clone());
    let times = ["response_time", "residence_time", "schedule_lag"]
        .into_iter()
        .flat_map(|time| TIMES.iter().map(move |(figure, _)| format!("{time}_s_{figure}")));
    let resources = RESOURCES.iter().map(|(name, _)| (*name).to_owned());
    let fixed = COLUMNS.into_iter().map(str::to_owned);
    let recorded = RECORDED.iter().map(|(name, _)| (*name).to_owned());
    push_line(&mut out, first.chain(levels).chain(fixed).chain(times).chain(resources).chain(recorded));
    for trial in measurements {
        let kinds = kinds(trial);
        if kinds.is_empty() {
            push_line(&mut out, fields(trial, &settings, "", None));
        }
        for (kind, operation) in &kinds {
            push_line(&mut out, fields(trial, &settings, kind, Some(operation)));
        }
    }
    out
}

/// One JSON document per line: the stored form of each measurement, histograms included; empty without measurements.
pub fn jsonl(measurements: &[Measurement]) -> String {
    let line = |trial| serde_json::to_string(trial).expect("measurements are plain data and always have a JSON form");
    measurements.iter().map(|trial| line(trial) + "\n").collect()
}

/// A trial's kinds of operation, with those that were parts of others; a trial that has none still gets a line.
fn kinds(trial: &Measurement) -> BTreeMap<String, OperationMeasurement> {
    let mut kinds: BTreeMap<String, OperationMeasurement> = BTreeMap::new();
    for (kind, operation) in trial.operations.iter().chain(&trial.parts) {
        kinds.entry(kind.clone()).or_default().merge(operation);
    }
    for (kind, operation) in &trial.background {
        kinds.entry(background_name(kind)).or_default().merge(operation);
    }
    kinds
}

fn fields(
    trial: &Measurement,
    settings: &BTreeSet<&String>,
    kind: &str,
    operation: Option<&OperationMeasurement>,
) -> Vec<String> {
    let per_second = |count: u64| if trial.measured_s > 0.0 { count as f64 / trial.measured_s } else { 0.0 };
    let count = |count: fn(&OperationMeasurement) -> u64| operation.map_or(0, count);
    let late = &trial.generator_late;
    let known = |is_known: bool, text: String| if is_known { text } else { String::new() };
    let told = |what: fn(&ImportedFrom) -> bool| trial.imported.as_ref().is_none_or(what);
    let mut fields = vec![
        trial.sequence.to_string(),
        trial.started.clone(),
        trial.trial.id.clone(),
        trial.trial.case.id.clone(),
        trial.trial.round.to_string(),
        trial.trial.seed.to_string(),
    ];
    let levels = &trial.trial.case.levels;
    fields.extend(settings.iter().map(|setting| levels.get(*setting).map(show_level).unwrap_or_default()));
    fields.extend([
        kind.to_owned(),
        per_second(count(|operation| operation.completed)).to_string(),
        known(trial.known_records_per_s().is_some(), per_second(count(|operation| operation.records)).to_string()),
        count(|operation| operation.scheduled).to_string(),
        count(|operation| operation.completed).to_string(),
        count(|operation| operation.failed).to_string(),
        count(|operation| operation.abandoned).to_string(),
        known(told(|from| from.empty_known), count(|operation| operation.empty).to_string()),
        known(told(|from| from.records_known), count(|operation| operation.records).to_string()),
        trial.measured_s.to_string(),
        trial.known_client_cpu_s().map(|cpu_s| cpu_s.to_string()).unwrap_or_default(),
        if late.count() > 0 { (late.quantile_ns(0.99) as f64 / NS_PER_S).to_string() } else { String::new() },
        trial.is_valid().to_string(),
        trial.invalid_because.join("; "),
    ]);
    for kind in [TimeKind::ResponseTime, TimeKind::ResidenceTime, TimeKind::ScheduleLag] {
        fields.extend(operation.map_or(vec![String::new(); TIMES.len()], |operation| times(operation, kind)));
    }
    let used = trial.resources.as_ref().map(|resources| &resources.mean);
    fields.extend(RESOURCES.iter().map(|(_, figure)| used.map(|mean| figure(mean).to_string()).unwrap_or_default()));
    let recorded = trial.recorded.as_ref();
    fields.extend(RECORDED.iter().map(|(_, figure)| recorded.map(|one| figure(one).to_string()).unwrap_or_default()));
    fields
}

/// The columns of one of an operation's three times: counted, or as another tool states them.
fn times(operation: &OperationMeasurement, kind: TimeKind) -> Vec<String> {
    let counted = match kind {
        TimeKind::ResponseTime => &operation.response_time,
        TimeKind::ResidenceTime => &operation.residence_time,
        TimeKind::ScheduleLag => &operation.schedule_lag,
    };
    let show = |seconds: Option<f64>| seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
    match operation.stated.get(&kind) {
        Some(stated) => {
            let quantiles = [0.5, 0.9, 0.99, 0.999].map(|quantile| stated.quantile_s(quantile));
            [stated.mean_s].into_iter().chain(quantiles).chain([stated.max_s]).map(show).collect()
        }
        None => {
            let seconds = |figure: fn(&Histogram) -> f64| (counted.count() > 0).then(|| figure(counted) / NS_PER_S);
            TIMES.iter().map(|(_, figure)| show(seconds(*figure))).collect()
        }
    }
}

fn push_line(out: &mut String, fields: impl IntoIterator<Item = String>) {
    for (place, field) in fields.into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let quoted = field.contains([',', '"', '\n', '\r']);
        // Writing to a String does not fail.
        let _ = if quoted {
            write!(out, "{comma}\"{}\"", field.replace('"', "\"\""))
        } else {
            write!(out, "{comma}{field}")
        };
    }
    out.push('\n');
}
