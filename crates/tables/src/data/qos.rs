//! The record type `qos`: quality of service of a network path, measured once a second in both directions.
//!
//! The columns are those of Ruottinen 2015, section 3.5: the 13 identity columns of figure 3.4 with its types (except that its
//! `2serviceMapIdAddr` and `2serviceMapIdPort`, which begin with a digit, are `serviceMapId2Addr` and `serviceMapId2Port`),
//! and 48 values, beginning with those of the figure. Those that the thesis calls most used (delay, jitter, loss, load,
//! throughput and the basics of the measurement) are hot.
//!
//! With `record.runs`, measurements have several lengths and the columns that section 4.3 of the thesis increments count up:
//! `customerId` is 1 for the first measurement, 2 for the second; `ul_delay`, `dl_delay`, `ul_dupl` and `dl_dupl` count the
//! records of a measurement from 0 (docs/decisions/0017).
//!
//! Invariant: the ten columns of the identity key differ between any two of the first 2^46 measurements.

use std::sync::Arc;

use super::Entry;
use super::qos_direction::{PAIRS, direction};
use super::runs::Runs;
use crate::random::{Stream, below32, derive, mix};
use crate::record::{Cell, Cells, Column, ColumnKind, Generator, RecordType};
use crate::trial::RecordSettings;

/// Registry entry.
pub(super) static QOS: Entry = Entry {
    name: "qos",
    summary: "network quality of service (Oulu 2015): 13 identity and 48 value columns, once a second",
    build: |settings| Ok(Arc::new(Qos::new(settings))),
};

use ColumnKind::{Float64, Int16, Int32};

const IDENTITY: [(&str, ColumnKind); 13] = [
    ("customerId", Int32),
    ("userId", Int32),
    ("controllerId", Int32),
    ("serviceId", Int32),
    ("serviceMapIdAddr", Int32),
    ("serviceMapIdPort", Int16),
    ("callerMapIdAddr", Int32),
    ("callerMapIdPort", Int16),
    ("serviceMapId2Addr", Int32),
    ("serviceMapId2Port", Int16),
    ("measurementId", Int32),
    ("measurementStartTime", Float64),
    ("measurementEndTime", Float64),
];

/// Number of identity columns that form the key.
const IDENTITY_KEY: usize = 10;

/// Index of `measurementEndTime`.
const IDENTITY_END: usize = 12;

/// Values of the measurement as a whole; all hot.
const BASICS: [(&str, ColumnKind); 2] = [("ctrl_pk_num", Int16), ("meas_duration", Float64)];

/// Start of the first measurement: 2015-01-01 00:00 UTC, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_420_070_400_000;

/// Length in milliseconds of the spans within each of which one measurement starts.
const START_SPAN_MS: u64 = 250;

/// Time between two records of a measurement, in milliseconds.
const RECORD_MS: u64 = 1000;

/// Lowest port; ports are below this plus 2^14, so that they fit a SMALLINT.
const FIRST_PORT: i64 = 1024;

/// Indexes of the values that count up within a run: delays and duplicates.
const COUNTED_DELAYS: [usize; 2] = [2, 3];
const COUNTED_DUPLICATES: [usize; 2] = [24, 25];

struct Qos {
    record_type: RecordType,
    per_measurement: u64,
    runs: Option<Runs>,
    identity_seed: u64,
    value_seed: u64,
}

impl Qos {
    fn new(settings: &RecordSettings) -> Self {
        Qos {
            record_type: record_type(),
            per_measurement: settings.per_measurement.max(1),
            runs: Runs::of(settings),
            identity_seed: derive(settings.seed, 1),
            value_seed: derive(settings.seed, 2),
        }
    }

    /// Returns whether a measurement is made at a single point, which sees no delay, jitter or loss; one in four is (section 3.5: "not all
    /// result parameters have non-zero values in every measurement").
    fn is_single_point(&self, measurement: u64) -> bool {
        mix(self.identity_seed ^ measurement) >> 62 == 0
    }
}

