//! The unit of the time stamps of a batch. Main type: [`Precision`].

/// The unit of a time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Precision {
    /// Nanoseconds, the default.
    #[default]
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes, as in InfluxDB 1.
    Minutes,
    /// Hours, as in InfluxDB 1.
    Hours,
    /// The unit that puts a time stamp into the years 1970 to about 2128, as InfluxDB 3 guesses it.
    Guessed,
}

use Precision::{Guessed, Hours, Microseconds, Milliseconds, Minutes, Nanoseconds, Seconds};

impl Precision {
    /// Returns the precision of a name in a request: `ns`, `us`, `ms`, `s` of `/api/v2/write`, and `n`, `u`, `µ`, `m`, `h` of `/write`, and the words of
    /// `/api/v3/write_lp`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "" | "ns" | "n" | "nanosecond" => Nanoseconds,
            "us" | "u" | "µ" | "µs" | "microsecond" => Microseconds,
            "ms" | "millisecond" => Milliseconds,
            "s" | "second" => Seconds,
            "m" => Minutes,
            "h" => Hours,
            "auto" => Guessed,
            _ => return None,
        })
    }

    /// Returns its number in stored entries, which never changes its meaning.
    pub fn code(self) -> u8 {
        match self {
            Nanoseconds => 0,
            Microseconds => 1,
            Milliseconds => 2,
            Seconds => 3,
            Minutes => 4,
            Hours => 5,
            Guessed => 6,
        }
    }

    /// Returns the precision of a number in stored entries.
    pub fn from_code(code: u8) -> Option<Self> {
        [Nanoseconds, Microseconds, Milliseconds, Seconds, Minutes, Hours, Guessed].get(usize::from(code)).copied()
    }

    /// Returns a time stamp in nanoseconds; `None` if it does not fit into 64 bits.
    pub fn to_ns(self, units: i64) -> Option<i64> {
        units.checked_mul(self.unit_ns(units))
    }

    /// Returns the nanoseconds in one unit of a time stamp.
    fn unit_ns(self, units: i64) -> i64 {
        // The limits of InfluxDB 3.
        const SECONDS_BELOW: u64 = 5_000_000_000;
        match self {
            Nanoseconds => 1,
            Microseconds => 1_000,
            Milliseconds => 1_000_000,
            Seconds => 1_000_000_000,
            Minutes => 60_000_000_000,
            Hours => 3_600_000_000_000,
            Guessed => match units.unsigned_abs() {
                small if small < SECONDS_BELOW => Seconds.unit_ns(units),
                small if small < SECONDS_BELOW * 1_000 => Milliseconds.unit_ns(units),
                small if small < SECONDS_BELOW * 1_000_000 => Microseconds.unit_ns(units),
                _ => 1,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_precisions_in_order() {
        for (code, name) in ["ns", "us", "ms", "s", "m", "h", "auto"].iter().enumerate() {
            let precision = Precision::named(name).unwrap();
            assert_eq!(precision.code() as usize, code);
            assert_eq!(Precision::from_code(code as u8), Some(precision));
        }
        assert_eq!(Precision::from_code(7), None);
        assert_eq!(Precision::named("d"), None);
    }

    #[test]
    fn guessed_time_stamps_are_of_our_time() {
        let now = 1_700_000_000;
        for unit in [1, 1_000, 1_000_000, 1_000_000_000] {
            assert_eq!(Guessed.to_ns(now * unit), Some(now * 1_000_000_000), "{unit}");
        }
        assert_eq!((Guessed.to_ns(i64::MIN), Hours.to_ns(i64::MAX)), (Some(i64::MIN), None));
    }
}
