//! Units: durations, sizes and rates as people write them and as reports print them.
//!
//! Inside the program a bare number always carries its unit in its name (`elapsed_s`, `lag_ns`, `bound_bytes`).
//! These functions are the only place where text becomes such a number and back.

mod carried;
pub mod times;

use std::time::Duration;

use crate::fault::{Fault, fault};

pub use carried::{Carried, show_ratio};

/// Nanoseconds in one second.
pub const NS_PER_S: f64 = 1e9;

/// Reads a duration such as `250us`, `1.6ms`, `10s`, `2m`, `1h` or `7d`.
///
/// # Errors
/// A sentence with the error, the value and the accepted form.
pub fn parse_duration(text: &str) -> Result<Duration, Fault> {
    let (number, unit) = split_number(text);
    let seconds_per_unit = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => {
            return Err(fault!(
                "\"{text}\" is not a duration"; "write a number and a unit, as in \"100ms\", \"10s\" or \"2m\""
            ));
        }
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 && value * seconds_per_unit < 1e9 => {
            Ok(Duration::from_nanos((value * seconds_per_unit * NS_PER_S).round() as u64))
        }
        _ => Err(fault!("\"{text}\" is not a duration"; "the number must be zero or more and below 30 years")),
    }
}

/// Reads a size such as `512`, `64KiB`, `100MB` or `4GiB`, in bytes.
///
/// # Errors
/// A sentence with the error, the value and the accepted form.
pub fn parse_bytes(text: &str) -> Result<u64, Fault> {
    let (number, unit) = split_number(text);
    let bytes_per_unit: f64 = match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(fault!("\"{text}\" is not a size"; "write a number and a unit, as in \"64KiB\" or \"4GiB\"")),
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 && value * bytes_per_unit < 9e18 => {
            Ok((value * bytes_per_unit).round() as u64)
        }
        _ => Err(fault!("\"{text}\" is not a size"; "the number must be zero or more")),
    }
}

/// Reads the rate of a link such as `384kbit/s`, `5.76 Mbit/s`, `100Mbps` or `1Gbit/s`, in bits per second. Prefixes are decimal.
///
/// # Errors
/// A sentence with the error, the value and the accepted form.
pub fn parse_bit_rate(text: &str) -> Result<f64, Fault> {
    let (number, unit) = split_number(text);
    let bits_per_unit: f64 = match unit {
        "bit/s" | "bps" => 1.0,
        "kbit/s" | "kbps" => 1e3,
        "Mbit/s" | "Mbps" => 1e6,
        "Gbit/s" | "Gbps" => 1e9,
        _ => {
            return Err(fault!(
                "\"{text}\" is not a rate";
                "write a number and a unit, as in \"384kbit/s\", \"100Mbit/s\" or \"1Gbit/s\""
            ));
        }
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value * bits_per_unit),
        _ => Err(fault!("\"{text}\" is not a rate"; "the number must be zero or more")),
    }
}

/// Prints a rate of a link: `384 kbit/s`, `95.6 Mbit/s`. A value that is not finite prints as `-`.
pub fn show_bit_rate(bits_per_s: f64) -> String {
    if !bits_per_s.is_finite() {
        return "-".to_owned();
    }
    let (scaled, unit) = match bits_per_s.abs() {
        rate if rate < 1e3 => (bits_per_s, "bit/s"),
        rate if rate < 1e6 => (bits_per_s / 1e3, "kbit/s"),
        rate if rate < 1e9 => (bits_per_s / 1e6, "Mbit/s"),
        _ => (bits_per_s / 1e9, "Gbit/s"),
    };
    format!("{} {unit}", show_significant(scaled))
}

/// Splits `"1.6ms"` into `("1.6", "ms")`; white space between the two is allowed.
fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Prints seconds with three significant digits and the unit that reads best: `1.60 ms`, `12.3 s`.
/// Zero prints as `0 s`; a value that is not finite as `-`.
pub fn show_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    let magnitude = seconds.abs();
    let (scaled, unit) = match magnitude {
        0.0 => return "0 s".to_owned(),
        m if m < 1e-6 => (seconds * 1e9, "ns"),
        m if m < 1e-3 => (seconds * 1e6, "µs"),
        m if m < 1.0 => (seconds * 1e3, "ms"),
        m if m < 600.0 => (seconds, "s"),
        m if m < 36_000.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    format!("{} {unit}", show_significant(scaled))
}

/// Prints a rate or count with thousands separators: `1,234,567`, `12.3`, `0.0123`.
/// A value that is not finite prints as `-`.
pub fn show_number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() < 1000.0 {
        return show_significant(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0.0 {
        out.push('-');
    }
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Prints a number of things: `1 trial`, `2,000 trials`.
pub fn show_count(count: u64, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", show_number(count as f64))
}

/// Prints bytes with a binary unit: `64.0 KiB`, `1.50 GiB`. A value that is not finite prints as `-`.
pub fn show_bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return "-".to_owned();
    }
    let mut scaled = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if scaled.abs() < 1024.0 {
            return format!("{} {unit}", show_significant(scaled));
        }
        scaled /= 1024.0;
    }
    format!("{} TiB", show_significant(scaled))
}

/// Shows a time in seconds since 1970 as RFC 3339 in UTC, to the second: `2026-11-21T06:20:00Z`.
pub fn show_utc(unix_s: u64) -> String {
    let (days, second) = ((unix_s / 86_400) as i64, unix_s % 86_400);
    let (year, month, day) = civil_date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Shows a time in nanoseconds since 1970 as RFC 3339 in UTC, to the millisecond: `2026-11-21T06:20:00.250Z`. Smaller parts are cut off.
pub fn show_utc_ms(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000).max(0);
    let milliseconds = unix_ns.rem_euclid(1_000_000_000) / 1_000_000;
    let text = show_utc(seconds as u64);
    format!("{}.{milliseconds:03}Z", text.trim_end_matches('Z'))
}

