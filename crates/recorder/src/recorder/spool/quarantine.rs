//! Records that the database refused, each with its reason. Main type: [`Quarantined`]; [`list`] reads them, and
//! [`SpoolFile::clear`] gives them back to the queue, or up.
//!
//! Invariant: a record is in quarantine or in the queue, never in both and never in neither: both change in one transaction.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::file::Group;
use super::holders::Change;
use super::schema::QUARANTINED_BYTES;
use super::{Entry, Offer, SpoolError, SpoolFile, body_checksum, lane_of};

/// A record, or a damaged entry, in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Quarantined {
    /// Its number.
    pub id: i64,
    /// Who sent it.
    pub source: String,
    /// When it was quarantined, in nanoseconds since 1970.
    pub quarantined_ns: i64,
    /// Why.
    pub reason: String,
    /// Number of records.
    pub rows: u64,
    /// The line as it was sent; what is not UTF-8 is replaced.
    pub line: String,
}

/// Records whose entry still waits are decided with it: they are neither given back nor given up.
const IS_DECIDED: &str = "NOT EXISTS (SELECT 1 FROM entry WHERE entry.sequence = quarantine.entry)";

/// What one record of an entry is quarantined with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The record's number within the entry, from 0; -1 for an entry that is damaged, which is never replayed.
    pub row: i64,
    /// How many records it stands for: one, or all of an entry that is damaged.
    pub rows: u32,
    /// The line.
    pub body: Vec<u8>,
    /// Why.
    pub reason: String,
}

impl Group<'_> {
    /// Keeps a refused record. Doing it again for the same record changes nothing.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn quarantine(&mut self, entry: &Entry, refusal: &Refusal, now_ns: i64) -> Result<(), SpoolError> {
        let insert = || {
            let mut insert = self.transaction.prepare_cached(
                "INSERT OR IGNORE INTO quarantine \
                 (entry, row, rows, source, sender, received_ns, precision, quarantined_ns, reason, body, checksum) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?;
            insert.execute(params![
                entry.sequence,
                refusal.row,
                refusal.rows,
                &*entry.offer.source,
                &*entry.offer.sender,
                entry.offer.received_ns,
                entry.offer.precision.code(),
                now_ns,
                refusal.reason,
                refusal.body,
                body_checksum(&refusal.body),
            ])
        };
        let added = insert().map_err(|error| SpoolError::of(&error))?;
        if added > 0 {
            self.counts.quarantined += u64::from(refusal.rows);
            self.counts.spooled = self.counts.spooled.saturating_sub(u64::from(refusal.rows));
            let bytes = stored_bytes(&entry.offer, refusal);
            self.counts.quarantined_bytes += bytes;
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let reason = refusal.reason.clone();
            self.note_held(&entry.offer, Change { rows: refusal.rows.into(), bytes, deferred_bytes: 0, reason });
        }
        Ok(())
    }

    /// As [`Group::quarantine`], for a record that was never in the spool: it is acknowledged with this.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn quarantine_unspooled(&mut self, entry: &Entry, refusal: &Refusal, now_ns: i64) -> Result<(), SpoolError> {
        let before = self.counts;
        self.quarantine(entry, refusal, now_ns)?;
        self.counts.acknowledged += self.counts.quarantined - before.quarantined;
        self.counts.spooled = before.spooled;
        Ok(())
    }
}

/// Records that are replayed or discarded in one transaction, at most, and their bytes.
const PORTION_MAX: u32 = 500;
const PORTION_BYTES_MAX: u64 = 4 << 20;

/// What is done with quarantined records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// They go back to the queue. Those whose bytes have changed since stay.
    Replay,
    /// They are given up; nobody counts them as acknowledged any more.
    Discard,
}

/// Which of them, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Those behind this one.
    pub after: i64,
    /// Up to this one; where it is none, up to the last that there is.
    pub through: Option<i64>,
}

impl Span {
    /// All that there are.
    pub const ALL: Span = Span { after: 0, through: None };
}

/// What was done with some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portion {
    /// Records.
    pub rows: u64,
    /// What is left to do; none where nothing is.
    pub next: Option<Span>,
    /// Why nothing more can be done now, if that is so.
    pub full: Option<String>,
}

