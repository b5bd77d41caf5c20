//! The clock by which message ids age. Main type: [`IdClock`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::recorder::clock::{Clock, SharedClock};

/// A time in nanoseconds that starts from a stored value and advances only with the monotonic clock. The clock of the day may jump: if it
/// were a day ahead for a moment, all ids would be forgotten.
///
/// Invariant: however often its time is stored and continued from, by however many processes, the clock is never ahead of the first value by
/// more than the time that has really passed. An id with a time of this clock is therefore never older by it than it really is.
#[derive(Debug, Clone)]
pub struct IdClock {
    base_ns: i64,
    since: Instant,
    steady: SharedClock,
}

impl IdClock {
    /// Returns a clock that continues from a stored value, as a steady clock advances.
    pub fn new(stored_ns: i64, steady: &SharedClock) -> Self {
        IdClock { base_ns: stored_ns, since: steady.now(), steady: SharedClock::clone(steady) }
    }

    /// Returns the first value where none was stored: that of the clock of the day, but not beyond the newest of the existing ids.
    pub fn first_ns(newest_ns: Option<i64>, day_ns: i64) -> i64 {
        newest_ns.map_or(day_ns, |newest_ns| newest_ns.min(day_ns))
    }

    /// Returns the clock's time, in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.after(self.steady.since(self.since))
    }

    fn after(&self, passed: Duration) -> i64 {
        self.base_ns.saturating_add(i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX))
    }

    /// The most by which a clock may be ahead of the stored value that others continue from, in nanoseconds. One that could store nothing for longer goes
    /// back to that value: if it moved the value forward by all the time that has passed, the ids of those who began at the old value would be old at once.
    pub const AHEAD_NS_MOST: i64 = 240_000_000_000;

    /// Agrees with a value of the same clock that several instances store: catches up with it, or goes back to it if it is too far ahead.
    pub fn agree(&mut self, stored_ns: i64) {
        let now_ns = self.now_ns();
        if stored_ns > now_ns || stored_ns < now_ns.saturating_sub(Self::AHEAD_NS_MOST) {
            *self = IdClock::new(stored_ns, &self.steady);
        }
    }
}

/// Returns a number that stands for an entry's in quarantine, for records that were never in the spool: below 0, and a different one each time.
pub fn unspooled_number(clock: &dyn Clock) -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let next = |last: i64| (-clock.day_ns()).min(last - 1);
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))).map_or(-clock.day_ns(), next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::clock::machine;

    const DAY_NS: i64 = 86_400_000_000_000;

    #[test]
    fn it_goes_on_with_the_time_that_passes_and_back_only_to_what_others_continue_from() {
        let mut clock = IdClock::new(7, &machine());
        assert_eq!((clock.after(Duration::from_nanos(5)), clock.after(Duration::MAX)), (12, i64::MAX));
        clock.agree(3);
        assert!((7..DAY_NS).contains(&clock.now_ns()));
        clock.agree(DAY_NS);
        assert!(clock.now_ns() >= DAY_NS);
        clock.agree(DAY_NS - IdClock::AHEAD_NS_MOST / 2);
        assert!(clock.now_ns() >= DAY_NS);
        clock.agree(DAY_NS / 2);
        assert!((DAY_NS / 2..DAY_NS).contains(&clock.now_ns()));
    }

    #[test]
    fn a_clock_of_the_day_that_is_ahead_makes_no_id_older() {
        assert_eq!(IdClock::first_ns(Some(5), DAY_NS), 5);
        assert_eq!(IdClock::first_ns(Some(DAY_NS), 5), 5);
        assert_eq!(IdClock::first_ns(None, 5), 5);
    }
}
