//! Defines units of plotted figures: the format of a value in a table, and the labels of an axis.
//!
//! Main type: [`Unit`]. Invariant: an axis states its unit once, and all its ticks are in that unit.

use crate::units::{show_bit_rate, show_bytes, show_number, show_seconds};

/// The unit of a plotted figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// Something per second, by its name.
    Rate(&'static str),
    /// Seconds.
    Seconds,
    /// Shares of one, shown in percent.
    Share,
    /// CPUs kept busy.
    Cpus,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Bits per second, as networks count.
    BitsPerSecond,
}

impl Unit {
    /// Formats a value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Rate(name) => format!("{} {name}", show_number(value)),
            // Ticks are powers of ten: without rounding 100 µs would read 100.0 µs.
            Unit::Seconds => show_seconds((value * 1e12).round() / 1e12),
            Unit::Share => format!("{:.1} %", value * 100.0),
            Unit::Cpus => format!("{value:.2} CPUs"),
            Unit::Bytes => show_bytes(value),
            Unit::BytesPerSecond => format!("{}/s", show_bytes(value)),
            Unit::BitsPerSecond => show_bit_rate(value),
        }
    }

    /// Returns the divisor of values on an axis that reaches to `largest`, and the unit of its ticks.
    pub fn of_axis(self, largest: f64) -> (f64, String) {
        match self {
            Unit::Rate(name) => (1.0, name.to_owned()),
            Unit::Cpus => (1.0, "CPUs".to_owned()),
            Unit::Share => (0.01, "%".to_owned()),
            Unit::Seconds => {
                let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
                let (divisor, name) = units.into_iter().find(|(unit, _)| largest >= *unit).unwrap_or((1e-9, "ns"));
                (divisor, name.to_owned())
            }
            Unit::Bytes => bytes(largest, ""),
            Unit::BytesPerSecond => bytes(largest, "/s"),
            Unit::BitsPerSecond => {
                let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
                let (divisor, name) = units.into_iter().find(|(unit, _)| largest >= *unit).unwrap_or((1.0, "bit/s"));
                (divisor, name.to_owned())
            }
        }
    }
}

fn bytes(largest: f64, per: &str) -> (f64, String) {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")].map(|(power, name)| (2_f64.powi(power), name));
    let (divisor, name) = units.into_iter().find(|(unit, _)| largest >= *unit).unwrap_or((1.0, "B"));
    (divisor, format!("{name}{per}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_takes_the_unit_of_its_largest_value() {
        assert_eq!(Unit::Bytes.of_axis(3e9), (1_073_741_824.0, "GiB".to_owned()));
        assert_eq!(Unit::BytesPerSecond.of_axis(900.0), (1.0, "B/s".to_owned()));
        assert_eq!(Unit::BitsPerSecond.of_axis(95.6e6), (1e6, "Mbit/s".to_owned()));
        assert_eq!(Unit::BitsPerSecond.show(384e3), "384 kbit/s");
        assert_eq!(Unit::Seconds.of_axis(0.02).1, "ms");
        assert_eq!(Unit::Seconds.show(1e-4), "100 µs");
        assert_eq!(Unit::Share.show(0.123), "12.3 %");
    }
}
