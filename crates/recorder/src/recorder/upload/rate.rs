//! Rates that bound the intake: bytes and blocks per second, for each camera and for all. Main types: [`Rate`], a pure state machine,
//! and [`Rates`], which keeps one for each camera.
//!
//! Invariant: over any time t no more than rate × (t + burst) passes, and waiting requests pass in the order in which they asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::recorder::config::RateLimits;

/// Cameras whose rates are kept; beyond this number the ones that have been idle longest are forgotten, which costs them nothing.
const CAMERAS_MAX: usize = 10_000;

/// One rate. Times are in seconds on any clock that does not go back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    per_s: f64,
    burst_s: f64,
    /// When all that was admitted will have passed at this rate, in seconds.
    passed_at_s: f64,
}

impl Rate {
    /// Creates a rate that has been unused for long. What comes within `burst_s` at that rate passes at once.
    pub fn new(per_s: f64, burst_s: f64) -> Self {
        Rate { per_s, burst_s, passed_at_s: f64::NEG_INFINITY }
    }

    /// Admits an amount, and returns how long it has to wait, in seconds. Earlier requests go first.
    pub fn take(&mut self, now_s: f64, amount: f64) -> f64 {
        self.passed_at_s = self.passed_at_s.max(now_s) + amount / self.per_s;
        (self.passed_at_s - now_s - self.burst_s).max(0.0)
    }

    /// Returns how long an amount would have to wait, in seconds, without admitting it.
    pub fn wait_s(&self, now_s: f64, amount: f64) -> f64 {
        (self.passed_at_s.max(now_s) + amount / self.per_s - now_s - self.burst_s).max(0.0)
    }

    fn is_idle(&self, now_s: f64) -> bool {
        self.passed_at_s <= now_s
    }
}

/// Bytes that pass at once after a pause, as seconds at the rate: a tenth of a second.
const BYTES_BURST_S: f64 = 0.1;
/// Blocks that pass at once after a pause: two, as a camera takes two pictures at a time, or those of one second.
const BLOCKS_BURST: f64 = 2.0;

#[derive(Debug)]
struct State {
    bytes: Option<Rate>,
    blocks: Option<Rate>,
    cameras: HashMap<String, (Option<Rate>, Option<Rate>)>,
}

/// The rates of all cameras.
#[derive(Debug)]
pub struct Rates {
    limits: RateLimits,
    since: Instant,
    state: Mutex<State>,
}

impl Rates {
    /// Creates rates that have not been used yet.
    pub fn new(limits: RateLimits) -> Self {
        let state = State {
            bytes: limits.bytes_per_s.map(of_bytes),
            blocks: limits.blocks_per_s.map(of_blocks),
            cameras: HashMap::new(),
        };
        Rates { limits, since: Instant::now(), state: Mutex::new(state) }
    }

    /// Counts bytes that a camera has sent; returns how long to wait before reading more from it.
    pub fn take_bytes(&self, camera: &str, bytes: usize) -> Duration {
        if self.limits.bytes_per_s.is_none() && self.limits.camera_bytes_per_s.is_none() {
            return Duration::ZERO;
        }
        let (now_s, mut state) = (self.now_s(), self.lock());
        let amount = bytes as f64;
        let of_all = state.bytes.as_mut().map_or(0.0, |rate| rate.take(now_s, amount));
        let own = self.camera(&mut state, camera, now_s).0.as_mut().map_or(0.0, |rate| rate.take(now_s, amount));
        Duration::from_secs_f64(of_all.max(own))
    }

    /// Admits a block of a camera if its turn comes within `patience`; returns the time until its turn.
    ///
    /// # Errors
    /// The time after which the camera may try again; the block is not counted then.
    pub fn take_block(&self, camera: &str, patience: Duration) -> Result<Duration, Duration> {
        let (now_s, mut state) = (self.now_s(), self.lock());
        let of_all = state.blocks.map_or(0.0, |rate| rate.wait_s(now_s, 1.0));
        let own = self.camera(&mut state, camera, now_s).1.map_or(0.0, |rate| rate.wait_s(now_s, 1.0));
        let wait = Duration::from_secs_f64(of_all.max(own));
        if wait > patience {
            return Err(wait);
        }
        if let Some(rate) = &mut state.blocks {
            rate.take(now_s, 1.0);
        }
        if let Some(rate) = &mut self.camera(&mut state, camera, now_s).1 {
            rate.take(now_s, 1.0);
        }
        Ok(wait)
    }

