//! The spool's file. Main type: [`SpoolFile`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::clock::{IdClock, now_ns};
use super::counts::Counts;
use super::holders::{Change, Holders, QuarantineView};
use super::lock::SpoolLock;
use super::opening::{self, LaneNews, LaneOpening};
use super::salvage::{self, Salvaged};
use super::schema::{ENTRY_SUMS, MESSAGE_BYTES, VERSION, connect, count, count_messages, fact_number, holders};
use super::{APART_LANES, Offer, SpoolError};
use crate::recorder::access::owned_id;

/// Ids that were forgotten in one transaction, at most, besides as many as it has taken in.
const FORGET_MAX: u64 = 1_000;
/// Ids of messages may take this share of the bound, besides what waits and what is in quarantine.
const MESSAGES_SHARE: u64 = 4;

/// The file, opened for writing.
#[derive(Debug)]
pub struct SpoolFile {
    connection: Connection,
    path: PathBuf,
    counts: Counts,
    bound_bytes: u64,
    quarantine_bound_bytes: u64,
    /// Who holds what of the quarantine.
    holders: Holders,
    remember: Duration,
    /// Bytes of the ids of messages.
    message_bytes: u64,
    /// What they grow old by.
    clock: IdClock,
    /// Whether there are ids without owners, of a version that did not know any.
    has_unowned: bool,
    salvaged: Option<Salvaged>,
    _lock: SpoolLock,
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It is an entry with this sequence.
    New(i64),
    /// A message of this id from this source was taken in before.
    Duplicate,
}

