//! The clocks of agents on other machines: by how much they are ahead of this machine's, and whether they go as fast.
//!
//! Main type: [`ClockReading`]. Both clocks are monotonic ones. Invariant: a reading is wrong by at most half of the round trip in which it was made.

use std::time::Instant;

use crate::load::monotonic;

/// Share of a time by which two clocks may go apart in it. Quartz clocks differ by less than 100 millionths, and time synchronisation adds up to 500.
const APART_SHARE_MOST: f64 = 1e-3;

/// A reading of an agent's clock.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    /// Time by which the clock is ahead of this machine's, in nanoseconds.
    pub ahead_ns: i64,
    /// Largest error of that, in nanoseconds.
    pub error_ns: u64,
    at: Instant,
}

impl ClockReading {
    /// Returns the reading of this machine's own clock.
    pub fn own() -> Self {
        ClockReading { ahead_ns: 0, error_ns: 0, at: Instant::now() }
    }

    /// Makes a reading from what an agent's clock read in a round trip that began at a time and ends now.
    pub fn within(sent_ns: u64, there_ns: u64) -> Self {
        let round_ns = monotonic::now_ns().saturating_sub(sent_ns);
        let middle_ns = sent_ns.saturating_add(round_ns / 2);
        let ahead_ns = there_ns.cast_signed().wrapping_sub(middle_ns.cast_signed());
        ClockReading { ahead_ns, error_ns: round_ns.div_ceil(2), at: Instant::now() }
    }

    /// Returns the better one of two readings: the one made in the shorter round trip, in which less can have happened to the messages.
    pub fn better(self, other: Self) -> Self {
        if other.error_ns < self.error_ns { other } else { self }
    }

    /// Returns by how many seconds the clock has gone ahead since an earlier reading.
    pub fn drift_s(self, earlier: Self) -> f64 {
        self.ahead_ns.saturating_sub(earlier.ahead_ns) as f64 / 1e9
    }

    /// Returns the time since an earlier reading, if the clock has gone ahead or stayed behind in it by more than a clock does.
    pub fn stepped(self, earlier: Self) -> Option<f64> {
        let elapsed_s = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        let most_s = (self.error_ns as f64 + earlier.error_ns as f64) / 1e9 + APART_SHARE_MOST * elapsed_s;
        (self.drift_s(earlier).abs() > most_s).then_some(elapsed_s)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_that_steps_is_told_from_one_that_drifts() {
        let at = Instant::now();
        let reading = |after_s: u64, ahead_ns, error_ns| ClockReading {
            ahead_ns,
            error_ns,
            at: at + Duration::from_secs(after_s),
        };
        let first = reading(0, -7_000_000_000, 50_000);
        assert_eq!(reading(10, -7_000_000_000 + 4_000_000, 50_000).stepped(first), None, "400 millionths");
        assert_eq!(reading(10, -7_000_000_000 + 12_000_000, 50_000).stepped(first), Some(10.0));
        assert_eq!(reading(10, -7_000_000_000 - 12_000_000, 50_000).stepped(first), Some(10.0));
        assert_eq!(reading(10, -7_000_000_000 + 12_000_000, 3_000_000).stepped(first), None, "it may be the way");
        assert!((reading(10, -6_000_000_000, 1).drift_s(first) - 1.0).abs() < 1e-12);
        // Any number may come from an agent.
        assert!(reading(1, i64::MAX, 0).stepped(reading(0, i64::MIN, 0)).is_some());
    }

    #[test]
    fn the_shorter_round_trip_counts() {
        let sent_ns = monotonic::now_ns();
        let reading = ClockReading::within(sent_ns - 2_000_000, sent_ns + 1_000_000_000);
        assert!(reading.error_ns >= 1_000_000 && reading.ahead_ns > 990_000_000, "{reading:?}");
        let better = ClockReading::within(sent_ns.saturating_sub(500), sent_ns);
        assert_eq!(reading.better(better).error_ns, better.error_ns.min(reading.error_ns));
        assert_eq!(ClockReading::within(u64::MAX, u64::MAX).error_ns, 0, "a time that has not come yet");
    }
}
