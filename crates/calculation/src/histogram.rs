//! Histograms of times: log-linear counts that record in about a nanosecond, merge without loss and are stored in the
//! exchange format of HdrHistogram.
//!
//! Invariant: merging is exact. Percentiles are never averaged; they are read from merged counts. A histogram read from a file stays packed
//! in a few hundred bytes until something is added to it, so that the trials of a long run fit in memory.

mod compact;
mod packed;
mod stored;

use packed::Packed;

pub use compact::CompactHistogram;

/// Each power of two is divided into this many equal buckets, so a value is off by at most 1/256 = 0.4 %.
const SUB_BUCKETS: u64 = 1 << SUB_BUCKET_BITS;
const SUB_BUCKET_BITS: u32 = 7;
/// Values from here on are counted in the last bucket: 2^43 ns is 2.4 hours.
const HIGHEST_NS: u64 = 1 << 43;
const BUCKETS: usize = ((43 - SUB_BUCKET_BITS as usize) + 1) << SUB_BUCKET_BITS;

/// Counts of times in nanoseconds, with exact count, sum, smallest and largest value.
#[derive(Clone)]
pub struct Histogram {
    /// One count per bucket; empty while the histogram is empty, or while the counts are packed.
    counts: Vec<u64>,
    packed: Packed,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let figures = |of: &Histogram| (of.count, of.sum_ns, of.min_ns, of.max_ns);
        figures(self) == figures(other) && self.filled().eq(other.filled())
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram(n = {}, mean = {} ns, max = {} ns)", self.count, self.mean_ns(), self.max_ns())
    }
}

