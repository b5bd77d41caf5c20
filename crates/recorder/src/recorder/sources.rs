//! The sources that send most, and how long their records take from arrival to commit. Main type: [`Sources`].
//!
//! The sources that sent most recently are shown one by one, all others together. Candidates are counted by *space-saving* (Metwally and others 2005):
//! an unknown source replaces the one with the least weight and inherits that weight, so that no source with more than a small share is missed.
//!
//! Invariants: the shown sources and the others add up to the total; a number only grows while its source is shown; memory and work are bounded,
//! whatever names clients choose.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most sources that are shown one by one.
const SHOWN_MAX: usize = 100;
/// The most sources that are counted one by one, including those that are shown.
const KNOWN_MAX: usize = 400;
/// The time after which the weight of what was sent has halved.
const HALF_LIFE: Duration = Duration::from_secs(600);
/// The interval at which weights are aged.
const AGE_EVERY: Duration = Duration::from_secs(15);
/// A source replaces a shown one when it recently sent this many times as much, so that places do not change all the time.
const TIMES: f64 = 2.0;
/// The name of all sources that are not shown; a source of that name is one of them.
pub const OTHERS: &str = "others";

/// The records of a source that were acknowledged since it has been shown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sent {
    /// Bytes of line protocol.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// The time from arrival to commit of the newest committed record; `None` before the first commit.
    pub lag: Option<Duration>,
}

/// A source that is counted.
#[derive(Debug, Default)]
struct Known {
    /// An upper bound of the bytes sent recently, including those inherited from the source that was replaced.
    weight: f64,
    /// The part of `weight` that was inherited.
    inherited: f64,
    shown: Option<Sent>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<String, Known>,
    shown: usize,
    /// A lower bound of the least weight of the shown sources.
    least_shown: f64,
    others: Sent,
    aged: Option<Instant>,
}

/// All sources.
#[derive(Debug, Default)]
pub struct Sources(Mutex<State>);

impl Sent {
    fn add(&mut self, bytes: u64, rows: u64) {
        (self.bytes, self.rows) = (self.bytes + bytes, self.rows + rows);
    }
}

impl Sources {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what was acknowledged of a source.
    pub fn note_sent(&self, source: &str, bytes: u64, rows: u64) {
        self.lock().add(source, bytes, rows, Instant::now());
    }

    /// Notes how long a source's newest committed record took from its arrival to its commit.
    pub fn note_lag(&self, source: &str, lag: Duration) {
        let mut state = self.lock();
        if state.shown < SHOWN_MAX && !state.known.contains_key(source) {
            // Where the commit is the acknowledgement, the first record is committed before it is counted.
            state.add(source, 0, 0, Instant::now());
        }
        let shown = state.known.get_mut(source).and_then(|known| known.shown.as_mut());
        match shown {
            Some(sent) => sent.lag = Some(lag),
            None => state.others.lag = Some(lag),
        }
    }

    /// Returns the shown sources in the order of their names, then the others.
    pub fn read(&self) -> Vec<(String, Sent)> {
        let state = self.lock();
        let shown = state.known.iter().filter_map(|(source, known)| Some((source.clone(), known.shown?)));
        let mut shown: Vec<_> = shown.collect();
        let others = state.others;
        drop(state);
        shown.sort_by(|a, b| a.0.cmp(&b.0));
        shown.push((OTHERS.to_owned(), others));
        shown
    }
}

impl State {
    fn add(&mut self, source: &str, bytes: u64, rows: u64, now: Instant) {
        self.age(now);
        if source == OTHERS {
            return self.others.add(bytes, rows);
        }
        if let Some(known) = self.known.get_mut(source) {
            known.weight += bytes as f64;
            if let Some(sent) = &mut known.shown {
                return sent.add(bytes, rows);
            }
            let own = known.weight - known.inherited;
            return match self.has_place_for(own) {
                true => self.show(source, bytes, rows),
                false => self.others.add(bytes, rows),
            };
        }
        let inherited = if self.known.len() < KNOWN_MAX { 0.0 } else { self.remove_least() };
        let known = Known { weight: inherited + bytes as f64, inherited, shown: None };
        self.known.insert(source.to_owned(), known);
        match self.has_place_for(bytes as f64) {
            true => self.show(source, bytes, rows),
            false => self.others.add(bytes, rows),
        }
    }

