//! A section of YCSB's output, such as all lines of `[READ]`, and the times that it contains.
//!
//! Main type: [`Section`]. Invariant: counts by microseconds become a histogram; counts by whole milliseconds do not, because the
//! operations of most databases would all be in its first bucket.

use std::collections::BTreeMap;

use crate::import::source::figure;
use crate::import::times::{Counted, stated, us};
use crate::imported::StatedTimes;

/// Percentiles in whole milliseconds are kept from this value on, in seconds: rounding is then 5 % at most.
const COARSE_FROM_S: f64 = 0.020;

/// All lines of a section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Figures by their names.
    figures: BTreeMap<String, String>,
    /// Counts of the `Return=` lines: operations by status.
    pub returned: BTreeMap<String, u64>,
    /// Lines whose name is a number: value and count.
    buckets: Vec<(u64, f64)>,
    /// Whether there is a bucket for all larger values: buckets are then milliseconds.
    has_overflow: bool,
}

/// The times of a section, by the form in which they are given.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// Times given as counts.
    Counted(Counted),
    /// Times given as figures.
    Stated(StatedTimes),
    /// Times given as figures, with percentiles rounded to whole milliseconds.
    Coarse(StatedTimes),
}

impl Section {
    /// Adds a line. Returns false if its value does not have the form that its name requires.
    pub fn push(&mut self, name: &str, value: &str) -> bool {
        if let Some(status) = name.strip_prefix("Return=") {
            let count = figure(value);
            if let Some(count) = count {
                *self.returned.entry(status.to_owned()).or_default() += count as u64;
            }
            return count.is_some();
        }
        if name.starts_with('>') {
            self.has_overflow = true;
            return figure(value).is_some();
        }
        if let Ok(label) = name.parse::<u64>() {
            // A time series has an average here, which is not a number for a time without operations.
            let count = figure(value).or((value == "NaN").then_some(f64::NAN));
            self.buckets.extend(count.map(|count| (label, count)));
            return count.is_some();
        }
        self.figures.insert(name.to_owned(), value.to_owned());
        value.parse::<f64>().is_ok()
    }

    /// Returns a figure if it is finite and not negative.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).and_then(|value| figure(value))
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> Option<u64> {
        self.figure("Operations").or(self.figure("Total Operations")).map(|count| count as u64)
    }

    /// Returns a time given in microseconds under one of these names, in seconds.
    fn time_s(&self, names: [&str; 2]) -> Option<f64> {
        names.into_iter().find_map(|name| self.figure(name)).map(|us| us / 1e6)
    }

    /// Returns the times of the section.
    pub fn told(&self) -> Told {
        let mean_s = self.time_s(["AverageLatency(us)", "Average"]);
        let min_s = self.time_s(["MinLatency(us)", "Min"]);
        let max_s = self.time_s(["MaxLatency(us)", "Max"]);
        let is_coarse =
            self.has_overflow || self.figures.keys().any(|name| name.contains("Variance") || name.ends_with("(ms)"));
        let counts: f64 = self.buckets.iter().map(|(_, count)| count).sum();
        if !is_coarse && counts > 0.0 && Some(counts as u64) == self.operations() {
            let values = self.buckets.iter().map(|(value_us, count)| (us(*value_us as f64), *count as u64)).collect();
            return Told::Counted(Counted { values, mean_s, min_s, max_s });
        }
        let quantiles: Vec<(f64, f64)> = self
            .figures
            .keys()
            .filter_map(|name| {
                let (percent, per_second) = percentile_of(name)?;
                Some((percent / 100.0, self.figure(name)? / per_second))
            })
            .filter(|(quantile, value_s)| (0.0..1.0).contains(quantile) && (!is_coarse || *value_s >= COARSE_FROM_S))
            .collect();
        let times = stated(mean_s, min_s, max_s, quantiles);
        if is_coarse { Told::Coarse(times) } else { Told::Stated(times) }
    }
}

/// Counts raw times in microseconds, one for each operation.
pub fn of_raw(values_us: &[u64]) -> Counted {
    Counted { values: values_us.iter().map(|value| (us(*value as f64), 1)).collect(), ..Counted::default() }
}

/// Parses `95thPercentileLatency(us)`, `99.9PercentileLatency(us)` and `p99.9` to a percentage and the number of the figure's units in a second.
fn percentile_of(name: &str) -> Option<(f64, f64)> {
    if let Some(percent) = name.strip_prefix('p') {
        return Some((figure(percent)?, 1e6));
    }
    let (ordinal, unit) = name.split_once("PercentileLatency")?;
    let per_second = match unit {
        "(us)" => 1e6,
        "(ms)" => 1e3,
        _ => return None,
    };
    Some((figure(ordinal.trim_end_matches(|c: char| c.is_ascii_alphabetic()))?, per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(lines: &[(&str, &str)]) -> Section {
        let mut section = Section::default();
        lines.iter().for_each(|(name, value)| assert!(section.push(name, value), "{name}"));
        section
    }

    #[test]
    fn percentiles_alone_stay_percentiles() {
        let read = section(&[
            ("Operations", "10"),
            ("AverageLatency(us)", "250.5"),
            ("95thPercentileLatency(us)", "400"),
            ("99.9PercentileLatency(us)", "900"),
            ("Return=OK", "10"),
        ]);
        let Told::Stated(times) = read.told() else { panic!("{:?}", read.told()) };
        assert_eq!(times.mean_s, Some(0.000_250_5));
        assert_eq!(
            (times.quantile_s(0.95), times.quantile_s(0.999), times.quantile_s(0.99)),
            (Some(0.0004), Some(0.0009), None)
        );
    }

    #[test]
    fn counts_by_microseconds_become_a_histogram_and_counts_by_milliseconds_do_not() {
        let fine = section(&[("Operations", "3"), ("AverageLatency(us)", "200"), ("100", "2.0"), ("400", "1.0")]);
        let Told::Counted(counted) = fine.told() else { panic!("{:?}", fine.told()) };
        assert_eq!((counted.count(), counted.histogram().sum_ns()), (3, 600_000));
        let coarse = section(&[
            ("Operations", "3"),
            ("95thPercentileLatency(us)", "0"),
            ("99thPercentileLatency(us)", "57000"),
            ("0", "2"),
            ("57", "1"),
            (">1000", "0"),
        ]);
        let Told::Coarse(times) = coarse.told() else { panic!("{:?}", coarse.told()) };
        assert_eq!(times.quantiles, [(0.99, 0.057)]);
    }

    #[test]
    fn a_time_series_is_no_histogram() {
        let series = section(&[("Operations", "900"), ("AverageLatency(us)", "NaN"), ("0", "210.5"), ("1000", "NaN")]);
        let Told::Stated(times) = series.told() else { panic!("{:?}", series.told()) };
        assert!(times.is_empty(), "{times:?}");
        assert!(!Section::default().push("Operations", "12a"));
    }
}
