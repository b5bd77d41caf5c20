//! The settings of MariaDB and MySQL because of which InnoDB may lose commits. Main function: [`weaknesses`].
//!
//! Invariant: a variable that the server does not have is no weakness.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::database::durability::{Lasts, LogPosition, Weakness, settings, weak_tables};
use crate::database::level::{Known, Level};
use crate::database::{DatabaseError, LevelSettings, Session};

/// MySQL has a binary log by default, which weakens durability unless it is synced.
pub(super) const LEVELS: [LevelSettings; 3] = [
    (Level::PowerCut, &[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "1")]),
    (Level::Crash, &[("innodb_flush_log_at_trx_commit", "2")]),
    (Level::Nothing, &[("innodb_flush_log_at_trx_commit", "0")]),
];

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', \
     'innodb_flush_log_at_timeout', 'innodb_flush_method', 'innodb_doublewrite', 'debug_no_sync', 'log_bin', 'sync_binlog')";

/// Without the redo log nothing is left after a crash; the log's state is a status, not a variable.
const STATES: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_redo_log_enabled')";

/// The names of the two positions in MariaDB and in MySQL.
const POSITIONS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_current', 'Innodb_lsn_flushed', \
     'Innodb_redo_log_current_lsn', 'Innodb_redo_log_flushed_to_disk_lsn')";

const TABLES: &str = "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB'";

/// Returns the server's settings, and the engines of the tables asked for, because of which commits may be lost.
pub(super) fn weaknesses(
    session: &mut dyn Session,
    is_asked: &dyn Fn(&str) -> bool,
) -> Result<Vec<Weakness>, DatabaseError> {
    let mut known = settings(session, VARIABLES)?;
    known.extend(settings(session, STATES)?);
    let mut found = of_settings(&known);
    let remedy = |table: &str| format!("ALTER TABLE {table} ENGINE = InnoDB");
    let loses = "the engine has no log that survives a crash";
    found.extend(weak_tables(session, TABLES, is_asked, loses, remedy)?);
    Ok(found)
}

/// Returns the position of the redo log; `None` where the server does not tell it.
pub(super) fn log_position(session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
    let known = settings(session, POSITIONS)?;
    let number = |names: [&str; 2]| names.iter().find_map(|name| known.get(*name)?.parse().ok());
    let written = number(["innodb_lsn_current", "innodb_redo_log_current_lsn"]);
    let durable = number(["innodb_lsn_flushed", "innodb_redo_log_flushed_to_disk_lsn"]);
    Ok(written.zip(durable).map(|(written, durable)| LogPosition { written, durable }))
}

fn of_settings(known: &BTreeMap<String, String>) -> Vec<Weakness> {
    let value = |name: &str| known.get(name).map(|value| value.to_lowercase());
    let is_on = |name: &str| value(name).is_some_and(|value| ["on", "1"].contains(&value.as_str()));
    let is_off = |name: &str| value(name).is_some_and(|value| ["off", "0"].contains(&value.as_str()));
    let mut found = Vec::new();
    let mut add = |setting: &str, loses, remedy: &str, lasts| {
        let (setting, value) = (setting.to_owned(), value(setting).unwrap_or_default());
        found.push(Weakness { setting, value, loses, remedy: remedy.to_owned(), lasts });
    };
    let timeout_s = value("innodb_flush_log_at_timeout").and_then(|value| value.parse().ok()).unwrap_or(1);
    let until_flushed = Lasts::Until(Duration::from_secs(timeout_s));
    let flush = value("innodb_flush_log_at_trx_commit").unwrap_or_default();
    let (name, remedy) = ("innodb_flush_log_at_trx_commit", "SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    match flush.as_str() {
        "0" => add(name, "the last commits are lost when the server or its machine crashes", remedy, until_flushed),
        "2" => add(name, "the last commits are lost when the machine crashes", remedy, until_flushed),
        _ => {}
    }
    // With a binary log, InnoDB does not sync its own record of the commit unless the setting is 3: commits that are not in the binary
    // log after a crash are undone (MariaDB, "Binary Log Group Commit and InnoDB Flushing Performance").
    if flush == "1" && is_on("log_bin") && value("sync_binlog").is_some_and(|value| value != "1") {
        let remedy = "SET GLOBAL sync_binlog = 1";
        let loses =
            "with a binary log the last commits are undone when the machine crashes before that log is on the disk";
        add("sync_binlog", loses, remedy, until_flushed);
    }
    if value("innodb_flush_method").is_some_and(|value| ["nosync", "littlesync"].contains(&value.as_str())) {
        let remedy = "start the server without innodb_flush_method";
        add(
            "innodb_flush_method",
            "nothing is synced, and a crash of the machine loses commits",
            remedy,
            Lasts::Always,
        );
    }
    if is_on("debug_no_sync") {
        let remedy = "SET GLOBAL debug_no_sync = OFF";
        add("debug_no_sync", "nothing is synced, and a crash of the machine loses commits", remedy, Lasts::Always);
    }
    if is_off("innodb_redo_log_enabled") {
        let remedy = "ALTER INSTANCE ENABLE INNODB REDO_LOG";
        add("innodb_redo_log_enabled", "a crash loses everything", remedy, Lasts::Always);
    }
    if is_off("innodb_doublewrite") {
        let remedy = "start the server with innodb_doublewrite = ON, unless the disk writes pages as a whole";
        add("innodb_doublewrite", "a crash of the machine may leave half a page", remedy, Lasts::OnTornPages);
    }
    found
}