/// Reads a time of RFC 3339 in UTC, from 1970 on and with up to nine decimals of a second, in nanoseconds since 1970; `None` for any other
/// text.
pub fn parse_utc(text: &str) -> Option<i64> {
    let bytes = text.strip_suffix('Z')?.as_bytes();
    let number = |from: usize, to: usize| {
        let digits = bytes.get(from..to).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        Some(digits.iter().fold(0_i64, |number, digit| 10 * number + i64::from(digit - b'0')))
    };
    let is_marked = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !is_marked.iter().all(|(place, mark)| bytes.get(*place) == Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fraction_ns = match bytes.len() {
        19 => 0,
        length @ 21..=29 if bytes[19] == b'.' => number(20, length)? * 10_i64.pow(29 - length as u32),
        _ => return None,
    };
    let seconds = unix_seconds([year, month, day, hour, minute, second]).filter(|seconds| *seconds >= 0)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// Returns the seconds since 1970 of year, month, day, hour, minute and second in UTC; `None` where there is no such time.
pub fn unix_seconds([year, month, day, hour, minute, second]: [i64; 6]) -> Option<i64> {
    let days = days_of(year, month, day);
    let is_date = (1..=12).contains(&month) && civil_date(days) == (year, month, day);
    let is_time = [(hour, 24), (minute, 60), (second, 60)].iter().all(|(part, below)| (0..*below).contains(part));
    (is_date && is_time).then_some(86_400 * days + 3_600 * hour + 60 * minute + second)
}

/// Returns the days since 1970-01-01 of a date; the inverse of [`civil_date`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era =
        365 * year_of_era + year_of_era / 4 - year_of_era / 100 + (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + day_of_era - 719_468
}

/// Returns year, month and day of a number of days since 1970-01-01. Years are counted from March, so that the leap day is a year's
/// last: then every month begins (153 m + 2) / 5 days into it.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let since_march_0 = days + 719_468;
    let era = since_march_0.div_euclid(146_097);
    let day_of_era = since_march_0.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Shows three significant digits, without an exponent, for values below 1000; whole numbers stay whole.
fn show_significant(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e6 {
        return format!("{value:.0}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(parse_duration("1.6ms"), Ok(Duration::from_micros(1600)));
        assert_eq!(parse_duration("10 s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("366d"), Ok(Duration::from_secs(366 * 86_400)));
        assert!(parse_duration("10").unwrap_err().what.contains("\"10\""));
        assert!(parse_duration("-1s").is_err());
        assert!(parse_duration("soon").is_err());
    }

    #[test]
    fn sizes_are_read_with_binary_and_decimal_units() {
        assert_eq!(parse_bytes("4GiB"), Ok(4 << 30));
        assert_eq!(parse_bytes("100MB"), Ok(100_000_000));
        assert_eq!(parse_bytes("512"), Ok(512));
        assert!(parse_bytes("4 gigs").is_err());
    }

    #[test]
    fn times_print_as_utc() {
        assert_eq!(show_utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(show_utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(show_utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(show_utc(1_795_242_000), "2026-11-21T06:20:00Z");
        assert_eq!(show_utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn numbers_print_with_three_significant_digits() {
        assert_eq!(show_seconds(0.0016), "1.60 ms");
        assert_eq!(show_seconds(0.0), "0 s");
        assert_eq!(show_seconds(f64::NAN), "-");
        assert_eq!(show_number(1_234_567.4), "1,234,567");
        assert_eq!(show_number(12.345), "12.3");
        assert_eq!(show_number(-1000.0), "-1,000");
        assert_eq!(show_bytes(65_536.0), "64 KiB");
    }

    #[test]
    fn rates_of_links_are_read_and_shown() {
        assert_eq!(parse_bit_rate("384kbit/s"), Ok(384e3));
        assert_eq!(parse_bit_rate("5.76 Mbps"), Ok(5.76e6));
        assert_eq!(parse_bit_rate("1Gbit/s"), Ok(1e9));
        for wrong in ["", "100", "5 MB/s", "-1 kbit/s", "kbit/s", "1e9 bit/s"] {
            assert!(parse_bit_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!(show_bit_rate(384e3), "384 kbit/s");
        assert_eq!(show_bit_rate(95.62e6), "95.6 Mbit/s");
        assert_eq!(show_bit_rate(1e9), "1 Gbit/s");
        assert_eq!(show_bit_rate(f64::NAN), "-");
    }

    #[test]
    fn times_are_read_as_they_are_written_and_others_are_not() {
        for unix_ns in [0, 951_782_400_250_000_000, 1_795_305_600_999_000_000, 4_107_542_399_001_000_000] {
            assert_eq!(parse_utc(&show_utc_ms(unix_ns)), Some(unix_ns));
        }
        assert_eq!(parse_utc("2000-02-29T00:00:00Z"), Some(951_782_400_000_000_000));
        assert_eq!(parse_utc("1970-01-01T00:00:00.123456789Z"), Some(123_456_789));
        for text in [
            "",
            "Z",
            "2001-02-29T00:00:00Z",
            "2000-13-01T00:00:00Z",
            "2000-01-01T24:00:00Z",
            "2000-01-01T00:00:60Z",
            "2000-01-01T00:00:00",
            "2000-01-01T00:00:00.Z",
            "2000-01-01T00:00:00.1234567890Z",
            "1969-12-31T23:59:59Z",
            "2000-01-01 00:00:00Z",
            "2000-0x-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }
}
