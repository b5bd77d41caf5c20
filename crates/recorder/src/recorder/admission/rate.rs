//! The rate that a model permits, and a check whether the model still holds. Main types: [`Bucket`] and [`Residuals`], both pure.

/// Tokens that fill at a rate; each row takes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    rate_per_s: f64,
    most: f64,
    tokens: f64,
    at_s: f64,
}

impl Bucket {
    /// Returns a full bucket for this many rows a second. It holds what comes in a tenth of a second, but at least `batch` rows.
    pub fn new(rate_per_s: f64, batch: u32) -> Self {
        let most = (rate_per_s / 10.0).max(f64::from(batch)).max(1.0);
        Bucket { rate_per_s, most, tokens: most, at_s: 0.0 }
    }

    /// Takes tokens for these rows; returns how long to wait before they may be written, in seconds. More rows than the bucket holds
    /// wait for the missing tokens.
    pub fn take(&mut self, rows: u64, now_s: f64) -> f64 {
        self.tokens = (self.tokens + (now_s - self.at_s).max(0.0) * self.rate_per_s).min(self.most);
        self.at_s = self.at_s.max(now_s);
        self.tokens -= rows as f64;
        (-self.tokens / self.rate_per_s).max(0.0)
    }
}

/// The model is stale when observed and expected times differ by more than this factor,
const FACTOR: f64 = 2.0;
/// in so many of the last seconds;
const STALE_AT: u32 = 8;
/// and trusted again when it holds in all of the last so many.
const TRUSTED_AT: u32 = 30;

/// Compares what a model expects with what is observed, second by second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Residuals {
    wrong: u32,
    right: u32,
    is_stale: bool,
}

impl Residuals {
    /// Returns whether the model is not to be relied on.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Notes a second's mean commit time and the time that the model expects, both in seconds. Faster than expected counts as wrong only if the
    /// model is no longer trusted: a quicker database harms nobody.
    pub fn observe(&mut self, observed_s: f64, expected_s: f64) {
        let ratio = observed_s / expected_s;
        let is_wrong = !ratio.is_finite() || ratio > FACTOR;
        if is_wrong {
            self.wrong += 1;
            self.right = 0;
        } else {
            self.right += 1;
            self.wrong = self.wrong.saturating_sub(1);
        }
        if self.wrong >= STALE_AT {
            (self.is_stale, self.wrong) = (true, 0);
        } else if self.right >= TRUSTED_AT {
            self.is_stale = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_pass_at_the_rate() {
        let mut bucket = Bucket::new(1_000.0, 100);
        let mut now_s = 0.0;
        for _ in 0..1_000 {
            now_s += bucket.take(50, now_s);
        }
        assert!((49.0..50.5).contains(&now_s), "{now_s}");
        assert_eq!(bucket.take(100, now_s + 10.0), 0.0, "a pause gives a burst of one batch");
        assert!(bucket.take(100, now_s + 10.0) > 0.09);
    }

    #[test]
    fn one_bad_second_is_no_reason_and_several_are() {
        let mut residuals = Residuals::default();
        (0..100).for_each(|second| residuals.observe(if second % 10 == 0 { 1.0 } else { 0.01 }, 0.01));
        assert!(!residuals.is_stale());
        (0..8).for_each(|_| residuals.observe(0.05, 0.01));
        assert!(residuals.is_stale());
        (0..29).for_each(|_| residuals.observe(0.01, 0.01));
        assert!(residuals.is_stale());
        residuals.observe(0.001, 0.01);
        assert!(!residuals.is_stale());
    }
}
