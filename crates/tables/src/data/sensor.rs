//! The record type `sensor`: events of radar, optical and telemetry sensors, all of one length, as a recorder of sensor data
//! takes them in (Nikom, MIT Lincoln Laboratory, MySQL Users Conference 2006, slides 4-6).
//!
//! A record is `record.length` bytes of content: the widths of its columns, and the text of `kind` and `payload`, which fills it
//! up. Records per second times this length is the throughput in bytes per second.
//!
//! The meaning of `object` and `value_1` to `value_4` depends on the kind. Radar: number of the track; range in metres, azimuth and
//! elevation in degrees, range rate in m/s. Optical: number of the object; azimuth, elevation, magnitude, its change per second.
//! Telemetry: number of the channel; four readings of it.
//!
//! The identity has no key of its own, so that records are distinguished by their number alone, as by the slides' `record_id`.
//!
//! Invariant: every record has exactly the length that is set.

use std::sync::Arc;

use super::Entry;
use crate::random::{Stream, below32, derive, mix};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::trial::RecordSettings;

/// Registry entry.
pub(super) static SENSOR: Entry = Entry {
    name: "sensor",
    summary: "sensor events (ROCC 2006): radar, optical and telemetry, record.length bytes of content each (200)",
    build: |settings| Ok(Arc::new(Sensor::new(settings)?)),
};

use ColumnKind::{Float64, Int16, Int32, Int64, Text};

/// The kinds of sensors.
const KINDS: [&str; 3] = ["radar", "optical", "telemetry"];

/// Value columns before the payload, all hot.
const VALUES: [(&str, ColumnKind); 8] = [
    ("observed_ns", Int64),
    ("stamp_ns", Int64),
    ("object", Int32),
    ("quality", Int16),
    ("value_1", Float64),
    ("value_2", Float64),
    ("value_3", Float64),
    ("value_4", Float64),
];

/// Bytes of a record without the text of `kind` and `payload`: `source`, and [`VALUES`].
const FIXED_BYTES: u32 = 4 + 8 + 8 + 4 + 2 + 4 * 8;

/// Default length of a record in bytes.
const LENGTH_DEFAULT: u32 = 200;

/// Minimum length of a record in bytes: one of the longest kind without a payload.
const LENGTH_MIN: u32 = FIXED_BYTES + 9;

/// Maximum length of a record in bytes.
const LENGTH_MAX: u32 = 1 << 20;

/// Number of sensors.
const SOURCES: u32 = 64;

/// Number of objects that a sensor observes, and number of values of `quality`, which are per thousand.
const OBJECTS: u32 = 1000;
const QUALITIES: u32 = 1000;

/// Time at which the first record was observed: 2006-04-27 00:00 UTC, in nanoseconds since 1970.
const EPOCH_NS: i64 = 1_146_096_000_000_000_000;

/// Time between two records, in nanoseconds.
const RECORD_NS: u64 = 1_000_000;

/// Upper bound, exclusive, of the time between the observation of a record and its time stamp, in nanoseconds.
const TRANSIT_NS: u32 = 50_000_000;

/// Returns the bytes of content of a sensor record with these settings.
pub fn sensor_record_bytes(settings: &RecordSettings) -> u32 {
    settings.length.unwrap_or(LENGTH_DEFAULT)
}

struct Sensor {
    record_type: RecordType,
    per_measurement: u64,
    length: u32,
    source_seed: u64,
    value_seed: u64,
    payload_seed: u64,
}

impl Sensor {
    fn new(settings: &RecordSettings) -> Result<Self, String> {
        let length = sensor_record_bytes(settings);
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&length) {
            return Err(format!("record.length is {length}; write {LENGTH_MIN} to {LENGTH_MAX}, in bytes"));
        }
        Ok(Sensor {
            record_type: record_type(length),
            per_measurement: settings.per_measurement.max(1),
            length,
            source_seed: derive(settings.seed, 1),
            value_seed: derive(settings.seed, 2),
            payload_seed: derive(settings.seed, 3),
        })
    }

    /// Returns the sensor that made a measurement, from 1; its kind is the remainder of its number by three.
    #[inline]
    fn source_of(&self, measurement: u64) -> u32 {
        1 + below32((mix(self.source_seed ^ measurement) >> 32) as u32, SOURCES)
    }
}

