//! Reads `[record]`: which data, how many, and what shapes them.
//!
//! Main function: [`read_record`]. Invariant: a measurement is made of whole transactions.

use super::fill::read_columns;
use super::names::Names;
use super::place::Errors;
use super::section::Section;
use super::settings::{LARGE, read_name};
use super::shape::read_runs;
use super::tree::Table;
use super::ycsb::settings as ycsb_settings;
use crate::trial::{Arrivals, Length, LoadSettings, RecordSettings, WISCONSIN_PERMUTATION};

const RECORD_KEYS: &[&str] = &[
    "type",
    "table",
    "rows",
    "runs",
    "scale",
    "seed",
    "per_measurement",
    "permutation",
    "existing",
    "identity",
    "values",
    "fields",
    "field_length",
    "field_length_least",
    "field_lengths",
    "field_prefix",
    "keys",
    "key_digits",
    "length",
];

const RECORDS_PER_MEASUREMENT: u64 = 1000;

/// The settings of the records. `batch` is how many records a transaction of the side that writes has.
pub(super) fn read_record(
    root: &Table,
    names: &Names,
    batch: u64,
    load: &LoadSettings,
    errors: &mut Errors,
) -> RecordSettings {
    let section = Section::open(root, "record", RECORD_KEYS, errors);
    let type_name = read_name(&section, "type", "qos", &names.records, errors);
    let table = section.text("table", errors).unwrap_or(&type_name).to_owned();
    if let (false, Some(entry)) = (is_table_name(&table), section.get("table")) {
        let must = "it must be 1 to 40 letters, digits or underscores and not begin with a digit";
        errors.push(entry.node.place, format!("record.table is {}; {must}", entry.node));
    }
    let per_measurement = section.whole("per_measurement", 1..=1_000_000_000, errors).map(i64::unsigned_abs);
    let per_measurement = per_measurement.unwrap_or_else(|| match load.length {
        // Events are numbered in the order in which they arrive, about: those of one transaction are a transmission.
        _ if type_name == "sensor" => batch,
        Length::OperationsPerClient(operations) => operations.saturating_mul(batch).min(LARGE.unsigned_abs()),
        // A source sends one measurement, from its start to its end.
        Length::Seconds(seconds) if load.arrivals == Arrivals::Sources => {
            let results = (load.warmup_s + seconds) * load.source_rate_per_s.unwrap_or(1.0);
            (results.round().clamp(1.0, 1e9) as u64).saturating_mul(batch)
        }
        Length::Operations(_) | Length::Seconds(_) => RECORDS_PER_MEASUREMENT.max(batch),
    });
    let length = section.whole("length", 1..=LARGE, errors);
    let (runs, scale) = read_runs(&section, errors);
    let in_runs = runs.iter().map(|(runs, records)| runs * records).sum();
    let rows = section.whole("rows", 0..=LARGE, errors).map(i64::unsigned_abs);
    RecordSettings {
        table,
        rows: if runs.is_empty() { rows.unwrap_or(0) } else { in_runs },
        runs,
        scale,
        seed: section.whole("seed", 0..=LARGE, errors).map_or(1, i64::unsigned_abs),
        per_measurement: per_measurement.div_ceil(batch) * batch,
        permutation: section
            .text("permutation", errors)
            .or((type_name == "wisconsin").then_some(WISCONSIN_PERMUTATION))
            .map(str::to_owned),
        existing: section.truth("existing", errors).unwrap_or(false),
        length: length.map(|length| u32::try_from(length).unwrap_or(u32::MAX)),
        usertable: ycsb_settings::read_usertable(&section, errors),
        identity: read_columns(&section, "identity", errors),
        values: read_columns(&section, "values", errors),
        type_name,
    }
}

/// Whether a text can name a table in every database without quotes being needed.
fn is_table_name(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
