//! Phases of a trial: warm-up (discarded), measured phase, drain; and the claims that end the measured phase.
//!
//! Invariant: an operation belongs to the measured phase if and only if its intended time does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::arrivals::Schedule;
use super::changing::Changing;
use crate::trial::Length;

/// The start and end times of a trial's phases; shared by all loops. Times are those of the engine's clock.
#[derive(Debug)]
pub struct Phases {
    /// Start of the measured phase.
    pub measure_ns: u64,
    /// Latest end of the measured phase; `u64::MAX` if only a count ends it. See [`Phases::ends_ns`].
    pub end_ns: u64,
    /// Time after the measured phase for which sources may still send, in nanoseconds; operations sent in it are not counted.
    pub tail_ns: u64,
    /// Longest wait in nanoseconds for running operations after the measured phase, and for any answer at all within it.
    pub drain_ns: u64,
    /// The arrivals of an open loop; `None` in a closed loop.
    pub schedule: Option<Schedule>,
    /// Number of operations of the measured phase that all clients together may still begin.
    remaining: Option<AtomicU64>,
    /// Number of operations of the measured phase that each client may begin.
    per_client: Option<u64>,
    /// Set to end the trial at once.
    stop: AtomicBool,
    /// The schema changes whose end ends the measured phase early, if it lasts as long as these.
    changing: Option<Arc<Changing>>,
}

/// The answer to a client that asks to begin another operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It may, and the operation is discarded.
    WarmUp,
    /// It may, and the operation counts.
    Measured,
    /// The measured phase is over for this client.
    Over,
}

impl Phases {
    /// Makes phases that begin at `start_ns` with the warm-up.
    pub fn new(start_ns: u64, warmup_s: f64, length: Length, drain_s: f64) -> Self {
        Self::bounded(start_ns, warmup_s, length, None, drain_s)
    }

    /// Does the same as [`Phases::new`], with a latest end in seconds for a measured phase that a count may end earlier.
    pub fn bounded(start_ns: u64, warmup_s: f64, length: Length, at_most_s: Option<f64>, drain_s: f64) -> Self {
        let to_ns = |seconds: f64| (seconds * 1e9) as u64;
        let measure_ns = start_ns + to_ns(warmup_s);
        let (end_ns, remaining, per_client) = match length {
            Length::Seconds(seconds) => (measure_ns + to_ns(seconds), None, None),
            Length::Operations(count) => (u64::MAX, Some(AtomicU64::new(count)), None),
            Length::OperationsPerClient(count) => (u64::MAX, None, Some(count)),
        };
        let end_ns = at_most_s.map_or(end_ns, |seconds| end_ns.min(measure_ns + to_ns(seconds)));
        let stop = AtomicBool::new(false);
        let (tail_ns, drain_ns, schedule, changing) = (0, to_ns(drain_s), None, None);
        Phases { measure_ns, end_ns, tail_ns, drain_ns, schedule, remaining, per_client, stop, changing }
    }

    /// Makes the phases those of an open loop with this schedule.
    pub fn with_schedule(self, schedule: Schedule) -> Self {
        Phases { schedule: Some(schedule), ..self }
    }

    /// Adds a tail for sources, which end one after another over this time, in seconds.
    pub fn with_tail(self, tail_s: f64) -> Self {
        Phases { tail_ns: (tail_s * 1e9) as u64, ..self }
    }

    /// Adds schema changes, which may end the measured phase before its latest end.
    pub fn beside(self, changing: Option<Arc<Changing>>) -> Self {
        Phases { changing, ..self }
    }

    /// Returns when the measured phase ends, as far as is known now: the end can still become earlier, but not earlier than now.
    #[inline]
    pub fn ends_ns(&self) -> u64 {
        self.changing.as_ref().map_or(self.end_ns, |changing| self.end_ns.min(changing.over_ns()))
    }

    /// Returns the time from which on no operation is begun any more.
    pub fn last_ns(&self) -> u64 {
        self.ends_ns().saturating_add(self.tail_ns)
    }

