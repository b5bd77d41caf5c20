//! Times as tools print them: histograms that are rebuilt from counts, and stated figures where there are no counts.
//!
//! Main type: [`Counted`]. Invariant: a histogram is rebuilt only from counts whose values are known to about a
//! percent; percentiles alone give none.

use crate::histogram::Histogram;
use crate::imported::StatedTimes;

/// Converts microseconds to nanoseconds.
pub fn us(value: f64) -> u64 {
    (value * 1e3).round() as u64
}

/// Converts milliseconds to nanoseconds.
pub fn ms(value: f64) -> u64 {
    (value * 1e6).round() as u64
}

/// Values in nanoseconds with their counts, for a histogram, and the figures that the tool states exactly.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counted {
    /// Values in nanoseconds, and how often each occurred.
    pub values: Vec<(u64, u64)>,
    /// Mean, in seconds; `None` if the tool does not state it.
    pub mean_s: Option<f64>,
    /// Smallest value, in seconds; `None` if the tool does not state it.
    pub min_s: Option<f64>,
    /// Largest value, in seconds; `None` if the tool does not state it.
    pub max_s: Option<f64>,
}

impl Counted {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.values.iter().map(|(_, count)| count).sum()
    }

    /// Returns the histogram; empty without values.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        self.values.iter().for_each(|(value_ns, count)| histogram.record_many(*value_ns, *count));
        let ns = |seconds: f64| (seconds * 1e9).round();
        let sum_ns = self.mean_s.map_or(histogram.sum_ns(), |mean_s| ns(mean_s * histogram.count() as f64) as u128);
        let min_ns = self.min_s.map_or(histogram.min_ns(), |min_s| ns(min_s) as u64);
        let max_ns = self.max_s.map_or(histogram.max_ns(), |max_s| ns(max_s) as u64);
        histogram.correct(sum_ns, min_ns, max_ns);
        histogram
    }
}

/// Returns stated figures with their quantiles in ascending order.
pub fn stated(
    mean_s: Option<f64>,
    min_s: Option<f64>,
    max_s: Option<f64>,
    mut quantiles: Vec<(f64, f64)>,
) -> StatedTimes {
    quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    StatedTimes { mean_s, min_s, max_s, quantiles }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_figures_replace_those_of_the_buckets() {
        let counted = Counted {
            values: vec![(us(100.0), 3), (ms(2.0), 1)],
            mean_s: Some(0.000_5),
            min_s: Some(0.000_099),
            max_s: Some(0.002_1),
        };
        let histogram = counted.histogram();
        assert_eq!((counted.count(), histogram.count(), histogram.sum_ns()), (4, 4, 2_000_000));
        assert_eq!((histogram.min_ns(), histogram.max_ns()), (99_000, 2_100_000));
        assert_eq!(Counted::default().histogram().count(), 0);
    }
}
