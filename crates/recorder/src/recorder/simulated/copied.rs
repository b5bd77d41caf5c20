//! An older copy of a spool that takes its place, as a backup that is restored or a virtual machine that goes back does. Main type: [`Copies`].

use std::collections::{BTreeMap, BTreeSet};

use loadline_segments::segments::simulated::MemoryDisk;

use super::truth::numbers_of;
use crate::random::Stream;
use crate::recorder::spool::simulated::Inventory;

/// A copy is made before one in this many steps.
const MADE_ONE_IN: u64 = 8;
/// The copy is put back at one in this many ends of the process.
const PUT_BACK_ONE_IN: u64 = 2;
/// Distinguishes the random numbers of copies from those of the rest of a life, which stays the same with and without them.
const OF_COPIES: u64 = 0x636f_7069_6573;

/// Records in a spool.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// The records of each waiting entry, by its lane and sequence.
    waiting: BTreeMap<(u32, i64), Vec<i64>>,
    /// The records in quarantine.
    quarantined: BTreeSet<i64>,
}

impl Held {
    /// Returns the records of an inventory.
    pub fn of(all: &Inventory) -> Self {
        let waiting = all.waiting.iter().map(|entry| {
            let place = (entry.offer.lane, entry.sequence);
            (place, numbers_of(&entry.offer.body))
        });
        let quarantined = all.quarantined.iter().flat_map(|(_, offer)| numbers_of(&offer.body));
        Held { waiting: waiting.collect(), quarantined: quarantined.collect() }
    }
}

/// What a copy that was put back means for the records.
pub struct PutBack {
    /// The disks of the copy.
    pub disks: [MemoryDisk; 2],
    /// Records that must not be lost by it.
    pub kept: BTreeSet<i64>,
    /// Records that may be stored once more because of it.
    pub doubles: BTreeSet<i64>,
}

/// Makes copies of a spool, and puts them back.
pub struct Copies {
    random: Stream,
    copy: Option<([MemoryDisk; 2], Held)>,
    /// The spool at the last look.
    latest: Held,
}

impl Copies {
    /// Returns the copies of a life; `None` for two lives in three, in which the spool is never copied.
    pub fn of(seed: u64) -> Option<Self> {
        let mut random = Stream::seeded(seed ^ OF_COPIES);
        (random.below(3) == 0).then(|| Copies { random, copy: None, latest: Held::default() })
    }

    /// Notes what is in the spool.
    pub fn look(&mut self, held: Held) {
        self.latest = held;
    }

    /// Makes a copy now and then; only the latest one is kept.
    pub fn copy(&mut self, disks: &[MemoryDisk; 2]) {
        if self.random.below(MADE_ONE_IN) == 0 {
            self.copy = Some((disks.each_ref().map(MemoryDisk::copied), self.latest.clone()));
        }
    }

    /// Puts a copy back now and then, while no process runs. `stored` are the records in the database, each with the lane that stored it.
    ///
    /// A record that waits in the copy is written if it still waited at the same place. One that was set apart, refused or given up since may count as dealt with, by the ledger,
    /// and be gone. One that was set apart and stored since may be written once more: its first lane has not come past it. One that was in quarantine is there again.
    pub fn put_back(&mut self, stored: &BTreeMap<i64, u32>) -> Option<PutBack> {
        if self.copy.is_none() || self.random.below(PUT_BACK_ONE_IN) != 0 {
            return None;
        }
        let (disks, held) = self.copy.take()?;
        let still = held.waiting.iter().filter(|(place, numbers)| self.latest.waiting.get(*place) == Some(*numbers));
        let waiting =
            still.flat_map(|(_, numbers)| numbers).filter(|number| !self.latest.quarantined.contains(*number));
        let kept = stored.keys().chain(waiting).chain(&held.quarantined).copied().collect();
        let is_elsewhere = |lane: u32, number: &i64| stored.get(number).is_some_and(|by| *by != lane);
        let moved = held.waiting.iter().flat_map(|((lane, _), numbers)| numbers.iter().map(|number| (*lane, number)));
        let moved = moved.filter(|(lane, number)| is_elsewhere(*lane, number)).map(|(_, number)| number);
        let replayed = held.quarantined.iter().filter(|number| stored.contains_key(number));
        let doubles = replayed.chain(moved).copied().collect();
        Some(PutBack { disks, kept, doubles })
    }
}
