//! Offers that wait in memory, in the order in which they are written: each source gets its turn. Main type: [`Waiting`].
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, 1996): an offer starts when the previous offer of its source is finished, in a virtual time in which every
//! source is served at the same speed; the offer that starts first is next. So a source that sends little waits for at most one offer of each other
//! source, however many wait, and each source keeps its order. [`Turns`] is how the lanes of greedy sources wait for all others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::recorder::spool::Offer;

/// How a lane of greedy sources takes its turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Since when the lane waits for others.
    pub(super) waits_since: Option<Instant>,
    /// How long its last turn of writing took.
    pub(super) wrote_for: Duration,
    /// Since when nothing waits in the lane.
    pub(super) idle_since: Option<Instant>,
}

/// The result of an offer that was not spooled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectAnswer {
    /// Its rows are committed, except those in quarantine.
    Committed,
    /// It had been committed before.
    Duplicate,
    /// None of it is stored; it can be sent again.
    Unavailable(String),
    /// The disk failed while the offer was being stored: it may be stored or not.
    Unknown(String),
}

/// An offer that waits for its commit.
#[derive(Debug)]
pub struct Direct {
    /// The points to be stored.
    pub offer: Offer,
    /// The channel for the answer.
    pub answer: oneshot::Sender<DirectAnswer>,
    /// The time until which the sender waits.
    pub until: Instant,
    /// The message's number in its stream, for a lane of a part; 0 for other lanes.
    pub number: i64,
}

/// Offers that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The offers by the time at which they start, and the order in which they came.
    offers: BTreeMap<(u64, u64), Direct>,
    /// The virtual time at which each source's last offer is finished, in rows; only sources that are not yet served up to the present.
    finished: HashMap<Arc<str>, u64>,
    /// The virtual time at which the offer that was taken last started.
    now: u64,
    came: u64,
    /// Whether all are taken in the order in which they came, whatever their source.
    is_in_order: bool,
}

