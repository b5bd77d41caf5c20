//! The rate that a model permits, and a check whether the model still holds. Main types: [`Bucket`] and [`Residuals`], both pure.

/// Tokens that fill at a rate; each row takes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    /// The whole rate and the most tokens at it, of which the bucket has a share.
    rate_per_s: f64,
    most: f64,
    share: f64,
    tokens: f64,
    at_s: f64,
    /// All tokens that have ever come in.
    filled: f64,
}

/// The rows that have taken their tokens: they may be written once so many tokens have come in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ticket(f64);

impl Bucket {
    /// Returns a full bucket for this many rows a second. It holds what comes in a tenth of a second, but at least `batch` rows.
    pub fn new(rate_per_s: f64, batch: u32) -> Self {
        let most = (rate_per_s / 10.0).max(f64::from(batch)).max(1.0);
        Bucket { rate_per_s, most, share: 1.0, tokens: most, at_s: 0.0, filled: 0.0 }
    }

    /// Returns the bucket in the place of another one, whose tickets remain good.
    #[must_use]
    pub fn after(self, before: &Bucket) -> Self {
        let Bucket { share, at_s, filled, .. } = *before;
        Bucket { share, at_s, filled, tokens: before.tokens.min(self.most * share), ..self }
    }

    /// Sets the share of the rate that the bucket has from now on, within 0 and 1. Of a bucket that several share, each begins with an empty part.
    pub fn set_share(&mut self, share: f64, now_s: f64) {
        self.fill(now_s);
        self.share = share;
        self.tokens = self.tokens.min(self.most * share);
    }

    fn fill(&mut self, now_s: f64) {
        let more = (now_s - self.at_s).max(0.0) * self.rate_per_s * self.share;
        self.at_s = self.at_s.max(now_s);
        self.filled += more;
        self.tokens = (self.tokens + more).min(self.most * self.share);
    }

    /// Takes tokens for these rows. More rows than the bucket holds wait for the missing tokens.
    pub fn take(&mut self, rows: u64, now_s: f64) -> Ticket {
        self.fill(now_s);
        self.tokens -= rows as f64;
        Ticket(self.filled - self.tokens.min(0.0))
    }

    /// Returns how long the rows of a ticket must still wait at the present share, in seconds; infinite for a share of 0.
    pub fn wait_s(&mut self, ticket: Ticket, now_s: f64) -> f64 {
        self.fill(now_s);
        let missing = ticket.0 - self.filled;
        // Sums of fractions differ from the whole by less than a row's millionth.
        if missing <= 1e-6 { 0.0 } else { missing / (self.rate_per_s * self.share) }
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

    fn wait_s(bucket: &mut Bucket, rows: u64, now_s: f64) -> f64 {
        let ticket = bucket.take(rows, now_s);
        bucket.wait_s(ticket, now_s)
    }

    #[test]
    fn rows_pass_at_the_rate() {
        let mut bucket = Bucket::new(1_000.0, 100);
        let mut now_s = 0.0;
        for _ in 0..1_000 {
            now_s += wait_s(&mut bucket, 50, now_s);
        }
        assert!((49.0..50.5).contains(&now_s), "{now_s}");
        assert_eq!(wait_s(&mut bucket, 100, now_s + 10.0), 0.0, "a pause gives a burst of one batch");
        assert!(wait_s(&mut bucket, 100, now_s + 10.0) > 0.09);
    }

    /// Several recorders, of which one loses its share to another and gets it back, each write as fast as they may.
    #[test]
    fn however_a_rate_is_shared_the_sum_of_all_stays_below_it() {
        const RATE: f64 = 1_000.0;
        let mut buckets = [0; 3].map(|_| Bucket::new(RATE, 50));
        let mut waits: [Option<Ticket>; 3] = [None; 3];
        let mut written = 0;
        buckets.iter_mut().for_each(|bucket| bucket.set_share(0.0, 0.0));
        let steps = 20_000;
        for step in 0..steps {
            let now_s = f64::from(step) / 1_000.0;
            let shares = [[0.5, 0.25, 0.25], [0.75, 0.0, 0.25], [0.0, 0.0, 0.0], [0.125, 0.375, 0.5]];
            for (place, bucket) in buckets.iter_mut().enumerate() {
                bucket.set_share(shares[step as usize / 700 % 4][place], now_s);
                let ticket = *waits[place].get_or_insert_with(|| bucket.take(20, now_s));
                if bucket.wait_s(ticket, now_s) == 0.0 {
                    (waits[place], written) = (None, written + 20);
                }
            }
            let most = RATE * now_s + 100.0;
            assert!(f64::from(written) <= most, "{written} rows after {now_s} s, which may have {most}");
        }
        // In a quarter of the time nobody has a share.
        let least = 0.7 * RATE * f64::from(steps) / 1_000.0;
        assert!(f64::from(written) > least, "{written} rows, and {least} are possible");
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
