//! Standstills: times in which nothing was completed although clients waited, and which no reported quantile shows.
//!
//! Main function: [`standstill`]. Invariant: a pause that the 99 % quantile of response time shows is no standstill.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IntervalMeasurement, Measurement};
use crate::imported::TimeKind;
use crate::units::show_seconds;

/// Shortest standstill that is reported, in seconds.
const LEAST_S: f64 = 0.5;
/// Shortest standstill as a multiple of the quantile of response time: the quantile itself shows shorter ones.
const BEYOND_QUANTILE: f64 = 10.0;
/// Smallest number of operations expected within a standstill, at the throughput of the whole trial. With fewer, the pause may be chance.
const EXPECTED_LEAST: f64 = 50.0;
/// The quantile that does not show a standstill.
const QUANTILE: f64 = 0.99;

/// The longest time of a trial in which nothing was completed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standstill {
    /// Duration within the measured phase, in seconds, to within an interval of the series.
    pub lasted_s: f64,
    /// Length of the measured phase, in seconds.
    pub measured_s: f64,
    /// The 99 % quantile of response time in that trial, in seconds, for the slowest kind of operation.
    pub response_time_p99_s: f64,
    /// The slowest response time, in seconds; an answer that came after the measured phase counts too.
    pub response_time_max_s: f64,
}

impl std::fmt::Display for Standstill {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "for {} of {}, while p99 of response time is {} and the slowest answer took {}",
            show_seconds(self.lasted_s),
            show_seconds(self.measured_s),
            show_seconds(self.response_time_p99_s),
            show_seconds(self.response_time_max_s)
        )
    }
}

/// Returns the longest time in which nothing was completed although clients waited; `None` where the quantiles show it, and in trials with events or
/// schema changes.
pub fn standstill(measurement: &Measurement) -> Option<Standstill> {
    // Events and schema changes report such times themselves.
    if measurement.events.is_some() || measurement.evolution.is_some() || measurement.retention.is_some() {
        return None;
    }
    let (lasted_s, measured_s) =
        (longest_s(&measurement.series, measurement.carried.is_some()), measurement.measured_s);
    let expected = measurement.completed() as f64 * lasted_s / measured_s.max(f64::MIN_POSITIVE);
    // Checked before quantiles are computed, because most trials have nothing to report.
    if lasted_s < LEAST_S || expected < EXPECTED_LEAST {
        return None;
    }
    let slowest_s = |quantile| {
        let of_kinds = measurement.operations.values();
        of_kinds.filter_map(|kind| kind.quantile_s(TimeKind::ResponseTime, quantile)).max_by(f64::total_cmp)
    };
    let (response_time_p99_s, response_time_max_s) = (slowest_s(QUANTILE)?, slowest_s(1.0)?);
    let is_hidden = lasted_s >= BEYOND_QUANTILE * response_time_p99_s;
    is_hidden.then_some(Standstill { lasted_s, measured_s, response_time_p99_s, response_time_max_s })
}

/// Returns the longest sequence of intervals in which nothing was completed, in seconds. In an open loop something must have arrived in each of them; in a
/// closed loop the clients wait, and nothing arrives.
fn longest_s(series: &[IntervalMeasurement], is_open: bool) -> f64 {
    let (mut longest_s, mut begun_s) = (0.0_f64, 0.0);
    for interval in series {
        let is_still = interval.completed + interval.failed == 0 && (!is_open || interval.scheduled > 0);
        if !is_still {
            begun_s = interval.end_s;
        }
        longest_s = longest_s.max(interval.end_s - begun_s);
    }
    longest_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::OperationMeasurement;
    use crate::trial::{Case, Trial};

    /// Creates a trial of ten intervals of 0.2 s, with the given number of completed operations in each, each of which took `took_ns`.
    fn trial(completed: [u64; 10], took_ns: u64, slowest_ns: u64) -> Measurement {
        let series = (1..).zip(completed).map(|(place, completed)| IntervalMeasurement {
            end_s: f64::from(place) * 0.2,
            completed,
            scheduled: completed,
            ..Default::default()
        });
        let mut read = OperationMeasurement { completed: completed.iter().sum(), ..Default::default() };
        (1..read.completed).for_each(|_| read.response_time.record(took_ns));
        read.response_time.record(slowest_ns);
        let case = Case::new(Default::default(), Default::default());
        Measurement {
            measured_s: 2.0,
            series: series.collect(),
            operations: [("read".to_owned(), Box::new(read))].into(),
            ..Measurement::unmeasured(&Trial::new(case, 0, 0))
        }
    }

    #[test]
    fn the_longest_while_in_which_nothing_was_completed_is_told_wherever_it_is() {
        for (completed, lasted_s) in [
            ([90, 90, 0, 0, 0, 90, 90, 0, 90, 90], 0.6),
            ([0, 0, 0, 0, 90, 90, 90, 90, 90, 90], 0.8),
            ([90, 90, 90, 90, 90, 0, 0, 0, 0, 0], 1.0),
        ] {
            let found = standstill(&trial(completed, 1_000_000, 20_000_000_000)).unwrap();
            assert!((found.lasted_s - lasted_s).abs() < 1e-9, "{found:?}");
            assert!((found.response_time_max_s / 20.0 - 1.0).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn what_quantiles_show_and_what_is_chance_is_no_standstill() {
        let short = trial([90, 90, 0, 0, 90, 90, 90, 90, 90, 90], 1_000_000, 400_000_000);
        let seldom = trial([9, 9, 0, 0, 0, 9, 9, 9, 9, 9], 1_000_000, 600_000_000);
        let shown = trial([90, 90, 0, 0, 0, 90, 90, 90, 90, 90], 100_000_000, 600_000_000);
        assert_eq!([short, seldom, shown].map(|trial| standstill(&trial)), [None; 3]);
    }

    #[test]
    fn a_pause_of_the_arrivals_is_no_standstill_of_the_database() {
        let mut open = trial([90, 90, 0, 0, 0, 90, 90, 90, 90, 90], 1_000_000, 600_000_000);
        open.carried = Some(630);
        assert_eq!(standstill(&open), None);
        open.series.iter_mut().for_each(|interval| interval.scheduled = 90);
        assert!(standstill(&open).is_some());
    }

    #[test]
    fn a_server_that_is_stopped_on_purpose_is_told_elsewhere() {
        let mut stopped = trial([90, 90, 0, 0, 0, 90, 90, 90, 90, 90], 1_000_000, 600_000_000);
        stopped.events = Some(Default::default());
        assert_eq!(standstill(&stopped), None);
    }
}