impl Waiting {
    /// Returns an empty queue that keeps the order in which offers come.
    pub(super) fn in_order() -> Self {
        Waiting { is_in_order: true, ..Waiting::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.offers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    pub(super) fn add(&mut self, direct: Direct) {
        self.came += 1;
        if self.is_in_order {
            self.offers.insert((0, self.came), direct);
            return;
        }
        let finished = self.finished.entry(Arc::clone(&direct.offer.source)).or_insert(0);
        let start = self.now.max(*finished);
        *finished = start.saturating_add(u64::from(direct.offer.rows));
        self.offers.insert((start, self.came), direct);
    }

    /// Takes the next offers, up to this many rows and bytes; at least one if there is any.
    pub(super) fn take(&mut self, rows_max: u64, bytes_max: usize) -> Vec<Direct> {
        let (mut taken, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < rows_max && bytes < bytes_max {
            let Some(((start, _), direct)) = self.offers.pop_first() else { break };
            self.now = start;
            rows += u64::from(direct.offer.rows);
            bytes += direct.offer.body.len();
            taken.push(direct);
        }
        if self.offers.is_empty() {
            (self.now, self.finished) = (0, HashMap::new());
        } else if self.finished.len() > 2 * self.offers.len() + 64 {
            let now = self.now;
            self.finished.retain(|_, finished| *finished > now);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::sync::oneshot;

    use super::*;
    use crate::recorder::spool::Offer;

    fn direct(source: &str, rows: u32, received_ns: i64) -> Direct {
        let offer = Offer { received_ns, ..Offer::plain(source, rows, b"") };
        Direct { offer, answer: oneshot::channel().0, until: Instant::now(), number: 0 }
    }

    fn taken(waiting: &mut Waiting, rows: u64) -> Vec<(String, i64)> {
        let taken = waiting.take(rows, usize::MAX);
        taken.iter().map(|direct| (direct.offer.source.to_string(), direct.offer.received_ns)).collect()
    }

    #[test]
    fn a_source_that_sends_little_does_not_wait_for_all_of_one_that_sends_much() {
        let mut waiting = Waiting::default();
        (0..100).for_each(|number| waiting.add(direct("greedy", 1_000, number)));
        let own =
            |numbers: std::ops::Range<i64>| numbers.map(|number| ("greedy".to_owned(), number)).collect::<Vec<_>>();
        assert_eq!(taken(&mut waiting, 2_000), own(0..2));
        waiting.add(direct("modest", 1, 0));
        waiting.add(direct("modest", 1, 1));
        let next = taken(&mut waiting, 1_000);
        assert_eq!(&next[..2], [("modest".to_owned(), 0), ("modest".to_owned(), 1)], "{next:?}");
        assert_eq!(taken(&mut waiting, 200_000).len() + next.len() - 2, 98);
        assert_eq!((waiting.len(), waiting.finished.len()), (0, 0));
    }

    #[test]
    fn a_part_of_a_stream_keeps_the_order_of_the_stream_whatever_the_sources() {
        let mut waiting = Waiting::in_order();
        (0..50).for_each(|number| waiting.add(direct(&format!("{}", number % 7 % 3), 1 + number as u32, number)));
        let mut numbers = Vec::new();
        while !waiting.is_empty() {
            numbers.extend(taken(&mut waiting, 40).into_iter().map(|(_, number)| number));
        }
        assert!(numbers.iter().copied().eq(0..50), "{numbers:?}");
    }

    #[test]
    fn sources_that_send_alike_are_served_alike_and_each_in_its_order() {
        let mut waiting = Waiting::default();
        for number in 0..60 {
            (0..3).for_each(|source| waiting.add(direct(&source.to_string(), 1 + (number % 7) as u32, number)));
        }
        let mut served: HashMap<String, Vec<i64>> = HashMap::new();
        while !waiting.is_empty() {
            for (source, number) in taken(&mut waiting, 5) {
                served.entry(source).or_default().push(number);
            }
            let counts: Vec<_> = (0..3).map(|source| served.get(&source.to_string()).map_or(0, Vec::len)).collect();
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 5, "{counts:?}");
        }
        assert!(served.values().all(|numbers| numbers.iter().copied().eq(0..60)), "{served:?}");
    }

    /// Simulates modest sources that send this many rows a second together, beside greedy ones that each keep a hundred requests of 1,000 rows under way
    /// by sending another one whenever one is answered. Returns the longest time that a modest source's request took, in seconds.
    fn longest_s(modest: usize, rows_per_s: f64, greedy: usize) -> f64 {
        const DATABASE_ROWS_PER_S: f64 = 50_000.0;
        const END_S: f64 = 20.0;
        let (mut waiting, mut now_s, mut longest_s) = (Waiting::default(), 0.0, 0.0_f64);
        let mut owed: Vec<f64> = (0..modest).map(|number| number as f64 / modest as f64).collect();
        let send_greedy = |waiting: &mut Waiting, source: &str| waiting.add(direct(source, 1_000, 0));
        (0..100 * greedy).for_each(|number| send_greedy(&mut waiting, &format!("greedy {}", number % greedy)));
        let mut served = 0;
        while now_s < END_S {
            let taken = waiting.take(5_000, usize::MAX);
            let rows: u32 = taken.iter().map(|direct| direct.offer.rows).sum();
            let took_s = 0.002 + f64::from(rows) / DATABASE_ROWS_PER_S;
            // Requests that come while the transaction lasts.
            for (source, owed) in owed.iter_mut().enumerate() {
                *owed += took_s * rows_per_s / modest as f64;
                while *owed >= 1.0 {
                    *owed -= 1.0;
                    waiting.add(direct(&format!("modest {source}"), 1, (now_s * 1e9) as i64));
                }
            }
            now_s += took_s;
            for direct in taken {
                if direct.offer.source.starts_with("modest") {
                    longest_s = longest_s.max(now_s - direct.offer.received_ns as f64 / 1e9);
                } else {
                    served += 1;
                    send_greedy(&mut waiting, &direct.offer.source);
                }
            }
        }
        assert!(f64::from(served) * 1_000.0 + rows_per_s * END_S > 0.8 * END_S * DATABASE_ROWS_PER_S, "{served}");
        longest_s
    }

    #[test]
    fn beside_sources_that_send_all_they_can_those_below_their_share_are_stored_within_a_second() {
        for modest in [1, 2, 20, 350, 2_000] {
            for (rows_per_s, greedy) in [(1_000.0, 1), (10_000.0, 1), (5_000.0, 5), (1_000.0, 20)] {
                let longest_s = longest_s(modest, rows_per_s, greedy);
                assert!(longest_s < 1.0, "{modest} sources with {rows_per_s} rows/s beside {greedy}: {longest_s} s");
            }
        }
    }

    #[test]
    fn what_was_served_long_ago_is_forgotten() {
        let mut waiting = Waiting::default();
        waiting.add(direct("busy", 1, 0));
        for number in 0..10_000 {
            waiting.add(direct("busy", 1, number));
            waiting.add(direct(&format!("source {number}"), 1, 0));
            waiting.take(2, usize::MAX);
        }
        assert!(waiting.finished.len() < 200, "{}", waiting.finished.len());
    }
}
