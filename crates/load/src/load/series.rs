//! Counts over the time of a trial, in intervals of equal length. Main type: [`Series`].
//!
//! Invariant: there are at most as many intervals as [`INTERVALS_MAX`], however long a trial lasts.

use serde::{Deserialize, Serialize};

use crate::histogram::CompactHistogram;
use crate::measurement::IntervalMeasurement;

/// Number of intervals of the series; when a trial outgrows them, pairs of intervals are joined.
const INTERVALS_MAX: usize = 512;
/// Initial length of an interval, in nanoseconds.
const INTERVAL_NS: u64 = 100_000_000;

/// Counts per interval; the interval's length doubles when there would be too many.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Series {
    start_ns: u64,
    interval_ns: u64,
    intervals: Vec<Interval>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Interval {
    scheduled: u64,
    completed: u64,
    failed: u64,
    response_sum_ns: u64,
    response_max_ns: u64,
    /// All response times; `None` before the first one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    times: Option<CompactHistogram>,
}

impl Default for Series {
    fn default() -> Self {
        Series { start_ns: 0, interval_ns: INTERVAL_NS, intervals: Vec::new() }
    }
}

impl Series {
    /// Makes the series of a measured phase that begins at a time.
    pub fn from(start_ns: u64) -> Self {
        Series { start_ns, ..Series::default() }
    }

    /// Checks a series that comes from another process: it could not be joined if its intervals had another length than any of this program's.
    ///
    /// # Errors
    /// A sentence that says what no series holds.
    pub fn check(&self) -> Result<(), String> {
        let doublings = (self.interval_ns / INTERVAL_NS).checked_ilog2();
        if doublings.is_none_or(|doublings| INTERVAL_NS.checked_mul(1 << doublings) != Some(self.interval_ns)) {
            return Err(format!("its intervals are {} ns long", self.interval_ns));
        }
        if self.intervals.len() > INTERVALS_MAX {
            return Err(format!("it has {} intervals", self.intervals.len()));
        }
        Ok(())
    }

    pub fn schedule(&mut self, intended_ns: u64) {
        self.at(intended_ns).scheduled += 1;
    }

    pub fn count(&mut self, done_ns: u64, response_ns: Option<u64>) {
        let interval = self.at(done_ns);
        match response_ns {
            Some(response_ns) => {
                interval.completed += 1;
                interval.response_sum_ns += response_ns;
                interval.response_max_ns = interval.response_max_ns.max(response_ns);
                interval.times.get_or_insert_default().record(response_ns);
            }
            None => interval.failed += 1,
        }
    }

    /// Returns the interval that contains a time.
    fn at(&mut self, time_ns: u64) -> &mut Interval {
        let mut place = (time_ns.saturating_sub(self.start_ns) / self.interval_ns) as usize;
        while place >= INTERVALS_MAX {
            self.double();
            place /= 2;
        }
        if place >= self.intervals.len() {
            self.intervals.resize(place + 1, Interval::default());
        }
        &mut self.intervals[place]
    }

    fn double(&mut self) {
        self.interval_ns *= 2;
        self.intervals =
            self.intervals.chunks(2).map(|pair| pair.iter().fold(Interval::default(), Interval::plus)).collect();
    }

    pub fn merge(&mut self, other: &Series) {
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.double();
        }
        while other.interval_ns < self.interval_ns {
            other.double();
        }
        self.intervals.resize(self.intervals.len().max(other.intervals.len()), Interval::default());
        for (mine, theirs) in self.intervals.iter_mut().zip(&other.intervals) {
            *mine = std::mem::take(mine).plus(theirs);
        }
    }

    /// Returns the intervals that begin within the measured phase; the last one ends with it. Answers of the drain
    /// phase are in no interval.
    pub fn finish(&self, measured_s: f64) -> Vec<IntervalMeasurement> {
        let interval_s = self.interval_ns as f64 / 1e9;
        let count = (measured_s / interval_s - 1e-9).ceil().max(0.0) as usize;
        let none = Interval::default();
        let at = |place: usize| self.intervals.get(place).unwrap_or(&none);
        (0..count).map(|place| at(place).finish(((place + 1) as f64 * interval_s).min(measured_s))).collect()
    }
}

impl Interval {
    fn plus(mut self, other: &Interval) -> Interval {
        if let Some(times) = &other.times {
            self.times.get_or_insert_default().merge(times);
        }
        Interval {
            scheduled: self.scheduled + other.scheduled,
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            response_sum_ns: self.response_sum_ns + other.response_sum_ns,
            response_max_ns: self.response_max_ns.max(other.response_max_ns),
            times: self.times,
        }
    }

    fn finish(&self, end_s: f64) -> IntervalMeasurement {
        let quantile_s = |times: &CompactHistogram, quantile| times.quantile_ns(quantile) as f64 / 1e9;
        IntervalMeasurement {
            end_s,
            scheduled: self.scheduled,
            completed: self.completed,
            failed: self.failed,
            response_time_mean_s: self.response_sum_ns as f64 / 1e9 / self.completed.max(1) as f64,
            response_time_max_s: self.response_max_ns as f64 / 1e9,
            response_time_quantiles_s: self
                .times
                .as_ref()
                .map(|times| [0.5, 0.99].map(|quantile| quantile_s(times, quantile))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_no_process_makes_is_refused() {
        let mut series = Series::from(0);
        series.count(900_000_000_000, Some(1));
        assert_eq!(series.check(), Ok(()), "its intervals have doubled");
        for interval_ns in [0, 1, INTERVAL_NS - 1, 3 * INTERVAL_NS, u64::MAX] {
            series.interval_ns = interval_ns;
            assert!(series.check().unwrap_err().contains("ns long"), "{interval_ns}");
        }
        series.interval_ns = INTERVAL_NS;
        series.intervals.resize(INTERVALS_MAX + 1, Interval::default());
        assert!(series.check().unwrap_err().contains("513 intervals"));
    }
}