/// Returns the durability level: the engine decides whether there is a log, and InnoDB's settings when it is written.
pub(in crate::database) fn level(known: &Known<'_>, makes_tables: bool) -> Option<Level> {
    let engine = match (makes_tables, &known.settings.engine) {
        (true, Some(engine)) => engine.to_lowercase(),
        (true, None) => known.value("default_storage_engine")?,
        // Tables not made by loadline: all of one engine, or the level is unknown.
        (false, _) => known.value("table_engines")?,
    };
    match engine.as_str() {
        "innodb" => of_innodb(known),
        // Aria's log is replayed after a crash of the server; nothing guarantees when it reaches the disk.
        "aria" => Some(Level::Crash),
        // No log: a server that is killed leaves tables that need repair.
        "myisam" | "memory" => Some(Level::Nothing),
        _ => None,
    }
}

fn of_innodb(known: &Known<'_>) -> Option<Level> {
    if known.is("innodb_redo_log_enabled", &["off", "0"]) {
        return Some(Level::Nothing);
    }
    let by_flush = match known.value("innodb_flush_log_at_trx_commit")?.as_str() {
        "0" => Level::Nothing,
        "2" => Level::Crash,
        "1" | "3" => Level::PowerCut,
        _ => return None,
    };
    let syncs_nothing =
        known.is("innodb_flush_method", &["nosync", "littlesync"]) || known.is("debug_no_sync", &["on", "1"]);
    // A page half-written at a power failure cannot be distinguished from a whole one.
    let tears = known.is("innodb_doublewrite", &["off", "0"]);
    // With a binary log that is not synced, commits missing from it are undone after a power failure.
    let is_logged = known.is("log_bin", &["on", "1"]) && !known.is("innodb_flush_log_at_trx_commit", &["3"]);
    let is_undone = is_logged && !known.is("sync_binlog", &["1"]);
    Some(if syncs_nothing || tears || is_undone { by_flush.min(Level::Crash) } else { by_flush })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(changed: &[(&str, &str)]) -> Vec<(String, Lasts)> {
        let mut known: BTreeMap<String, String> = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_log_at_timeout", "1"),
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_doublewrite", "ON"),
            ("debug_no_sync", "OFF"),
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        known.extend(changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        of_settings(&known).into_iter().map(|weakness| (weakness.setting, weakness.lasts)).collect()
    }

    #[test]
    fn what_decides_whether_a_commit_survives_is_known() {
        let until = |seconds| Lasts::Until(Duration::from_secs(seconds));
        assert_eq!(
            found(&[]),
            [],
            "MariaDB's defaults keep what is committed, whatever sync_binlog is without a binary log"
        );
        let flush = "innodb_flush_log_at_trx_commit";
        assert_eq!(found(&[(flush, "0"), ("innodb_flush_log_at_timeout", "3")]), [(flush.to_owned(), until(3))]);
        assert_eq!(found(&[(flush, "2")]), [(flush.to_owned(), until(1))]);
        assert_eq!(found(&[("log_bin", "ON")]), [("sync_binlog".to_owned(), until(1))]);
        assert_eq!(found(&[("log_bin", "ON"), ("sync_binlog", "1")]), []);
        assert_eq!(found(&[("log_bin", "ON"), (flush, "3")]), [], "InnoDB syncs its own record then");
        assert_eq!(found(&[("innodb_flush_method", "nosync")])[0].1, Lasts::Always);
        assert_eq!(found(&[("debug_no_sync", "ON")])[0].1, Lasts::Always);
        assert_eq!(found(&[("innodb_redo_log_enabled", "OFF")])[0].1, Lasts::Always);
        assert_eq!(found(&[("innodb_doublewrite", "OFF")])[0].1, Lasts::OnTornPages);
    }
}
