//! Spools of versions 1 to 4, which were an SQLite database `spool.db`: it is read once, and its contents go into the logs before anything new does. Main
//! function: [`bring_over`].
//!
//! Invariant: the database is removed only when everything in it is durable in the logs; until then the database counts.

mod salvage;
mod schema;

use std::collections::BTreeMap;
use std::path::Path;

use loadline_segments::segments::Log;
use rusqlite::{Connection, OpenFlags, Row};

use super::fact::{FACTS, Fact, Id, StoredEntry, StoredRefusal, facts_of};
use super::ids::{id_of, seconds};
use super::logs::{self, error_of, random_epoch};
use super::opening::Opening;
use super::place::LogName;
use super::refusal::DAMAGED;
use super::state::{LaneState, State};
use super::{Entry, Offer, Quarantined, SpoolError};
use crate::recorder::clock::Clock;
use crate::recorder::line::Precision;

pub use salvage::Salvaged;

/// The file name of the database.
pub(super) const NAME: &str = "spool.db";
/// The last version that was a database.
const VERSION: i64 = 4;
/// The most ids in a frame.
const IDS_MAX: usize = 10_000;

/// Moves the contents of a database into the logs, if there is a database; returns its damage, if any.
///
/// # Errors
/// Returns an error if the database cannot be read, or the logs cannot be written.
pub(super) fn bring_over(
    directory: &Path,
    bound_bytes: u64,
    clock: &dyn Clock,
) -> Result<Option<Salvaged>, SpoolError> {
    let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
    let path = directory.join(NAME);
    if !path.exists() {
        return Ok(None);
    }
    let mut salvaged = None;
    if !was_brought_over(directory).map_err(|error| unusable(error.to_string()))? {
        for log in [LogName::Lasting, LogName::Entries] {
            // The remains of an earlier attempt.
            match std::fs::remove_dir_all(logs::directory(directory, log)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unusable(error.to_string())),
                _ => {}
            }
        }
        salvaged = salvage::check(&path).map_err(&unusable)?;
        let database = schema::connect(&path).map_err(|error| unusable(error.to_string()))?;
        let version = schema::fact_number(&database, "version").map_err(|error| unusable(error.to_string()))?;
        if version != VERSION {
            return Err(unusable(format!(
                "the version of its {NAME} is {version} and this loadline reads those up to {VERSION}; use the loadline that made it"
            )));
        }
        copy(&database, directory, (bound_bytes, clock.day_ns()))?;
    }
    remove(&path).map_err(|error| unusable(error.to_string()))?;
    Ok(salvaged)
}

/// Returns whether everything of the database is in the logs, whose state is written last.
fn was_brought_over(directory: &Path) -> std::io::Result<bool> {
    let lasting = logs::directory(directory, LogName::Lasting);
    if !lasting.exists() {
        return Ok(false);
    }
    let mut has_state = false;
    let disk = loadline_segments::segments::Directory::open(&lasting)?;
    loadline_segments::segments::look(&disk, &mut |header, body| {
        has_state |= facts_of(header.kind, body).iter().any(|(fact, ..)| matches!(fact, Fact::State(_)));
    })?;
    Ok(has_state)
}

