//! Signs of life of the parts of a recorder. Main types: [`Pulse`], that of a thread, and [`Heartbeat`], that of a runtime.
//!
//! A thread gives a sign at each turn, and before it waits for another part it declares how long that may take. A thread that is silent for longer than
//! that is stuck. So waiting for a database that is down does not count as stuck.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a runtime gives a sign.
const BEAT_EVERY: Duration = Duration::from_millis(250);

/// The sign of life of a thread.
#[derive(Debug, Default)]
pub struct Pulse {
    /// The time until which no sign is expected, in milliseconds by [`now_ms`].
    silent_until_ms: AtomicU64,
}

/// Returns milliseconds since the first call, by a clock that neither jumps nor runs while the machine sleeps.
fn now_ms() -> u64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    millis(BEGUN.get_or_init(Instant::now).elapsed())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Pulse {
    /// Creates a pulse that gives its first sign now.
    pub fn new() -> Self {
        let pulse = Pulse::default();
        pulse.beat();
        pulse
    }

    /// Gives a sign of life.
    pub fn beat(&self) {
        self.wait_for(Duration::ZERO);
    }

    /// Gives a sign of life, and declares a wait of up to `time`.
    pub fn wait_for(&self, time: Duration) {
        self.silent_until_ms.store(now_ms().saturating_add(millis(time)), Ordering::Relaxed);
    }

    /// Returns whether it was silent for this long, beyond the declared wait.
    pub fn is_stuck(&self, within: Duration) -> bool {
        now_ms().saturating_sub(self.silent_until_ms.load(Ordering::Relaxed)) > millis(within)
    }
}

/// A task that gives signs of life for the threads of a runtime and their timers.
#[derive(Debug)]
pub struct Heartbeat(Arc<Pulse>);

impl Heartbeat {
    /// Starts the task; it ends with the runtime.
    pub fn start(runtime: &tokio::runtime::Handle) -> Self {
        let pulse = Arc::new(Pulse::new());
        let of_task = Arc::clone(&pulse);
        runtime.spawn(async move {
            loop {
                of_task.beat();
                tokio::time::sleep(BEAT_EVERY).await;
            }
        });
        Heartbeat(pulse)
    }

    /// Returns whether the runtime did nothing for this long.
    pub fn is_stuck(&self, within: Duration) -> bool {
        self.0.is_stuck(within.max(2 * BEAT_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_for_longer_than_he_said_is_stuck() {
        let pulse = Pulse::new();
        assert!(!pulse.is_stuck(Duration::from_secs(3600)));
        std::thread::sleep(Duration::from_millis(5));
        assert!(pulse.is_stuck(Duration::from_millis(1)));
        pulse.wait_for(Duration::from_secs(3600));
        assert!(!pulse.is_stuck(Duration::ZERO), "it waits for somebody else");
        pulse.beat();
        std::thread::sleep(Duration::from_millis(5));
        assert!(pulse.is_stuck(Duration::from_millis(1)));
    }

    #[test]
    fn a_runtime_whose_threads_are_all_held_is_stuck() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let heartbeat = Heartbeat::start(runtime.handle());
        let (release, held) = std::sync::mpsc::channel::<()>();
        runtime.spawn(async move { held.recv() });
        while !heartbeat.is_stuck(Duration::ZERO) {
            std::thread::sleep(Duration::from_millis(5));
        }
        release.send(()).unwrap();
        while heartbeat.is_stuck(Duration::ZERO) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
