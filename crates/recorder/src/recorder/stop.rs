//! Stopping in order: first every part is asked to stop, and later the time is over. Main type: [`Stop`].

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::clock::{SharedClock, machine};

/// A request to stop, and its deadline.
#[derive(Debug)]
pub struct Stop {
    /// The deadline, once a stop was asked for.
    over_at: Mutex<Option<Instant>>,
    changed: Condvar,
    clock: SharedClock,
}

impl Default for Stop {
    fn default() -> Self {
        Stop::by(machine())
    }
}

impl Stop {
    /// Creates one that uses this clock.
    pub fn by(clock: SharedClock) -> Self {
        Stop { over_at: Mutex::default(), changed: Condvar::new(), clock }
    }

    /// Asks all parts to stop within this time. Asking again can only shorten it.
    pub fn ask(&self, within: Duration) {
        let mut over_at = self.over_at.lock().unwrap_or_else(PoisonError::into_inner);
        let new = self.clock.now() + within;
        *over_at = Some(over_at.map_or(new, |old| old.min(new)));
        self.changed.notify_all();
    }

    /// Returns the deadline; `None` until a stop is asked for.
    pub fn over_at(&self) -> Option<Instant> {
        *self.over_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a stop was asked for.
    pub fn is_asked(&self) -> bool {
        self.over_at().is_some()
    }

    /// Returns whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.over_at().is_some_and(|over_at| over_at <= self.clock.now())
    }

    /// Waits for this long, or until the deadline; returns whether the deadline has passed.
    pub fn wait(&self, time: Duration) -> bool {
        let until = self.clock.now() + time;
        loop {
            let (over_at, now) = (self.over_at(), self.clock.now());
            if over_at.is_some_and(|over_at| over_at <= now) {
                return true;
            }
            if now >= until {
                return false;
            }
            let waits = over_at.map_or(until, |over_at| until.min(over_at)) - now;
            if self.clock.pass(waits) {
                continue;
            }
            let known = self.over_at.lock().unwrap_or_else(PoisonError::into_inner);
            // A request that came meanwhile woke nobody.
            if *known == over_at {
                drop(self.changed.wait_timeout(known, waits));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_the_time_is_over() {
        let stop = std::sync::Arc::new(Stop::default());
        assert!(!stop.wait(Duration::from_millis(1)) && !stop.is_asked());
        let waiting = std::sync::Arc::clone(&stop);
        let thread = std::thread::spawn(move || waiting.wait(Duration::from_secs(3600)));
        stop.ask(Duration::from_millis(10));
        assert!(thread.join().unwrap());
        assert!(stop.is_asked() && stop.is_over());
    }
}
