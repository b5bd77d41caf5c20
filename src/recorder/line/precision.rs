//! The unit of the time stamps of a batch. Main type: [`Precision`].

/// What one unit of a time stamp is.
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
    /// Minutes, of InfluxDB 1.
    Minutes,
    /// Hours, of InfluxDB 1.
    Hours,
}

use Precision::{Hours, Microseconds, Milliseconds, Minutes, Nanoseconds, Seconds};

impl Precision {
    /// The precision of a name in a request: `ns`, `us`, `ms`, `s` of `/api/v2/write`, and `n`, `u`, `µ`, `m`, `h` of `/write`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "" | "ns" | "n" => Nanoseconds,
            "us" | "u" | "µ" | "µs" => Microseconds,
            "ms" => Milliseconds,
            "s" => Seconds,
            "m" => Minutes,
            "h" => Hours,
            _ => return None,
        })
    }

    /// Its number in stored entries, which never changes its meaning.
    pub fn code(self) -> u8 {
        match self {
            Nanoseconds => 0,
            Microseconds => 1,
            Milliseconds => 2,
            Seconds => 3,
            Minutes => 4,
            Hours => 5,
        }
    }

    /// The precision of a number in stored entries.
    pub fn from_code(code: u8) -> Option<Self> {
        [Nanoseconds, Microseconds, Milliseconds, Seconds, Minutes, Hours].get(usize::from(code)).copied()
    }

    /// Nanoseconds in one unit.
    pub fn unit_ns(self) -> i64 {
        match self {
            Nanoseconds => 1,
            Microseconds => 1_000,
            Milliseconds => 1_000_000,
            Seconds => 1_000_000_000,
            Minutes => 60_000_000_000,
            Hours => 3_600_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_precisions_in_order() {
        for (code, name) in ["ns", "us", "ms", "s", "m", "h"].iter().enumerate() {
            let precision = Precision::named(name).unwrap();
            assert_eq!(precision.code() as usize, code);
            assert_eq!(Precision::from_code(code as u8), Some(precision));
        }
        assert_eq!(Precision::from_code(6), None);
        assert_eq!(Precision::named("d"), None);
    }
}