fn remove(path: &Path) -> std::io::Result<()> {
    // The database itself is removed last: without it nobody looks for the other files.
    for suffix in ["-wal", "-shm", ""] {
        match std::fs::remove_file(format!("{}{suffix}", path.display())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    path.parent().map_or(Ok(()), |directory| std::fs::File::open(directory)?.sync_all())
}

fn copy(database: &Connection, directory: &Path, (bound_bytes, now_ns): (u64, i64)) -> Result<(), SpoolError> {
    let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
    let disk = logs::open_directory(directory, LogName::Lasting).map_err(|error| unusable(error.to_string()))?;
    let settings = logs::settings(bound_bytes, LogName::Lasting);
    let (mut log, _) = Log::open(disk, settings, random_epoch(), &mut |_| {}).map_err(error_of)?;
    let mut failed = None;
    let mut put = |fact: &Fact, rows: u32| {
        let mut body = Vec::new();
        fact.append_to(&mut body);
        let appended = log.append(FACTS, 0, rows, &[&body]);
        failed = failed.take().or(appended.err().map(error_of));
    };
    let mut read = || -> rusqlite::Result<()> {
        let has_unowned = read_ids(database, &mut put)?;
        let newest_quarantined = read_quarantine(database, &mut put)?;
        let newest_quarantined = read_entries(database, (newest_quarantined, now_ns), &mut put)?;
        let state = State { has_unowned, newest_quarantined, ..read_state(database, now_ns)? };
        // Twice, as always, so that no single damage takes the state away.
        (0..2).for_each(|_| put(&Fact::State(Box::new(state.clone())), 0));
        Ok(())
    };
    read().map_err(|error| unusable(error.to_string()))?;
    if let Some(error) = failed {
        return Err(error);
    }
    log.close(&[]).map_err(error_of)
}

type Put<'a> = dyn FnMut(&Fact, u32) + 'a;

fn read_ids(database: &Connection, put: &mut Put<'_>) -> rusqlite::Result<bool> {
    let mut select = database.prepare("SELECT source, message_id, received_ns FROM message")?;
    let (mut rows, mut ids, mut has_unowned) = (select.query([])?, Vec::<(Id, u32)>::new(), false);
    while let Some(row) = rows.next()? {
        let (source, id): (String, String) = (row.get(0)?, row.get(1)?);
        has_unowned |= !id.contains('\n');
        ids.push((id_of(&source, &id), seconds(row.get(2)?)));
        if ids.len() >= IDS_MAX {
            put(&Fact::Ids(std::mem::take(&mut ids)), 0);
        }
    }
    put(&Fact::Ids(ids), 0);
    Ok(has_unowned)
}

/// Reads the quarantine, and returns the highest number in it.
fn read_quarantine(database: &Connection, put: &mut Put<'_>) -> rusqlite::Result<i64> {
    let select = "SELECT id, entry, row, rows, source, sender, received_ns, precision, quarantined_ns, reason, body, checksum \
                  FROM quarantine ORDER BY id";
    let mut select = database.prepare(select)?;
    let (mut rows, mut newest) = (select.query([])?, 0);
    while let Some(row) = rows.next()? {
        let (body, precision): (Vec<u8>, u8) = (row.get(10)?, row.get(7)?);
        // A record that has changed is never replayed.
        let is_whole = crc32fast::hash(&body) == row.get::<_, u32>(11)? && Precision::from_code(precision).is_some();
        let number: i64 = row.get(2)?;
        let offer = Offer {
            lane: 0,
            source: row.get::<_, String>(4)?.into(),
            sender: row.get::<_, String>(5)?.into(),
            message_id: String::new(),
            received_ns: row.get(6)?,
            precision: Precision::from_code(precision).unwrap_or_default(),
            rows: row.get(3)?,
            body,
            is_packed: false,
        };
        newest = row.get(0)?;
        let refusal = StoredRefusal {
            id: newest,
            entry: row.get(1)?,
            row: if is_whole { number } else { -1 - number.abs() },
            quarantined_ns: row.get(8)?,
            reason: row.get(9)?,
            offer,
        };
        let rows = refusal.offer.rows;
        put(&Fact::Quarantined(refusal), rows);
    }
    Ok(newest)
}

/// Reads the entries, and returns the highest number in quarantine, where damaged entries go.
fn read_entries(
    database: &Connection,
    (mut newest_quarantined, now_ns): (i64, i64),
    put: &mut Put<'_>,
) -> rusqlite::Result<i64> {
    let select = "SELECT sequence, source, sender, message_id, received_ns, precision, rows, checksum, body, lane FROM entry ORDER BY sequence";
    let mut select = database.prepare(select)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (sequence, offer, is_whole) = offer_of(row, row.get(9)?)?;
        let count = offer.rows;
        let fact = if is_whole {
            Fact::Entry(StoredEntry { entry: Entry { sequence, offer }, version: 0, id_s: 0 })
        } else {
            newest_quarantined += 1;
            Fact::Quarantined(StoredRefusal {
                id: newest_quarantined,
                entry: sequence,
                row: -1,
                quarantined_ns: now_ns,
                reason: DAMAGED.to_owned(),
                offer: Offer { message_id: String::new(), ..offer },
            })
        };
        put(&fact, count);
    }
    Ok(newest_quarantined)
}

/// Returns an entry's sequence and offer, and whether it is as it was stored, from a row of `sequence, source, sender, message_id, received_ns, precision, rows, checksum, body`.
fn offer_of(row: &Row<'_>, lane: u32) -> rusqlite::Result<(i64, Offer, bool)> {
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
        is_packed: false,
    };
    let is_whole = precision.is_some() && checksum(&offer) == row.get::<_, u32>(7)?;
    Ok((row.get(0)?, offer, is_whole))
}

