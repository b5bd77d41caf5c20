//! Field values without quotes, and time stamps.

use super::Value;
use super::error::shown;

/// Parses a field value that is not a string.
///
/// # Errors
/// The message: what is wrong and what the value could be.
pub(super) fn field_value(token: &[u8]) -> Result<Value<'static>, String> {
    let Some((&last, digits)) = token.split_last() else {
        return Err("the value is missing; write a number, 3i, 3u, true, false or \"text\"".to_owned());
    };
    match last {
        b'i' => match whole(digits) {
            Some(value) => Ok(Value::Int(value)),
            None => Err(format!("{} is no whole number of 64 bits", shown(token))),
        },
        b'u' => match unsigned(digits) {
            Some(value) => Ok(Value::Unsigned(value)),
            None => Err(format!("{} is no unsigned whole number of 64 bits", shown(token))),
        },
        _ => match token {
            b"t" | b"T" | b"true" | b"True" | b"TRUE" => Ok(Value::Boolean(true)),
            b"f" | b"F" | b"false" | b"False" | b"FALSE" => Ok(Value::Boolean(false)),
            _ => float(token).map(Value::Float),
        },
    }
}

/// Parses a whole number with an optional sign.
pub(super) fn whole(token: &[u8]) -> Option<i64> {
    // Nearly every time stamp consists of digits alone, few enough to fit into 64 bits.
    let (number, end) = digits(token, 0, 0);
    if end == token.len() && (1..=19).contains(&end) {
        return i64::try_from(number).ok();
    }
    std::str::from_utf8(token).ok()?.parse().ok()
}

fn unsigned(token: &[u8]) -> Option<u64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// Powers of ten that are whole numbers of 53 bits, and so exact.
const EXACT_POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

fn float(token: &[u8]) -> Result<f64, String> {
    let digits = token.strip_prefix(b"-").or_else(|| token.strip_prefix(b"+")).unwrap_or(token);
    // The standard library also accepts "inf" and "nan", which are not numbers here.
    let starts_well = digits.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.');
    let parsed = std::str::from_utf8(token).ok().filter(|_| starts_well).and_then(|text| text.parse::<f64>().ok());
    match parsed {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(format!("{} is beyond the numbers of 64 bits", shown(token))),
        None => Err(format!(
            "{} is no value; write a number, 3i, 3u, true, false or \"text\" in double quotes",
            shown(token)
        )),
    }
}

/// Parses a number of up to 15 digits, or a short whole number with `i`, that is followed by a byte that ends values; also returns its length. Nearly all
/// values have this form, and so are parsed in one pass. `None` for all other forms.
///
/// Digits and power of ten are both exact, and so their quotient is rounded once, as it must be.
#[inline]
pub(super) fn short_number(input: &[u8]) -> Option<(Value<'static>, usize)> {
    let is_negative = input.first() == Some(&b'-');
    let start = usize::from(is_negative);
    let (whole, mut at) = digits(input, start, 0);
    let (mut number, mut behind_point) = (whole, None);
    if input.get(at) == Some(&b'.') {
        let point = at;
        (number, at) = digits(input, point + 1, whole);
        behind_point = Some(at - point - 1);
    }
    let count = at - start - usize::from(behind_point.is_some());
    // At least one digit, and at most 15.
    if count.wrapping_sub(1) >= 15 {
        return None;
    }
    match input.get(at) {
        None | Some(b',' | b' ' | b'\n' | b'\r') => {
            let value = number as f64 / EXACT_POWERS[behind_point.unwrap_or(0)];
            Some((Value::Float(if is_negative { -value } else { value }), at))
        }
        Some(b'i')
            if behind_point.is_none() && matches!(input.get(at + 1), None | Some(b',' | b' ' | b'\n' | b'\r')) =>
        {
            let value = number as i64;
            Some((Value::Int(if is_negative { -value } else { value }), at + 1))
        }
        Some(_) => None,
    }
}

/// Appends the digits from `at` on to a number; returns the number, and the place behind the last digit.
#[inline]
fn digits(input: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(digit @ b'0'..=b'9') = input.get(at) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    (number, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_numbers_are_those_of_the_standard_library(text in "[-+]?[0-9]{0,22}", odd in "[-+0-9a. ]{0,6}") {
            for text in [text, odd] {
                prop_assert_eq!(whole(text.as_bytes()), text.parse().ok(), "{}", text);
            }
        }

        #[test]
        fn whole_numbers_at_the_edges_are_those_of_the_standard_library(below in 0_u64..200, digits in 17_u32..20) {
            for edge in [i64::MAX.unsigned_abs() + 100, 10_u64.pow(digits), u64::MAX] {
                let text = (edge - below).to_string();
                prop_assert_eq!(whole(text.as_bytes()), text.parse().ok(), "{}", text);
            }
        }
    }

    #[test]
    fn all_kinds_are_told_apart() {
        let value = |text: &str| field_value(text.as_bytes());
        assert_eq!(value("1"), Ok(Value::Float(1.0)));
        assert_eq!(value("-1.5e3"), Ok(Value::Float(-1500.0)));
        assert_eq!(value("+.5"), Ok(Value::Float(0.5)));
        assert_eq!(value("-9223372036854775808i"), Ok(Value::Int(i64::MIN)));
        assert_eq!(value("18446744073709551615u"), Ok(Value::Unsigned(u64::MAX)));
        assert_eq!(value("TRUE"), Ok(Value::Boolean(true)));
        assert_eq!(value("f"), Ok(Value::Boolean(false)));
        for wrong in
            ["", "i", "1.5i", "-1u", "9223372036854775808i", "nan", "inf", "-inf", "1e999", "tRue", ".", "1.2.3"]
        {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn short_decimals_are_read_as_the_standard_library_reads_them(number in "-?[0-9]{1,8}(\\.[0-9]{0,7})?") {
            let expected: f64 = number.parse().unwrap();
            for behind in ["", ",f=1", " 1", "\n", "\r\n"] {
                let input = format!("{number}{behind}");
                let (value, length) = short_number(input.as_bytes()).unwrap();
                prop_assert_eq!(length, number.len());
                let Value::Float(value) = value else { panic!("{value:?}") };
                prop_assert_eq!(value.to_bits(), expected.to_bits());
            }
        }

        #[test]
        fn what_is_read_in_one_go_is_read_as_it_is_otherwise(token in "[-+]?[0-9]{0,17}[.]?[0-9]{0,3}[iuet]?[0-9]?") {
            if let Some((value, length)) = short_number(token.as_bytes()) {
                prop_assert_eq!(length, token.len());
                prop_assert_eq!(field_value(token.as_bytes()), Ok(value));
            }
        }

        #[test]
        fn every_finite_number_survives_being_written(number in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            prop_assert_eq!(float(format!("{number}").as_bytes()).unwrap().to_bits(), number.to_bits());
            prop_assert_eq!(float(format!("{number:e}").as_bytes()).unwrap().to_bits(), number.to_bits());
        }
    }
}
