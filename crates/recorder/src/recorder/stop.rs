//! Stopping in order: first everybody is asked, and later the time is over. Main type: [`Stop`].

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether and until when things go on.
#[derive(Debug, Default)]
pub struct Stop {
    /// When the time is over, once somebody asked.
    over_at: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Stop {
    /// Asks everybody to come to an end within this time. Asking again may only shorten it.
    pub fn ask(&self, within: Duration) {
        let mut over_at = self.over_at.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Instant::now() + within;
        *over_at = Some(over_at.map_or(new, |old| old.min(new)));
        self.changed.notify_all();
    }

    /// When the time is over, once somebody asked.
    pub fn over_at(&self) -> Option<Instant> {
        *self.over_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.over_at().is_some()
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.over_at().is_some_and(|over_at| over_at <= Instant::now())
    }

    /// Waits for this long, or until the time is over; whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut over_at = self.over_at.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            if over_at.is_some_and(|over_at| over_at <= now) {
                return true;
            }
            if now >= until {
                return false;
            }
            let end = over_at.map_or(until, |over_at| until.min(over_at));
            over_at = match self.changed.wait_timeout(over_at, end - now) {
                Ok((over_at, _)) => over_at,
                Err(poisoned) => poisoned.into_inner().0,
            };
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
