//! A writer that looks at a spool in the middle of the changes of its one thread. Main type: [`Onlooker`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::reader::Reader;
use super::super::{Entry, SpoolError};
use crate::random::Stream;

/// The percentage of syncs after which the writer looks.
const LOOKS_PERCENT: u64 = 30;

/// What the writer found in one lane and committed: the ledger has it whatever becomes of the spool.
pub struct Seen {
    pub lane: u32,
    pub entries: Vec<Arc<Entry>>,
    /// The records of these entries that were in quarantine, as entry and row.
    pub quarantined: Vec<(i64, i64)>,
}

struct Inner {
    random: Stream,
    reader: Reader,
    lanes: u32,
    /// How far each lane is committed.
    ledgers: BTreeMap<u32, i64>,
    seen: Vec<Seen>,
    failed: Option<SpoolError>,
}

/// Looks at the lanes of a spool after some syncs of its disks, and commits what it finds at once, as a writer with a thread of its own may.
#[derive(Clone)]
pub struct Onlooker(Arc<Mutex<Inner>>);

impl Onlooker {
    pub fn new(seed: u64, reader: Reader, lanes: u32, ledgers: BTreeMap<u32, i64>) -> Self {
        let random = Stream::seeded(seed);
        Onlooker(Arc::new(Mutex::new(Inner { random, reader, lanes, ledgers, seen: Vec::new(), failed: None })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the spool, or leaves it, at random.
    pub fn look(&self) {
        let mut inner = self.inner();
        if inner.random.below(100) < LOOKS_PERCENT {
            let seen = inner.commit_some();
            match seen {
                Ok(seen) => inner.seen.extend(seen),
                Err(error) => inner.failed = Some(error),
            }
        }
    }

    /// Returns what the writer committed, in order.
    ///
    /// # Errors
    /// Returns the error of a read that failed.
    pub fn seen(&self) -> Result<Vec<Seen>, SpoolError> {
        let mut inner = self.inner();
        match inner.failed.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut inner.seen)),
        }
    }
}

impl Inner {
    fn commit_some(&mut self) -> Result<Option<Seen>, SpoolError> {
        let lane = self.random.below(self.lanes.into()) as u32;
        let most = 1 + self.random.below(12);
        let done = self.ledgers.get(&lane).copied().unwrap_or(0);
        let found = self.reader.read(lane, (done, i64::MAX), 100_000, most)?;
        // Damaged entries are left to a writer that waits for them: the commit ends before the first one.
        let entries: Vec<Arc<Entry>> = found.into_iter().map_while(Result::ok).map(Arc::new).collect();
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(None) };
        let quarantined = self.reader.quarantined(first.sequence, last.sequence)?;
        self.ledgers.insert(lane, last.sequence);
        Ok(Some(Seen { lane, quarantined, entries }))
    }
}
