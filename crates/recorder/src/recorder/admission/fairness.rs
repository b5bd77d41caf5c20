//! Fairness between sources: when room gets short, those that send most wait first. Main type: [`Shares`], pure.
//!
//! Max-min fairness: a level is computed such that the sources, each cut to it, together send as much as may come in. A source that sends less
//! than the level is not asked to wait, however many others send more.

use std::collections::HashMap;

/// The most sources that are told apart; beyond them the smallest is forgotten.
const SOURCES_MAX: usize = 4_000;
/// The seconds after which sent bytes count half.
const HALF_LIFE_S: f64 = 5.0;
/// A source that has sent fewer bytes than this lately, a few dozen records a second, is never greedy.
const GREEDY_AT_LEAST: f64 = 16_384.0;
/// The seconds after which the level is computed again.
const LEVEL_LASTS_S: f64 = 0.05;

/// How many bytes each source has sent lately.
#[derive(Debug, Default)]
pub(super) struct Shares {
    sent: HashMap<String, f64>,
    total: f64,
    at_s: f64,
    /// The level for each resource that may be short.
    levels: [Option<Level>; 2],
}

/// The level to which sources are cut.
#[derive(Debug, Clone, Copy)]
struct Level {
    level: f64,
    /// The bytes of the source that sends least.
    least: f64,
    /// The share that the level was computed for, and when.
    less: f64,
    at_s: f64,
}

/// A resource that is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Short {
    /// Room in the spool.
    Room,
    /// Time to write.
    Time,
}

impl Shares {
    /// Notes that a source sends this many bytes.
    pub(super) fn add(&mut self, source: &str, bytes: u64, now_s: f64) {
        self.age(now_s);
        if !self.sent.contains_key(source) && self.sent.len() >= SOURCES_MAX {
            let smallest = self.sent.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(source, _)| source.clone());
            if let Some(removed) = smallest.and_then(|smallest| self.sent.remove(&smallest)) {
                self.total -= removed;
            }
        }
        match self.sent.get_mut(source) {
            Some(sent) => *sent += bytes as f64,
            None => {
                self.sent.insert(source.to_owned(), bytes as f64);
            }
        }
        self.total += bytes as f64;
    }

    /// Returns how many times the level a source has sent, if all together are to send this share less than they do, 0 to 1. At most 1 means that
    /// the source need not wait; the result is 0 if it is the only source.
    pub(super) fn times_level(&mut self, source: &str, short: Short, less: f64, now_s: f64) -> f64 {
        let Some(level) = self.level(short, less, now_s) else { return 0.0 };
        self.sent.get(source).map_or(0.0, |sent| sent / level.level.max(1.0))
    }

    /// Returns whether a source has sent more than the level, and more than twice as much as one of the others: if all are alike, none is greedy.
    /// A source that has sent next to nothing is not greedy, even if others have sent still less.
    pub(super) fn is_greedy(&mut self, source: &str, less: f64, now_s: f64) -> bool {
        let Some(Level { level, least, .. }) = self.level(Short::Time, less, now_s) else { return false };
        self.sent.get(source).is_some_and(|sent| *sent > level.max(GREEDY_AT_LEAST) && *sent > 2.0 * least)
    }

    /// Returns the level at which all together send this share less; `None` if there are fewer than two sources.
    fn level(&mut self, short: Short, less: f64, now_s: f64) -> Option<Level> {
        self.age(now_s);
        if self.sent.len() < 2 || self.total <= 0.0 {
            return None;
        }
        let known = self.levels[short as usize];
        let known = known.filter(|known| now_s - known.at_s < LEVEL_LASTS_S && (known.less - less).abs() < 0.01);
        Some(known.unwrap_or_else(|| {
            let least = self.sent.values().copied().fold(f64::INFINITY, f64::min);
            let level = Level { level: self.level_of(less), least, less, at_s: now_s };
            self.levels[short as usize] = Some(level);
            level
        }))
    }

    /// Returns whether a source has sent less than an equal share, while another has sent more than twice as much as that.
    pub(super) fn is_modest(&self, source: &str) -> bool {
        let equal = self.total / self.sent.len().max(1) as f64;
        let own = self.sent.get(source).copied().unwrap_or(0.0);
        own < equal && self.sent.values().any(|sent| *sent > 2.0 * equal)
    }

    /// Computes the level to which the sources must be cut so that they send this share less.
    fn level_of(&self, less: f64) -> f64 {
        let mut sent: Vec<f64> = self.sent.values().copied().collect();
        sent.sort_unstable_by(f64::total_cmp);
        let mut left = (1.0 - less).clamp(0.0, 1.0) * self.total;
        let count = sent.len();
        for (place, own) in sent.iter().enumerate() {
            let equal = left / (count - place) as f64;
            if *own > equal {
                return equal;
            }
            left -= own;
        }
        f64::INFINITY
    }

    fn age(&mut self, now_s: f64) {
        // Often enough to be smooth, seldom enough to cost nothing.
        let passed_s = now_s - self.at_s;
        if passed_s < 0.25 {
            return;
        }
        let factor = 0.5_f64.powf(passed_s / HALF_LIFE_S);
        self.at_s = now_s;
        self.sent.retain(|_, sent| {
            *sent *= factor;
            *sent >= 1.0
        });
        self.total = self.sent.values().sum();
        self.levels = [None; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_was_sent_lately() {
        let mut shares = Shares::default();
        (0..100).for_each(|tick| {
            shares.add("greedy", 900, f64::from(tick));
            shares.add("modest", 100, f64::from(tick));
        });
        // Of 1,000 parts 500 may come in: 100 of the modest source, and 400 of the greedy one.
        assert!((shares.times_level("greedy", Short::Room, 0.5, 99.0) - 2.25).abs() < 0.01);
        assert!((shares.times_level("modest", Short::Room, 0.5, 99.0) - 0.25).abs() < 0.01);
        assert!(shares.times_level("greedy", Short::Room, 0.0, 99.0) <= 1.0);
        (0..100).for_each(|tick| shares.add("modest", 100, 200.0 + f64::from(tick)));
        assert_eq!(shares.times_level("modest", Short::Room, 0.5, 299.0), 0.0, "it is alone now");
        (0..9_000).for_each(|source| shares.add(&source.to_string(), 10, 301.0));
        assert!(shares.sent.len() <= SOURCES_MAX);
    }

    #[test]
    fn cut_to_the_level_the_sources_send_what_may_come_in() {
        let mut shares = Shares::default();
        (1..=50_u64).for_each(|source| shares.add(&source.to_string(), source * source, 0.0));
        for less in [0.01, 0.3, 0.7, 0.99] {
            let level = shares.level_of(less);
            let cut: f64 = shares.sent.values().map(|sent| sent.min(level)).sum();
            assert!((cut / ((1.0 - less) * shares.total) - 1.0).abs() < 1e-9, "{less}");
        }
    }
}