/// Returns the CRC-32 of everything that was stored of an entry.
fn checksum(offer: &Offer) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offer.lane.to_le_bytes());
    hasher.update(&(offer.source.len() as u64).to_le_bytes());
    hasher.update(offer.source.as_bytes());
    hasher.update(&(offer.message_id.len() as u64).to_le_bytes());
    hasher.update(offer.message_id.as_bytes());
    hasher.update(&offer.received_ns.to_le_bytes());
    hasher.update(&[offer.precision.code()]);
    hasher.update(&offer.rows.to_le_bytes());
    hasher.update(&offer.body);
    // Entries of versions without senders have none, and keep their checksums.
    hasher.update(offer.sender.as_bytes());
    hasher.finalize()
}

fn read_state(database: &Connection, now_ns: i64) -> rusqlite::Result<State> {
    let recorder: String =
        database.query_row("SELECT value FROM fact WHERE name = 'recorder'", [], |row| row.get(0))?;
    let clock: Option<i64> =
        database.query_row("SELECT max(value) FROM fact WHERE name = 'id_clock_ns'", [], |row| row.get(0))?;
    let newest_id: Option<i64> = database.query_row("SELECT max(received_ns) FROM message", [], |row| row.get(0))?;
    let newest = "SELECT max(ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'entry'), 0), \
                  ifnull((SELECT max(sequence) FROM entry), 0))";
    let mut known: BTreeMap<u32, LaneState> = database
        .prepare("SELECT number, recorder, is_checked FROM lane")?
        .query_map([], |row| {
            Ok((row.get(0)?, LaneState { recorder: row.get(1)?, is_checked: row.get(2)?, openings: Vec::new() }))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut openings = database.prepare("SELECT lane, number, token, newest FROM opening ORDER BY lane, number")?;
    let mut rows = openings.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(lane) = known.get_mut(&row.get(0)?) {
            lane.openings.push(Opening { number: row.get(1)?, token: row.get(2)?, newest: row.get(3)? });
        }
    }
    Ok(State {
        lanes: u32::try_from(schema::fact_number(database, "lanes")?).unwrap_or(0),
        base: schema::fact_number(database, "acknowledged")?,
        id_clock_ns: clock.unwrap_or_else(|| super::IdClock::first_ns(newest_id, now_ns)),
        newest: database.query_row(newest, [], |row| row.get(0))?,
        apart: database
            .prepare("SELECT measurement, lane FROM apart")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?,
        known,
        ..State::new(recorder)
    })
}

/// Returns the newest records in quarantine of a database that was not moved into logs yet; `None` if there is no database.
pub(super) fn list(directory: &Path, limit: u32) -> Option<rusqlite::Result<Vec<Quarantined>>> {
    let path = directory.join(NAME);
    if !path.exists() {
        return None;
    }
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
    Some(read())
}

#[cfg(test)]
mod tests;