    fn camera<'a>(&self, state: &'a mut State, camera: &str, now_s: f64) -> &'a mut (Option<Rate>, Option<Rate>) {
        if state.cameras.len() >= CAMERAS_MAX && !state.cameras.contains_key(camera) {
            let is_idle = |rate: &Option<Rate>| rate.is_none_or(|rate| rate.is_idle(now_s));
            state.cameras.retain(|_, (bytes, blocks)| !is_idle(bytes) || !is_idle(blocks));
        }
        let limits = self.limits;
        state
            .cameras
            .entry(camera.to_owned())
            .or_insert_with(|| (limits.camera_bytes_per_s.map(of_bytes), limits.camera_blocks_per_s.map(of_blocks)))
    }

    fn now_s(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_bytes(per_s: f64) -> Rate {
    Rate::new(per_s, BYTES_BURST_S)
}

fn of_blocks(per_s: f64) -> Rate {
    Rate::new(per_s, (BLOCKS_BURST / per_s).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_passes_than_the_rate_permits_however_it_is_asked_for() {
        for pieces in [1.0, 7.0, 900.0] {
            let mut rate = Rate::new(1_000.0, 0.1);
            let (mut now_s, mut passed) = (0.0, 0.0);
            while now_s < 10.0 {
                let wait = rate.take(now_s, pieces);
                passed += pieces;
                now_s += wait;
                assert!(passed <= 1_000.0 * (now_s + 0.1) + pieces, "{passed} at {now_s}");
            }
            assert!(passed >= 1_000.0 * 10.0, "it is used up: {passed}");
        }
    }

    #[test]
    fn a_pause_saves_up_a_burst_and_no_more() {
        let mut rate = Rate::new(100.0, 0.1);
        assert_eq!(rate.take(0.0, 10.0), 0.0);
        assert!(rate.take(0.0, 10.0) > 0.09);
        assert!(rate.take(1_000.0, 10.0) < 1e-9);
        assert!(rate.take(1_000.0, 10.0) > 0.09, "a long silence is not saved up");
    }

    #[test]
    fn one_camera_waits_for_itself_and_all_wait_for_all() {
        let limits = RateLimits { camera_bytes_per_s: Some(1_000.0), bytes_per_s: Some(1e6), ..RateLimits::default() };
        let rates = Rates::new(limits);
        assert!(rates.take_bytes("a", 2_000) > Duration::from_secs(1));
        assert_eq!(rates.take_bytes("b", 50), Duration::ZERO);
        assert!(rates.take_bytes("c", 2_000_000) > Duration::from_secs(1));
        assert!(rates.take_bytes("b", 50) > Duration::from_secs(1));
        assert_eq!(Rates::new(RateLimits::default()).take_bytes("a", usize::MAX), Duration::ZERO);
    }

    #[test]
    fn a_block_that_would_wait_too_long_is_not_counted() {
        let limits = RateLimits { camera_blocks_per_s: Some(0.4), ..RateLimits::default() };
        let rates = Rates::new(limits);
        let patience = Duration::from_millis(10);
        assert_eq!(rates.take_block("a", patience), Ok(Duration::ZERO));
        assert_eq!(rates.take_block("a", patience), Ok(Duration::ZERO));
        let again = rates.take_block("a", patience).unwrap_err();
        assert!(again > Duration::from_secs(2) && again <= Duration::from_secs_f64(2.5), "{again:?}");
        let later = rates.take_block("a", patience).unwrap_err();
        assert!(later <= again, "a refusal does not push the next one back: {later:?}");
        assert_eq!(rates.take_block("b", patience), Ok(Duration::ZERO));
    }
}