impl Histogram {
    /// Creates an empty histogram. Counts are allocated once, with the first value: 37 KiB of address space, touched where values fall.
    pub fn new() -> Self {
        Histogram { counts: Vec::new(), packed: Packed::default(), count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Returns the unpacked counts, for additions.
    #[inline]
    fn counts(&mut self) -> &mut [u64] {
        if self.counts.is_empty() {
            self.unpack();
        }
        &mut self.counts
    }

    #[cold]
    fn unpack(&mut self) {
        self.counts = vec![0; BUCKETS];
        for (bucket, count) in std::mem::take(&mut self.packed).iter() {
            self.counts[bucket] += count;
        }
    }

    /// Returns the same histogram in little memory, for one that is kept and seldom added to.
    #[must_use]
    pub fn packed(mut self) -> Self {
        self.packed = self.filled().collect();
        self.counts = Vec::new();
        self
    }

    /// Returns the buckets that are not empty, and their counts, lowest first.
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        self.packed.iter().chain(counted.map(|(bucket, count)| (bucket, *count)))
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.counts()[bucket_of(value_ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Counts a value several times.
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        if count > 0 {
            self.counts()[bucket_of(value_ns)] += count;
            self.count += count;
            self.sum_ns += u128::from(value_ns) * u128::from(count);
            self.min_ns = self.min_ns.min(value_ns);
            self.max_ns = self.max_ns.max(value_ns);
        }
    }

    /// Replaces sum, smallest and largest value by more exact ones than those of the counted values. The smallest and the
    /// largest are widened only; nothing happens while it is empty.
    pub fn correct(&mut self, sum_ns: u128, min_ns: u64, max_ns: u64) {
        if self.count > 0 {
            self.sum_ns = sum_ns;
            (self.min_ns, self.max_ns) = (self.min_ns.min(min_ns), self.max_ns.max(max_ns));
        }
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        let counts = self.counts();
        other.filled().for_each(|(bucket, count)| counts[bucket] += count);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.packed = Packed::default();
        (self.count, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of all values, exact.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Returns the mean of all values, exact; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Returns the largest value, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the smallest value, exact; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Returns the value at a quantile (0..=1) by nearest rank: the middle of its bucket, kept within the smallest and largest
    /// value. 0 when empty.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.filled() {
            seen += count;
            if seen >= rank && self.count > 0 {
                return middle_of(bucket).clamp(self.min_ns, self.max_ns);
            }
        }
        0
    }

    /// Returns the number of values above this one, as far as buckets distinguish them: those of its own bucket count as not above.
    pub fn count_above(&self, value_ns: u64) -> u64 {
        let own = bucket_of(value_ns);
        self.filled().filter(|(bucket, _)| *bucket > own).map(|(_, count)| count).sum()
    }

    /// Returns the buckets that are not empty, lowest first: (lowest value, lowest value of the next bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.filled().map(|(bucket, count)| (lowest_of(bucket), lowest_of(bucket + 1), count))
    }
}

/// Returns the bucket of a value. Values below 128 have a bucket each; above, the leading 8 bits choose it.
#[inline]
fn bucket_of(value_ns: u64) -> usize {
    let value = value_ns.min(HIGHEST_NS - 1);
    if value < SUB_BUCKETS {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - SUB_BUCKET_BITS;
    (((octave + 1) as usize) << SUB_BUCKET_BITS) + ((value >> octave) - SUB_BUCKETS) as usize
}

fn lowest_of(bucket: usize) -> u64 {
    let (group, place) = ((bucket as u64) >> SUB_BUCKET_BITS, (bucket as u64) & (SUB_BUCKETS - 1));
    if group == 0 { place } else { (SUB_BUCKETS + place) << (group - 1) }
}

fn middle_of(bucket: usize) -> u64 {
    let lowest = lowest_of(bucket);
    lowest + (lowest_of(bucket + 1) - lowest) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_within_half_a_percent_of_the_exact_ones() {
        let mut histogram = Histogram::new();
        let values: Vec<u64> = (1..=100_000u64).map(|i| i * i % 7_919_317 + 50).collect();
        values.iter().for_each(|value| histogram.record(*value));
        let mut sorted = values.clone();
        sorted.sort_unstable();
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1] as f64;
            let read = histogram.quantile_ns(quantile) as f64;
            assert!((read / exact - 1.0).abs() < 0.005, "q{quantile}: {read} instead of {exact}");
        }
        assert_eq!(histogram.max_ns(), *sorted.last().unwrap());
        assert_eq!(histogram.sum_ns(), values.iter().map(|v| u128::from(*v)).sum());
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.quantile_ns(0.5), empty.max_ns(), empty.min_ns()), (0, 0, 0, 0));
        assert_eq!(empty.mean_ns(), 0.0);
        let stored = serde_json::to_string(&empty).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&stored).unwrap(), empty);
    }

    #[test]
    fn values_beyond_the_range_are_counted_and_their_maximum_is_kept() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX / 2);
        assert_eq!((histogram.count(), histogram.max_ns()), (1, u64::MAX / 2));
    }

    #[test]
    fn damaged_text_is_an_error_and_not_a_panic() {
        assert!(
            serde_json::from_str::<Histogram>(r#"{"count":1,"sum_ns":5.0,"min_ns":5,"max_ns":5,"hdr_v2":"AAAA"}"#)
                .is_err()
        );
        assert!(
            serde_json::from_str::<Histogram>(r#"{"count":1,"sum_ns":5.0,"min_ns":5,"max_ns":5,"hdr_v2":"~"}"#)
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn merging_counts_the_same_as_recording_all(a in prop::collection::vec(0u64..1 << 44, 0..50), b in prop::collection::vec(0u64..1 << 44, 0..50)) {
            let (mut left, mut right, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
            for value in &a { left.record(*value); both.record(*value); }
            for value in &b { right.record(*value); both.record(*value); }
            left.merge(&right);
            prop_assert_eq!(left, both);
        }

        #[test]
        fn storing_keeps_count_extremes_and_quantiles(values in prop::collection::vec(1u64..1 << 43, 1..60)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let back: Histogram = serde_json::from_str(&serde_json::to_string(&histogram).unwrap()).unwrap();
            prop_assert_eq!((back.count(), back.min_ns(), back.max_ns()), (histogram.count(), histogram.min_ns(), histogram.max_ns()));
            for quantile in [0.0, 0.5, 0.9, 1.0] {
                let (before, after) = (histogram.quantile_ns(quantile) as f64, back.quantile_ns(quantile) as f64);
                prop_assert!((before - after).abs() <= before * 0.009 + 1.0, "{} became {}", before, after);
            }
        }

        #[test]
        fn each_value_falls_into_the_bucket_that_contains_it(value in 0u64..HIGHEST_NS) {
            let bucket = bucket_of(value);
            prop_assert!(lowest_of(bucket) <= value && value < lowest_of(bucket + 1));
        }
    }
}
