//! The window: how many rows a transaction may have so that a quantile of commit times stays below a bound. Main type: [`Limit`], pure.
//!
//! Each commit above the bound shrinks the window by a factor β, each one below lets it grow by the factor 1 + (1 - q)(1 - β) / β', chosen so
//! that the two balance when exactly the share 1 - q of the commits is above the bound: ln of both, weighted with q and 1 - q, sum to 0.
//! Until the first commit above the bound the window doubles. It never shrinks below [`LEAST_ROWS`]: if even that takes too long, it is
//! not the rows that take the time, and fewer of them would only fill the spool. Then no window keeps the bound, and another bound takes its
//! place: [`TIMES_LEAST`] times what a transaction of the smallest window takes. The window grows as far as rows cost little beside what
//! each transaction costs; from time to time the bound itself is tried again.

/// The factor by which the window shrinks when a commit takes too long.
const SHRINK: f64 = 0.7;
/// The smallest window in rows, if transactions may be that large.
pub const LEAST_ROWS: u32 = 200;
/// A commit of fewer rows than this share of the window says nothing about a larger one.
const USED_SHARE: f64 = 0.75;

/// If the smallest window takes too long, transactions may take this many times as long as it does.
pub const TIMES_LEAST: f64 = 2.0;
/// This many transactions of the smallest window in a row that take too long are no accident.
const TOO_LONG: u32 = 8;
/// The number of transactions after which a bound that was out of reach is tried again.
const TRY_AGAIN: u32 = 1_000;
/// This many transactions in a row that keep the bound show that it is within reach.
const WITHIN_REACH: u32 = 50;

/// A change of whether the bound can be kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reach {
    /// No window keeps the bound: the smallest takes this long, in seconds.
    Lost(f64),
    /// A window keeps the bound again.
    Found,
}

/// A window that follows a quantile.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    rows: f64,
    most: f64,
    bound_s: f64,
    growth: f64,
    has_shrunk: bool,
    /// The bound that replaces one that no window keeps, in seconds.
    instead_s: Option<f64>,
    /// Whether the bound was out of reach when it was last tried, and may still be.
    was_lost: bool,
    /// The number of transactions of the smallest window in a row that took too long, and the sum of their times in seconds.
    too_long: (u32, f64),
    /// The number of transactions since the bound was given up, and of those in a row that would have kept it.
    since: u32,
    kept: u32,
}

impl Limit {
    /// Returns a window of at most `most` rows that keeps the `quantile` (within 0 and 1) of commit times below `bound_s` seconds.
    pub fn new(most: u32, quantile: f64, bound_s: f64) -> Self {
        let growth = (-SHRINK.ln() * (1.0 - quantile) / quantile).exp();
        let most = f64::from(most.max(1));
        let rows = most.min(f64::from(LEAST_ROWS));
        let (instead_s, was_lost, too_long) = (None, false, (0, 0.0));
        Limit { rows, most, bound_s, growth, has_shrunk: false, instead_s, was_lost, too_long, since: 0, kept: 0 }
    }

    /// Returns the window, in rows; at least [`LEAST_ROWS`], or as many as there may be.
    pub fn rows(&self) -> u32 {
        self.rows as u32
    }

    /// Sets another upper end of the window, in rows.
    pub fn set_most(&mut self, most: u32) {
        self.most = f64::from(most.max(1));
        self.rows = self.rows.min(self.most);
    }

    /// Returns whether no window keeps the bound.
    pub fn is_out_of_reach(&self) -> bool {
        self.was_lost
    }

    /// Notes that a transaction of these rows took this long, in seconds; returns what has become of the bound, if that changes.
    pub fn observe(&mut self, rows: u64, took_s: f64) -> Option<Reach> {
        let is_used = rows as f64 >= USED_SHARE * self.rows.floor();
        let news = if is_used { self.look(took_s) } else { None };
        if took_s > self.instead_s.unwrap_or(self.bound_s) {
            self.has_shrunk = true;
            // A small transaction that took too long was slowed down by something else; a smaller window helps only a little.
            let from = if is_used { self.rows } else { self.rows.max(rows as f64) };
            self.rows = (from * SHRINK).max(f64::from(LEAST_ROWS)).min(self.most);
        } else if is_used {
            self.rows = (self.rows * if self.has_shrunk { self.growth } else { 2.0 }).min(self.most);
        }
        news
    }

