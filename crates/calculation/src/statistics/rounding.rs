//! The uncertainty left by rounding: a printed mean or standard deviation is known to half a unit of its last digit, and a p-value
//! calculated from them is no more certain.
//!
//! Main function: [`p_range`]. Invariant: the p of the figures as printed lies in the range.

use super::summary::Interval;
use super::t_test::{Summary, TTest};

/// A printed summary: the true figures lie within half a unit of the last digit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    /// The figures.
    pub summary: Summary,
    /// Unit of the mean's last digit, at least 0: 1 for `1010`, 0.01 for `3.14`.
    pub mean_unit: f64,
    /// Unit of the standard deviation's last digit, at least 0.
    pub sd_unit: f64,
}

impl Printed {
    /// Creates a summary of figures that were not rounded.
    pub fn exact(summary: Summary) -> Self {
        Printed { summary, mean_unit: 0.0, sd_unit: 0.0 }
    }

    /// Returns how far the mean may be from the printed one.
    fn mean_half(&self) -> f64 {
        self.mean_unit / 2.0
    }

    fn sds(&self) -> [f64; 3] {
        let half = self.sd_unit / 2.0;
        [(self.summary.sd - half).max(0.0), self.summary.sd, self.summary.sd + half]
    }
}

/// Returns the unit of the last digit of a number as written: 1 for `1010`, 0.1 for `12.0`, 1e-5 for `1.2e-4`. Trailing zeros of
/// a whole number count as digits. `None` when it is not a number.
pub fn unit_of(written: &str) -> Option<f64> {
    written.parse::<f64>().ok()?;
    let (digits, power) = match written.split_once(['e', 'E']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (written, 0),
    };
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    Some(10_f64.powi(power - decimals))
}

/// Returns the smallest and the largest p that a test gives for figures that round to the printed ones. p falls with the distance of
/// the means and grows with the standard deviations, apart from their part in the degrees of freedom; so ends and middle of the
/// distance and of both standard deviations are tried. `None` when the printed figures have no p.
pub fn p_range(a: Printed, b: Printed, test: impl Fn(Summary, Summary) -> Option<TTest>) -> Option<Interval> {
    let printed = test(a.summary, b.summary)?.p;
    let distance = (a.summary.mean - b.summary.mean).abs();
    let slack = a.mean_half() + b.mean_half();
    let mut range = Interval { low: printed, high: printed };
    for distance in [(distance - slack).max(0.0), distance, distance + slack] {
        for sd_a in a.sds() {
            for sd_b in b.sds() {
                let first = Summary { mean: distance, sd: sd_a, ..a.summary };
                let second = Summary { mean: 0.0, sd: sd_b, ..b.summary };
                // Without any spread there is no test; the p of a tiny spread has the same limit.
                if let Some(found) = test(first, second).filter(|found| found.p.is_finite()) {
                    range = Interval { low: range.low.min(found.p), high: range.high.max(found.p) };
                }
            }
        }
    }
    Some(range)
}

/// Returns whether the order of the means is certain in spite of rounding.
pub fn is_order_certain(a: Printed, b: Printed) -> bool {
    (a.summary.mean - b.summary.mean).abs() > a.mean_half() + b.mean_half()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::t_test::welch;

    fn printed(mean: f64, sd: f64, unit: f64) -> Printed {
        Printed { summary: Summary { mean, sd, n: 40 }, mean_unit: unit, sd_unit: unit }
    }

    #[test]
    fn units_are_read_from_the_digits_as_written() {
        for (written, unit) in
            [("1010", 1.0), ("12.0", 0.1), ("3.14", 0.01), ("1.2e-4", 1e-5), ("-7", 1.0), ("5.", 1.0)]
        {
            assert!((unit_of(written).unwrap() / unit - 1.0).abs() < 1e-12, "{written}");
        }
        assert_eq!(unit_of("soon"), None);
    }

    #[test]
    fn means_that_print_alike_may_differ_by_a_whole_unit() {
        let range = p_range(printed(36.0, 1.0, 1.0), printed(36.0, 1.0, 1.0), welch).unwrap();
        assert!(range.low < 1e-7 && range.high == 1.0, "{range:?}");
        assert!(!is_order_certain(printed(36.0, 1.0, 1.0), printed(37.0, 1.0, 1.0)));
        assert!(is_order_certain(printed(36.0, 1.0, 1.0), printed(38.0, 1.0, 1.0)));
    }

    #[test]
    fn figures_that_are_exact_leave_nothing_open() {
        let (a, b) = (printed(10.0, 2.0, 0.0), printed(11.0, 2.0, 0.0));
        let p = welch(a.summary, b.summary).unwrap().p;
        assert_eq!(p_range(a, b, welch), Some(Interval { low: p, high: p }));
        assert_eq!(p_range(printed(1.0, 0.0, 0.0), printed(1.0, 0.0, 0.0), welch), None);
    }
}
