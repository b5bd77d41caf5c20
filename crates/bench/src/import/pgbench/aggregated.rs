//! The aggregated log (`-l --aggregate-interval`): counts, sums and extremes of each interval.
//!
//! Main type: [`Aggregated`]. Invariant: sums are added and extremes kept; there is no percentile in the log and none
//! is made up. pgbench does not write the interval in which a run ends.

use std::collections::BTreeMap;

use super::summary::SKIPPED;
use crate::import::Repetition;
use crate::import::source::{ImportError, SourceFile, figure, shortened};
use crate::import::times::stated;
use crate::imported::TimeKind;
use crate::measurement::{IntervalMeasurement, OperationMeasurement};
use crate::trial::Arrivals;
use crate::units::show_utc;

/// The first number of a line is a time in seconds since 1970 if it is at least this, and else the number of a client.
const EPOCH_LEAST: f64 = 1e8;

/// Upper limit for a count of an interval: with as many lines as a file can have, no sum overflows.
const COUNT_MAX: f64 = 1e12;

/// Sums of an interval over all threads, or of several intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// Number of transactions that succeeded.
    pub completed: u64,
    failed: u64,
    skipped: u64,
    sum_us: f64,
    lag_sum_us: f64,
    /// Smallest time, in seconds; `None` without transactions.
    pub min_s: Option<f64>,
    /// Largest time, in seconds; `None` without transactions.
    pub max_s: Option<f64>,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.sum_us += other.sum_us;
        self.lag_sum_us += other.lag_sum_us;
        self.min_s = self.min_s.into_iter().chain(other.min_s).reduce(f64::min);
        self.max_s = self.max_s.into_iter().chain(other.max_s).reduce(f64::max);
    }
}

/// All intervals of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Aggregated {
    /// Sums by the start of the interval, in seconds since 1970.
    intervals: BTreeMap<u64, Sums>,
    /// Whether transactions were scheduled (`-R`).
    pub scheduled: bool,
}

/// Returns whether a log of pgbench is aggregated.
pub fn is_aggregated(file: &SourceFile) -> bool {
    let first = file.text.split_whitespace().next().and_then(figure);
    first.is_some_and(|first| first >= EPOCH_LEAST)
}

/// Returns the counts among the numbers of a line, and the second in which its interval begins.
fn counts_of(values: &[f64]) -> impl Iterator<Item = f64> {
    [0, 1, 10, 13, 14].into_iter().filter_map(|place| values.get(place).copied())
}

impl Aggregated {
    /// Reads the files of a run.
    ///
    /// # Errors
    /// The first line that does not have the right form.
    pub fn read(files: &[&SourceFile]) -> Result<Self, ImportError> {
        let mut all = Aggregated::default();
        for file in files {
            file.check_ended()?;
            for (number, line) in file.lines() {
                let values: Option<Vec<f64>> = line.split_whitespace().map(figure).collect();
                let is_whole = |values: &Vec<f64>| matches!(values.len(), 6 | 10 | 11 | 15);
                let Some(values) = values.filter(is_whole) else {
                    let found = format!("\"{}\" has not 6, 10, 11 or 15 numbers", shortened(line));
                    return Err(file.error(
                        number,
                        found,
                        "the log is torn, or of another version of pgbench; leave it out",
                    ));
                };
                if let Some(large) = counts_of(&values).find(|count| *count > COUNT_MAX) {
                    let found = format!(
                        "\"{}\" has {large:e} where a time in seconds or a count of transactions stands",
                        shortened(line)
                    );
                    return Err(file.error(number, found, "the log is damaged; leave it out"));
                }
                all.add(&values);
            }
        }
        Ok(all)
    }

    /// Adds a line: `start n sum sum2 min max [lag: sum sum2 min max] [skipped] [retried retries serialization deadlock]`
    fn add(&mut self, values: &[f64]) {
        let value = |place: usize| values.get(place).copied().unwrap_or(0.0);
        let completed = value(1) as u64;
        let extreme = |place: usize| (completed > 0).then(|| value(place) / 1e6);
        let sums = Sums {
            completed,
            failed: (value(13) + value(14)) as u64,
            skipped: value(10) as u64,
            sum_us: value(2),
            lag_sum_us: value(6),
            min_s: extreme(4),
            max_s: extreme(5),
        };
        self.intervals.entry(value(0) as u64).or_default().add(&sums);
        self.scheduled |= value(6) > 0.0 || value(9) > 0.0;
    }

