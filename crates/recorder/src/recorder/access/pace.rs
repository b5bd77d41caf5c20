//! The rate of a sender. Main type: [`Pace`].

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The burst that passes at once after a pause, in seconds at the rate.
const BURST_S: f64 = 1.0;

/// One rate. Times are in seconds on a clock that does not go back.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_s: f64,
    /// When all that was admitted will have passed at this rate, in seconds.
    passed_at_s: f64,
}

impl Rate {
    fn new(per_s: f64) -> Self {
        Rate { per_s, passed_at_s: 0.0 }
    }

    fn wait_s(&self, now_s: f64) -> f64 {
        (self.passed_at_s - now_s - BURST_S).max(0.0)
    }

    fn pass(&mut self, now_s: f64, amount: f64) {
        self.passed_at_s = self.passed_at_s.max(now_s) + amount / self.per_s;
    }

    fn give_back(&mut self, amount: f64) {
        self.passed_at_s -= amount / self.per_s;
    }
}

/// Bounds on rows and bytes per second. A request passes whole, however large it is, and the next one waits until it has passed at
/// the rate: over any time t no more than rate × (t + 1 s), and one request, passes.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    rates: Mutex<[Option<Rate>; 2]>,
}

impl Pace {
    pub(super) fn new(rows_per_s: Option<f64>, bytes_per_s: Option<f64>) -> Self {
        Pace { since: Instant::now(), rates: Mutex::new([rows_per_s.map(Rate::new), bytes_per_s.map(Rate::new)]) }
    }

    /// Returns how long nothing more is admitted.
    pub(super) fn wait(&self) -> Duration {
        let now_s = self.since.elapsed().as_secs_f64();
        wait(&self.rates.lock().unwrap_or_else(PoisonError::into_inner)[..], now_s)
    }

    /// Admits a request.
    ///
    /// # Errors
    /// The time that it has to wait; it is not counted then.
    pub(super) fn pass(&self, rows: u32, bytes: u64) -> Result<(), Duration> {
        self.pass_at(self.since.elapsed().as_secs_f64(), rows, bytes)
    }

    fn pass_at(&self, now_s: f64, rows: u32, bytes: u64) -> Result<(), Duration> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = wait(&rates[..], now_s);
        if !wait.is_zero() {
            return Err(wait);
        }
        for (rate, amount) in rates.iter_mut().zip([f64::from(rows), bytes as f64]) {
            if let Some(rate) = rate {
                rate.pass(now_s, amount);
            }
        }
        Ok(())
    }

    /// Takes back the count of an admitted request that was not stored for another reason.
    pub(super) fn give_back(&self, rows: u32, bytes: u64) {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        for (rate, amount) in rates.iter_mut().zip([f64::from(rows), bytes as f64]) {
            if let Some(rate) = rate {
                rate.give_back(amount);
            }
        }
    }
}

fn wait(rates: &[Option<Rate>], now_s: f64) -> Duration {
    let wait_s = rates.iter().flatten().map(|rate| rate.wait_s(now_s)).fold(0.0, f64::max);
    // A time shorter than a clock can measure is no wait.
    if wait_s < 1e-9 { Duration::ZERO } else { Duration::from_secs_f64(wait_s.min(1e9)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_passes_than_the_rate_permits_in_requests_of_any_size() {
        for rows in [1, 100, 7_000] {
            let pace = Pace::new(Some(1_000.0), Some(1e9));
            let (mut now_s, mut passed) = (0.0, 0);
            while now_s < 30.0 {
                match pace.pass_at(now_s, rows, 1) {
                    Ok(()) => passed += rows,
                    Err(wait) => now_s += wait.as_secs_f64() + 1e-6,
                }
                assert!(
                    f64::from(passed) <= 1_000.0 * (now_s + BURST_S) + f64::from(rows) + 1.0,
                    "{passed} at {now_s}"
                );
            }
            assert!(passed >= 30_000, "it is used up: {passed}");
        }
    }

    #[test]
    fn bytes_are_bounded_too_and_a_refusal_costs_nothing() {
        let pace = Pace::new(None, Some(100.0));
        assert_eq!(pace.pass_at(0.0, 1, 400), Ok(()));
        let wait = pace.pass_at(0.0, 1, 400).unwrap_err();
        assert_eq!(pace.pass_at(0.0, 1, 1), Err(wait), "a refusal is not counted");
        assert!((wait.as_secs_f64() - 3.0).abs() < 1e-6, "{wait:?}");
        pace.give_back(1, 400);
        assert_eq!(pace.pass_at(0.0, 1, 1), Ok(()));
        assert_eq!(Pace::new(None, None).pass_at(0.0, u32::MAX, u64::MAX), Ok(()));
    }
}