impl Generator for Qos {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        self.runs.as_ref().map_or(self.per_measurement, Runs::longest)
    }

    #[inline]
    fn measurement_of(&self, record: u64) -> u64 {
        match &self.runs {
            None => record / self.per_measurement,
            Some(runs) => runs.measurement_of(record),
        }
    }

    #[inline]
    fn first_record_of(&self, measurement: u64) -> u64 {
        match &self.runs {
            None => measurement * self.per_measurement,
            Some(runs) => runs.first_record_of(measurement),
        }
    }

    fn identity(&self, measurement: u64, records: u64, out: &mut Cells) {
        let mut stream = Stream::at(self.identity_seed, measurement);
        let (customer, user) = stream.pair();
        let (controller, service) = stream.pair();
        let (server, port) = stream.pair();
        let (relay, relay_port) = stream.pair();
        // The caller's address and port are the measurement's number, permuted: that makes the key unique.
        let caller = permute(measurement as u32, self.identity_seed as u32);
        let caller_port = (mix(u64::from(caller)).wrapping_add(measurement >> 32)) & 0x3fff;
        let start_ms = EPOCH_MS + measurement % (1 << 40) * START_SPAN_MS + stream.below(START_SPAN_MS);
        out.int(match &self.runs {
            None => 1 + i64::from(below32(customer, 500)),
            Some(_) => 1 + (measurement & 0x3fff_ffff) as i64,
        });
        out.int(1 + i64::from(below32(user, 10_000)));
        out.int(1 + i64::from(below32(controller, 64)));
        out.int(1 + i64::from(below32(service, 256)));
        out.int(i64::from(server as i32));
        out.int(FIRST_PORT + i64::from(port >> 18));
        out.int(i64::from(caller as i32));
        out.int(FIRST_PORT + caller_port as i64);
        out.int(i64::from(relay as i32));
        out.int(FIRST_PORT + i64::from(relay_port >> 18));
        out.int((measurement & 0x7fff_ffff) as i64);
        out.float(start_ms as f64 / 1000.0);
        if records == 0 {
            out.null();
        } else {
            out.float(start_ms.saturating_add(records.saturating_mul(RECORD_MS)) as f64 / 1000.0);
        }
    }

    fn values(&self, record: u64, out: &mut Cells) {
        let mut stream = Stream::at(self.value_seed, record);
        let two_points = !self.is_single_point(self.measurement_of(record));
        let (control, duration) = stream.pair();
        let up = direction(&mut stream, two_points);
        let down = direction(&mut stream, two_points);
        out.int(i64::from(below32(control, 21)));
        out.float(f64::from(999_000 + below32(duration, 2001)) / 1e6);
        let first = out.len() - BASICS.len();
        for (up, down) in up.iter().zip(&down) {
            out.plain(*up);
            out.plain(*down);
        }
        if let Some(runs) = &self.runs {
            let counted = runs.counted(record);
            COUNTED_DELAYS.iter().for_each(|place| out.replace(first + place, Cell::Float(counted)));
            COUNTED_DUPLICATES.iter().for_each(|place| out.replace(first + place, duplicates(counted)));
        }
    }

    fn value(&self, record: u64, place: usize, out: &mut Cells) {
        match &self.runs {
            Some(runs) if COUNTED_DELAYS.contains(&place) => out.float(runs.counted(record)),
            Some(runs) if COUNTED_DUPLICATES.contains(&place) => out.plain(duplicates(runs.counted(record))),
            _ => {
                let first = out.len();
                self.values(record, out);
                out.keep_one(first, place);
            }
        }
    }
}

/// Returns a number of duplicates, which counts up with the records, except that 50 becomes 51. Table 5.5 of the thesis counts 50 records of each
/// run between 50 and 100, both excluded (query 5, case 4), which whole numbers that count one by one cannot give; all other
/// cases of tables 5.1 to 5.5 hold either way.
#[inline]
fn duplicates(counted: f64) -> Cell {
    let whole = counted as i64;
    Cell::Int((if whole == 50 { 51 } else { whole }) & 0x7fff_ffff)
}