    /// Asks for one more operation with this intended time, for a client that has begun `begun` operations that count.
    #[inline]
    pub fn claim(&self, intended_ns: u64, begun: u64) -> Claim {
        if self.stop.load(Ordering::Relaxed) || intended_ns >= self.ends_ns() {
            return Claim::Over;
        }
        if intended_ns < self.measure_ns {
            return Claim::WarmUp;
        }
        if self.per_client.is_some_and(|most| begun >= most) {
            return Claim::Over;
        }
        match &self.remaining {
            None => Claim::Measured,
            Some(remaining) => {
                let claimed = remaining.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if claimed.is_ok() { Claim::Measured } else { Claim::Over }
            }
        }
    }

    /// Returns the length of the measured phase in seconds: the time set, or up to the last answer if a count ended it.
    pub fn measured_s(&self, last_done_ns: u64) -> f64 {
        let is_counted = self.remaining.is_some() || self.per_client.is_some();
        let end_ns = match self.ends_ns() {
            _ if self.is_stopped() => last_done_ns,
            // The last operation of a count may be answered after the end: it still belongs to the phase.
            end_ns if is_counted => end_ns.min(last_done_ns),
            end_ns => end_ns,
        };
        end_ns.saturating_sub(self.measure_ns) as f64 / 1e9
    }

    /// Ends the trial at once; operations still running are abandoned.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns whether the trial was ended early.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_before_the_measured_phase_are_warm_up_and_those_after_it_are_refused() {
        let phases = Phases::new(0, 1.0, Length::Seconds(2.0), 1.0);
        assert_eq!(phases.claim(999_999_999, 0), Claim::WarmUp);
        assert_eq!(phases.claim(1_000_000_000, 0), Claim::Measured);
        assert_eq!(phases.claim(2_999_999_999, 0), Claim::Measured);
        assert_eq!(phases.claim(3_000_000_000, 0), Claim::Over);
        assert_eq!(phases.measured_s(5_000_000_000), 2.0);
    }

    #[test]
    fn exactly_the_counted_number_of_operations_is_claimed_by_many_threads() {
        let phases = Phases::new(0, 0.0, Length::Operations(10_000), 1.0);
        let claimed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..5_000).filter(|_| phases.claim(0, 0) == Claim::Measured).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(claimed, 10_000);
    }

    #[test]
    fn a_count_ends_at_the_latest_when_its_time_is_over() {
        let phases = Phases::bounded(0, 0.0, Length::Operations(2), Some(3.0), 1.0);
        assert_eq!([0, 2_999_999_999].map(|at| phases.claim(at, 0)), [Claim::Measured; 2]);
        assert_eq!(phases.claim(1, 0), Claim::Over);
        assert_eq!(phases.measured_s(2_000_000_000), 2.0);
        let late = Phases::bounded(0, 0.0, Length::OperationsPerClient(9), Some(3.0), 1.0);
        assert_eq!(late.claim(3_000_000_000, 1), Claim::Over);
        assert_eq!(late.measured_s(3_100_000_000), 3.0);
    }

    #[test]
    fn a_phase_that_lasts_as_long_as_changes_ends_when_they_have() {
        let changing = Arc::new(Changing::new(super::super::Clock::start()));
        let phases = Phases::new(0, 0.0, Length::Seconds(3600.0), 1.0).beside(Some(Arc::clone(&changing)));
        assert_eq!(phases.claim(changing.now_ns(), 0), Claim::Measured);
        changing.end_load();
        let over_ns = changing.over_ns();
        assert_eq!([over_ns - 1, over_ns].map(|at_ns| phases.claim(at_ns, 0)), [Claim::Measured, Claim::Over]);
        assert_eq!((phases.ends_ns(), phases.last_ns()), (over_ns, over_ns));
        assert!((phases.measured_s(u64::MAX) - over_ns as f64 / 1e9).abs() < 1e-9);
    }

    #[test]
    fn each_client_gets_its_own_count() {
        let phases = Phases::new(0, 0.0, Length::OperationsPerClient(2), 1.0);
        assert_eq!([0, 1, 2].map(|begun| phases.claim(5, begun)), [Claim::Measured, Claim::Measured, Claim::Over]);
    }

    #[test]
    fn a_stopped_trial_ends_with_its_last_answer() {
        let phases = Phases::new(0, 0.0, Length::Seconds(9.0), 1.0);
        phases.stop();
        assert_eq!(phases.claim(0, 0), Claim::Over);
        assert_eq!(phases.measured_s(4_000_000_000), 4.0);
    }
}
