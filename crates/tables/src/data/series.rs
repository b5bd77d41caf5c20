//! Records of sources: any record type whose records are readings, with two columns in front of its values, the source and the time.
//!
//! Records of all sources alternate. The identity of a record is that of its source.
//!
//! Invariant: a record's values are those that the record type itself gives the source's reading, so that each source measures as if it were alone.

use std::sync::Arc;

use super::timeline::Timeline;
use super::{custom, qos, sensor};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType, SeriesColumns};
use crate::trial::{RecordSettings, SeriesSettings};

/// Name of the column with the number of the source, from 1.
pub const SOURCE_ID: &str = "source_id";

/// Name of the column with the time of the reading, in nanoseconds since 1970.
pub const TIME_NS: &str = "time_ns";

/// The records of a source are numbered from this number times the source's number on, where a record type counts within a measurement.
const READINGS_OF_A_SOURCE: u64 = 1 << 32;

struct Series {
    of: Arc<dyn Generator>,
    record_type: RecordType,
    timeline: Timeline,
    /// Whether the record type counts within a measurement.
    counts: bool,
}

/// Adds sources and times to the records of a type.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
pub(super) fn with_sources(
    settings: &RecordSettings,
    series: &SeriesSettings,
    build: fn(&RecordSettings) -> Result<Arc<dyn Generator>, String>,
) -> Result<Arc<dyn Generator>, String> {
    let readings = [qos::QOS.name, sensor::SENSOR.name, custom::CUSTOM.name];
    let name = settings.type_name.as_str();
    if !readings.contains(&name) {
        let readings = readings.join(", ");
        return Err(format!(
            "record.sources is for records that are readings ({readings}), and record.type is \"{name}\""
        ));
    }
    if !settings.runs.is_empty() {
        return Err("record.sources and record.runs do not go together; leave one of them out".to_owned());
    }
    let counts = name != custom::CUSTOM.name;
    let per_measurement = if counts { READINGS_OF_A_SOURCE } else { settings.per_measurement };
    let of = build(&RecordSettings { per_measurement, ..settings.clone() })?;
    let mut record_type = of.record_type().clone();
    let columns = record_type.identity.iter().chain(&record_type.values);
    if let Some(column) = columns.into_iter().find(|column| [SOURCE_ID, TIME_NS].contains(&column.name.as_str())) {
        return Err(format!(
            "record column \"{}\" has the name of a column that record.sources adds; choose another",
            column.name
        ));
    }
    let column = |name: &str, kind| Column { name: name.to_owned(), kind, nullable: false, hot: true };
    record_type.values.insert(0, column(SOURCE_ID, ColumnKind::Int32));
    record_type.values.insert(1, column(TIME_NS, ColumnKind::Int64));
    record_type.identity_key = 0;
    let timeline = Timeline::new(series, settings.seed);
    record_type.series = Some(SeriesColumns { source: 0, time: 1, again: timeline.again() });
    Ok(Arc::new(Series { of, record_type, timeline, counts }))
}

impl Series {
    /// Returns the number that a record has among those of the record type itself.
    #[inline]
    fn own_number(&self, record: u64) -> u64 {
        let record = self.timeline.original_of(record);
        let (source, round) = (self.timeline.source_of(record), self.timeline.round_of(record));
        if self.counts { source * READINGS_OF_A_SOURCE + round } else { record }
    }
}

impl Generator for Series {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        READINGS_OF_A_SOURCE
    }

    fn alternating(&self) -> Option<u64> {
        Some(self.timeline.sources())
    }

    fn identity(&self, measurement: u64, records: u64, out: &mut Cells) {
        self.of.identity(measurement, records, out);
    }

    #[inline]
    fn values(&self, record: u64, out: &mut Cells) {
        out.int(1 + self.timeline.source_of(record) as i64);
        out.int(self.timeline.time_ns(record));
        self.of.values(self.own_number(record), out);
    }

    fn value(&self, record: u64, place: usize, out: &mut Cells) {
        match place {
            0 => out.int(1 + self.timeline.source_of(record) as i64),
            1 => out.int(self.timeline.time_ns(record)),
            _ => self.of.value(self.own_number(record), place - 2, out),
        }
    }

    fn measurement_of(&self, record: u64) -> u64 {
        self.timeline.source_of(record)
    }

    /// The first record of a source is that of the first round.
    fn first_record_of(&self, measurement: u64) -> u64 {
        measurement
    }
}
