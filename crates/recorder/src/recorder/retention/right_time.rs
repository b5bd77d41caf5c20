//! Decides whether the machine's clock may be believed. Main type: [`RightTime`], pure.
//!
//! Invariant: a time that was accepted is no further ahead of the last accepted one than the steady clock has advanced, and the permitted jump.

use std::time::{Duration, Instant};

/// The last time that is known to be right.
#[derive(Debug, Clone)]
pub(super) struct RightTime {
    known_ns: i64,
    /// When it was known, by the steady clock.
    at: Instant,
    /// The most by which the clock may be ahead.
    jump_ns: i64,
    /// The time up to which the clock is right in any case; `None` if nobody has said so.
    until_ns: Option<i64>,
}

/// A clock that is too far ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The time that the clock shows, in nanoseconds since 1970.
    pub day_ns: i64,
    /// The time that it would be if no time had passed but that which this process has seen, in the same unit.
    pub expected_ns: i64,
}

impl RightTime {
    /// Creates one that knows that it was `known_ns` when the steady clock stood at `at`, or earlier.
    pub(super) fn new(known_ns: i64, at: Instant, jump: Duration, until_ns: Option<i64>) -> Self {
        RightTime { known_ns, at, jump_ns: nanoseconds(jump), until_ns }
    }

    /// Returns the time of the clock, in nanoseconds since 1970, and remembers it.
    ///
    /// # Errors
    /// That the clock is too far ahead. It is believed again once it is not.
    pub(super) fn believe(&mut self, day_ns: i64, now: Instant) -> Result<i64, Ahead> {
        let expected_ns = self.known_ns.saturating_add(nanoseconds(now.saturating_duration_since(self.at)));
        let most_ns = expected_ns.saturating_add(self.jump_ns);
        if day_ns > most_ns.max(self.until_ns.unwrap_or(i64::MIN)) {
            return Err(Ahead { day_ns, expected_ns });
        }
        // A clock that is set back makes fewer readings old, and may be set right again.
        if day_ns > self.known_ns {
            (self.known_ns, self.at) = (day_ns, now);
        }
        Ok(day_ns)
    }

    /// Returns the last time that is known to be right, in nanoseconds since 1970.
    pub(super) fn known_ns(&self) -> i64 {
        self.known_ns
    }

    /// Takes over a later time that another recorder knows to be right.
    pub(super) fn learn(&mut self, known_ns: i64, now: Instant) {
        if known_ns > self.known_ns {
            (self.known_ns, self.at) = (known_ns, now);
        }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_clock_that_jumps_is_not_believed_until_it_is_right_again() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut time = RightTime::new(1_000 * S, begun, Duration::from_secs(60), None);
        assert_eq!(time.believe(1_060 * S, at(0)), Ok(1_060 * S), "the recorder was off for a minute");
        assert_eq!(time.believe(1_070 * S, at(10)), Ok(1_070 * S));
        let years = 1_070 * S + 86_400 * 3_650 * S;
        assert_eq!(time.believe(years, at(11)), Err(Ahead { day_ns: years, expected_ns: 1_071 * S }));
        assert_eq!(time.believe(years + 7_200 * S, at(7_211)).map_err(|ahead| ahead.expected_ns), Err(8_271 * S));
        assert_eq!(time.known_ns(), 1_070 * S, "what was not believed is not remembered");
        assert_eq!(time.believe(8_271 * S, at(7_211)), Ok(8_271 * S), "the clock is right again");
        assert_eq!(time.believe(5 * S, at(7_212)), Ok(5 * S), "it was set back");
        assert_eq!(time.believe(8_280 * S, at(7_213)), Ok(8_280 * S), "and right again");
    }

    #[test]
    fn whoever_says_that_the_clock_is_right_is_believed_that_far() {
        let begun = Instant::now();
        let mut time = RightTime::new(1_000 * S, begun, Duration::from_secs(60), Some(9_000 * S));
        assert!(time.believe(9_001 * S, begun).is_err());
        assert_eq!(time.believe(8_999 * S, begun), Ok(8_999 * S));
        assert_eq!(time.believe(9_050 * S, begun), Ok(9_050 * S));
        time.learn(9_100 * S, begun);
        time.learn(9_000 * S, begun);
        assert_eq!((time.known_ns(), time.believe(9_161 * S, begun).is_err()), (9_100 * S, true));
    }

    #[test]
    fn the_ends_of_the_calendar_are_times_too() {
        let begun = Instant::now();
        let mut time = RightTime::new(i64::MAX - 5, begun, Duration::MAX, None);
        assert_eq!(time.believe(i64::MAX, begun), Ok(i64::MAX));
        assert_eq!(time.believe(i64::MIN, begun), Ok(i64::MIN));
    }
}
