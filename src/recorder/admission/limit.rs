//! The window: how many rows a transaction may have so that a quantile of commit times stays below a bound. Main type: [`Limit`], pure.
//!
//! Each commit above the bound shrinks the window by a factor β, each one below lets it grow by the factor 1 + (1 - q)(1 - β) / β', chosen so
//! that the two balance when exactly the share 1 - q of the commits is above the bound: ln of both, weighted with q and 1 - q, sum to 0.
//! Until the first commit above the bound the window doubles. It never shrinks below [`LEAST_ROWS`]: where even that takes too long it is
//! not the rows that take the time, and fewer of them would only fill the spool.

/// What the window is multiplied with when a commit takes too long.
const SHRINK: f64 = 0.7;
/// The smallest window, where transactions may be that large.
pub const LEAST_ROWS: u32 = 200;
/// A commit of fewer rows than this share of the window says nothing about a larger one.
const USED_SHARE: f64 = 0.75;

/// A window that follows a quantile.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    rows: f64,
    most: f64,
    bound_s: f64,
    growth: f64,
    has_shrunk: bool,
}

impl Limit {
    /// A window of at most `most` rows, that keeps the `quantile` (within 0 and 1) of commit times below `bound_s` seconds.
    pub fn new(most: u32, quantile: f64, bound_s: f64) -> Self {
        let growth = (-SHRINK.ln() * (1.0 - quantile) / quantile).exp();
        let most = f64::from(most.max(1));
        Limit { rows: most.min(f64::from(LEAST_ROWS)), most, bound_s, growth, has_shrunk: false }
    }

    /// The window, in rows; at least [`LEAST_ROWS`], or as many as there may be.
    pub fn rows(&self) -> u32 {
        self.rows as u32
    }

    /// Another upper end.
    pub fn set_most(&mut self, most: u32) {
        self.most = f64::from(most.max(1));
        self.rows = self.rows.min(self.most);
    }

    /// A transaction of these rows took this long, in seconds.
    pub fn observe(&mut self, rows: u64, took_s: f64) {
        let is_used = rows as f64 >= USED_SHARE * self.rows.floor();
        if took_s > self.bound_s {
            self.has_shrunk = true;
            // A small transaction that took too long was slowed down by something else; a smaller window helps a little at most.
            let from = if is_used { self.rows } else { self.rows.max(rows as f64) };
            self.rows = (from * SHRINK).max(f64::from(LEAST_ROWS)).min(self.most);
        } else if is_used {
            self.rows = (self.rows * if self.has_shrunk { self.growth } else { 2.0 }).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_commits_above_the_bound_settles_at_the_quantile() {
        for quantile in [0.9, 0.99] {
            let mut limit = Limit::new(100_000, quantile, 0.1);
            let mut above = 0;
            let commits = 20_000;
            for number in 0..commits {
                // 50,000 rows a second, with a spread of ± 30 %.
                let spread = 0.7 + 0.6 * f64::from((number * 7_919_u32) % 1_000) / 1_000.0;
                let took_s = f64::from(limit.rows()) / 50_000.0 * spread;
                above += u32::from(took_s > 0.1);
                limit.observe(u64::from(limit.rows()), took_s);
            }
            let share = f64::from(above) / f64::from(commits);
            assert!((share - (1.0 - quantile)).abs() < 0.25 * (1.0 - quantile) + 0.002, "{quantile}: {share}");
        }
    }

    #[test]
    fn it_grows_quickly_at_first_and_shrinks_quickly_when_the_database_slows_down() {
        let mut limit = Limit::new(10_000, 0.99, 0.1);
        (0..8).for_each(|_| limit.observe(u64::from(limit.rows()), 0.001));
        assert_eq!(limit.rows(), 10_000);
        (0..10).for_each(|_| limit.observe(u64::from(limit.rows()), 5.0));
        assert!(limit.rows() < 300);
        (0..100).for_each(|_| limit.observe(1, 5.0));
        assert_eq!(limit.rows(), LEAST_ROWS);
        (0..5).for_each(|_| limit.observe(0, 0.001));
        assert_eq!(limit.rows(), LEAST_ROWS, "commits of nothing say nothing");
        assert_eq!(Limit::new(10, 0.99, 0.1).rows(), 10);
    }
}
