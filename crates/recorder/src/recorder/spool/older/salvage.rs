//! Salvages a damaged spool database: the file is kept aside, and everything readable goes into a new one. Main function: [`check`].

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::schema::connect;

/// What was found damaged and what was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// The path of the damaged file now.
    pub kept: PathBuf,
    /// The number of entries and quarantined records that could be read.
    pub read: u64,
    /// The error that SQLite reported.
    pub damage: String,
}

/// Checks a spool's file, if there is one; a damaged one is moved aside and its readable contents are copied to a new one.
///
/// # Errors
/// A sentence, if the file cannot be moved or the new one cannot be created.
pub(super) fn check(path: &Path) -> Result<Option<Salvaged>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let Err(damage) = look(path) else { return Ok(None) };
    let kept = aside(path)?;
    let read = copy(&kept, path).map_err(|error| format!("a new spool cannot be made: {error}"))?;
    Ok(Some(Salvaged { kept, read, damage }))
}

/// Reads every page of the file.
fn look(path: &Path) -> Result<(), String> {
    let check = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    };
    match check() {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(damage) => Err(damage),
        Err(error) => Err(error.to_string()),
    }
}

fn aside(path: &Path) -> Result<PathBuf, String> {
    let free = |number: u32| PathBuf::from(format!("{}.damaged-{number}", path.display()));
    let kept = (1..).map(free).find(|path| !path.exists()).unwrap_or_else(|| path.with_extension("damaged"));
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (format!("{}{suffix}", path.display()), format!("{}{suffix}", kept.display()));
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{from} is damaged and cannot be moved to {to}: {error}"));
            }
            _ => {}
        }
    }
    Ok(kept)
}

/// Copies row by row, past rows that cannot be read.
fn copy(from: &Path, to: &Path) -> rusqlite::Result<u64> {
    let target = connect(to)?;
    let Ok(source) = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE) else { return Ok(0) };
    let facts =
        "SELECT name, value FROM fact WHERE name IN ('recorder', 'lanes', 'acknowledged', 'committed', 'id_clock_ns')";
    if let Ok(mut statement) = source.prepare(facts)
        && let Ok(mut rows) = statement.query([])
    {
        while let Ok(Some(row)) = rows.next() {
            let (name, value): (String, rusqlite::types::Value) = (row.get(0)?, row.get(1)?);
            target.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", rusqlite::params![name, value])?;
        }
    }
    // No sequence is ever used twice, even that of a lost entry.
    if let Ok(last) =
        source.query_row("SELECT seq FROM sqlite_sequence WHERE name = 'entry'", [], |row| row.get::<_, i64>(0))
    {
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('entry', ?)", [last])?;
    }
    copy_table(&source, &target, "lane", "number")?;
    // Every lane must be compared with the ledger again.
    target.execute("UPDATE lane SET is_checked = 0", [])?;
    copy_table(&source, &target, "opening", "lane, number")?;
    copy_table(&source, &target, "apart", "measurement")?;
    copy_table(&source, &target, "message", "source, message_id")?;
    Ok(copy_table(&source, &target, "entry", "rowid")? + copy_table(&source, &target, "quarantine", "rowid")?)
}

fn copy_table(source: &Connection, target: &Connection, table: &str, key: &str) -> rusqlite::Result<u64> {
    // From both ends to the damage: rows behind it are reached by reading backwards.
    let mut copied = 0;
    for order in ["ASC", "DESC"] {
        let key = key.replace(',', &format!(" {order},"));
        let select = format!("SELECT * FROM {table} NOT INDEXED ORDER BY {key} {order}");
        let Ok(mut statement) = source.prepare(&select) else { continue };
        // An older version has fewer columns.
        let names = statement.column_names().collect::<Vec<_>>().join(", ");
        let columns = statement.column_count();
        let places = vec!["?"; columns].join(", ");
        let insert = format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})");
        let Ok(mut insert) = target.prepare(&insert) else { continue };
        let Ok(mut rows) = statement.query([]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            let values: rusqlite::Result<Vec<rusqlite::types::Value>> =
                (0..columns).map(|column| row.get(column)).collect();
            let Ok(values) = values else { break };
            copied += insert.execute(rusqlite::params_from_iter(values))? as u64;
        }
    }
    Ok(copied)
}