fn record_type() -> RecordType {
    let column = |name: &str, kind: ColumnKind, hot: bool| Column { name: name.to_owned(), kind, nullable: false, hot };
    let mut identity: Vec<_> = IDENTITY.iter().map(|(name, kind)| column(name, *kind, false)).collect();
    identity[IDENTITY_END].nullable = true;
    let mut values: Vec<_> = BASICS.iter().map(|(name, kind)| column(name, *kind, true)).collect();
    for (name, kind, hot) in PAIRS {
        values.push(column(&format!("ul_{name}"), kind, hot));
        values.push(column(&format!("dl_{name}"), kind, hot));
    }
    RecordType {
        name: "qos".to_owned(),
        identity,
        identity_key: IDENTITY_KEY,
        identity_end: Some(IDENTITY_END),
        series: None,
        key: None,
        values,
    }
}

/// Permutes 32-bit words bijectively: multiplying by an odd number and folding the upper half into the lower are both easily
/// reversed, and so is their sequence.
fn permute(word: u32, key: u32) -> u32 {
    let word = (word ^ key).wrapping_mul(0x9e37_79b1);
    let word = (word ^ (word >> 16)).wrapping_mul(0x85eb_ca6b);
    word ^ (word >> 15)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn qos(per_measurement: u64) -> Qos {
        Qos::new(&RecordSettings { per_measurement, seed: 1, ..RecordSettings::default() })
    }

    fn value(cells: &Cells, qos: &Qos, name: &str) -> f64 {
        let place = qos.record_type.values.iter().position(|column| column.name == name).unwrap();
        match cells.get(place) {
            Cell::Int(value) => value as f64,
            Cell::Float(value) => value,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn there_are_13_identity_and_48_value_columns_as_the_thesis_lists_them() {
        let record_type = record_type();
        assert_eq!((record_type.identity.len(), record_type.values.len()), (13, 48));
        let names: HashSet<_> = record_type.identity.iter().chain(&record_type.values).map(|c| &c.name).collect();
        assert_eq!(names.len(), 61);
        let first: Vec<_> = record_type.values[..11].iter().map(|column| column.name.as_str()).collect();
        let figure = "ctrl_pk_num meas_duration ul_delay dl_delay ul_d_samples dl_d_samples ul_jitter dl_jitter \
                      ul_ave_jitter dl_ave_jitter ul_pk_loss";
        assert_eq!(first.join(" "), figure);
        let hot = |name: &str| record_type.values.iter().find(|column| column.name == name).unwrap().hot;
        assert!(hot("ul_delay") && hot("dl_throughput") && !hot("ul_dupl") && !hot("dl_dupl"));
    }

    #[test]
    fn identity_keys_are_unique_and_fit_their_types() {
        let qos = qos(1);
        let mut seen = HashSet::new();
        let mut cells = Cells::new();
        for measurement in (0..20_000).chain((1 << 32)..(1 << 32) + 20_000) {
            cells.clear();
            qos.identity(measurement, 1, &mut cells);
            let caller = (format!("{:?}", cells.get(6)), format!("{:?}", cells.get(7)));
            assert!(seen.insert(caller), "measurement {measurement} has the address and port of another");
            assert_fits(&cells, &qos.record_type.identity);
        }
    }

    fn assert_fits(cells: &Cells, columns: &[Column]) {
        assert_eq!(cells.len(), columns.len());
        for (cell, column) in cells.as_slice().iter().zip(columns) {
            let fits = match (cell, column.kind) {
                (Cell::Int(value), Int16) => i16::try_from(*value).is_ok(),
                (Cell::Int(value), Int32) => i32::try_from(*value).is_ok(),
                (Cell::Float(value), Float64) => value.is_finite(),
                _ => false,
            };
            assert!(fits, "{} is {cell:?}", column.name);
        }
    }

    #[test]
    fn values_fit_their_types_and_agree_with_each_other() {
        let qos = qos(5);
        let mut single = 0;
        let mut cells = Cells::new();
        for record in 0..20_000 {
            cells.clear();
            qos.values(record, &mut cells);
            assert_fits(&cells, &qos.record_type.values);
            let value = |name| value(&cells, &qos, name);
            single += u32::from(value("ul_delay") == 0.0);
            assert!(value("ul_min_delay") <= value("ul_delay") && value("ul_delay") <= value("ul_max_delay"));
            assert!(value("dl_pk_size_min") <= value("dl_pk_size_ave"));
            assert!(value("dl_pk_size_ave") <= value("dl_pk_size_max") && value("dl_pk_size_max") <= 1500.0);
            assert_eq!(value("ul_volume"), value("ul_packets") * value("ul_pk_size_ave"));
            assert!(value("ul_throughput") <= value("ul_load"));
            assert!(value("ul_cb_longest") <= value("ul_cb_total"));
            assert!((0.0..=5.0).contains(&value("dl_pk_loss")), "at most a twentieth of the packets is lost");
            assert!((0.0..4.5).contains(&value("ul_mos")));
            assert!((0.999..=1.001).contains(&value("meas_duration")));
        }
        assert!(
            (4_000..6_000).contains(&single),
            "{single} of 20,000 records are of single points, a quarter expected"
        );
    }

    #[test]
    fn a_record_depends_on_seed_and_number_only() {
        let (mut once, mut again, mut other) = (Cells::new(), Cells::new(), Cells::new());
        qos(10).values(123, &mut once);
        (0..124).for_each(|record| {
            again.clear();
            qos(10).values(record, &mut again);
        });
        assert_eq!(once, again);
        Qos::new(&RecordSettings { per_measurement: 10, seed: 2, ..RecordSettings::default() }).values(123, &mut other);
        assert_ne!(once, other);
    }

    #[test]
    fn records_of_runs_count_up_and_are_numbered_by_customer() {
        let runs = vec![(1, 200), (2, 60)];
        let settings = RecordSettings { per_measurement: 1, seed: 1, runs, ..RecordSettings::default() };
        let qos = Qos::new(&settings);
        for record in 0..320 {
            let mut cells = Cells::new();
            qos.values(record, &mut cells);
            assert_fits(&cells, &qos.record_type.values);
            let position = if record < 200 { record } else { (record - 200) % 60 } as f64;
            let duplicates = if position == 50.0 { 51.0 } else { position };
            let names = ["ul_delay", "dl_delay", "ul_dupl", "dl_dupl"];
            let counted = names.map(|name| value(&cells, &qos, name));
            assert_eq!(counted, [position, position, duplicates, duplicates], "record {record}");
            for name in names {
                let place = qos.record_type.values.iter().position(|column| column.name == name).unwrap();
                let mut alone = Cells::new();
                qos.value(record, place, &mut alone);
                assert_eq!(alone.get(0), cells.get(place), "{name} by itself");
            }
            let mut identity = Cells::new();
            let measurement = qos.measurement_of(record);
            qos.identity(measurement, 1, &mut identity);
            assert_eq!(identity.get(0), Cell::Int(measurement as i64 + 1));
        }
    }

    #[test]
    fn a_measurement_ends_a_second_after_its_last_record() {
        let (mut open, mut ended) = (Cells::new(), Cells::new());
        qos(10).identity(3, 0, &mut open);
        qos(10).identity(3, 10, &mut ended);
        assert_eq!(open.get(IDENTITY_END), Cell::Null);
        let (Cell::Float(start), Cell::Float(end)) = (ended.get(11), ended.get(IDENTITY_END)) else {
            panic!("{ended:?}")
        };
        assert!((end - start - 10.0).abs() < 1e-6);
        assert_eq!(open.as_slice()[..IDENTITY_END], ended.as_slice()[..IDENTITY_END]);
    }
}
