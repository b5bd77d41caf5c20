//! One line of `trials.jsonl`: a JSON object whose last member is the checksum of everything before it.
//!
//! Main functions: [`sealed`] and [`measurement_of`]. Invariant: a line of version 2 whose bytes are not those that
//! were written is never taken for a measurement, and neither is a line of another run, because the checksum includes
//! the start time of the run. Lines of version 1 have no checksum; in them the sums must agree.
//!
//! The checksum is CRC-32 (ISO-HDLC, as in zip and gzip) of the start time of the run, followed by the bytes from `{`
//! to before the comma of `,"crc32":"…"}`, as eight hexadecimal digits. Other tools read the line like any JSON.

use serde::Deserialize;

use crate::measurement::{MEASUREMENT_VERSION, Measurement};

/// The bytes between a measurement and its checksum.
const SEAL: &[u8] = b",\"crc32\":\"";
/// The bytes after the checksum.
const END: &[u8] = b"\"}";
/// Number of digits of the checksum.
const DIGITS: usize = 8;
/// The first version whose lines have a checksum.
const SEALED_FROM: u32 = 2;

/// The fault of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadLine {
    /// The line cannot be a measurement of this run and is left out.
    Damaged(String),
    /// A newer loadline wrote the line, and this one cannot read the run. Contains the version.
    Newer(u32),
}

/// The version of a line, whatever other members it has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn checksum(run_began: &str, object: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(run_began.as_bytes());
    hasher.update(object);
    hasher.finalize()
}

/// Adds the checksum and the end of the line to the JSON form of a measurement.
pub(super) fn sealed(run_began: &str, mut object: Vec<u8>) -> Vec<u8> {
    let closing = object.pop();
    debug_assert_eq!(closing, Some(b'}'), "a measurement is an object");
    let sum = checksum(run_began, &object);
    object.extend_from_slice(SEAL);
    object.extend_from_slice(format!("{sum:08x}").as_bytes());
    object.extend_from_slice(END);
    object.push(b'\n');
    object
}

/// Returns the object of a line without its end, and the checksum after it; `None` if there is no checksum.
fn opened(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line).strip_suffix(END)?;
    let (object, sum) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
    Some((object.strip_suffix(SEAL)?, sum))
}

/// Reads the measurement of a line.
pub(super) fn measurement_of(run_began: &str, line: &[u8]) -> Result<Measurement, BadLine> {
    let damaged = |why: &str| Err(BadLine::Damaged(why.to_owned()));
    if let Some((object, sum)) = opened(line) {
        if format!("{:08x}", checksum(run_began, object)).as_bytes() != sum {
            return damaged("its checksum is wrong: it was changed after it was written, or is of another run");
        }
        let read = read(&[object, b"}"].concat())?;
        return if read.version < SEALED_FROM {
            damaged("version 1 has no checksums, and it has one")
        } else {
            Ok(read)
        };
    }
    let measurement = read(line)?;
    if measurement.version >= SEALED_FROM {
        return damaged("its checksum is missing");
    }
    // A trial whose counts did not agree when it was measured says so itself.
    match disagreement(&measurement).filter(|_| measurement.is_valid()) {
        Some(what) => Err(BadLine::Damaged(what)),
        None => Ok(measurement),
    }
}

fn read(object: &[u8]) -> Result<Measurement, BadLine> {
    if let Ok(Version { version }) = serde_json::from_slice(object)
        && version > MEASUREMENT_VERSION
    {
        return Err(BadLine::Newer(version));
    }
    serde_json::from_slice(object).map_err(|error| BadLine::Damaged(error.to_string()))
}

/// Returns the kind of operation whose counts do not agree; `None` if all agree.
fn disagreement(measurement: &Measurement) -> Option<String> {
    let (kind, operation) = measurement.operations.iter().find(|(_, operation)| {
        operation.completed.checked_add(operation.failed).and_then(|sum| sum.checked_add(operation.abandoned))
            != Some(operation.scheduled)
    })?;
    let (scheduled, completed, failed) = (operation.scheduled, operation.completed, operation.failed);
    let abandoned = operation.abandoned;
    Some(format!(
        "its counts do not agree: of {scheduled} operations \"{kind}\" {completed} were completed, {failed} failed and {abandoned} were \
         abandoned"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::OperationMeasurement;
    use crate::trial::{Case, Trial};

    const BEGAN: &str = "2026-11-24T10:00:00Z";

    fn measurement() -> Measurement {
        let mut measurement =
            Measurement::unmeasured(&Trial::new(Case::new(Default::default(), Default::default()), 0, 0));
        measurement.invalid_because.clear();
        let insert = OperationMeasurement { scheduled: 12, completed: 10, failed: 2, ..Default::default() };
        measurement.operations.insert("insert".to_owned(), Box::new(insert));
        measurement
    }

    fn line() -> Vec<u8> {
        sealed(BEGAN, serde_json::to_vec(&measurement()).unwrap())
    }

    #[test]
    fn what_was_written_is_read_and_is_plain_json() {
        assert_eq!(measurement_of(BEGAN, &line()), Ok(measurement()));
        let value: serde_json::Value = serde_json::from_slice(&line()).unwrap();
        assert_eq!(value["crc32"].as_str().map(str::len), Some(DIGITS));
        assert_eq!(value["operations"]["insert"]["completed"], 10);
    }

    #[test]
    fn no_byte_of_a_line_can_be_changed_without_a_word() {
        let whole = line();
        for place in 0..whole.len() - 1 {
            for bit in [1, 4, 32] {
                let mut changed = whole.clone();
                changed[place] ^= bit;
                if changed[place] != b'\n' {
                    let read = measurement_of(BEGAN, &changed);
                    assert!(matches!(read, Err(BadLine::Damaged(_))), "byte {place}, bit {bit}: {read:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_of_another_run_is_none_of_this_one() {
        let read = measurement_of("2026-11-24T10:00:01Z", &line());
        assert!(matches!(&read, Err(BadLine::Damaged(why)) if why.contains("of another run")), "{read:?}");
    }

    #[test]
    fn lines_of_the_first_version_are_read_where_their_counts_agree() {
        let as_first = |change: fn(&mut OperationMeasurement)| {
            let mut old = Measurement { version: 1, ..measurement() };
            change(old.operations.get_mut("insert").unwrap());
            measurement_of(BEGAN, &serde_json::to_vec(&old).unwrap())
        };
        assert!(as_first(|_| {}).is_ok());
        let read = as_first(|insert| insert.completed *= 10);
        assert!(matches!(&read, Err(BadLine::Damaged(why)) if why.contains("100 were completed")), "{read:?}");
    }

    #[test]
    fn a_version_to_come_is_named() {
        let newer = Measurement { version: 99, ..measurement() };
        let read = measurement_of(BEGAN, &sealed(BEGAN, serde_json::to_vec(&newer).unwrap()));
        assert_eq!(read, Err(BadLine::Newer(99)));
    }
}
