//! Exports the trials as tables for other programs.
//!
//! Main functions: [`table`] and [`jsonl`]. Invariant: one row per trial and kind of operation, invalid trials included and marked; a figure
//! that was not observed is missing.

pub mod parquet;
mod table;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::histogram::Histogram;
use crate::imported::{ImportedFrom, TimeKind};
use crate::measurement::{Measurement, OperationMeasurement, RecordedMeasurement, ResourceSample};
use crate::metric::background_name;
use crate::reason::show_reasons;
use crate::report::factors::level_text;
use crate::units::NS_PER_S;

pub use table::{Field, Kind, Table};

/// The columns behind the levels.
const COLUMNS: [(&str, Kind); 14] = [
    ("operation", Kind::Text),
    ("throughput_per_s", Kind::Figure),
    ("records_per_s", Kind::Figure),
    ("scheduled", Kind::Count),
    ("completed", Kind::Count),
    ("failed", Kind::Count),
    ("abandoned", Kind::Count),
    ("empty", Kind::Count),
    ("records", Kind::Count),
    ("measured_s", Kind::Figure),
    ("client_cpu_s", Kind::Figure),
    ("generator_late_s_p99", Kind::Figure),
    ("valid", Kind::Flag),
    ("invalid_because", Kind::Text),
];
/// A column, with the function that reads its figure.
type Column<T> = (&'static str, fn(&T) -> f64);
/// The columns for each of the three times.
const TIMES: [Column<Histogram>; 6] = [
    ("mean", |times| times.mean_ns()),
    ("p50", |times| times.quantile_ns(0.5) as f64),
    ("p90", |times| times.quantile_ns(0.9) as f64),
    ("p99", |times| times.quantile_ns(0.99) as f64),
    ("p999", |times| times.quantile_ns(0.999) as f64),
    ("max", |times| times.max_ns() as f64),
];
/// The columns of resources.
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

/// The columns of records on their way through a recorder; missing if no data on them were kept.
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

/// Returns one row per trial and kind of operation, in the order of the trials. Without measurements it has only the columns.
pub fn table(measurements: &[Measurement]) -> Table {
    let settings: BTreeMap<&String, Kind> = measurements
        .iter()
        .flat_map(|trial| trial.trial.case.levels.keys())
        .map(|setting| (setting, kind_of_levels(measurements, setting)))
        .collect();
    let first = [
        ("sequence", Kind::Count),
        ("started", Kind::Text),
        ("trial", Kind::Text),
        ("case", Kind::Text),
        ("round", Kind::Count),
        ("seed", Kind::Count),
    ];
    let named = |(name, kind): (&str, Kind)| (name.to_owned(), kind);
    let levels = settings.iter().map(|(setting, kind)| ((*setting).clone(), *kind));
    let times = ["response_time", "residence_time", "schedule_lag"]
        .into_iter()
        .flat_map(|time| TIMES.iter().map(move |(figure, _)| (format!("{time}_s_{figure}"), Kind::Figure)));
    let resources = RESOURCES.iter().map(|(name, _)| ((*name).to_owned(), Kind::Figure));
    let recorded = RECORDED.iter().map(|(name, _)| ((*name).to_owned(), Kind::Figure));
    let columns = first.into_iter().map(named).chain(levels).chain(COLUMNS.into_iter().map(named)).chain(times);
    let mut rows = Vec::new();
    for trial in measurements {
        let kinds = kinds(trial);
        if kinds.is_empty() {
            rows.push(fields(trial, &settings, "", None));
        }
        rows.extend(kinds.iter().map(|(kind, operation)| fields(trial, &settings, kind, Some(operation))));
    }
    Table { columns: columns.chain(resources).chain(recorded).collect(), rows }
}

/// Returns the kind that all levels of a setting have; text if they differ.
fn kind_of_levels(measurements: &[Measurement], setting: &String) -> Kind {
    let levels = || measurements.iter().filter_map(|trial| trial.trial.case.levels.get(setting));
    if levels().all(Value::is_u64) {
        Kind::Count
    } else if levels().all(Value::is_number) {
        Kind::Figure
    } else if levels().all(Value::is_boolean) {
        Kind::Flag
    } else {
        Kind::Text
    }
}

/// Returns a level as a field of a column of this kind.
fn level_field(level: &Value, kind: Kind) -> Field {
    match kind {
        Kind::Count => Field::or_missing(level.as_u64()),
        Kind::Figure => Field::or_missing(level.as_f64()),
        Kind::Flag => Field::or_missing(level.as_bool()),
        Kind::Text => level_text(level).into(),
    }
}

/// Returns one JSON document per line: the stored form of each measurement, histograms included; empty without measurements.
pub fn jsonl(measurements: &[Measurement]) -> String {
    let line = |trial| serde_json::to_string(trial).expect("measurements are plain data and always have a JSON form");
    measurements.iter().map(|trial| line(trial) + "\n").collect()
}

/// Returns a trial's kinds of operation, including parts of others and operations in the background; empty if it has none.
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
    settings: &BTreeMap<&String, Kind>,
    kind: &str,
    operation: Option<&OperationMeasurement>,
) -> Vec<Field> {
    let per_second = |count: u64| if trial.measured_s > 0.0 { count as f64 / trial.measured_s } else { 0.0 };
    let count = |count: fn(&OperationMeasurement) -> u64| operation.map_or(0, count);
    let late = &trial.generator_late;
    let known = |is_known: bool, field: Field| if is_known { field } else { Field::Missing };
    let told = |what: fn(&ImportedFrom) -> bool| trial.imported.as_ref().is_none_or(what);
    let mut fields = vec![
        trial.sequence.into(),
        trial.started.clone().into(),
        trial.trial.id.clone().into(),
        trial.trial.case.id.clone().into(),
        u64::from(trial.trial.round).into(),
        trial.trial.seed.into(),
    ];
    let levels = &trial.trial.case.levels;
    fields.extend(settings.iter().map(|(setting, kind)| match levels.get(*setting) {
        Some(level) => level_field(level, *kind),
        None => Field::Missing,
    }));
    fields.extend([
        if kind.is_empty() { Field::Missing } else { kind.into() },
        per_second(count(|operation| operation.completed)).into(),
        known(trial.known_records_per_s().is_some(), per_second(count(|operation| operation.records)).into()),
        count(|operation| operation.scheduled).into(),
        count(|operation| operation.completed).into(),
        count(|operation| operation.failed).into(),
        count(|operation| operation.abandoned).into(),
        known(told(|from| from.empty_known), count(|operation| operation.empty).into()),
        known(told(|from| from.records_known), count(|operation| operation.records).into()),
        trial.measured_s.into(),
        Field::or_missing(trial.known_client_cpu_s()),
        known(late.count() > 0, (late.quantile_ns(0.99) as f64 / NS_PER_S).into()),
        trial.is_valid().into(),
        show_reasons(&trial.invalid_because).into(),
    ]);
    for kind in [TimeKind::ResponseTime, TimeKind::ResidenceTime, TimeKind::ScheduleLag] {
        fields.extend(operation.map_or(vec![Field::Missing; TIMES.len()], |operation| times(operation, kind)));
    }
    let used = trial.resources.as_ref().map(|resources| &resources.mean);
    let of_resources = |(name, figure): &Column<ResourceSample>| match *name {
        "client_cpu" => Field::or_missing(trial.client_cpus()),
        _ => Field::or_missing(used.map(figure)),
    };
    fields.extend(RESOURCES.iter().map(of_resources));
    let recorded = trial.recorded.as_ref();
    fields.extend(RECORDED.iter().map(|(_, figure)| Field::or_missing(recorded.map(figure))));
    fields
}

/// Returns the columns of one of an operation's three times: measured, or as another tool states them.
fn times(operation: &OperationMeasurement, kind: TimeKind) -> Vec<Field> {
    let counted = match kind {
        TimeKind::ResponseTime => &operation.response_time,
        TimeKind::ResidenceTime => &operation.residence_time,
        TimeKind::ScheduleLag => &operation.schedule_lag,
    };
    match operation.stated.get(&kind) {
        Some(stated) => {
            let quantiles = [0.5, 0.9, 0.99, 0.999].map(|quantile| stated.quantile_s(quantile));
            [stated.mean_s].into_iter().chain(quantiles).chain([stated.max_s]).map(Field::or_missing).collect()
        }
        None => {
            let seconds = |figure: fn(&Histogram) -> f64| (counted.count() > 0).then(|| figure(counted) / NS_PER_S);
            TIMES.iter().map(|(_, figure)| Field::or_missing(seconds(*figure))).collect()
        }
    }
}
