//! A second recorder, with a spool of its own, that writes into the same tables. What happens to the database happens to both; its process and its disks never fail.
//! Main type: [`Neighbour`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadline_segments::segments::simulated::{MemoryDisk, Told};

use super::clock::MadeClock;
use super::failing::Failing;
use super::process::{LANES, Process, Setup, opened};
use super::senders::{Manners, Senders};
use super::truth::{Sighting, Truth, numbers_of};
use crate::random::Stream;
use crate::recorder::spool::simulated::inventory;

/// Every fourth life or so has a neighbour. The number keeps the choice apart from everything else that a seed decides.
const LIVES: u64 = 4;
const CHOICE: u64 = 0x6E65_6967;
/// The number before its first record; the records of the first recorder stay below it.
pub const FIRST_NUMBER: i64 = 1 << 40;
/// Bytes that may wait, and that may be in quarantine: more than it is ever sent.
const ROOM: u64 = 16 << 20;

/// A second recorder on the same database.
pub(super) struct Neighbour {
    random: Stream,
    process: Process,
    senders: Senders,
    truth: Arc<Mutex<Truth>>,
    failing: Failing,
}

impl Neighbour {
    /// Returns the neighbour of the recorder with this setup, in some lives.
    ///
    /// # Errors
    /// Returns an error if its spool cannot be opened.
    pub fn of(
        seed: u64,
        (setup, manners, truth): (Setup, Manners, Truth),
        clock: &Arc<MadeClock>,
        failing: &Failing,
    ) -> Result<Option<Self>, Told> {
        let mut random = Stream::seeded(seed ^ CHOICE);
        if random.below(LIVES) != 0 {
            return Ok(None);
        }
        let setup = Setup { bound: ROOM, quarantine_bound: ROOM, ..setup };
        let disks = [MemoryDisk::new(4 * ROOM), MemoryDisk::new(4 * ROOM)];
        let process =
            Process::start(setup, opened(&disks), clock, failing).map_err(|error| format!("neighbour: {error}"))?;
        let truth = Arc::new(Mutex::new(truth.after(FIRST_NUMBER)));
        let of_senders = Stream::seeded(random.word());
        let mut senders = Senders::new(of_senders, manners, Arc::clone(clock), Arc::clone(&truth)).called("n");
        if let Some(door) = &process.door {
            senders.set_door(door);
        }
        Ok(Some(Neighbour { random, process, senders, truth, failing: failing.clone() }))
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends something now and then, and lets a writer take a turn.
    pub fn step(&mut self) {
        if self.random.below(3) == 0 {
            self.senders.send();
        }
        self.turn();
    }

    /// Lets a writer take a turn.
    pub fn turn(&mut self) {
        let busy = self.process.at_work().unwrap_or_default();
        if let Some(place) = busy.get(self.random.below(busy.len().max(1) as u64) as usize) {
            self.failing.spare(true);
            self.process.turn(*place);
            self.failing.spare(false);
        }
        self.senders.listen();
    }

    /// Compares what its senders were told with its spool and with the records that are in the database.
    ///
    /// # Errors
    /// Returns what was lost, doubled or reported falsely.
    pub fn compare(&mut self, stored: &[(i64, i64)], at_end: bool) -> Result<(), Told> {
        self.senders.listen();
        let look = || -> Result<Sighting, Told> {
            let all = inventory(&self.process.reader, LANES).map_err(|error| error.to_string())?;
            let numbers = |body: &[u8]| numbers_of(body);
            Ok(Sighting {
                stored: stored.iter().copied().filter(|(_, number)| *number > FIRST_NUMBER).collect(),
                waiting: all.waiting.iter().flat_map(|entry| numbers(&entry.offer.body)).collect(),
                quarantined: all.quarantined.iter().flat_map(|(_, offer)| numbers(&offer.body)).collect(),
            })
        };
        let told = self.senders.failed().and_then(|()| self.truth().compare(&look()?, at_end));
        let ended = self.process.failed().map_or(Ok(()), Err);
        told.and(ended).map_err(|told| format!("neighbour: {told}"))
    }

    /// Writes everything that waits, when nothing stands in the way any more.
    ///
    /// # Errors
    /// Returns an error if it does not come to an end within so many turns.
    pub fn drain(&mut self, turns_max: u64) -> Result<(), Told> {
        for _ in 0..turns_max {
            self.failing.meanwhile(None);
            self.turn();
            let all = inventory(&self.process.reader, LANES).map_err(|error| error.to_string())?;
            if all.waiting.is_empty() && !self.senders.is_waiting() {
                return Ok(());
            }
        }
        Err(format!("neighbour: entries wait after {turns_max} turns"))
    }

    /// Returns the number of records that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.truth().acknowledged()
    }

    /// Ends its process.
    pub fn end(self) {
        self.process.end(true);
    }
}
