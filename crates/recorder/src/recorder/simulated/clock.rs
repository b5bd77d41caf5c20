//! Simulated time: it passes only when somebody waits, and at once. Main type: [`MadeClock`].

use std::collections::BTreeMap;
use std::fmt::{Debug, Formatter};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::recorder::clock::Clock;

/// An action that is due at a time.
type Act = Box<dyn FnOnce() + Send>;

/// A clock of the day and a steady one, with actions that run when they are due.
pub struct MadeClock {
    begun: Instant,
    state: Mutex<Times>,
}

struct Times {
    passed: Duration,
    day_ns: i64,
    /// The planned actions, by the time at which they are due and a number.
    due: BTreeMap<(Duration, u64), Act>,
    planned: u64,
}

impl Debug for MadeClock {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MadeClock").field("passed", &self.lock().passed).finish_non_exhaustive()
    }
}

impl MadeClock {
    /// Returns a clock that shows this time of day.
    pub fn new(day_ns: i64) -> Self {
        let state = Times { passed: Duration::ZERO, day_ns, due: BTreeMap::new(), planned: 0 };
        MadeClock { begun: Instant::now(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the clock of the day by this many nanoseconds.
    pub fn jump(&self, by_ns: i64) {
        let mut state = self.lock();
        state.day_ns = state.day_ns.saturating_add(by_ns).max(0);
    }

    /// Plans an action after a time.
    pub fn plan(&self, after: Duration, act: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.planned += 1;
        let at = (state.passed + after, state.planned);
        state.due.insert(at, Box::new(act));
    }

    /// Drops all planned actions.
    pub fn forget_plans(&self) {
        let due = std::mem::take(&mut self.lock().due);
        drop(due);
    }

    /// Advances to a time, or to the first action that is due before it, which is returned.
    fn go_on(&self, until: Duration) -> Option<Act> {
        let mut state = self.lock();
        let first = state.due.first_entry().filter(|first| first.key().0 <= until);
        let (to, act) = first.map_or((until, None), |first| (first.key().0, Some(first.remove())));
        let step = to.saturating_sub(state.passed);
        state.day_ns = state.day_ns.saturating_add(i64::try_from(step.as_nanos()).unwrap_or(i64::MAX));
        state.passed += step;
        act
    }
}

impl Clock for MadeClock {
    fn now(&self) -> Instant {
        self.begun + self.lock().passed
    }

    fn day_ns(&self) -> i64 {
        self.lock().day_ns
    }

    fn pass(&self, time: Duration) -> bool {
        let until = self.lock().passed + time;
        while let Some(act) = self.go_on(until) {
            act();
        }
        true
    }
}
