//! Fairness between sources: when head-room gets short, those that send most wait first. Main type: [`Shares`], pure.

use std::collections::HashMap;

/// Sources told apart; beyond them the smallest is forgotten.
const SOURCES_MAX: usize = 1_000;
/// What was sent counts half after this many seconds.
const HALF_LIFE_S: f64 = 5.0;
/// A source that has sent less than this share of an equal one is not active.
const ACTIVE_SHARE: f64 = 0.05;

/// How much each source has sent lately.
#[derive(Debug, Default)]
pub(super) struct Shares {
    sent: HashMap<String, f64>,
    total: f64,
    at_s: f64,
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

    /// How many times its equal share a source has sent; 0 where it is the only one.
    pub(super) fn times_equal(&self, source: &str) -> f64 {
        let equal_of_all = self.total / self.sent.len().max(1) as f64;
        let active = self.sent.values().filter(|sent| **sent >= ACTIVE_SHARE * equal_of_all).count();
        if active < 2 || self.total <= 0.0 {
            return 0.0;
        }
        self.sent.get(source).map_or(0.0, |sent| sent * active as f64 / self.total)
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
        assert!((shares.times_equal("greedy") - 1.8).abs() < 0.01 && (shares.times_equal("modest") - 0.2).abs() < 0.01);
        (0..100).for_each(|tick| shares.add("modest", 100, 200.0 + f64::from(tick)));
        assert_eq!(shares.times_equal("modest"), 0.0, "it is alone now");
        (0..5_000).for_each(|source| shares.add(&source.to_string(), 10, 301.0));
        assert!(shares.sent.len() <= SOURCES_MAX);
    }
}
