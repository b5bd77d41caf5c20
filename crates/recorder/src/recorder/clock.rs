//! The clocks that the recorder's parts go by: they are given them and take none. Main types: [`Clock`] and [`MachineClock`].
//!
//! Invariant: a part that is given a clock reads no other and waits by no other, so that whoever gives it one of their own decides what time does.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Two clocks, and how time passes.
pub trait Clock: Debug + Send + Sync {
    /// The time by a clock that goes on steadily.
    fn now(&self) -> Instant;

    /// The time of the day, in nanoseconds since 1970; it may jump.
    fn day_ns(&self) -> i64;

    /// Lets this time pass at once, where time is made. False where it passes by itself, and whoever wants to wait must do so.
    fn pass(&self, time: Duration) -> bool;

    /// How long ago something was by the steady clock.
    fn since(&self, then: Instant) -> Duration {
        self.now().saturating_duration_since(then)
    }

    /// Waits for this long.
    fn sleep(&self, time: Duration) {
        if !self.pass(time) {
            std::thread::sleep(time);
        }
    }
}

/// A clock that several parts go by.
pub type SharedClock = Arc<dyn Clock>;

/// The clocks of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn day_ns(&self) -> i64 {
        now_ns()
    }

    fn pass(&self, _: Duration) -> bool {
        false
    }
}

/// The machine's clocks, to be shared.
pub fn machine() -> SharedClock {
    Arc::new(MachineClock)
}

/// Nanoseconds since 1970 by the machine's clock of the day.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
