//! The tables of the spool's database: creates them, and upgrades older versions. Main function: [`connect`].

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::VERSION;

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

/// Added in version 2: openings, by which the ledger tells a spool from its copies.
const OPENINGS: &str = "
CREATE TABLE lane (number INTEGER PRIMARY KEY, recorder TEXT NOT NULL, is_checked INTEGER NOT NULL);
CREATE TABLE opening (lane INTEGER, number INTEGER, token TEXT NOT NULL, newest INTEGER NOT NULL, PRIMARY KEY (lane, number));
";

/// Added in version 3: the lane in which the records of a measurement wait.
const APART: &str = "CREATE TABLE apart (measurement TEXT PRIMARY KEY, lane INTEGER NOT NULL) WITHOUT ROWID;";

/// Added in version 4: the sender according to its token.
const SENDERS: &str = "
ALTER TABLE entry ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE quarantine ADD COLUMN sender TEXT NOT NULL DEFAULT '';
";

/// An SQL expression for a random name of 32 characters.
const RANDOM_NAME: &str = "lower(hex(randomblob(16)))";

/// Opens the file, and creates its tables if it is new.
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

/// Adds what an older version did not have; a newer version stays as it is.
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
