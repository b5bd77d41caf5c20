//! Digits that an interval supports: a figure is printed up to the second digit of its interval's half-width, and no further.
//!
//! Main type: [`Carried`]. Invariant: a figure keeps at least two digits, and gets no digits that its own form does not have.

/// Number of digits of a figure whose interval is not known.
const DIGITS_ALONE: i32 = 3;
/// Number of digits that every figure keeps.
const DIGITS_LEAST: i32 = 2;
/// Largest number of decimals of a plain number.
const DECIMALS_MOST: i32 = 9;

/// The last digit that is shown of a figure and of the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// A number of significant digits, where no interval is known.
    Digits(i32),
    /// The power of ten of the second digit of the half-width.
    Place(i32),
    /// All digits, where there is no uncertainty.
    All,
}

impl Carried {
    /// Returns the digits that the interval of a figure supports; three digits without an interval, all digits where its ends are equal.
    pub fn by(interval: Option<[f64; 2]>) -> Carried {
        match interval.map(|[low, high]| (high - low) / 2.0) {
            None => Carried::Digits(DIGITS_ALONE),
            Some(half_width) if half_width > 0.0 && half_width.is_finite() => {
                Carried::Place(half_width.log10().floor() as i32 - 1)
            }
            Some(_) => Carried::All,
        }
    }

    /// Shows a value of any unit in the form that `show` gives it, without the digits that are not supported.
    pub fn show(self, value: f64, show: impl Fn(f64) -> String) -> String {
        let digits = match self {
            Carried::Digits(digits) => digits,
            Carried::Place(place) => (power_of(value) - place + 1).max(DIGITS_LEAST),
            Carried::All => return show(value),
        };
        let written = show(value);
        let is_short = digits_of(&written) <= digits;
        // A form that is short enough already is not rounded twice.
        if is_short || value == 0.0 || !value.is_finite() {
            written
        } else {
            shorten(&show(rounded(value, digits)), digits)
        }
    }

    /// Shows a plain number with as many digits as are supported, even if these are more than three: `16.042` for an interval of ± 0.015. No decimals
    /// from 1,000 on.
    pub fn show_plain(self, value: f64) -> String {
        match self {
            Carried::Place(place) if value != 0.0 && value.is_finite() => {
                let last = place.min(power_of(value) + 1 - DIGITS_LEAST);
                let value = rounded(value, power_of(value) - last + 1);
                let decimals = (-last).clamp(0, DECIMALS_MOST) as usize;
                if value.abs() < 1000.0 { format!("{value:.decimals$}") } else { super::show_number(value) }
            }
            _ => self.show(value, super::show_number),
        }
    }

    /// Shows both ends of an interval: `[5,700, 24,500]`.
    pub fn show_ends(self, [low, high]: [f64; 2], show: impl Fn(f64) -> String) -> String {
        format!("[{}, {}]", self.show(low, &show), self.show(high, &show))
    }
}

/// Shows a ratio with its interval: `1.13 [1.02, 1.24]`, with at most `decimals` decimals where these give two digits; alone where there is no interval.
pub fn show_ratio(ratio: f64, interval: Option<[f64; 2]>, decimals: usize) -> (String, String) {
    // Below 0.1 two decimals do not give two digits: 0.0089 is not 0.01.
    let least = |value: f64| usize::try_from(DIGITS_LEAST - 1 - power_of(value)).unwrap_or(0).min(6);
    let (carried, show) = (Carried::by(interval), |value: f64| format!("{value:.*}", decimals.max(least(value))));
    let end = |value: f64| match value {
        // The exact end of so wide an interval is of no use to anybody.
        value if value > RATIO_MOST => format!("over {}", super::show_number(RATIO_MOST)),
        value if value < 1.0 / RATIO_MOST && value > 0.0 => format!("under {}", 1.0 / RATIO_MOST),
        value => carried.show(value, show),
    };
    (carried.show(ratio, show), interval.map_or(String::new(), |[low, high]| format!("[{}, {}]", end(low), end(high))))
}

/// Largest end of an interval of a ratio that is written out; the smallest is one over it.
const RATIO_MOST: f64 = 10_000.0;

/// Returns the power of ten of a number's first digit.
fn power_of(value: f64) -> i32 {
    if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 }
}

fn rounded(value: f64, digits: i32) -> f64 {
    // Converted through text, because a multiple of 0.1 is no power of two.
    format!("{value:.*e}", (digits - 1).max(0) as usize).parse().unwrap_or(value)
}