impl SpoolFile {
    /// Opens the spool in a directory, which is made if there is none. Damage is moved aside and what is readable is kept. Its
    /// quarantine may be as large as what waits, until another bound is set.
    ///
    /// # Errors
    /// [`SpoolError::Unusable`] with the reason.
    pub fn open(directory: &Path, bound_bytes: u64, remember: Duration) -> Result<Self, SpoolError> {
        let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
        std::fs::create_dir_all(directory).map_err(|error| unusable(format!("cannot be made: {error}")))?;
        let lock = SpoolLock::take(directory)?;
        let path = directory.join("spool.db");
        let salvaged = salvage::check(&path).map_err(&unusable)?;
        let mut connection = connect(&path).map_err(|error| unusable(error.to_string()))?;
        let version = fact_number(&connection, "version").map_err(|error| unusable(error.to_string()))?;
        if version != VERSION {
            return Err(unusable(format!(
                "its version is {version} and this loadline reads {VERSION}; use the loadline that made it"
            )));
        }
        opening::begin(&mut connection).map_err(|error| unusable(error.to_string()))?;
        // The file's own entry in its directory must survive a power cut too.
        let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| unusable(format!("cannot be synced: {error}")))?;
        let counts = count(&connection).map_err(|error| unusable(error.to_string()))?;
        let message_bytes = count_messages(&connection).map_err(|error| unusable(error.to_string()))?;
        let clock = id_clock(&connection).map_err(|error| unusable(error.to_string()))?;
        let has_unowned = has_unowned(&connection).map_err(|error| unusable(error.to_string()))?;
        let holders = holders(&connection).map_err(|error| unusable(error.to_string()))?;
        Ok(SpoolFile {
            connection,
            path,
            counts,
            bound_bytes,
            quarantine_bound_bytes: bound_bytes,
            holders,
            remember,
            message_bytes,
            clock,
            has_unowned,
            salvaged,
            _lock: lock,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was found damaged when the spool was opened.
    pub fn salvaged(&self) -> Option<&Salvaged> {
        self.salvaged.as_ref()
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sets the bound of its quarantine.
    #[must_use]
    pub fn with_quarantine(self, bound_bytes: u64) -> Self {
        SpoolFile { quarantine_bound_bytes: bound_bytes, ..self }
    }

    /// Whether what is in quarantine takes at least half of its bound.
    pub fn is_half_quarantine(&self) -> bool {
        self.counts.quarantined_bytes >= self.quarantine_bound_bytes / 2
    }

    /// How the quarantine is shared.
    pub fn quarantine_view(&self) -> QuarantineView {
        self.holders.view(self.counts.quarantined_bytes, self.quarantine_bound_bytes)
    }

    /// The number of lanes that entries are assigned to, changed to `wanted` if nothing waits.
    ///
    /// # Errors
    /// [`SpoolError::Unusable`] when entries wait in other lanes: their sources' order would be lost.
    pub fn set_lanes(&mut self, wanted: u32) -> Result<(), SpoolError> {
        let lanes = fact_number(&self.connection, "lanes").map_err(|error| SpoolError::of(&error))?;
        if lanes == i64::from(wanted) {
            return Ok(());
        }
        // What waits apart does so whatever the number of the others is.
        let waiting = "SELECT count(*) FROM entry WHERE lane < ?";
        let waiting: u64 = self
            .connection
            .query_row(waiting, [APART_LANES.start], |row| row.get(0))
            .map_err(|error| SpoolError::of(&error))?;
        if waiting > 0 && lanes != 0 {
            let reason = format!(
                "{waiting} entries wait for {lanes} writers and writer.count is {wanted}; let them drain with writer.count = {lanes} first"
            );
            return Err(SpoolError::Unusable { path: self.path.display().to_string(), reason });
        }
        let set = "INSERT OR REPLACE INTO fact VALUES ('lanes', ?)";
        self.connection.execute(set, [wanted]).map_err(|error| SpoolError::of(&error))?;
        Ok(())
    }

    /// What a lane shows to the ledger.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn lane_opening(&mut self, lane: u32) -> Result<LaneOpening, SpoolError> {
        opening::of_lane(&self.connection, lane).map_err(|error| SpoolError::of(&error))
    }

    /// Starts a group: what is stored, settled and quarantined with it is synced together.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn begin(&mut self) -> Result<Group<'_>, SpoolError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        Ok(Group {
            transaction: transaction.map_err(|error| SpoolError::of(&error))?,
            counts: self.counts,
            held: HashMap::new(),
            bound_bytes: self.bound_bytes,
            quarantine_bound_bytes: self.quarantine_bound_bytes,
            remember: self.remember,
            message_bytes: self.message_bytes,
            clock: self.clock,
            has_unowned: self.has_unowned,
            messages: 0,
            newest: 0,
            result: (&mut self.counts, &mut self.message_bytes, &mut self.holders),
        })
    }

    /// The connection.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Changes that are synced together; dropped without [`Group::commit`] none of them was made.
pub struct Group<'a> {
    pub(super) transaction: Transaction<'a>,
    pub(super) counts: Counts,
    /// What becomes more and less of what senders hold of the quarantine.
    pub(super) held: HashMap<String, Change>,
    bound_bytes: u64,
    quarantine_bound_bytes: u64,
    remember: Duration,
    message_bytes: u64,
    clock: IdClock,
    has_unowned: bool,
    /// Ids taken in.
    messages: u64,
    /// The newest entry of this group; 0 for none.
    newest: i64,
    result: (&'a mut Counts, &'a mut u64, &'a mut Holders),
}

