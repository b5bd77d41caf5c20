//! Reads what waits. Main type: [`Reader`].

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::quarantine::Refusal;
use super::{Entry, Offer, SpoolError};
use crate::recorder::line::Precision;

/// Why an entry is quarantined that is not as it was written.
const DAMAGED: &str = "the entry's checksum is wrong: the spool's disk or file was damaged";

/// A connection that reads, one for each writer.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

/// An entry as it was found.
pub type Found = Result<Entry, (Entry, Refusal)>;

impl Reader {
    /// Opens the spool's file to read it.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn open(path: &Path) -> Result<Self, SpoolError> {
        let open = || {
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.pragma_update(None, "query_only", "on")?;
            connection.pragma_update(None, "cache_size", -2_048)?;
            Ok(Reader { connection })
        };
        open().map_err(|error: rusqlite::Error| SpoolError::of(&error))
    }

    /// The entries of a lane between two sequences, in order, until they have this many bytes or rows; at least one where there is any.
    /// One whose checksum is wrong comes with what it is to be quarantined as.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn read(
        &self,
        lane: u32,
        between: (i64, i64),
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<Vec<Found>, SpoolError> {
        self.try_read(lane, between, bytes_max, rows_max).map_err(|error| SpoolError::of(&error))
    }

    /// The first entry of a lane behind a sequence; none where nothing waits there.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn first(&self, lane: u32, after: i64) -> Result<Option<i64>, SpoolError> {
        let read = || -> rusqlite::Result<Option<i64>> {
            let select = "SELECT min(sequence) FROM entry WHERE lane = ? AND sequence > ?";
            self.connection.prepare_cached(select)?.query_row(params![lane, after], |row| row.get(0))
        };
        read().map_err(|error: rusqlite::Error| SpoolError::of(&error))
    }

    /// Records of these entries that are in quarantine: entry and number. A recorder that ended before it could settle the entry
    /// put them there.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn quarantined(&self, first: i64, last: i64) -> Result<Vec<(i64, i64)>, SpoolError> {
        let read = || -> rusqlite::Result<_> {
            let select = "SELECT entry, row FROM quarantine WHERE entry BETWEEN ? AND ?";
            let mut statement = self.connection.prepare_cached(select)?;
            statement.query_map([first, last], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        read().map_err(|error: rusqlite::Error| SpoolError::of(&error))
    }

    /// Records of the entries of a lane up to a sequence that are in the spool.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn rows_through(&self, lane: u32, through: i64) -> Result<u64, SpoolError> {
        let read = || -> rusqlite::Result<u64> {
            let select = "SELECT ifnull(sum(rows), 0) FROM entry WHERE lane = ? AND sequence <= ?";
            self.connection.prepare_cached(select)?.query_row(params![lane, through], |row| row.get(0))
        };
        read().map_err(|error: rusqlite::Error| SpoolError::of(&error))
    }

    /// Records in quarantine whose entry was damaged.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn damaged_rows(&self) -> Result<u64, SpoolError> {
        let select = "SELECT ifnull(sum(rows), 0) FROM quarantine WHERE reason = ?";
        let read = || self.connection.query_row(select, [DAMAGED], |row| row.get(0));
        read().map_err(|error: rusqlite::Error| SpoolError::of(&error))
    }

    /// When the oldest entry of a lane behind a sequence arrived, in nanoseconds since 1970; none where nothing waits there.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn oldest(&self, lane: u32, after: i64) -> Result<Option<i64>, SpoolError> {
        let read = || -> rusqlite::Result<Option<i64>> {
            let select = "SELECT received_ns FROM entry WHERE lane = ? AND sequence > ? ORDER BY sequence LIMIT 1";
            self.connection.prepare_cached(select)?.query_row(params![lane, after], |row| row.get(0)).optional()
        };
        read().map_err(|error: rusqlite::Error| SpoolError::of(&error))
    }

    fn try_read(
        &self,
        lane: u32,
        (after, before): (i64, i64),
        bytes_max: usize,
        rows_max: u64,
    ) -> rusqlite::Result<Vec<Found>> {
        let select = "SELECT sequence, source, sender, message_id, received_ns, precision, rows, checksum, body FROM entry \
                      WHERE lane = ? AND sequence > ? AND sequence < ? ORDER BY sequence";
        let mut statement = self.connection.prepare_cached(select)?;
        let mut rows = statement.query(params![lane, after, before])?;
        let (mut found, mut bytes, mut points) = (Vec::new(), 0, 0);
        while let Some(row) = rows.next()? {
            let (sequence, offer, is_whole) = offer_of(row, lane)?;
            bytes += offer.body.len();
            points += u64::from(offer.rows);
            let entry = Entry { sequence, offer };
            found.push(if is_whole {
                Ok(entry)
            } else {
                let reason = DAMAGED.to_owned();
                let refusal = Refusal { row: -1, rows: entry.offer.rows, body: entry.offer.body.clone(), reason };
                Err((entry, refusal))
            });
            if bytes >= bytes_max || points >= rows_max {
                break;
            }
        }
        Ok(found)
    }
}

/// What an entry's row says: `sequence, source, sender, message_id, received_ns, precision, rows, checksum, body`; and whether it is as it was stored.
pub(super) fn offer_of(row: &Row<'_>, lane: u32) -> rusqlite::Result<(i64, Offer, bool)> {
    let precision = Precision::from_code(row.get(5)?);
    let offer = Offer {
        lane,
        source: row.get::<_, String>(1)?.into(),
        sender: row.get::<_, String>(2)?.into(),
        message_id: row.get(3)?,
        received_ns: row.get(4)?,
        precision: precision.unwrap_or_default(),
        rows: row.get(6)?,
        body: row.get(8)?,
    };
    let is_whole = precision.is_some() && offer.checksum() == row.get::<_, u32>(7)?;
    Ok((row.get(0)?, offer, is_whole))
}