#[inline]
fn kind_of(source: u32) -> &'static str {
    KINDS[source as usize % KINDS.len()]
}

impl Generator for Sensor {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        self.per_measurement
    }

    #[inline]
    fn identity(&self, measurement: u64, _records: u64, out: &mut Cells) {
        let source = self.source_of(measurement);
        out.int(i64::from(source));
        out.text(kind_of(source));
    }

    #[inline]
    fn values(&self, record: u64, out: &mut Cells) {
        let kind = kind_of(self.source_of(self.measurement_of(record)));
        let mut stream = Stream::at(self.value_seed, record);
        let (transit, object) = stream.pair();
        let (quality, _) = stream.pair();
        // Times start again after 2^42 records, which cover 139 years.
        let observed_ns = EPOCH_NS + ((record & 0x3ff_ffff_ffff) * RECORD_NS) as i64;
        out.int(observed_ns);
        out.int(observed_ns + i64::from(below32(transit, TRANSIT_NS)));
        out.int(1 + i64::from(below32(object, OBJECTS)));
        out.int(i64::from(below32(quality, QUALITIES)));
        append_readings(kind, &mut stream, out);
        let payload = self.length - FIXED_BYTES - kind.len() as u32;
        out.text_with(payload as usize, |text| fill(Stream::at(self.payload_seed, record), text));
    }
}

/// Appends `value_1` to `value_4`.
#[inline]
fn append_readings(kind: &str, stream: &mut Stream, out: &mut Cells) {
    let mut between = |low: f64, high: f64| low + (high - low) * stream.unit();
    let readings = match kind {
        "radar" => [between(1e3, 4e6), between(0.0, 360.0), between(0.0, 90.0), between(-7500.0, 7500.0)],
        "optical" => [between(0.0, 360.0), between(0.0, 90.0), between(-2.0, 16.0), between(-0.5, 0.5)],
        _ => [between(-10.0, 10.0), between(-10.0, 10.0), between(0.0, 100.0), between(0.0, 5.0)],
    };
    readings.into_iter().for_each(|reading| out.float(reading));
}

/// Fills a text with random letters from a to p, which carry as many bits as encoded frames do: eight letters from each 64 random bits.
#[inline]
fn fill(mut stream: Stream, text: &mut [u8]) {
    let mut letters = || {
        let word = stream.word();
        ((word & 0x0f0f_0f0f_0f0f_0f0f) + 0x6161_6161_6161_6161).to_le_bytes()
    };
    let mut chunks = text.chunks_exact_mut(8);
    chunks.by_ref().for_each(|chunk| chunk.copy_from_slice(&letters()));
    let rest = chunks.into_remainder();
    let last = letters();
    rest.copy_from_slice(&last[..rest.len()]);
}

