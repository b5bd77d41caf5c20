//! The tables of the spool's file: how they are made, brought up from older versions, and counted. Main functions: [`connect`] and [`count`].

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::counts::Counts;
use super::holders::{Change, Holders, holder_of};

/// Version of the tables; one that is newer is refused.
pub(super) const VERSION: i64 = 4;

const TABLES: &str = "
CREATE TABLE entry (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    lane INTEGER NOT NULL,
    source TEXT NOT NULL,
    message_id TEXT NOT NULL,
    received_ns INTEGER NOT NULL,
    precision INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    body BLOB NOT NULL,
    sender TEXT NOT NULL DEFAULT ''
);
CREATE INDEX entry_lane ON entry (lane, sequence);
CREATE TABLE message (
    source TEXT NOT NULL,
    message_id TEXT NOT NULL,
    received_ns INTEGER NOT NULL,
    PRIMARY KEY (source, message_id)
) WITHOUT ROWID;
CREATE INDEX message_received ON message (received_ns);
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entry INTEGER NOT NULL,
    row INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    source TEXT NOT NULL,
    received_ns INTEGER NOT NULL,
    precision INTEGER NOT NULL,
    quarantined_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    sender TEXT NOT NULL DEFAULT '',
    UNIQUE (entry, row)
);
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
";

/// What version 1 did not have: openings, which the ledger tells a spool from its copies by.
const OPENINGS: &str = "
CREATE TABLE lane (number INTEGER PRIMARY KEY, recorder TEXT NOT NULL, is_checked INTEGER NOT NULL);
CREATE TABLE opening (lane INTEGER, number INTEGER, token TEXT NOT NULL, newest INTEGER NOT NULL, PRIMARY KEY (lane, number));
";

/// What versions 1 and 2 did not have: the lane in which the records of a measurement wait.
const APART: &str = "CREATE TABLE apart (measurement TEXT PRIMARY KEY, lane INTEGER NOT NULL) WITHOUT ROWID;";

/// What versions up to 3 did not have: who sent, as its token says.
const SENDERS: &str = "
ALTER TABLE entry ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE quarantine ADD COLUMN sender TEXT NOT NULL DEFAULT '';
";

/// A random name of 32 characters, in SQL.
pub(super) const RANDOM_NAME: &str = "lower(hex(randomblob(16)))";

/// The lane of refused records that find no room in quarantine; nobody writes it.
pub(super) const DEFERRED_LANE: u32 = 600;

/// Bytes that a quarantined record counts against the bound, in SQL.
pub(super) const QUARANTINED_BYTES: &str =
    "96 + octet_length(source) + octet_length(sender) + octet_length(reason) + length(body)";

/// What SQLite needs for an id, in its table and its index, besides its texts.
pub(super) const MESSAGE_BYTES: u64 = 48;

/// Sums of `entry`: how many, rows, bytes.
pub(super) const ENTRY_SUMS: &str = "SELECT count(*), ifnull(sum(rows), 0), ifnull(sum(96 + octet_length(source) + octet_length(sender) \
                          + 2 * octet_length(message_id) + length(body)), 0) FROM entry";

/// Opens the file, with its tables made where it is new.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    // 32 MiB between checkpoints, and no more than that is left in the log behind them.
    connection.pragma_update(None, "wal_autocheckpoint", 4_096)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'fact'";
    if transaction.query_row(known, [], |_| Ok(())).optional()?.is_none() {
        transaction.execute_batch(TABLES)?;
        transaction.execute_batch(OPENINGS)?;
        transaction.execute_batch(APART)?;
        let facts = format!(
            "INSERT INTO fact VALUES ('version', ?), ('recorder', {}), ('lanes', 0), ('acknowledged', 0), ('committed', 0)",
            RANDOM_NAME
        );
        transaction.execute(&facts, [VERSION])?;
    } else {
        upgrade(&transaction)?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// Makes what an older version did not have; a newer one stays as it is.
fn upgrade(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let version = fact_number(transaction, "version")?;
    if version < 2 {
        transaction.execute_batch(OPENINGS)?;
    }
    if version < 3 {
        transaction.execute_batch(APART)?;
    }
    if version < 4 {
        transaction.execute_batch(SENDERS)?;
        transaction.execute("UPDATE fact SET value = ? WHERE name = 'version'", [VERSION])?;
    }
    Ok(())
}

pub(super) fn fact_number(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row("SELECT value FROM fact WHERE name = ?", [name], |row| row.get(0))
}

/// Counts what the file holds: it is the truth that the counters begin with.
pub(super) fn count(connection: &Connection) -> rusqlite::Result<Counts> {
    let (entries, rows, spooled_bytes): (u64, u64, u64) =
        connection.query_row(ENTRY_SUMS, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let sums = format!("SELECT ifnull(sum(rows), 0), ifnull(sum({QUARANTINED_BYTES}), 0) FROM quarantine");
    let (quarantined, quarantined_bytes): (u64, u64) =
        connection.query_row(&sums, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let waiting =
        "SELECT ifnull(sum(quarantine.rows), 0) FROM quarantine JOIN entry ON entry.sequence = quarantine.entry";
    let quarantined_of_entries: u64 = connection.query_row(waiting, [], |row| row.get(0))?;
    let deferred = format!("{ENTRY_SUMS} WHERE lane = {DEFERRED_LANE}");
    let (deferred, deferred_bytes): (u64, u64) =
        connection.query_row(&deferred, [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    Ok(Counts {
        acknowledged: fact_number(connection, "acknowledged")? as u64,
        committed: fact_number(connection, "committed")? as u64,
        spooled: rows.saturating_sub(quarantined_of_entries),
        quarantined,
        spooled_bytes,
        entries,
        quarantined_bytes,
        deferred,
        deferred_bytes,
    })
}

/// Who holds what of the quarantine.
pub(super) fn holders(connection: &Connection) -> rusqlite::Result<Holders> {
    let mut holders = Holders::default();
    // The reason is that of the row with the highest number: SQLite gives the other columns of it.
    let quarantined = format!(
        "SELECT sender, CASE sender WHEN '' THEN source ELSE '' END, sum(rows), sum({QUARANTINED_BYTES}), reason, max(id) \
         FROM quarantine GROUP BY 1, 2"
    );
    let mut quarantined = connection.prepare(&quarantined)?;
    let mut rows = quarantined.query([])?;
    while let Some(row) = rows.next()? {
        let change = Change { rows: row.get(2)?, bytes: row.get(3)?, deferred_bytes: 0, reason: row.get(4)? };
        holders.change(&holder_of(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?), &change);
    }
    let deferred = "SELECT sender, source, 96 + octet_length(source) + octet_length(sender) + length(body) FROM entry WHERE lane = ?";
    let mut deferred = connection.prepare(deferred)?;
    let mut rows = deferred.query([DEFERRED_LANE])?;
    while let Some(row) = rows.next()? {
        let change = Change { deferred_bytes: row.get(2)?, ..Change::default() };
        holders.change(&holder_of(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?), &change);
    }
    Ok(holders)
}

pub(super) fn count_messages(connection: &Connection) -> rusqlite::Result<u64> {
    let sums =
        "SELECT count(*), ifnull(sum(length(CAST(source AS BLOB)) + length(CAST(message_id AS BLOB))), 0) FROM message";
    connection.query_row(sums, [], |row| Ok(MESSAGE_BYTES * row.get::<_, u64>(0)? + 2 * row.get::<_, u64>(1)?))
}
