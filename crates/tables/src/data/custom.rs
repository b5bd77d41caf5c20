//! The record type `custom`: columns as described in the study file.
//!
//! Identity columns may repeat between measurements, so a custom record has no identity key: layouts tell its measurements
//! apart by number.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Entry, Filler, filler};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::trial::{CustomColumn, Fill, RecordSettings};

/// Registry entry.
pub(super) static CUSTOM: Entry = Entry {
    name: "custom",
    summary: "columns of your own: [[record.identity]] and [[record.values]] in the study file",
    build: |settings| Ok(Arc::new(Custom::new(settings)?)),
};

/// Maximum length in bytes of a column name that every database accepts: PostgreSQL's limit.
const NAME_BYTES_MAX: usize = 63;

/// Names that the layouts give to their own columns.
const RESERVED: [&str; 2] = ["record_id", "measurement"];

struct Custom {
    record_type: RecordType,
    identity: Vec<Filler>,
    values: Vec<Filler>,
    per_measurement: u64,
    /// The number of sources that send in turn; `None` without sources.
    sources: Option<u64>,
    seed: u64,
}

impl Custom {
    fn new(settings: &RecordSettings) -> Result<Self, String> {
        if settings.values.is_empty() {
            return Err("record.type \"custom\" needs at least one column in record.values".to_owned());
        }
        let mut names = BTreeSet::new();
        for column in settings.identity.iter().chain(&settings.values) {
            check_name(&column.name)?;
            if !names.insert(column.name.to_lowercase()) {
                return Err(format!("record column \"{}\" occurs twice; names differ by more than case", column.name));
            }
        }
        let (identity_columns, identity) = columns("record.identity", &settings.identity)?;
        let (value_columns, values) = columns("record.values", &settings.values)?;
        let record_type = RecordType {
            name: "custom".to_owned(),
            identity: identity_columns,
            identity_key: 0,
            identity_end: None,
            series: None,
            key: None,
            values: value_columns,
        };
        let sources = settings.series.as_ref().map(|series| u64::from(series.sources.max(1)));
        Ok(Custom {
            record_type,
            identity,
            values,
            per_measurement: settings.per_measurement,
            sources,
            seed: settings.seed,
        })
    }

    /// Returns the index at which values that wander are made: those of a source, or of a measurement, follow each other.
    #[inline]
    fn index_in_track(&self, record: u64) -> u64 {
        let per_measurement = self.per_measurement.max(1);
        match self.sources {
            Some(sources) => filler::index_in_track(record % sources, record / sources),
            None => filler::index_in_track(record / per_measurement, record % per_measurement),
        }
    }
}

impl Generator for Custom {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        self.per_measurement
    }

    fn identity(&self, measurement: u64, _records: u64, out: &mut Cells) {
        for (column, filler) in self.identity.iter().enumerate() {
            filler.fill(self.seed, measurement, column as u64, out);
        }
    }

    fn values(&self, record: u64, out: &mut Cells) {
        for (column, filler) in self.values.iter().enumerate() {
            let index = if filler.drifts() { self.index_in_track(record) } else { record };
            filler.fill(self.seed, index, (self.identity.len() + column) as u64, out);
        }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("record column {name:?} cannot be a name; write 1 to {NAME_BYTES_MAX} visible characters"));
    }
    if RESERVED.contains(&name.to_lowercase().as_str()) {
        return Err(format!("record column \"{name}\" has a name that layouts use themselves; choose another"));
    }
    Ok(())
}

fn columns(place: &str, columns: &[CustomColumn]) -> Result<(Vec<Column>, Vec<Filler>), String> {
    let mut described = Vec::with_capacity(columns.len());
    let mut fillers = Vec::with_capacity(columns.len());
    for column in columns {
        let at = |error: String| format!("{place} \"{}\": {error}", column.name);
        let kind = kind(&column.kind, &column.fill).map_err(at)?;
        fillers.push(Filler::new(&column.fill, kind).map_err(at)?);
        described.push(Column { name: column.name.clone(), kind, nullable: false, hot: column.hot });
    }
    Ok((described, fillers))
}