    /// Checks whether the bound is within reach, after a transaction that filled its window.
    fn look(&mut self, took_s: f64) -> Option<Reach> {
        let is_least = self.rows <= f64::from(LEAST_ROWS);
        if is_least && took_s > self.instead_s.unwrap_or(self.bound_s) {
            self.too_long = (self.too_long.0 + 1, self.too_long.1 + took_s);
        } else {
            self.too_long = (0, 0.0);
        }
        self.kept = if took_s <= self.bound_s { self.kept + 1 } else { 0 };
        self.since += 1;
        if self.too_long.0 >= TOO_LONG && self.most > f64::from(LEAST_ROWS) {
            let least_s = self.too_long.1 / f64::from(self.too_long.0);
            (self.instead_s, self.too_long) = (Some(TIMES_LEAST * least_s), (0, 0.0));
            (self.has_shrunk, self.since) = (false, 0);
            return (!std::mem::replace(&mut self.was_lost, true)).then_some(Reach::Lost(least_s));
        }
        if self.was_lost && self.kept >= WITHIN_REACH {
            (self.instead_s, self.was_lost) = (None, false);
            return Some(Reach::Found);
        }
        if self.instead_s.is_some() && self.since >= TRY_AGAIN {
            self.instead_s = None;
        }
        None
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
        for _ in 0..8 {
            limit.observe(u64::from(limit.rows()), 0.001);
        }
        assert_eq!(limit.rows(), 10_000);
        for _ in 0..10 {
            limit.observe(u64::from(limit.rows()), 5.0);
        }
        assert!(limit.rows() < 300);
        for _ in 0..100 {
            limit.observe(1, 5.0);
        }
        assert_eq!(limit.rows(), LEAST_ROWS);
        for _ in 0..5 {
            limit.observe(0, 0.001);
        }
        assert_eq!(limit.rows(), LEAST_ROWS, "commits of nothing say nothing");
        assert_eq!(Limit::new(10, 0.99, 0.1).rows(), 10);
    }

    /// Drives a limit with a database that takes a fixed time for each transaction and for each row. Returns the rows a second, and the changes it reported.
    fn drive(limit: &mut Limit, transactions: u32, each_s: f64, row_s: f64) -> (f64, Vec<Reach>) {
        let (mut rows, mut took_s, mut told) = (0.0, 0.0, Vec::new());
        for number in 0..transactions {
            let spread = 0.8 + 0.4 * f64::from((number * 7_919_u32) % 1_000) / 1_000.0;
            let time_s = (each_s + f64::from(limit.rows()) * row_s) * spread;
            rows += f64::from(limit.rows());
            took_s += time_s;
            told.extend(limit.observe(u64::from(limit.rows()), time_s));
        }
        (rows / took_s, told)
    }

    #[test]
    fn a_window_grows_where_rows_do_not_take_the_time_and_the_bound_comes_back_into_reach() {
        let mut limit = Limit::new(5_000, 0.99, 0.1);
        // A commit takes 120 ms whatever its size: 1,667 rows/s with the smallest window, 41,667 with the largest.
        let (rate, told) = drive(&mut limit, 5_000, 0.12, 0.0);
        assert!(matches!(told[..], [Reach::Lost(least_s)] if (least_s - 0.12).abs() < 0.02), "{told:?}");
        assert!(rate > 0.9 * 5_000.0 / 0.12 && limit.is_out_of_reach(), "{rate}");
        // If rows take time too, they take about as much as the rest.
        let mut limit = Limit::new(100_000, 0.99, 0.1);
        let (rate, _) = drive(&mut limit, 5_000, 0.12, 1.0 / 50_000.0);
        assert!((0.35..0.55).contains(&(rate / 50_000.0)), "{rate}");
        // The database is quicker: the bound can be kept, and is.
        let (_, told) = drive(&mut limit, 3_000, 0.02, 1.0 / 50_000.0);
        assert_eq!((told, limit.is_out_of_reach()), (vec![Reach::Found], false));
        assert!((2_500..4_000).contains(&limit.rows()), "{}", limit.rows());
    }
}