impl Group<'_> {
    /// The counters as they will be.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The newest entry that it has; 0 for none.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Whether an offer fits.
    pub fn has_room_for(&self, offer: &Offer) -> bool {
        self.has_room_for_bytes(offer.stored_bytes())
    }

    /// Whether so much more fits.
    pub fn has_room_for_bytes(&self, bytes: u64) -> bool {
        self.counts.held_bytes(self.bound_bytes, self.quarantine_bound_bytes) + bytes <= self.bound_bytes
    }

    /// Half of the spool's bound.
    pub(super) fn half_of_bound(&self) -> u64 {
        self.bound_bytes / 2
    }

    /// Whether less than half of the quarantine's bound is used.
    pub(super) fn is_quarantine_below_half(&self) -> bool {
        self.counts.quarantined_bytes < self.quarantine_bound_bytes / 2
    }

    /// Notes what a lane has found out; what it shows to the ledger from here on.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn note(&mut self, lane: u32, news: &LaneNews) -> Result<LaneOpening, SpoolError> {
        if let LaneNews::Parted { through, .. } = news {
            self.settle(lane, *through)?;
        }
        opening::note(&self.transaction, lane, news).map_err(|error| SpoolError::of(&error))
    }

    /// Stores an offer, unless its message was stored before.
    ///
    /// # Errors
    /// [`SpoolError::Full`] beyond the bound; otherwise as the disk fails.
    pub fn append(&mut self, offer: &Offer) -> Result<Stored, SpoolError> {
        if !self.has_room_for(offer) {
            let shown = crate::units::show_bytes;
            let (used, bound) = (shown(self.counts.spooled_bytes as f64), shown(self.bound_bytes as f64));
            let kept = match self.counts.quarantined_bytes.saturating_sub(self.quarantine_bound_bytes) {
                0 => String::new(),
                bytes => format!(", and {} more than quarantine.bound are in quarantine", shown(bytes as f64)),
            };
            return Err(SpoolError::Full(format!("{used} of {bound} wait for the database{kept}")));
        }
        self.insert(offer).map_err(|error| SpoolError::of(&error))
    }

    pub(super) fn insert(&mut self, offer: &Offer) -> rusqlite::Result<Stored> {
        if !offer.message_id.is_empty() {
            if self.has_unowned && self.was_stored_unowned(offer)? {
                return Ok(Stored::Duplicate);
            }
            let mut remember = self.transaction.prepare_cached("INSERT OR IGNORE INTO message VALUES (?, ?, ?)")?;
            if remember.execute(params![&*offer.source, offer.message_id, self.clock.now_ns()])? == 0 {
                return Ok(Stored::Duplicate);
            }
            self.messages += 1;
            self.message_bytes += MESSAGE_BYTES + 2 * (offer.source.len() + offer.message_id.len()) as u64;
        }
        self.transaction
            .prepare_cached(
                "INSERT INTO entry (lane, source, sender, message_id, received_ns, precision, rows, checksum, body) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                offer.lane,
                &*offer.source,
                &*offer.sender,
                offer.message_id,
                offer.received_ns,
                offer.precision.code(),
                offer.rows,
                offer.checksum(),
                offer.body,
            ])?;
        self.counts.acknowledged += u64::from(offer.rows);
        self.counts.spooled += u64::from(offer.rows);
        self.counts.spooled_bytes += offer.stored_bytes();
        self.counts.entries += 1;
        self.newest = self.transaction.last_insert_rowid();
        Ok(Stored::New(self.newest))
    }

    /// Whether a version that knew no owners of ids has stored this. It kept them as clients sent them; nothing is kept so any more, and so nobody
    /// can add to them.
    fn was_stored_unowned(&self, offer: &Offer) -> rusqlite::Result<bool> {
        let Some(id) = owned_id(&offer.message_id) else { return Ok(false) };
        let mut find = self.transaction.prepare_cached("SELECT 1 FROM message WHERE source = ? AND message_id = ?")?;
        find.exists(params![&*offer.source, id])
    }

    /// Forgets the entries of a lane up to a sequence: all their rows are committed or quarantined.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn settle(&mut self, lane: u32, through: i64) -> Result<(), SpoolError> {
        self.remove(lane, through).map_err(|error| SpoolError::of(&error))
    }

    fn remove(&mut self, lane: u32, through: i64) -> rusqlite::Result<()> {
        let (entries, rows, bytes): (u64, u64, u64) = self
            .transaction
            .prepare_cached(&format!("{ENTRY_SUMS} WHERE lane = ? AND sequence <= ?"))?
            .query_row(params![lane, through], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let refused = "SELECT ifnull(sum(quarantine.rows), 0) FROM entry CROSS JOIN quarantine ON quarantine.entry = entry.sequence \
                       WHERE entry.lane = ? AND entry.sequence <= ?";
        let refused: u64 =
            self.transaction.prepare_cached(refused)?.query_row(params![lane, through], |row| row.get(0))?;
        self.transaction
            .prepare_cached("DELETE FROM entry WHERE lane = ? AND sequence <= ?")?
            .execute(params![lane, through])?;
        let committed = rows.saturating_sub(refused);
        self.counts.committed += committed;
        self.counts.spooled = self.counts.spooled.saturating_sub(committed);
        self.counts.spooled_bytes = self.counts.spooled_bytes.saturating_sub(bytes);
        self.counts.entries = self.counts.entries.saturating_sub(entries);
        Ok(())
    }

    /// Whether ids of messages take more room than they may: the oldest are forgotten then, however young they are.
    pub fn remembers_too_much(&self) -> bool {
        self.message_bytes > self.bound_bytes / MESSAGES_SHARE
    }

    /// Forgets ids of messages that are old enough, or too many, some at a time; and notes how far time has come for them.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn forget_messages(&mut self) -> Result<usize, SpoolError> {
        self.forget_messages_at(self.clock.now_ns())
    }

    fn forget_messages_at(&mut self, now_ns: i64) -> Result<usize, SpoolError> {
        let before = match self.remembers_too_much() {
            true => i64::MAX,
            false => now_ns.saturating_sub(i64::try_from(self.remember.as_nanos()).unwrap_or(i64::MAX)),
        };
        let note = "UPDATE fact SET value = ? WHERE name = 'id_clock_ns'";
        self.transaction.execute(note, [now_ns]).map_err(|error| SpoolError::of(&error))?;
        let forgotten = self.forget(before, FORGET_MAX + self.messages).map_err(|error| SpoolError::of(&error))?;
        self.message_bytes = self.message_bytes.saturating_sub(forgotten.iter().sum());
        Ok(forgotten.len())
    }

    /// Bytes of each id that was forgotten.
    fn forget(&self, before_ns: i64, most: u64) -> rusqlite::Result<Vec<u64>> {
        let forget = "DELETE FROM message WHERE (source, message_id) IN \
                      (SELECT source, message_id FROM message WHERE received_ns < ? ORDER BY received_ns LIMIT ?) \
                      RETURNING length(CAST(source AS BLOB)) + length(CAST(message_id AS BLOB))";
        let mut forget = self.transaction.prepare_cached(forget)?;
        let rows = forget.query_map(params![before_ns, most], |row| row.get::<_, u64>(0))?;
        rows.map(|bytes| Ok(MESSAGE_BYTES + 2 * bytes?)).collect()
    }

    /// Makes the changes durable.
    ///
    /// # Errors
    /// As the disk fails; none of the changes was made then.
    pub fn commit(self) -> Result<(), SpoolError> {
        let counts = self.counts;
        let store = || {
            let mut set = self.transaction.prepare_cached("UPDATE fact SET value = ? WHERE name = ?")?;
            set.execute(params![counts.acknowledged, "acknowledged"])?;
            set.execute(params![counts.committed, "committed"])
        };
        store().map_err(|error| SpoolError::of(&error))?;
        self.transaction.commit().map_err(|error| SpoolError::of(&error))?;
        let (known_counts, known_bytes, holders) = self.result;
        (*known_counts, *known_bytes) = (counts, self.message_bytes);
        self.held.iter().for_each(|(holder, change)| holders.change(holder, change));
        Ok(())
    }
}

/// The clock of the ids, from where it had come to; a first value is noted, where there is none.
fn id_clock(connection: &Connection) -> rusqlite::Result<IdClock> {
    let newest = connection.query_row("SELECT max(received_ns) FROM message", [], |row| row.get(0))?;
    let note = "INSERT OR IGNORE INTO fact VALUES ('id_clock_ns', ?)";
    connection.execute(note, [IdClock::first_ns(newest, now_ns())])?;
    fact_number(connection, "id_clock_ns").map(IdClock::new)
}

fn has_unowned(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare("SELECT 1 FROM message WHERE instr(message_id, char(10)) = 0 LIMIT 1")?.exists([])
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