fn record_type(length: u32) -> RecordType {
    let column = |name: &str, kind, hot| Column { name: name.to_owned(), kind, nullable: false, hot };
    let mut values: Vec<_> = VALUES.iter().map(|(name, kind)| column(name, *kind, true)).collect();
    let shortest = KINDS.iter().map(|kind| kind.len() as u32).min().unwrap_or(0);
    values.push(column("payload", Text((length - FIXED_BYTES - shortest).max(1)), false));
    RecordType {
        name: "sensor".to_owned(),
        identity: vec![column("source", Int32, false), column("kind", Text(12), false)],
        identity_key: 0,
        identity_end: None,
        series: None,
        key: None,
        values,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::Cell;

    fn sensor(length: Option<u32>) -> Result<Sensor, String> {
        Sensor::new(&RecordSettings { length, per_measurement: 5, seed: 1, ..RecordSettings::default() })
    }

    /// Returns the bytes of content, by the kinds of the columns.
    fn content_bytes(sensor: &Sensor, cells: &Cells) -> u64 {
        let columns = sensor.record_type.identity.iter().chain(&sensor.record_type.values);
        cells
            .as_slice()
            .iter()
            .zip(columns)
            .map(|(cell, column)| match (cell, column.kind) {
                (Cell::Int(value), Int16) => i16::try_from(*value).map_or(0, |_| 2),
                (Cell::Int(value), Int32) => i32::try_from(*value).map_or(0, |_| 4),
                (Cell::Int(_), Int64) | (Cell::Float(_), Float64) => 8,
                (Cell::Text(span), Text(most)) => {
                    let text = std::str::from_utf8(cells.bytes_of(*span)).unwrap();
                    assert!(
                        text.len() <= most as usize && text.bytes().all(|byte| byte.is_ascii_lowercase()),
                        "{text}"
                    );
                    text.len() as u64
                }
                other => panic!("{other:?}"),
            })
            .sum()
    }

    #[test]
    fn every_record_has_the_length_that_is_set() {
        for length in [LENGTH_MIN, LENGTH_MIN + 1, 200, 1000, 12_345] {
            let sensor = sensor(Some(length)).unwrap();
            let mut cells = Cells::new();
            for record in 0..300 {
                cells.clear();
                sensor.identity(sensor.measurement_of(record), 1, &mut cells);
                sensor.values(record, &mut cells);
                assert_eq!(content_bytes(&sensor, &cells), u64::from(length), "record {record}");
            }
        }
    }

    #[test]
    fn kinds_are_about_equally_frequent_and_the_same_for_all_records_of_a_measurement() {
        let sensor = sensor(None).unwrap();
        let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
        let mut cells = Cells::new();
        for measurement in 0..6000 {
            cells.clear();
            sensor.identity(measurement, 1, &mut cells);
            let [Cell::Int(source), kind] = cells.as_slice() else { panic!("{cells:?}") };
            let kind = cells.to_json(*kind).as_str().unwrap().to_owned();
            assert_eq!(kind, KINDS[*source as usize % 3]);
            *kinds.entry(kind).or_default() += 1;
        }
        assert_eq!(kinds.len(), 3);
        assert!(kinds.values().all(|count| (1700..2300).contains(count)), "{kinds:?}");
        assert_eq!((sensor.measurement_of(14), sensor.records_per_measurement()), (2, 5));
    }

    #[test]
    fn records_are_stamped_after_they_were_observed_and_in_their_order() {
        let sensor = sensor(None).unwrap();
        let mut cells = Cells::new();
        let mut last_ns = 0;
        for record in (0..2000).chain([1 << 40]) {
            cells.clear();
            sensor.values(record, &mut cells);
            let (Cell::Int(observed), Cell::Int(stamp)) = (cells.get(0), cells.get(1)) else { panic!("{cells:?}") };
            assert!(observed > last_ns && (0..i64::from(TRANSIT_NS)).contains(&(stamp - observed)));
            last_ns = observed;
        }
    }

    #[test]
    fn payloads_differ_between_records_and_seeds() {
        let payload = |seed, record| {
            let settings = RecordSettings { per_measurement: 5, seed, ..RecordSettings::default() };
            let mut cells = Cells::new();
            Sensor::new(&settings).unwrap().values(record, &mut cells);
            cells.to_json(cells.get(8)).to_string()
        };
        assert_ne!(payload(1, 0), payload(1, 1));
        assert_ne!(payload(1, 0), payload(2, 0));
        assert_eq!(payload(1, 7), payload(1, 7));
    }

    #[test]
    fn lengths_that_are_too_small_or_too_large_are_refused() {
        assert_eq!(sensor(Some(66)).err().unwrap(), "record.length is 66; write 67 to 1048576, in bytes");
        assert!(sensor(Some(LENGTH_MAX + 1)).is_err());
    }
}
