//! Records that the database refused, each with its reason. Main type: [`Quarantined`]; [`list`] reads them, and
//! [`SpoolFile::replay`] gives them back to the queue.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use super::file::Group;
use super::{Entry, SpoolError, SpoolFile, body_checksum};

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

/// Bytes that a quarantined record counts against the bound, in SQL.
pub(super) const QUARANTINED_BYTES: &str =
    "96 + length(CAST(source AS BLOB)) + length(CAST(reason AS BLOB)) + length(body)";

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
                 (entry, row, rows, source, received_ns, precision, quarantined_ns, reason, body, checksum) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?;
            insert.execute(params![
                entry.sequence,
                refusal.row,
                refusal.rows,
                &*entry.offer.source,
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
            self.counts.quarantined_bytes += stored_bytes(&entry.offer.source, refusal);
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

impl SpoolFile {
    /// Gives quarantined records back to the queue, the oldest first; how many. Those whose bytes have changed since stay.
    ///
    /// # Errors
    /// As the disk fails, or when the spool is full.
    pub fn replay(&mut self, lane_of: &dyn Fn(&str) -> u32) -> Result<u64, SpoolError> {
        let found = read_all(self.connection()).map_err(|error| SpoolError::of(&error))?;
        let mut replayed = 0;
        for (id, mut offer, is_whole) in found {
            if !is_whole {
                continue;
            }
            offer.lane = lane_of(&offer.source);
            let mut group = self.begin()?;
            let before = group.counts();
            group.let_go(id)?;
            group.append(&offer)?;
            // It was acknowledged once already.
            group.counts.acknowledged = before.acknowledged;
            group.counts.quarantined = before.quarantined.saturating_sub(u64::from(offer.rows));
            group.commit()?;
            replayed += u64::from(offer.rows);
        }
        Ok(replayed)
    }

    /// Gives quarantined records up, up to the one of this number; how many. Nobody counts them as acknowledged any more.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn discard(&mut self, through: i64) -> Result<u64, SpoolError> {
        let mut group = self.begin()?;
        let delete =
            format!("DELETE FROM quarantine WHERE id <= ? AND {IS_DECIDED} RETURNING rows, {QUARANTINED_BYTES}");
        let remove = |group: &Group<'_>| -> rusqlite::Result<(u64, u64)> {
            let mut delete = group.transaction.prepare(&delete)?;
            let mut removed = delete.query([through])?;
            let (mut rows, mut bytes) = (0, 0);
            while let Some(row) = removed.next()? {
                (rows, bytes) = (rows + row.get::<_, u64>(0)?, bytes + row.get::<_, u64>(1)?);
            }
            Ok((rows, bytes))
        };
        let (rows, bytes) = remove(&group).map_err(|error| SpoolError::of(&error))?;
        group.counts.acknowledged = group.counts.acknowledged.saturating_sub(rows);
        group.counts.quarantined = group.counts.quarantined.saturating_sub(rows);
        group.counts.quarantined_bytes = group.counts.quarantined_bytes.saturating_sub(bytes);
        group.commit()?;
        Ok(rows)
    }
}

impl Group<'_> {
    fn let_go(&mut self, id: i64) -> Result<(), SpoolError> {
        let delete = format!("DELETE FROM quarantine WHERE id = ? RETURNING {QUARANTINED_BYTES}");
        let bytes: u64 =
            self.transaction.query_row(&delete, [id], |row| row.get(0)).map_err(|error| SpoolError::of(&error))?;
        self.counts.quarantined_bytes = self.counts.quarantined_bytes.saturating_sub(bytes);
        Ok(())
    }
}

fn stored_bytes(source: &str, refusal: &Refusal) -> u64 {
    (96 + source.len() + refusal.reason.len() + refusal.body.len()) as u64
}

type Found = (i64, super::Offer, bool);

fn read_all(connection: &Connection) -> rusqlite::Result<Vec<Found>> {
    let select = format!(
        "SELECT id, source, received_ns, precision, rows, body, checksum, row FROM quarantine WHERE {IS_DECIDED} ORDER BY id"
    );
    let mut statement = connection.prepare(&select)?;
    let rows = statement.query_map([], |row| {
        let body: Vec<u8> = row.get(5)?;
        let precision = crate::recorder::line::Precision::from_code(row.get(3)?);
        let is_whole = body_checksum(&body) == row.get::<_, u32>(6)? && row.get::<_, i64>(7)? >= 0;
        let offer = super::Offer {
            lane: 0,
            source: row.get::<_, String>(1)?.into(),
            message_id: String::new(),
            received_ns: row.get(2)?,
            precision: precision.unwrap_or_default(),
            rows: row.get(4)?,
            body,
        };
        Ok((row.get(0)?, offer, is_whole && precision.is_some()))
    })?;
    rows.collect()
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
