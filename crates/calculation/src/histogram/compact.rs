//! Compact histograms: response times of one client, in 2.6 KiB instead of the 37 KiB of a full histogram.
//!
//! Main type: [`CompactHistogram`]. Invariant: count, sum and largest value are exact; quantiles are within 3.2 %. Between processes it
//! travels without loss, as its figures and the buckets that are not empty.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Each power of two is divided into this many equal buckets, so that the middle of one is off by at most 1/32.
const SUB_BUCKETS: u64 = 1 << SUB_BUCKET_BITS;
const SUB_BUCKET_BITS: u32 = 4;
/// Values from here on are counted in the last bucket: 2^43 ns is 2.4 hours.
const HIGHEST_NS: u64 = 1 << 43;
const BUCKETS: usize = ((43 - SUB_BUCKET_BITS as usize) + 1) << SUB_BUCKET_BITS;

/// Counts of times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactHistogram {
    counts: Box<[u32; BUCKETS]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for CompactHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl CompactHistogram {
    /// Creates an empty histogram. Its counts are allocated here, once.
    pub fn new() -> Self {
        CompactHistogram { counts: Box::new([0; BUCKETS]), count: 0, sum_ns: 0, max_ns: 0 }
    }

    /// Counts one value. A bucket saturates at 4 billion, a sum at 584 years.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        let count = &mut self.counts[bucket_of(value_ns)];
        *count = count.saturating_add(1);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &CompactHistogram) {
        for (own, others) in self.counts.iter_mut().zip(other.counts.iter()) {
            *own = own.saturating_add(*others);
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean of all values; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Returns the largest value; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the value at a quantile (0..=1) by nearest rank: the middle of its bucket, at most the largest value. 0 when empty.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                let (lowest, next) = (lowest_of(bucket), lowest_of(bucket + 1));
                return (lowest + (next - lowest) / 2).min(self.max_ns);
            }
        }
        0
    }
}

/// The form in which a histogram travels.
#[derive(Serialize, Deserialize)]
struct Travelling {
    sum_ns: u64,
    max_ns: u64,
    /// The buckets that are not empty, lowest first, and their counts.
    counts: Vec<(u16, u32)>,
}

impl Serialize for CompactHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let filled = (0_u16..).zip(self.counts.iter()).filter(|(_, count)| **count > 0);
        let counts = filled.map(|(bucket, count)| (bucket, *count)).collect();
        Travelling { sum_ns: self.sum_ns, max_ns: self.max_ns, counts }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CompactHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Travelling { sum_ns, max_ns, counts } = Travelling::deserialize(deserializer)?;
        let mut histogram = CompactHistogram { sum_ns, max_ns, ..CompactHistogram::new() };
        for (bucket, count) in counts {
            let own = histogram.counts.get_mut(usize::from(bucket));
            let own = own.ok_or_else(|| D::Error::custom(format!("a compact histogram has no bucket {bucket}")))?;
            *own = own.saturating_add(count);
            histogram.count += u64::from(count);
        }
        Ok(histogram)
    }
}

/// Returns the bucket of a value. Values below 16 have a bucket each; above, the leading 5 bits choose it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_one_answers_zero_and_a_full_one_its_extremes() {
        let mut times = CompactHistogram::new();
        assert_eq!((times.count(), times.quantile_ns(0.5), times.max_ns(), times.mean_ns()), (0, 0, 0, 0.0));
        [5, 7, u64::MAX / 4].into_iter().for_each(|value| times.record(value));
        assert_eq!((times.count(), times.quantile_ns(0.3), times.max_ns()), (3, 5, u64::MAX / 4));
        assert!(size_of::<[u32; BUCKETS]>() <= 2_700, "64 clients take 170 KiB");
    }

    #[test]
    fn a_bucket_that_does_not_exist_is_refused() {
        let wrong = r#"{"sum_ns":1,"max_ns":1,"counts":[[640,1]]}"#;
        let error = serde_json::from_str::<CompactHistogram>(wrong).unwrap_err();
        assert!(error.to_string().contains("no bucket 640"), "{error}");
    }

    proptest! {
        #[test]
        fn it_travels_without_loss(values in prop::collection::vec(0u64..1 << 44, 0..50)) {
            let mut times = CompactHistogram::new();
            values.iter().for_each(|value| times.record(*value));
            let text = serde_json::to_string(&times).unwrap();
            prop_assert_eq!(serde_json::from_str::<CompactHistogram>(&text).unwrap(), times);
        }

        #[test]
        fn quantiles_are_within_a_32nd_of_the_exact_ones(mut values in prop::collection::vec(1u64..1 << 42, 1..200)) {
            let mut times = CompactHistogram::new();
            values.iter().for_each(|value| times.record(*value));
            values.sort_unstable();
            for quantile in [0.01, 0.5, 0.99, 1.0] {
                let exact = values[((quantile * values.len() as f64).ceil() as usize).max(1) - 1] as f64;
                let read = times.quantile_ns(quantile) as f64;
                prop_assert!((read / exact - 1.0).abs() <= 1.0 / 32.0 + 1e-9, "{}: {} instead of {}", quantile, read, exact);
            }
        }
    }
}