    /// Returns the sums over all intervals.
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        self.intervals.values().for_each(|interval| total.add(interval));
        total
    }

    /// Returns the seconds from the start of one interval to that of the next; 1 for a single interval.
    fn step_s(&self) -> u64 {
        let starts: Vec<u64> = self.intervals.keys().copied().collect();
        starts.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1).max(1)
    }

    /// Returns the start of the first interval.
    pub fn started(&self) -> String {
        self.intervals.keys().next().map(|start| show_utc(*start)).unwrap_or_default()
    }

    /// Returns the intervals; their response times are known if transactions were scheduled.
    pub fn series(&self) -> Vec<IntervalMeasurement> {
        let (first, step_s) = (self.intervals.keys().next().copied().unwrap_or(0), self.step_s());
        let interval = |(start, each): (&u64, &Sums)| {
            let failed = each.failed + each.skipped;
            let mean_s =
                if self.scheduled && each.completed > 0 { each.sum_us / each.completed as f64 / 1e6 } else { 0.0 };
            IntervalMeasurement {
                end_s: (start - first + step_s) as f64,
                scheduled: each.completed + failed,
                completed: each.completed,
                failed,
                response_time_mean_s: mean_s,
                response_time_max_s: each.max_s.filter(|_| self.scheduled).unwrap_or(0.0),
                response_time_quantiles_s: None,
            }
        };
        self.intervals.iter().map(interval).collect()
    }

    /// Fills in what the log alone says. The first interval is left out: the run began within it, so that its length is not known.
    pub fn fill(&self, repetition: &mut Repetition) {
        let mut rest = self.clone();
        rest.intervals.pop_first();
        let whole = rest.total();
        if self.scheduled {
            repetition.arrivals = Arrivals::Poisson;
        }
        let kind = if self.scheduled { TimeKind::ResponseTime } else { TimeKind::ResidenceTime };
        let failed = whole.failed + whole.skipped;
        let mut operation = OperationMeasurement {
            scheduled: whole.completed + failed,
            completed: whole.completed,
            failed,
            ..OperationMeasurement::default()
        };
        let count = whole.completed.max(1) as f64;
        operation.stated.insert(kind, stated(Some(whole.sum_us / count / 1e6), whole.min_s, whole.max_s, Vec::new()));
        if self.scheduled {
            let (lag_s, residence_s) =
                (whole.lag_sum_us / count / 1e6, (whole.sum_us - whole.lag_sum_us) / count / 1e6);
            operation.stated.insert(TimeKind::ScheduleLag, stated(Some(lag_s), None, None, Vec::new()));
            operation.stated.insert(TimeKind::ResidenceTime, stated(Some(residence_s), None, None, Vec::new()));
        }
        repetition.note("an aggregated log alone tells no percentiles; its first interval is left out, because the run began within it");
        let measurement = &mut repetition.measurement;
        measurement.measured_s = (rest.intervals.len() as u64 * self.step_s()) as f64;
        measurement.total_s = measurement.measured_s;
        measurement.started = self.started();
        measurement.series = rest.series();
        measurement.errors = [("a serialization or deadlock failure", whole.failed), (SKIPPED, whole.skipped)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.to_owned(), count))
            .collect();
        measurement.operations.insert("transaction".to_owned(), Box::new(operation));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile { name: "a.1".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn counts_that_no_interval_has_are_refused_with_their_line() {
        let error = Aggregated::read(&[&file("1795251675 1e13 5000 9 100 900\n")]).unwrap_err().to_string();
        assert!(error.contains("a.1:1") && error.contains("1e13"), "{error}");
    }

    #[test]
    fn threads_are_added_interval_by_interval() {
        let first =
            file("1795251675 10 5000 9 100 900 0 0 0 0 0 0 0 1 2\n1795251677 4 400 9 90 110 0 0 0 0 0 0 0 0 0\n");
        let second = file("1795251675 20 5000 9 50 800 0 0 0 0 7 0 0 0 0\n");
        let read = Aggregated::read(&[&first, &second]).unwrap();
        let total = read.total();
        assert_eq!((total.completed, total.failed, total.skipped, read.scheduled), (34, 3, 7, false));
        assert_eq!((total.min_s, total.max_s), (Some(50e-6), Some(900e-6)));
        let series = read.series();
        assert_eq!(series.iter().map(|each| (each.end_s, each.completed)).collect::<Vec<_>>(), [(2.0, 30), (4.0, 4)]);
    }

    #[test]
    fn torn_lines_are_named() {
        let error = Aggregated::read(&[&file("1795251675 10 5000\n")]).unwrap_err().to_string();
        assert!(error.starts_with("a.1:1: "), "{error}");
    }
}
