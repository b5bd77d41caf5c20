//! Whether the schema is being changed while a load runs. Main type: [`Changing`], shared by all loops and by who changes it.
//!
//! Invariant: an operation counts as one during a change if its time, from the intended one to its end, meets that of a change.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::clock::Clock;

/// The changes of the schema, by the engine's clock. One change runs at a time.
#[derive(Debug)]
pub struct Changing {
    clock: Clock,
    is_running: AtomicBool,
    last_end_ns: AtomicU64,
}

impl Changing {
    /// No change has been begun.
    pub fn new(clock: Clock) -> Self {
        Changing { clock, is_running: AtomicBool::new(false), last_end_ns: AtomicU64::new(0) }
    }

    /// Now, in nanoseconds of the engine's clock.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// A change begins now; when, in nanoseconds of the engine's clock.
    pub fn begin(&self) -> u64 {
        self.is_running.store(true, Ordering::SeqCst);
        self.clock.now_ns()
    }

    /// The change that was begun has ended; when.
    pub fn end(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        self.last_end_ns.store(now_ns, Ordering::SeqCst);
        self.is_running.store(false, Ordering::SeqCst);
        now_ns
    }

    /// Whether an operation that ends now met a change since its intended time.
    #[inline]
    pub fn was_met_since(&self, intended_ns: u64) -> bool {
        self.is_running.load(Ordering::Relaxed) || self.last_end_ns.load(Ordering::Relaxed) > intended_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_that_end_within_a_change_or_began_before_its_end_have_met_it() {
        let changing = Changing::new(Clock::start());
        assert!(!changing.was_met_since(0), "there was no change");
        let begun_ns = changing.begin();
        assert!(changing.was_met_since(u64::MAX), "one is running");
        let ended_ns = changing.end();
        assert!(changing.was_met_since(begun_ns.saturating_sub(1)));
        assert!(!changing.was_met_since(ended_ns), "it was over when the operation was due");
    }
}
