//! Waiting times between tries. Main type: [`Backoff`].

use std::time::Duration;

/// Waiting times that double, up to a bound, each drawn from its upper half so that many recorders do not try together.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    first: Duration,
    most: Duration,
    state: u64,
}

impl Backoff {
    /// Returns waiting times from `first` up to `most`.
    pub fn new(first: Duration, most: Duration, seed: u64) -> Self {
        Backoff { next: first, first, most, state: seed | 1 }
    }

    /// Returns the next waiting time.
    pub fn wait(&mut self) -> Duration {
        // Xorshift: any spread will do.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let share = 0.5 + 0.5 * (self.state >> 11) as f64 / (1_u64 << 53) as f64;
        let wait = self.next.mul_f64(share);
        self.next = (self.next * 2).min(self.most);
        wait
    }

    /// Begins with short times again, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_grow_to_their_bound_and_begin_again() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(100), 7);
        let waits: Vec<_> = (0..8).map(|_| backoff.wait()).collect();
        assert!(waits[0] >= Duration::from_millis(5) && waits[0] <= Duration::from_millis(10));
        assert!(waits[7] >= Duration::from_millis(50) && waits[7] <= Duration::from_millis(100));
        backoff.reset();
        assert!(backoff.wait() <= Duration::from_millis(10));
    }
}
