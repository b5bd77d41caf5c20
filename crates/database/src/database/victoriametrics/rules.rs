//! What VictoriaMetrics says of points: [`RULES`], and which numbers come back as they were.
//!
//! Times are milliseconds, and values are floating-point numbers, which the server keeps as whole numbers with a power of ten that many values of a series share. A number
//! therefore comes back bit for bit if it has few enough decimal digits, wherever its neighbours lie, and others come back rounded by an amount that depends on their neighbours.

use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::database::DatabaseError;
use crate::database::points::shape::{At, Column, Rules};
use crate::record::Cell;

/// The time of the record with the number 0, in milliseconds since 1970: 2001-09-09. A time of 0 means now to the server.
pub(super) const FIRST_MS: i64 = 1_000_000_000_000;
/// The times that a point can have. Queries of all times look at these.
pub(super) const TIMES_MS: RangeInclusive<i64> = 100_000_000_000..=4_000_000_000_000;
/// How far ahead of this machine's clock a time may be; the server drops what is more than two days ahead of its own, and says nothing.
const AHEAD_MS: i64 = 86_400_000;

/// The label that every series of a table has, with the table's name.
pub(super) const LABEL: &str = "loadline";

/// The bound of whole numbers, included: those beyond it are not all numbers of 64 bits with a point.
const WHOLE_MOST: i64 = 1 << 53;
/// A number with a point must be a multiple of one part in this many, ...
const PARTS: f64 = 1e6;
/// ... and less than this.
const REAL_MOST: f64 = 1e7;

/// What VictoriaMetrics says of points.
pub(super) static RULES: Rules = Rules {
    name: "victoriametrics",
    store: "VictoriaMetrics",
    unit_ns: 1_000_000,
    between: "a time that is no whole millisecond, as times are with record.jitter = 0, without record.late, and with a record.interval of whole milliseconds for each source",
    first: FIRST_MS,
    times: TIMES_MS,
    label: Some(LABEL),
    refuses: refusal,
};

pub(super) fn refused(why: &str) -> DatabaseError {
    RULES.refused(why)
}

fn refusal(column: &Column, cell: Cell) -> Option<&'static str> {
    match cell {
        Cell::Int(value) if matches!(column.at, At::Time | At::TimeAndField) => {
            let is_ahead = column.time_of(&RULES, value).is_some_and(|time_ms| time_ms > now_ms() + AHEAD_MS);
            is_ahead.then_some("a time more than a day ahead, which the server would drop without a word")
        }
        Cell::Int(value) if !(-WHOLE_MOST..=WHOLE_MOST).contains(&value) => {
            Some("a whole number beyond 2^53, which would come back rounded")
        }
        Cell::Float(value) if !is_kept(value) => {
            Some("a number that would come back rounded: six digits behind the point and less than 10,000,000 are kept")
        }
        Cell::Text(_) | Cell::Blob(_) => Some("a text or bytes, and its values are numbers"),
        _ => None,
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(0))
}

/// Returns whether a number comes back bit for bit, whatever lies beside it.
fn is_kept(value: f64) -> bool {
    let (parts, is_negative_zero) = ((value * PARTS).round(), value == 0.0 && value.is_sign_negative());
    value.abs() < REAL_MOST && !is_negative_zero && (parts / PARTS).to_bits() == value.to_bits()
}

/// Returns a value of the server as a whole number, if it is one.
pub(super) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= WHOLE_MOST as f64).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;

    #[test]
    fn numbers_with_few_decimal_digits_are_kept() {
        for value in [0.0, 1.0, -0.1, 21.3, 1e-6, -9_999_999.999_999, 0.3, 1_234.567_891] {
            assert!(is_kept(value), "{value}");
        }
        for value in [-0.0, 1e-7, 1.0 / 3.0, 0.1 + 0.2, 1e7, 5e-324, f64::MAX, f64::NAN, f64::INFINITY] {
            assert!(!is_kept(value), "{value}");
        }
        assert_eq!((whole(-4.0), whole(0.5), whole(1e17), whole(f64::NAN)), (Some(-4), None, None, None));
    }

    #[test]
    fn what_would_come_back_otherwise_is_refused_with_the_reason() {
        let column = |kind, at| Column { name: "c".to_owned(), kind, nullable: true, at };
        for (kind, at, cell, words) in [
            (ColumnKind::Int64, At::Field, Cell::Int(WHOLE_MOST + 1), "beyond 2^53"),
            (ColumnKind::Float64, At::Field, Cell::Float(1.0 / 3.0), "rounded"),
            (ColumnKind::Int64, At::Time, Cell::Int(1_700_000_000_000_000_001), "no whole millisecond"),
            (ColumnKind::Int64, At::Time, Cell::Int(3_999_999_999_000_000_000), "more than a day ahead"),
            (ColumnKind::Int64, At::TimeAndField, Cell::Int(-FIRST_MS), "no time can have"),
        ] {
            let why = column(kind, at).refusal(&RULES, cell).unwrap();
            assert!(why.contains(words), "{cell:?}: {why}");
        }
        for (kind, at, cell) in [
            (ColumnKind::Int64, At::Field, Cell::Int(-WHOLE_MOST)),
            (ColumnKind::Float64, At::Field, Cell::Float(-12.25)),
            (ColumnKind::Int64, At::Time, Cell::Int(1_700_000_000_123_000_000)),
            (ColumnKind::Int64, At::TimeAndField, Cell::Int(0)),
        ] {
            assert_eq!(column(kind, at).refusal(&RULES, cell), None, "{cell:?}");
        }
    }
}
