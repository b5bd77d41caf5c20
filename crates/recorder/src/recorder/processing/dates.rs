//! Bounds on the dates of violations: a camera whose clock is wrong dates them years away, and those are not stored unseen. Main type: [`Dates`].

use std::time::Duration;

use super::super::clock::now_ns;
use crate::units::{show_seconds, show_utc_ms};

/// A clock before this time is certainly wrong: 2026-01-01, in nanoseconds since 1970.
const CLOCK_LEAST_NS: i64 = 1_767_225_600_000_000_000;

/// The bounds, relative to this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dates {
    /// The largest age of a violation.
    pub age: Duration,
    /// The most that a violation may be dated ahead.
    pub ahead: Duration,
}

impl Dates {
    /// Returns the present time, with which violations are compared, in nanoseconds since 1970.
    ///
    /// # Errors
    /// A sentence, if this machine's own clock is certainly wrong: no violation can be judged by it.
    pub(super) fn now_ns() -> Result<i64, String> {
        match now_ns() {
            now_ns @ CLOCK_LEAST_NS.. => Ok(now_ns),
            now_ns => Err(format!(
                "the clock of this machine stands at {}, and blocks are judged by their dates; set it",
                show_utc_ms(now_ns)
            )),
        }
    }

    /// Returns why a violation of that time is not stored; `None` if it may be.
    pub(super) fn refuse(&self, time_ns: i64, now_ns: i64) -> Option<String> {
        let (distance_ns, away, setting, bound) = match now_ns.checked_sub(time_ns) {
            Some(age_ns @ 0..) => (age_ns.unsigned_abs(), "before", "age", self.age),
            _ => (time_ns.abs_diff(now_ns), "ahead of", "ahead", self.ahead),
        };
        let distance = Duration::from_nanos(distance_ns);
        let [distance_s, bound_s] = [distance, bound].map(|time| show_seconds(time.as_secs_f64()));
        (distance > bound).then(|| {
            format!(
                "its time is {}, {distance_s} {away} this machine's clock, and processing.{setting} is {bound_s}: set the camera's clock; if the \
                 time is right, raise processing.{setting} and give the block back with loadline block quarantine CONFIG.toml --replay",
                show_utc_ms(time_ns)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dated_beyond_a_bound_is_refused_with_value_bound_and_remedy() {
        const HOUR_NS: i64 = 3_600_000_000_000;
        let dates = Dates { age: Duration::from_secs(48 * 3600), ahead: Duration::from_secs(3600) };
        let now_ns = CLOCK_LEAST_NS + 1_000 * HOUR_NS;
        for hours in [-48, -1, 0, 1] {
            assert_eq!(dates.refuse(now_ns + hours * HOUR_NS, now_ns), None, "{hours}");
        }
        let old = dates.refuse(now_ns - 49 * HOUR_NS, now_ns).unwrap();
        assert!(
            old.starts_with(
                "its time is 2026-02-09T15:00:00.000Z, 49 h before this machine's clock, and processing.age is 48 h"
            ),
            "{old}"
        );
        let early = dates.refuse(now_ns + 2 * HOUR_NS, now_ns).unwrap();
        assert!(early.contains("120 min ahead of this machine's clock, and processing.ahead is 60 min"), "{early}");
        assert!(
            early.contains("raise processing.ahead and give the block back with loadline block quarantine"),
            "{early}"
        );
        assert!(dates.refuse(i64::MAX, now_ns).is_some() && dates.refuse(0, now_ns).is_some());
        assert!(dates.refuse(i64::MIN, now_ns).is_some() && dates.refuse(i64::MIN, i64::MAX).is_some());
    }
}
