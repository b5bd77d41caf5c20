//! Validity of imported trials: the rules of loadline's own trials, as far as a tool's output allows them.
//!
//! Invariant: a failed operation counts, whatever the exit status of the tool.

use crate::measurement::Measurement;
use crate::reason::{Failed, Reason};

/// Tolerated distance of a count of arrivals from its expectation, in standard deviations of a Poisson count.
const ARRIVALS_SIGMA: f64 = 5.0;
/// Share of a scheduled rate below which the schedule was missed, whatever the spread.
const REACHED_SHARE: f64 = 0.98;

/// Returns the reasons that follow from the counts of operations.
pub fn reasons(measurement: &Measurement, tolerated_failures: f64) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let (scheduled, failed) = (measurement.scheduled(), measurement.failed());
    if measurement.completed() == 0 {
        reasons.push(Reason::NothingCompleted {});
    }
    if failed as f64 > tolerated_failures * scheduled as f64 {
        let most = measurement.errors.iter().max_by_key(|(_, count)| **count);
        let errors = most.into_iter().map(|(message, count)| Failed { message: message.clone(), count: *count });
        reasons.push(Reason::OperationsFailed { failed, scheduled, errors: errors.collect() });
    }
    reasons
}

/// Returns why a run missed the rate that it was to offer; `None` if it did not.
pub fn missed_rate(operations: u64, measured_s: f64, rate_per_s: f64) -> Option<Reason> {
    let expected = rate_per_s * measured_s;
    let reached = operations as f64;
    let is_missed = reached < expected - ARRIVALS_SIGMA * expected.sqrt() && reached < REACHED_SHARE * expected;
    is_missed.then(|| Reason::ScheduleMissed { reached_per_s: reached / measured_s, rate_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_missed_only_by_more_than_chance() {
        assert_eq!(missed_rate(9_950, 10.0, 1_000.0), None);
        assert_eq!(missed_rate(80, 1.0, 100.0), None, "a short run");
        let reason = missed_rate(8_000, 10.0, 1_000.0).unwrap().to_string();
        assert!(reason.starts_with("800 of 1,000/s were reached"), "{reason}");
    }
}
