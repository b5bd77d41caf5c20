//! The settings of PostgreSQL because of which it may lose commits. Main function: [`weaknesses`].
//!
//! Invariant: `synchronous_commit` is the session's own setting: `harden` corrects it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::database::durability::{Lasts, LogPosition, Weakness, settings, weak_tables};
use crate::database::level::{Known, Level};
use crate::database::{DatabaseError, LevelSettings, Session};

/// Without `fsync` a power failure may damage the database, whereas with `synchronous_commit = off` it loses only the last commits; a crash of the server also
/// loses those.
pub(super) const LEVELS: [LevelSettings; 3] = [
    (Level::PowerCut, &[("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "on")]),
    (Level::Crash, &[("fsync", "off"), ("full_page_writes", "on"), ("synchronous_commit", "on")]),
    (Level::Nothing, &[("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "off")]),
];

const SETTINGS: &str = "SELECT name, setting FROM pg_settings \
     WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'wal_writer_delay')";

const TABLES: &str = "SELECT relname, 'unlogged' FROM pg_class \
     WHERE relpersistence = 'u' AND relkind IN ('r', 'p') AND pg_table_is_visible(oid)";

/// The bytes between the start of a page of the log and its first record. In an idle log, the next position is behind them and the
/// flushed position in front of them.
const PAGE_HEADER: u64 = 24;
const PAGE: u64 = 8192;

/// Returns the session's settings, and the tables asked for, because of which commits may be lost.
pub(super) fn weaknesses(
    session: &mut dyn Session,
    is_asked: &dyn Fn(&str) -> bool,
) -> Result<Vec<Weakness>, DatabaseError> {
    let mut found = of_settings(&settings(session, SETTINGS)?);
    let remedy = |table: &str| format!("ALTER TABLE \"{table}\" SET LOGGED");
    let loses = "the server empties it after a crash";
    found.extend(weak_tables(session, TABLES, is_asked, loses, remedy)?);
    Ok(found)
}

/// Makes the session's commits wait for the disk if they do not. Returns what was changed.
pub(super) fn harden(session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
    let is_off = |known: &BTreeMap<String, String>| known.get("synchronous_commit").is_some_and(|value| value == "off");
    if !is_off(&settings(session, SETTINGS)?) {
        return Ok(None);
    }
    session.run("SET synchronous_commit = on")?;
    // A proxy in between may have sent the statement to another session; then the setting is still a weakness.
    Ok((!is_off(&settings(session, SETTINGS)?)).then(|| "synchronous_commit = on".to_owned()))
}

/// Returns the position of the write-ahead log.
pub(super) fn log_position(session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
    let rows = session.query(
        "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint::text, (pg_current_wal_flush_lsn() - '0/0')::bigint::text",
    )?;
    let row = rows.into_iter().next().unwrap_or_default();
    let number = |place: usize| row.get(place)?.as_deref()?.parse::<u64>().ok();
    Ok(number(0).zip(number(1)).map(|(written, durable)| LogPosition { written: behind_last_record(written), durable }))
}

fn behind_last_record(next: u64) -> u64 {
    if next % PAGE == PAGE_HEADER { next - PAGE_HEADER } else { next }
}

fn of_settings(known: &BTreeMap<String, String>) -> Vec<Weakness> {
    let is_off = |name: &str| known.get(name).is_some_and(|value| value == "off");
    let mut found = Vec::new();
    let mut add = |setting: &str, loses, remedy: &str, lasts| {
        let (setting, value) = (setting.to_owned(), "off".to_owned());
        found.push(Weakness { setting, value, loses, remedy: remedy.to_owned(), lasts });
    };
    if is_off("synchronous_commit") {
        // The log writer has written a commit after three of its delays at the latest (PostgreSQL 15, section 30.4).
        let delay_ms = known.get("wal_writer_delay").and_then(|value| value.parse().ok()).unwrap_or(200);
        let lasts = Lasts::Until(3 * Duration::from_millis(delay_ms));
        let loses = "the last commits are lost when the server or its machine crashes";
        add("synchronous_commit", loses, "set synchronous_commit = on for the recorder's user", lasts);
    }
    if is_off("fsync") {
        let loses = "nothing is synced, and a crash of the machine loses commits and may damage the database";
        add("fsync", loses, "set fsync = on and reload the server", Lasts::Always);
    }
    if is_off("full_page_writes") {
        let remedy = "set full_page_writes = on, unless the disk writes pages as a whole";
        add("full_page_writes", "a crash of the machine may leave half a page", remedy, Lasts::OnTornPages);
    }
    found
}

pub(in crate::database) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    match known.value("synchronous_commit")?.as_str() {
        "off" => Some(Level::Nothing),
        _ if !known.is("fsync", &["on"]) || !known.is("full_page_writes", &["on"]) => Some(Level::Crash),
        _ => Some(Level::PowerCut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_whether_a_commit_survives_is_known() {
        let found = |pairs: &[(&str, &str)]| {
            let known = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            of_settings(&known).into_iter().map(|weakness| (weakness.setting, weakness.lasts)).collect::<Vec<_>>()
        };
        for value in ["on", "local", "remote_write", "remote_apply"] {
            assert_eq!(found(&[("synchronous_commit", value), ("fsync", "on"), ("full_page_writes", "on")]), []);
        }
        let until = Lasts::Until(Duration::from_millis(1_500));
        let off = [("synchronous_commit", "off"), ("wal_writer_delay", "500")];
        assert_eq!(found(&off), [("synchronous_commit".to_owned(), until)]);
        assert_eq!(found(&[("fsync", "off")]), [("fsync".to_owned(), Lasts::Always)]);
        assert_eq!(found(&[("full_page_writes", "off")]), [("full_page_writes".to_owned(), Lasts::OnTornPages)]);
    }

    #[test]
    fn the_position_of_an_idle_log_is_where_its_last_record_ends() {
        assert_eq!([8192, 8216, 8217, 8200].map(behind_last_record), [8192, 8192, 8217, 8200]);
    }
}