impl Group<'_> {
    /// Replays or discards the next of a span, the oldest first. What is replayed leaves so many bytes of the spool's bound to others.
    ///
    /// # Errors
    /// As the disk fails.
    pub(super) fn clear(
        &mut self,
        what: Clearing,
        span: Span,
        (lanes, leave_bytes): (u32, u64),
    ) -> Result<Portion, SpoolError> {
        self.try_to_clear(what, span, (lanes, leave_bytes)).map_err(|error| SpoolError::of(&error))
    }

    fn try_to_clear(
        &mut self,
        what: Clearing,
        span: Span,
        (lanes, leave_bytes): (u32, u64),
    ) -> rusqlite::Result<Portion> {
        let last = "SELECT ifnull(max(id), 0) FROM quarantine";
        let through = match span.through {
            Some(through) => through,
            None => self.transaction.query_row(last, [], |row| row.get(0))?,
        };
        let mut portion = Portion { rows: 0, next: None, full: None };
        for (id, mut offer, is_whole) in read_some(&self.transaction, span.after, through)? {
            portion.next = Some(Span { after: id, through: Some(through) });
            let before = self.counts;
            match what {
                Clearing::Replay if !is_whole => continue,
                Clearing::Replay if !self.has_room_for_bytes(leave_bytes + offer.stored_bytes()) => {
                    let reason = "there is no room for more in the spool; go on when it has drained".to_owned();
                    return Ok(Portion { full: Some(reason), ..portion });
                }
                Clearing::Replay => {
                    self.let_go(id, &offer)?;
                    offer.lane = lane_of(&offer.source, lanes);
                    self.insert(&offer)?;
                    // It was acknowledged once already.
                    self.counts.acknowledged = before.acknowledged;
                }
                Clearing::Discard => {
                    self.let_go(id, &offer)?;
                    self.counts.acknowledged = before.acknowledged.saturating_sub(offer.rows.into());
                }
            }
            self.counts.quarantined = before.quarantined.saturating_sub(offer.rows.into());
            portion.rows += u64::from(offer.rows);
        }
        Ok(portion)
    }

    fn let_go(&mut self, id: i64, offer: &Offer) -> rusqlite::Result<()> {
        let delete = format!("DELETE FROM quarantine WHERE id = ? RETURNING {QUARANTINED_BYTES}");
        let bytes: i64 = self.transaction.prepare_cached(&delete)?.query_row([id], |row| row.get(0))?;
        self.counts.quarantined_bytes = self.counts.quarantined_bytes.saturating_sub(bytes.unsigned_abs());
        let change = Change { rows: -i64::from(offer.rows), bytes: -bytes, ..Change::default() };
        self.note_held(offer, change);
        Ok(())
    }
}

impl SpoolFile {
    /// Replays or discards all quarantined records; how many.
    ///
    /// # Errors
    /// As the disk fails, or when the spool is full: some are replayed then.
    pub fn clear(&mut self, what: Clearing) -> Result<u64, SpoolError> {
        let lanes = self.lanes()?;
        let (mut rows, mut next) = (0, Some(Span::ALL));
        while let Some(span) = next {
            let mut group = self.begin()?;
            let portion = group.clear(what, span, (lanes, 0))?;
            group.commit()?;
            rows += portion.rows;
            if let Some(reason) = portion.full {
                return Err(SpoolError::Full(format!("{rows} records are replayed; {reason}")));
            }
            next = portion.next;
        }
        Ok(rows)
    }
}

fn stored_bytes(offer: &Offer, refusal: &Refusal) -> u64 {
    (96 + offer.source.len() + offer.sender.len() + refusal.reason.len() + refusal.body.len()) as u64
}

/// The next records of a span as they were offered, and whether each is as it was stored.
fn read_some(connection: &Connection, after: i64, through: i64) -> rusqlite::Result<Vec<(i64, Offer, bool)>> {
    let select = format!(
        "SELECT id, source, sender, received_ns, precision, rows, checksum, row, body FROM quarantine \
         WHERE id > ? AND id <= ? AND {IS_DECIDED} ORDER BY id LIMIT {PORTION_MAX}"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query([after, through])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while bytes < PORTION_BYTES_MAX
        && let Some(row) = rows.next()?
    {
        let body: Vec<u8> = row.get(8)?;
        let precision = crate::recorder::line::Precision::from_code(row.get(4)?);
        let is_whole = body_checksum(&body) == row.get::<_, u32>(6)? && row.get::<_, i64>(7)? >= 0;
        let offer = Offer {
            lane: 0,
            source: row.get::<_, String>(1)?.into(),
            sender: row.get::<_, String>(2)?.into(),
            message_id: String::new(),
            received_ns: row.get(3)?,
            precision: precision.unwrap_or_default(),
            rows: row.get(5)?,
            body,
        };
        bytes += offer.stored_bytes();
        found.push((row.get(0)?, offer, is_whole && precision.is_some()));
    }
    Ok(found)
}

/// The quarantine of a spool, whether a recorder works on it or not; the newest `limit` in the order they came.
///
/// # Errors
/// A sentence when the spool cannot be read.
pub fn list(directory: &Path, limit: u32) -> Result<Vec<Quarantined>, SpoolError> {
    let path = directory.join("spool.db");
    let read = || {
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let select = "SELECT id, source, quarantined_ns, reason, rows, body FROM \
                      (SELECT * FROM quarantine ORDER BY id DESC LIMIT ?) ORDER BY id";
        let mut statement = connection.prepare(select)?;
        let rows = statement.query_map([limit], |row| {
            Ok(Quarantined {
                id: row.get(0)?,
                source: row.get(1)?,
                quarantined_ns: row.get(2)?,
                reason: row.get(3)?,
                rows: row.get(4)?,
                line: String::from_utf8_lossy(&row.get::<_, Vec<u8>>(5)?).trim_end().to_owned(),
            })
        })?;
        rows.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|error| SpoolError::Unusable { path: directory.display().to_string(), reason: error.to_string() })
}

#[cfg(test)]
#[path = "quarantine_tests.rs"]
mod quarantine_tests;
