//! Records when the schema is changed while a load runs. Main type: [`Changing`], shared by all loops and by the thread that makes the changes.
//!
//! An operation belongs to the part of the trial in which its intended time lies: within a change of a kind, or outside of all. Its length decides
//! nothing, so that changes without an effect show none. (Counting all operations that met a change would count long ones more often.)
//!
//! Invariant: changes do not overlap; times are those of the engine's clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use super::clock::Clock;

/// The part of a trial outside of all changes.
pub const OUTSIDE: &str = "outside";

/// Maximum number of changes that are remembered: an operation that was intended before the first of them counts as outside.
const REMEMBERED: usize = 1024;

/// The changes of the schema, and the end of a load that lasts as long as they do.
#[derive(Debug)]
pub struct Changing {
    clock: Clock,
    changes: RwLock<Vec<Change>>,
    over_ns: AtomicU64,
    last_done_ns: AtomicU64,
    silences_ns: Mutex<BTreeMap<&'static str, u64>>,
}

/// A change of a kind, with its start and its end, which is `u64::MAX` while it runs.
#[derive(Debug, Clone, Copy)]
struct Change {
    kind: &'static str,
    begin_ns: u64,
    end_ns: u64,
}

impl Changing {
    /// Makes a record without any change.
    pub fn new(clock: Clock) -> Self {
        Changing {
            clock,
            changes: RwLock::default(),
            over_ns: AtomicU64::new(u64::MAX),
            last_done_ns: AtomicU64::new(0),
            silences_ns: Mutex::default(),
        }
    }

    /// Returns the current time, in nanoseconds of the engine's clock.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Begins a change of a kind now. Returns the time.
    pub fn begin(&self, kind: &'static str) -> u64 {
        let begin_ns = self.now_ns();
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        if changes.len() >= REMEMBERED {
            changes.drain(..REMEMBERED / 2);
        }
        changes.push(Change { kind, begin_ns, end_ns: u64::MAX });
        begin_ns
    }

    /// Ends the running change now. Returns the time.
    pub fn end(&self) -> u64 {
        let end_ns = self.now_ns();
        if let Some(change) = self.changes.write().unwrap_or_else(PoisonError::into_inner).last_mut() {
            change.end_ns = end_ns;
        }
        end_ns
    }

    /// Returns the kind of the change that runs at a time, or [`OUTSIDE`].
    #[inline]
    pub fn part_at(&self, time_ns: u64) -> &'static str {
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let before = changes.iter().rev().find(|change| change.begin_ns <= time_ns);
        before.filter(|change| time_ns < change.end_ns).map_or(OUTSIDE, |change| change.kind)
    }

    /// Ends the load now.
    pub fn end_load(&self) {
        self.over_ns.store(self.now_ns(), Ordering::SeqCst);
    }

    /// Returns when the load ended; `u64::MAX` while it runs.
    #[inline]
    pub fn over_ns(&self) -> u64 {
        self.over_ns.load(Ordering::Relaxed)
    }

    /// Notes that an operation was completed at this time: that ends the silence since the previous one, which counts for each change that it meets.
    #[inline]
    pub fn completed(&self, done_ns: u64) {
        let before_ns = self.last_done_ns.fetch_max(done_ns, Ordering::Relaxed);
        if before_ns == 0 || before_ns >= done_ns {
            return;
        }
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let met = changes.iter().rev().take_while(|change| change.end_ns > before_ns);
        let mut silences = self.silences_ns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_met = false;
        let mut keep = |kind| {
            let longest = silences.entry(kind).or_default();
            *longest = (*longest).max(done_ns - before_ns);
        };
        for change in met.filter(|change| change.begin_ns < done_ns) {
            is_met = true;
            keep(change.kind);
        }
        if !is_met {
            keep(OUTSIDE);
        }
    }

    /// Returns the longest time without any completed operation, in seconds, for each kind of change that it met, and for none.
    pub fn silences_s(&self) -> BTreeMap<String, f64> {
        let silences = self.silences_ns.lock().unwrap_or_else(PoisonError::into_inner);
        silences.iter().map(|(kind, longest_ns)| ((*kind).to_owned(), *longest_ns as f64 / 1e9)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// Makes changes of one kind at these times.
    fn changes(times_ns: &[(u64, u64)]) -> Changing {
        let changing = Changing::new(Clock::start());
        let made =
            times_ns.iter().map(|(begin_ns, end_ns)| Change { kind: "add", begin_ns: *begin_ns, end_ns: *end_ns });
        *changing.changes.write().unwrap() = made.collect();
        changing
    }

    #[test]
    fn an_operation_is_of_the_change_that_its_intended_time_lies_in() {
        let changing = changes(&[(100, 200), (300, u64::MAX)]);
        let parts = [99, 100, 199, 200, 299, 300, u64::MAX - 1].map(|time_ns| changing.part_at(time_ns));
        assert_eq!(parts, ["outside", "add", "add", "outside", "outside", "add", "add"]);
        let changing = Changing::new(Clock::start());
        assert_eq!(changing.part_at(0), "outside", "there was no change");
        let begun_ns = changing.begin("write");
        assert_eq!(changing.part_at(begun_ns), "write");
        let ended_ns = changing.end();
        assert_eq!(changing.part_at(ended_ns + 1), "outside");
    }

    /// Changes of 1 ms every 10 ms that have no effect, beside operations whose lengths are exponential with a mean of 1 ms.
    #[test]
    fn changes_that_do_nothing_show_nothing_in_open_and_closed_loops() {
        const MS: f64 = 1e6;
        for is_closed in [false, true] {
            let mut ratios = Vec::new();
            for seed in 0..30 {
                let mut stream = Stream::new(seed, 0, 1);
                let times: Vec<(u64, u64)> =
                    (0..200).map(|turn| (turn * 10_000_000, turn * 10_000_000 + 1_000_000)).collect();
                let changing = changes(&times);
                let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
                let mut intended = 0.0;
                while intended < 2000.0 * MS {
                    let length = -MS * (1.0 - stream.unit()).ln();
                    let part = usize::from(changing.part_at(intended as u64) == OUTSIDE);
                    sums[part] += length;
                    counts[part] += 1.0;
                    intended += if is_closed { length } else { -MS * (1.0 - stream.unit()).ln() };
                }
                ratios.push((sums[0] / counts[0]) / (sums[1] / counts[1]));
            }
            let estimate = crate::statistics::ratio::geometric_ratio(&ratios).unwrap();
            assert!(estimate.interval.low < 1.0 && estimate.interval.high > 1.0, "closed {is_closed}: {estimate:?}");
            assert!((estimate.ratio - 1.0).abs() < 0.05, "closed {is_closed}: {estimate:?}");
        }
    }

    #[test]
    fn the_longest_silence_is_that_of_the_change_that_it_met() {
        let changing = changes(&[(1_000, 5_000), (9_000, 9_100)]);
        [500, 900, 5_500, 5_600, 9_200, 9_300].into_iter().for_each(|done_ns| changing.completed(done_ns));
        let silences = changing.silences_s();
        assert!((silences["add"] - 4.6e-6).abs() < 1e-12, "{silences:?}");
        assert!((silences[OUTSIDE] - 0.4e-6).abs() < 1e-12, "{silences:?}");
    }

    #[test]
    fn a_load_is_over_when_it_is_told_so() {
        let changing = Changing::new(Clock::start());
        assert_eq!(changing.over_ns(), u64::MAX);
        changing.end_load();
        assert!(changing.over_ns() <= changing.now_ns());
    }
}
