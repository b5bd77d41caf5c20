//! The record type `violation`: the report of a traffic enforcement camera on one passage (Staszkiewicz and others, "Data Center Workload
//! Analysis in Multi-Source RSMAD's Test Environment"): which camera, where and at which limit; when, how fast, which plate, which image.
//!
//! A camera's violations are one measurement; its records are numbered by sequence and follow each other at random times.

use std::sync::Arc;

use super::Entry;
use crate::random::{Stream, derive};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::trial::RecordSettings;

/// Registry entry.
pub(super) static VIOLATION: Entry = Entry {
    name: "violation",
    summary: "speeding seen by traffic enforcement cameras: 3 identity columns, 7 value columns, without the image itself",
    build: |settings| Ok(Arc::new(Violations::new(settings))),
};

/// No violation is earlier than this, in seconds since 1970: 2026-01-01.
const BEGIN_S: i64 = 1_767_225_600;
/// Mean time between two violations of a camera, in milliseconds: two in five seconds, the maximum of a camera.
const BETWEEN_MS: u64 = 2_500;

const PLACES: [&str; 8] = [
    "Gdańsk, Aleja Grunwaldzka 216",
    "Gdańsk, Słowackiego 197",
    "Gdynia, Morska 310",
    "Sopot, Niepodległości 780",
    "Tczew, Jagiellońska 55",
    "Wejherowo, DK 6 km 297",
    "Elbląg, S7 km 64",
    "Słupsk, Szczecińska 58",
];
const LIMITS_KMH: [f64; 8] = [50.0, 60.0, 70.0, 50.0, 40.0, 90.0, 120.0, 50.0];
const DISTRICTS: [&str; 8] = ["GD", "GA", "GSP", "GTC", "GWE", "NE", "GS", "GKA"];

/// A violation of a speed limit, as seen by a camera.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The camera's name.
    pub camera: String,
    /// The camera's own number of the violation, unique among the violations of this camera.
    pub sequence: u64,
    /// Time of the violation, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Place of the violation.
    pub place: String,
    /// Measured speed in km/h.
    pub speed_kmh: f64,
    /// Speed limit in km/h.
    pub limit_kmh: f64,
    /// The number plate.
    pub plate: String,
}

impl Violation {
    /// Returns by how much the limit was exceeded, in km/h, rounded to a tenth.
    pub fn excess_kmh(&self) -> f64 {
        ((self.speed_kmh - self.limit_kmh) * 10.0).round() / 10.0
    }
}

/// Returns the name of the camera with this number.
pub fn camera(number: u64) -> String {
    format!("CAM-{number:04}")
}

/// Generates a violation from the camera's number and the violation's.
pub fn generate(seed: u64, number: u64, sequence: u64) -> Violation {
    let place = (derive(seed, number) % PLACES.len() as u64) as usize;
    let mut stream = Stream::new(seed, sequence, number);
    let limit_kmh = LIMITS_KMH[place];
    // A little too fast is common, much too fast is rare: the excess has an exponential distribution.
    let excess = 6.0 - 14.0 * (1.0 - stream.unit()).ln();
    let speed_kmh = ((limit_kmh + excess) * 10.0).round().min(2_900.0) / 10.0;
    let time_ms = BEGIN_S as u64 * 1_000 + sequence * BETWEEN_MS + stream.below(BETWEEN_MS);
    let district = DISTRICTS[stream.below(DISTRICTS.len() as u64) as usize];
    let letter = || b"ACEFGHJKLMNPRSTUVWXY";
    let last = char::from(letter()[stream.below(20) as usize]);
    let plate = format!("{district} {:04}{last}", stream.below(10_000));
    Violation {
        camera: camera(number),
        sequence,
        time_ns: time_ms as i64 * 1_000_000,
        place: PLACES[place].to_owned(),
        speed_kmh,
        limit_kmh,
        plate,
    }
}

/// Returns the record type, with the columns in which violations are stored.
pub fn record_type() -> RecordType {
    let column = |name: &str, kind: ColumnKind, hot: bool| Column { name: name.to_owned(), kind, nullable: false, hot };
    RecordType {
        name: "violation".to_owned(),
        identity: vec![
            column("camera", ColumnKind::Text(64), true),
            column("place", ColumnKind::Text(200), true),
            column("limit_kmh", ColumnKind::Float64, true),
        ],
        identity_key: 3,
        identity_end: None,
        series: None,
        key: None,
        values: vec![
            column("time_ns", ColumnKind::Int64, true),
            column("sequence", ColumnKind::Int64, true),
            column("speed_kmh", ColumnKind::Float64, true),
            column("excess_kmh", ColumnKind::Float64, true),
            column("plate", ColumnKind::Text(20), true),
            column("image_sha256", ColumnKind::Text(64), false),
            column("image_bytes", ColumnKind::Int64, false),
        ],
    }
}

struct Violations {
    record_type: RecordType,
    per_measurement: u64,
    seed: u64,
}

impl Violations {
    fn new(settings: &RecordSettings) -> Self {
        Violations { record_type: record_type(), per_measurement: settings.per_measurement, seed: settings.seed }
    }
}

impl Generator for Violations {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        self.per_measurement
    }

    fn identity(&self, measurement: u64, _records: u64, out: &mut Cells) {
        let violation = generate(self.seed, measurement, 0);
        out.text(&violation.camera);
        out.text(&violation.place);
        out.float(violation.limit_kmh);
    }

    fn values(&self, record: u64, out: &mut Cells) {
        let (number, sequence) = (record / self.per_measurement, record % self.per_measurement);
        let violation = generate(self.seed, number, sequence);
        out.int(violation.time_ns);
        out.int(sequence as i64);
        out.float(violation.speed_kmh);
        out.float(violation.excess_kmh());
        out.text(&violation.plate);
        // Without an image, its hash consists of random digits, and its size is one that cameras send.
        let mut stream = Stream::new(self.seed ^ 0x1_4a6e, sequence, number);
        out.text_with(64, |digits| {
            digits.iter_mut().for_each(|digit| *digit = b"0123456789abcdef"[stream.below(16) as usize]);
        });
        out.int(200_000 + stream.below(1_800_000) as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_a_function_of_seed_camera_and_sequence_and_too_fast() {
        assert_eq!(generate(1, 2, 3), generate(1, 2, 3));
        assert_ne!(generate(1, 2, 3), generate(1, 2, 4));
        assert_eq!(generate(1, 2, 3).place, generate(1, 2, 4).place, "cameras stay where they are");
        for sequence in 0..1_000 {
            let violation = generate(7, sequence % 5, sequence);
            assert!(violation.speed_kmh > violation.limit_kmh && violation.speed_kmh <= 290.0, "{violation:?}");
            assert!(violation.plate.len() >= 7 && violation.plate.len() <= 10, "{violation:?}");
        }
    }

    #[test]
    fn a_cameras_times_follow_its_sequence() {
        let times: Vec<_> = (0..100).map(|sequence| generate(3, 1, sequence).time_ns).collect();
        assert!(times.is_sorted());
    }
}