/// Returns the number of significant digits of the number that a text begins with.
fn digits_of(text: &str) -> i32 {
    let number = text.chars().take_while(|one| one.is_ascii_digit() || ",.-".contains(*one));
    number.filter(char::is_ascii_digit).skip_while(|one| *one == '0').count() as i32
}

/// Removes the digits after the first `digits` from the number that a text begins with: a value rounded in bytes has new digits in KiB.
fn shorten(text: &str, digits: i32) -> String {
    let end = text.find(|one: char| !(one.is_ascii_digit() || ",.-".contains(one))).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let Ok(value) = number.replace(',', "").parse::<f64>() else { return text.to_owned() };
    let written = number.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    let value = rounded(value, digits);
    let decimals = (digits - 1 - power_of(value)).clamp(0, written) as usize;
    let number = if decimals == 0 && value.abs() >= 1000.0 && value.is_finite() {
        super::show_number(value)
    } else {
        format!("{value:.decimals$}")
    };
    format!("{number}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{show_bytes, show_number, show_seconds};

    #[test]
    fn a_figure_has_no_digit_that_its_interval_does_not_carry() {
        let told = |mean: f64, ends: [f64; 2], show: fn(f64) -> String| {
            let carried = Carried::by(Some(ends));
            format!("{} {}", carried.show(mean, show), carried.show_ends(ends, show))
        };
        assert_eq!(told(15_125.0, [5_713.0, 24_537.0], show_number), "15,100 [5,700, 24,500]");
        assert_eq!(told(188_100.0, [178_354.0, 197_846.0], show_number), "188,100 [178,400, 197,800]");
        assert_eq!(told(1.449, [1.0, 1.9], show_number), "1.45 [1, 1.90]");
        assert_eq!(told(0.0123, [0.005, 0.0196], show_seconds), "12.3 ms [5 ms, 19.6 ms]");
        assert_eq!(told(0.0978, [1.78e-6, 1140.0], show_seconds), "98 ms [1.8 µs, 19 min]");
        assert_eq!(told(500_000.0, [300_000.0, 700_000.0], show_bytes), "490 KiB [290 KiB, 680 KiB]");
        assert_eq!(told(7.0, [7.0, 7.0], show_number), "7 [7, 7]");
    }

    #[test]
    fn a_figure_without_an_interval_has_three_digits() {
        assert_eq!(Carried::by(None).show(157_088.0, show_number), "157,000");
        assert_eq!(Carried::by(None).show(0.0, show_seconds), "0 s");
        assert_eq!(Carried::by(None).show(f64::NAN, show_number), "-");
    }

    #[test]
    fn a_plain_number_has_all_digits_that_its_interval_carries() {
        let told = |mean: f64, half: f64| Carried::by(Some([mean - half, mean + half])).show_plain(mean);
        assert_eq!(told(16.04249, 0.0015), "16.0425");
        assert_eq!(told(16.04249, 1.5), "16.0");
        assert_eq!(told(16.04249, 15.0), "16");
        assert_eq!(told(0.001234, 0.0004), "0.00123");
        assert_eq!(told(0.001234, 0.4), "0.0012", "two digits at least");
        assert_eq!(told(9.9962, 0.015), "9.996");
        assert_eq!(told(9.9962, 0.15), "10.00");
        assert_eq!(told(12_345.678, 0.15), "12,346");
        assert_eq!(told(12_345.678, 150.0), "12,350");
        assert_eq!(told(0.0, 0.15), "0");
        assert_eq!(Carried::by(None).show_plain(16.0424), "16.0");
    }

    #[test]
    fn ratios_keep_the_decimals_that_they_can() {
        let told = |ratio, ends| {
            let (ratio, ends) = show_ratio(ratio, Some(ends), 2);
            format!("{ratio} {ends}")
        };
        assert_eq!(told(1.131, [1.02, 1.24]), "1.13 [1.02, 1.24]");
        assert_eq!(told(1.2349, [1.2248, 1.2449]), "1.23 [1.22, 1.24]", "no digit is rounded twice");
        assert_eq!(told(1.0, [0.9999, 1.0001]), "1.00 [1.00, 1.00]");
        assert_eq!(told(1.1, [0.0083, 3.9]), "1.1 [0.0083, 3.9]");
        assert_eq!(told(0.0089, [0.0071, 0.0112]), "0.0089 [0.0071, 0.011]");
        assert_eq!(told(817.3, [300.0, 2_200.0]), "820 [300, 2,200]");
        assert_eq!(told(1.5, [1e-21, 1.15e70]), "1.5 [under 0.0001, over 10,000]");
        assert_eq!(told(0.0, [0.0, 0.5]), "0.00 [0.00, 0.50]");
    }
}
