//! Points in time in the form in which databases write them.
//!
//! Main functions: [`parse_time`] and [`write_time`]. Invariant: a written time is read as the same microsecond.

use super::{civil_date, unix_seconds};

/// A time in written form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenTime<'a> {
    /// Microseconds since 1970, taken as UTC where no zone is written.
    pub us: i64,
    /// The written offset from UTC: `Z`, `+00`, `-03:30`; empty where none is written.
    pub zone: &'a str,
}

/// Reads `2026-11-26 06:22:55.123456+00`; a date alone is accepted, and so is a `T` between date and time. `None` for any other text. Digits after
/// the sixth of a fraction are cut off.
pub fn parse_time(text: &str) -> Option<WrittenTime<'_>> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers::<3>(date, b"-", &[4, 2, 2])?;
    if rest.is_empty() {
        return Some(WrittenTime { us: unix_seconds([year, month, day, 0, 0, 0])?.checked_mul(1_000_000)?, zone: "" });
    }
    let rest = rest.strip_prefix([' ', 'T'])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let [hour, minute, second] = numbers::<3>(clock, b":", &[2, 2, 2])?;
    let (fraction_us, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(digits) => {
            let count = digits.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, zone) = digits.split_at(count);
            let kept = &digits[..count.min(6)];
            let number: i64 = kept.parse().ok()?;
            (number * 10_i64.pow(6 - kept.len() as u32), zone)
        }
    };
    let seconds = unix_seconds([year, month, day, hour, minute, second])? - offset_s(zone)?;
    Some(WrittenTime { us: seconds.checked_mul(1_000_000)?.checked_add(fraction_us)?, zone })
}

/// Returns the seconds by which a zone is ahead of UTC: 0 for `Z` and for empty text; `None` where the text is not a zone.
pub fn offset_s(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone[1..].split(':').collect();
    let number = |from: usize, to: usize| digits.get(from..to).unwrap_or("0").parse::<i64>().ok();
    let is_whole = matches!(digits.len(), 2 | 4 | 6) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = 3_600 * number(0, 2)? + 60 * number(2, 4)? + number(4, 6)?;
    (is_whole && seconds < 86_400).then_some(sign * seconds)
}

/// Reads numbers with the given numbers of digits, separated by a mark.
fn numbers<const COUNT: usize>(text: &str, mark: &[u8; 1], digits: &[usize; COUNT]) -> Option<[i64; COUNT]> {
    let mut parts = text.split(char::from(mark[0]));
    let mut read = [0; COUNT];
    for (number, digits) in read.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = if is_number { part.parse().ok()? } else { return None };
    }
    parts.next().is_none().then_some(read)
}

/// Appends a time as text, `2026-11-26 06:22:55`, with six decimals where it is not a whole second or `with_fraction`, followed by its zone. The hour is
/// that of the zone.
pub fn write_time(us: i64, with_fraction: bool, zone: &str, out: &mut Vec<u8>) {
    let us = us.saturating_add(offset_s(zone).unwrap_or(0) * 1_000_000);
    let (seconds, fraction) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    digits(year.clamp(0, 9_999), 4, out);
    for (mark, number) in
        [(b'-', month), (b'-', day), (b' ', second / 3_600), (b':', second / 60 % 60), (b':', second % 60)]
    {
        out.push(mark);
        digits(number, 2, out);
    }
    if with_fraction || fraction != 0 {
        out.push(b'.');
        digits(fraction, 6, out);
    }
    out.extend_from_slice(zone.as_bytes());
}

/// Appends a number of zero or more with leading zeros.
fn digits(number: i64, count: usize, out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + count, b'0');
    let mut left = number;
    for place in out[from..].iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(text: &str) -> Option<i64> {
        parse_time(text).map(|time| time.us)
    }

    fn written(us: i64, with_fraction: bool, zone: &str) -> String {
        let mut out = Vec::new();
        write_time(us, with_fraction, zone, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_forms_of_databases_are_read() {
        // date -u -d '2026-11-26 06:22:55' +%s
        let second = 1_795_674_175_000_000;
        for text in
            ["2026-11-26 06:22:55", "2026-11-26T06:22:55Z", "2026-11-26 06:22:55+00", "2026-11-26 08:22:55+02:00"]
        {
            assert_eq!(us(text), Some(second), "{text}");
        }
        assert_eq!(us("2026-11-26 02:52:55.25-03:30"), Some(second + 250_000));
        assert_eq!(us("2026-11-26 06:22:55.123456789"), Some(second + 123_456));
        assert_eq!(us("2026-11-26"), Some(second - (6 * 3600 + 22 * 60 + 55) * 1_000_000));
        assert_eq!(us("1969-12-31 23:59:59"), Some(-1_000_000));
        for text in [
            "",
            "2026-13-01",
            "2026-02-30",
            "2026-11-26 6:22",
            "26.11.2026 06:22:55",
            "2026-11-26 06:22:55 BC",
            "infinity",
            "2026-11-26x06:22:55",
        ] {
            assert_eq!(us(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_in_their_zone() {
        assert_eq!(written(1_795_674_175_000_000, false, ""), "2026-11-26 06:22:55");
        assert_eq!(written(1_795_674_175_000_000, true, "+00"), "2026-11-26 06:22:55.000000+00");
        assert_eq!(written(1_795_674_175_000_001, false, "+02:00"), "2026-11-26 08:22:55.000001+02:00");
        assert_eq!(written(-1, false, ""), "1969-12-31 23:59:59.999999");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(us in -60_000_000_000_000_000_i64..250_000_000_000_000_000, fraction: bool, hours in -12_i32..13) {
            let zone = if hours == 0 { String::new() } else { format!("{hours:+03}") };
            let text = written(us, fraction, &zone);
            prop_assert_eq!(parse_time(&text), Some(WrittenTime { us, zone: &zone }));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", digits in "[0-9:+. T-]{0,40}") {
            let _ = (parse_time(&text), parse_time(&digits));
        }
    }
}