/// Returns the type of a column; texts and bytes are as wide as their longest value, and at least 1.
fn kind(name: &str, fill: &Fill) -> Result<ColumnKind, String> {
    /// Characters of a time with a fraction and the longest zone.
    const TIME_WIDTH: u32 = 35;
    let characters = |text: &String| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let width_of = |fill: &Fill| match fill {
        Fill::RandomText(length) | Fill::RandomBytes(length) => *length,
        Fill::Text(text) => characters(text),
        Fill::OneOf(texts) => texts.iter().map(characters).max().unwrap_or(1),
        Fill::Times(_) => TIME_WIDTH,
        _ => 1,
    };
    let width = fill.parts().into_iter().map(width_of).max().unwrap_or(1);
    match name {
        "smallint" => Ok(ColumnKind::Int16),
        "int" => Ok(ColumnKind::Int32),
        "bigint" => Ok(ColumnKind::Int64),
        "float" => Ok(ColumnKind::Float64),
        "text" => Ok(ColumnKind::Text(width.max(1))),
        "blob" => Ok(ColumnKind::Blob(width.max(1))),
        _ => Err(format!("unknown kind \"{name}\"; there are smallint, int, bigint, float, text, blob")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, fill: Fill) -> CustomColumn {
        CustomColumn { name: name.to_owned(), kind: kind.to_owned(), fill, hot: true }
    }

    fn settings(values: Vec<CustomColumn>) -> RecordSettings {
        RecordSettings {
            type_name: "custom".to_owned(),
            per_measurement: 10,
            seed: 3,
            identity: vec![column("probe", "int", Fill::Uniform(1.0, 500.0))],
            values,
            ..RecordSettings::default()
        }
    }

    fn refusal(values: Vec<CustomColumn>) -> String {
        Custom::new(&settings(values)).err().unwrap()
    }

    #[test]
    fn records_have_the_columns_that_the_study_describes() {
        let custom = Custom::new(&settings(vec![
            column("rtt_ms", "float", Fill::Normal(20.0, 5.0)),
            column("note", "text", Fill::RandomText(40)),
            column("state", "text", Fill::OneOf(vec!["up".to_owned(), "päällä".to_owned()])),
        ]))
        .unwrap();
        let kinds: Vec<_> = custom.record_type().values.iter().map(|column| column.kind).collect();
        assert_eq!(kinds, [ColumnKind::Float64, ColumnKind::Text(40), ColumnKind::Text(6)]);
        let mut cells = Cells::new();
        custom.identity(7, 0, &mut cells);
        custom.values(70, &mut cells);
        assert_eq!(cells.len(), 4);
        assert!(cells.to_json(cells.get(0)).as_i64().is_some_and(|probe| (1..=500).contains(&probe)));
        assert_eq!(cells.to_json(cells.get(2)).as_str().map(str::len), Some(40));
    }

    #[test]
    fn values_that_wander_do_so_for_each_source_and_each_measurement() {
        let mut settings = settings(vec![column("level", "float", Fill::Drift(0.0, 100.0, 0.5))]);
        let level = |settings: &RecordSettings, record| {
            let mut cells = Cells::new();
            Custom::new(settings).unwrap().values(record, &mut cells);
            match cells.get(0) {
                crate::record::Cell::Float(value) => value,
                other => panic!("{other:?}"),
            }
        };
        // Measurements have ten records each: the tenth record begins the second one.
        assert!((0..9).all(|record| (level(&settings, record) - level(&settings, record + 1)).abs() <= 1.0));
        let starts: Vec<_> = (0..20).map(|measurement| level(&settings, measurement * 10)).collect();
        assert!(starts.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 10.0), "{starts:?}");
        settings.series =
            Some(crate::trial::SeriesSettings { sources: 7, interval_ns: 1_000_000_000, ..Default::default() });
        assert!((0..99).all(|record| (level(&settings, record) - level(&settings, record + 7)).abs() <= 1.0));
        let sources: Vec<_> = (0..7).map(|source| level(&settings, source)).collect();
        assert!(sources.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 10.0), "{sources:?}");
    }

    #[test]
    fn identity_and_values_of_the_same_number_are_not_the_same() {
        let fill = Fill::Uniform(0.0, 1e9);
        let mut settings = settings(vec![column("b", "int", fill.clone())]);
        settings.identity = vec![column("a", "int", fill)];
        let custom = Custom::new(&settings).unwrap();
        let mut cells = Cells::new();
        custom.identity(5, 0, &mut cells);
        custom.values(5, &mut cells);
        assert_ne!(cells.get(0), cells.get(1));
    }

    #[test]
    fn columns_that_cannot_be_are_refused_by_name() {
        assert_eq!(
            refusal(vec![column("x", "varchar", Fill::Number(1.0))]),
            "record.values \"x\": unknown kind \"varchar\"; there are smallint, int, bigint, float, text, blob"
        );
        assert_eq!(
            refusal(vec![column("x", "smallint", Fill::Uniform(0.0, 40_000.0))]),
            "record.values \"x\": 40000 does not fit the column's type, which holds -32768 to 32767"
        );
        assert!(refusal(vec![column("x", "text", Fill::Number(1.0))]).contains("\"x\": a text column is filled by"));
        assert!(refusal(vec![column("x", "int", Fill::Uniform(0.5, 2.0))]).contains("0.5 is not a whole number"));
        assert!(refusal(vec![column("Probe", "int", Fill::Number(1.0))]).contains("occurs twice"));
        assert!(refusal(vec![column("record_id", "int", Fill::Number(1.0))]).contains("layouts use"));
        assert!(refusal(vec![column("", "int", Fill::Number(1.0))]).contains("cannot be a name"));
        assert!(refusal(Vec::new()).contains("at least one column"));
    }
}
