//! The spool, opened for writing. Main type: [`SpoolFile`].

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline_segments::segments::ReadError;

use super::SpoolError;
use super::clock::IdClock;
use super::counts::Counts;
use super::damage::Damage;
use super::fact::StoredRefusal;
use super::greedy::GreedySources;
use super::holders::{Holders, QuarantineView};
use super::ids::{Ids, Prefix};
use super::logs::Logs;
use super::place::LogName;
use super::reader::{Reader, Shelf};
use super::scrub::Scrub;
use super::state::State;
use crate::recorder::clock::SharedClock;
use crate::recorder::lock::Lock;

/// How often the spool checks whether its directory is still in place.
pub(super) const LOOK_AFTER: Duration = Duration::from_millis(500);

/// The spool, opened for writing.
pub struct SpoolFile {
    pub(super) logs: Option<Logs>,
    pub(super) shelf: Arc<Shelf>,
    pub(super) path: PathBuf,
    pub(super) counts: Counts,
    pub(super) bound_bytes: u64,
    pub(super) quarantine_bound_bytes: u64,
    /// How much of the quarantine each sender holds.
    pub(super) holders: Holders,
    pub(super) remember: Duration,
    pub(super) ids: Ids,
    /// Prefixes of the ids of the entries in each segment of the entries' log.
    pub(super) ids_of: BTreeMap<u64, Vec<Prefix>>,
    /// The clock by which ids age.
    pub(super) id_clock: IdClock,
    pub(super) clock: SharedClock,
    pub(super) state: State,
    pub(super) next_sequence: i64,
    pub(super) next_refusal: i64,
    pub(super) greedy: Option<GreedySources>,
    pub(super) damage: Damage,
    /// The sizes of segments, as far as they were read.
    pub(super) sizes: HashMap<(LogName, u64), u64>,
    pub(super) looked: Instant,
    pub(super) scrub: Scrub,
    pub(super) marked: Instant,
    /// Whether something has changed since the last mark.
    pub(super) wants_mark: bool,
    /// Whether all findings of the opening have been dealt with.
    pub(super) is_opened: bool,
    /// Whether bodies are compressed while they wait.
    pub(super) compresses: bool,
    /// Called when a group is durable in the lasting log but not yet in the entries.
    #[cfg(test)]
    pub(super) looks_between_logs: Option<fn(&Shelf)>,
    /// The lock of the directory, held while the spool is open.
    pub(super) lock: Option<Lock>,
}

impl std::fmt::Debug for SpoolFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SpoolFile")
            .field("path", &self.path)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// The result of storing an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The offer was stored as the entry with this sequence.
    New(i64),
    /// A message with this id from this source was taken in before.
    Duplicate,
}

impl SpoolFile {
    /// Returns whether a directory contains a spool.
    pub fn is_in(directory: &Path) -> bool {
        super::logs::directory(directory, LogName::Lasting).exists() || directory.join(super::older::NAME).exists()
    }

    /// Ends the spool as a kill of the process does: nothing is noted.
    #[cfg(any(test, feature = "simulated"))]
    pub fn abandon(mut self) {
        self.logs = None;
    }

    /// Returns the spool's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a reader that reads the spool while this handle writes it.
    pub fn reader(&self) -> Reader {
        Reader { shelf: Arc::clone(&self.shelf) }
    }

    /// Returns what was found damaged when the spool was opened.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sets the bound of the quarantine, in bytes.
    #[must_use]
    pub fn with_quarantine(mut self, bound_bytes: u64) -> Self {
        self.quarantine_bound_bytes = bound_bytes;
        self
    }

    /// Sets whether bodies are compressed while they wait. Entries that wait already stay as they are.
    #[must_use]
    pub fn with_compression(mut self, compresses: bool) -> Self {
        self.compresses = compresses;
        self
    }

    /// Returns whether the quarantine takes at least half of its bound.
    pub fn is_half_quarantine(&self) -> bool {
        self.counts.quarantined_bytes >= self.quarantine_bound_bytes / 2
    }

    /// Returns how the quarantine is shared among senders.
    pub fn quarantine_view(&self) -> QuarantineView {
        self.holders.view(self.counts.quarantined_bytes, self.quarantine_bound_bytes)
    }

    /// Sets the counters from the index and the logs, when the spool has been opened.
    pub(super) fn count_again(&mut self) {
        let rows = self.logs.as_ref().map_or(0, Logs::rows);
        let acknowledged = rows.saturating_add_signed(self.state.base);
        self.counts = self.shelf.index().count(acknowledged);
    }

    pub(super) fn logs(&mut self) -> Result<&mut Logs, SpoolError> {
        self.logs.as_mut().ok_or_else(|| SpoolError::Broken("it is closed".to_owned()))
    }

    /// Returns a record in quarantine as it was stored; `None` if it can no longer be read.
    pub(super) fn read_refusal(&self, id: i64) -> Result<Option<StoredRefusal>, SpoolError> {
        let found = {
            let index = self.shelf.index();
            index.refusal(id).map(|found| (found.place, index.segment(found.place.log, found.place.segment).epoch))
        };
        let Some((place, epoch)) = found else { return Ok(None) };
        match self.shelf.read(&place, epoch) {
            Ok(bytes) => Ok(StoredRefusal::of(&bytes).filter(|refusal| refusal.id == id)),
            Err(ReadError::Disk(reason)) => Err(SpoolError::Broken(reason)),
            Err(ReadError::Gone | ReadError::Damaged(_)) => Ok(None),
        }
    }

    /// Returns why an entry of the usual size finds no room on the disk, or `None` if it does.
    pub(super) fn why_no_room(&mut self) -> Result<Option<String>, SpoolError> {
        const USUAL_BYTES: u64 = 4_096;
        match self.logs()?.make_room(LogName::Entries, std::iter::once(USUAL_BYTES)) {
            Ok(()) => Ok(None),
            Err(SpoolError::Full(reason)) => Ok(Some(SpoolError::Full(reason).to_string())),
            Err(error) => Err(error),
        }
    }

    /// Checks now and then that the spool is still in its place: nothing is acknowledged into a directory that nobody can find again.
    pub(super) fn check_place(&mut self) -> Result<(), SpoolError> {
        if self.clock.since(self.looked) < LOOK_AFTER {
            return Ok(());
        }
        self.looked = self.clock.now();
        if self.logs()?.are_in_place() && self.lock.as_ref().is_none_or(Lock::is_in_place) {
            return Ok(());
        }
        Err(SpoolError::Broken(format!(
            "its directory {} was moved, removed or replaced while the recorder worked on it",
            self.path.display()
        )))
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        let note = self.note();
        if let Some(logs) = self.logs.take().filter(|_| self.is_opened) {
            // A mark that is not written now is reconstructed by reading the log.
            let _ = logs.close(&note);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage_tests;
