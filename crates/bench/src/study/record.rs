//! Reads `[record]`: the kind of data, its amount, and its shape.
//!
//! Main: [`RECORD`] and [`read_record`]. Invariant: a measurement consists of whole transactions.

use super::fill::{IDENTITY, VALUES, read_columns};
use super::names::Names;
use super::reading::{LARGE, read_name};
use super::series;
use super::shape::{RUNS, read_runs};
use super::ycsb::settings as ycsb_settings;
use crate::data::PERMUTATIONS;
use crate::fault::fault;
use crate::trial::{Arrivals, Length, LoadSettings, RecordSettings, WISCONSIN_PERMUTATION};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

const RECORDS_PER_MEASUREMENT: u64 = 1000;

/// The settings of the section.
pub static RECORD: Part = Part {
    name: "record",
    help: "The data: the record type, the number of records before the load begins, and how they are generated.",
    settings: &[
        Setting::new(
            "type",
            Kind::Named(record_types),
            Absent::Text("qos"),
            "The record type. `custom` has the columns below.",
        )
        .factor(|settings| Some(settings.record.type_name.as_str().into())),
        Setting::new(
            "table",
            Kind::Text,
            Absent::Means("the record type's name"),
            "The name of the table, with which a layout's table names begin: 1 to 40 letters, digits or underscores.",
        )
        .factor(|settings| Some(settings.record.table.as_str().into())),
        Setting::new("rows", Kind::Whole(0, LARGE), Absent::Whole(0), "Number of records before the load begins.")
            .factor(|settings| Some(settings.record.rows.into())),
        Setting::new(
            "runs",
            Kind::Own(&RUNS),
            Absent::Means("none: `rows` says how many there are"),
            "Measurements of several lengths before the load begins: how many measurements, and how many records each has.",
        ),
        Setting::new(
            "scale",
            Kind::Number(0.001, 100.0),
            Absent::Means("`1`"),
            "The factor by which the lengths of `runs` are multiplied.",
        )
        .only("`runs`")
        .factor(|settings| Some(settings.record.scale.unwrap_or(1.0).into())),
        Setting::new("seed", Kind::Whole(0, LARGE), Absent::Whole(1), "The number that determines the data.")
            .factor(|settings| Some(settings.record.seed.into())),
        Setting::new(
            "per_measurement",
            Kind::Whole(1, 1_000_000_000),
            Absent::Means(
                "what a client or a source writes in a trial, if that is known; a batch for `sensor` and with `sources`; else 1,000",
            ),
            "Number of consecutive records that share an identity. It is rounded up to a multiple of `workload.batch`.",
        )
        .factor(|settings| Some(settings.record.per_measurement.into())),
        Setting::new(
            "permutation",
            Kind::Named(|| PERMUTATIONS.to_vec()),
            Absent::Means("`\"feistel\"`"),
            "How the numbers of `wisconsin` are ordered.",
        )
        .only("`type = \"wisconsin\"`")
        .factor(|settings| settings.record.permutation.as_deref().map(Into::into)),
        Setting::new(
            "existing",
            Kind::Truth,
            Absent::Truth(false),
            "Whether the tables and their rows exist already. They are then not created, filled or dropped.",
        )
        .factor(|settings| Some(settings.record.existing.into())),
        Setting::new("identity", Kind::Parts(&IDENTITY), Absent::Means("none"), "The columns that say who measured.")
            .only("`type = \"custom\"`"),
        Setting::new(
            "values",
            Kind::Parts(&VALUES),
            Absent::Means("none: they must be given"),
            "The columns that say what was measured.",
        )
        .only("`type = \"custom\"`"),
        ycsb_settings::FIELDS,
        ycsb_settings::FIELD_LENGTH,
        ycsb_settings::FIELD_LENGTH_LEAST,
        ycsb_settings::FIELD_LENGTHS,
        ycsb_settings::FIELD_PREFIX,
        ycsb_settings::KEYS,
        ycsb_settings::KEY_DIGITS,
        series::SOURCES,
        series::INTERVAL,
        series::JITTER,
        series::MISSING,
        series::LATE,
        series::REPEATED,
        Setting::new("length", Kind::Whole(1, LARGE), Absent::Means("the type's own"), "Bytes of content per record.")
            .only("`type = \"sensor\"`")
            .factor(|settings| settings.record.length.map(Into::into)),
    ],
};

fn record_types() -> Vec<&'static str> {
    crate::data::REGISTRY.iter().map(|entry| entry.name).collect()
}

/// Reads the settings of the records. `batch` is the number of records in a transaction of the writing side.
pub(super) fn read_record(
    root: &Table,
    names: &Names,
    batch: u64,
    load: &LoadSettings,
    errors: &mut Errors,
) -> RecordSettings {
    let section = Section::open(root, &RECORD, errors);
    let type_name = read_name(&section, "type", &names.records, errors);
    let table: String = section.find("table", errors).unwrap_or_else(|| type_name.clone());
    if let (false, Some(entry)) = (is_table_name(&table), section.get("table")) {
        let must = "it must be 1 to 40 letters, digits or underscores and not begin with a digit";
        errors.push(entry.node.place, fault!("record.table is {}", entry.node; "{must}"));
    }
    let per_measurement = section.find("per_measurement", errors).unwrap_or_else(|| match load.length {
        // Events are numbered approximately in the order in which they arrive: those of one transaction are a transmission. So are readings of many sources, whose times would
        // otherwise lie as far apart as the clients' measurements.
        _ if type_name == "sensor" || section.get("sources").is_some() => batch,
        Length::OperationsPerClient(operations) => operations.saturating_mul(batch).min(LARGE.unsigned_abs()),
        // A source sends one measurement, from its start to its end.
        Length::Seconds(seconds) if load.arrivals == Arrivals::Sources => {
            let results = (load.warmup_s + seconds) * load.source_rate_per_s.unwrap_or(1.0);
            (results.round().clamp(1.0, 1e9) as u64).saturating_mul(batch)
        }
        Length::Operations(_) | Length::Seconds(_) => RECORDS_PER_MEASUREMENT.max(batch),
    });
    let length: Option<u64> = section.read("length", errors);
    let permutation = (type_name == "wisconsin").then(|| WISCONSIN_PERMUTATION.to_owned());
    let (runs, scale) = read_runs(&section, errors);
    let in_runs = runs.iter().map(|(runs, records)| runs * records).sum();
    let rows = section.read("rows", errors);
    RecordSettings {
        table,
        rows: if runs.is_empty() { rows } else { in_runs },
        runs,
        scale,
        seed: section.read("seed", errors),
        per_measurement: per_measurement.div_ceil(batch) * batch,
        permutation: section.find("permutation", errors).or(permutation),
        existing: section.read("existing", errors),
        length: length.map(|length| u32::try_from(length).unwrap_or(u32::MAX)),
        series: series::read_series(&section, errors),
        usertable: ycsb_settings::read_usertable(&section, errors),
        identity: read_columns(&section, "identity", &IDENTITY, errors),
        values: read_columns(&section, "values", &VALUES, errors),
        type_name,
    }
}

/// Returns whether a text can name a table in every database without quotes.
fn is_table_name(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