    /// Returns whether a source that recently sent `own` bytes is to be shown; the one that it replaces is counted with the others from then on.
    fn has_place_for(&mut self, own: f64) -> bool {
        if self.shown < SHOWN_MAX {
            return true;
        }
        if own <= TIMES * self.least_shown {
            return false;
        }
        let shown = self.known.values_mut().filter(|known| known.shown.is_some());
        let Some(least) = shown.min_by(|a, b| a.weight.total_cmp(&b.weight)) else { return false };
        self.least_shown = least.weight;
        if own <= TIMES * least.weight {
            return false;
        }
        if let Some(sent) = least.shown.take() {
            self.others.add(sent.bytes, sent.rows);
            self.shown -= 1;
        }
        true
    }

    fn show(&mut self, source: &str, bytes: u64, rows: u64) {
        if let Some(known) = self.known.get_mut(source) {
            known.shown = Some(Sent { bytes, rows, lag: None });
            self.shown += 1;
        }
        // The new source may have the least weight.
        self.least_shown = 0.0;
    }

    /// Removes the source with the least weight among those that are not shown, and returns its weight.
    fn remove_least(&mut self) -> f64 {
        let hidden = self.known.iter().filter(|(_, known)| known.shown.is_none());
        let least = hidden.min_by(|a, b| a.1.weight.total_cmp(&b.1.weight));
        let Some((source, weight)) = least.map(|(source, known)| (source.clone(), known.weight)) else { return 0.0 };
        self.known.remove(&source);
        weight
    }

    fn age(&mut self, now: Instant) {
        let aged = *self.aged.get_or_insert(now);
        let passed = now.saturating_duration_since(aged);
        if passed < AGE_EVERY {
            return;
        }
        self.aged = Some(now);
        let factor = 0.5_f64.powf(passed.as_secs_f64() / HALF_LIFE.as_secs_f64());
        self.least_shown *= factor;
        for known in self.known.values_mut() {
            (known.weight, known.inherited) = (known.weight * factor, known.inherited * factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(sources: &Sources) -> (u64, u64) {
        sources.read().iter().fold((0, 0), |sum, (_, sent)| (sum.0 + sent.bytes, sum.1 + sent.rows))
    }

    #[test]
    fn whoever_is_loud_is_shown_however_many_were_there_before_and_sums_stay_true() {
        let sources = Sources::default();
        (0..150).for_each(|source| sources.note_sent(&format!("first {source}"), 1_000, 1));
        let (mut bytes, mut rows) = (150_000, 150);
        let mut others_before = 0;
        for round in 0..2_000_u64 {
            // Names that come once each, and one source in the middle of them that sends a lot.
            sources.note_sent(&format!("once {round}"), 300, 1);
            sources.note_sent("loud", 5_000, 10);
            (bytes, rows) = (bytes + 5_300, rows + 11);
            let others = sources.read().last().unwrap().1.bytes;
            assert!(others >= others_before, "what the others sent only grows");
            others_before = others;
        }
        let read = sources.read();
        assert_eq!((read.len(), sum(&sources)), (SHOWN_MAX + 1, (bytes, rows)));
        let loud = read.iter().find(|(source, _)| source == "loud").expect("it is shown").1;
        assert!(loud.rows > 19_900, "{loud:?}");
        // Those that come once are not worth a place.
        assert!(!read.iter().any(|(source, _)| source.starts_with("once")), "{read:?}");
        assert!(sources.lock().known.len() <= KNOWN_MAX);
    }

    #[test]
    fn places_go_to_those_who_are_loud_now() {
        let (mut state, begun) = (State::default(), Instant::now());
        (0..SHOWN_MAX).for_each(|source| state.add(&format!("old {source}"), 1_000_000, 1, begun));
        let later = begun + 10 * HALF_LIFE;
        (0..10).for_each(|_| state.add("new", 300, 1, later));
        let shown = state.known["new"].shown.expect("1,000,000 bytes of long ago weigh less than 1,000");
        assert!(shown.bytes >= 300 && state.shown == SHOWN_MAX);
        assert_eq!(state.others.bytes + shown.bytes, 1_000_000 + 3_000, "one is not shown any more");
    }

    #[test]
    fn a_source_that_is_called_others_is_one_of_them() {
        let sources = Sources::default();
        sources.note_sent(OTHERS, 7, 1);
        sources.note_lag(OTHERS, Duration::from_secs(1));
        sources.note_sent("a", 5, 2);
        let read = sources.read();
        let names: Vec<_> = read.iter().map(|(source, sent)| (source.as_str(), sent.bytes)).collect();
        assert_eq!(names, [("a", 5), (OTHERS, 7)]);
    }
}
