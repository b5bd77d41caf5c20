//! The clocks of the recorder's parts, which are passed in. Main types: [`Clock`] and [`MachineClock`].
//!
//! Invariant: a part with a clock reads no other and waits by no other, so that a caller with a clock of its own decides how time passes.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// A steady clock, a clock of the day, and the way in which time passes.
pub trait Clock: Debug + Send + Sync {
    /// Returns the time of the steady clock.
    fn now(&self) -> Instant;

    /// Returns the time of the day, in nanoseconds since 1970; it may jump.
    fn day_ns(&self) -> i64;

    /// Lets this time pass at once, if the clock makes its own time. Returns false if time passes by itself, so that the caller must wait.
    fn pass(&self, time: Duration) -> bool;

    /// Returns how long ago `then` was by the steady clock.
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

/// A clock that several parts share.
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

/// Returns the machine's clocks, to be shared.
pub fn machine() -> SharedClock {
    Arc::new(MachineClock)
}

/// Returns nanoseconds since 1970 by the machine's clock of the day.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
