//! What an acknowledged write survives, by the settings that decide it.
//!
//! Main function: [`level`]. Invariant: what is neither told by the server nor set by loadline is not guessed: the level is none then.

use std::collections::BTreeMap;

use crate::trial::DatabaseSettings;

/// The worst that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: a `kill -9` of the server may lose it.
    Nothing,
    /// A `kill -9` of the server, and no power failure of its machine.
    Crash,
    /// A power failure of the machine, as far as its disk keeps what it was told to sync.
    PowerCut,
}

/// The level of a database with these settings. `facts` is what the server told, `makes_tables` whether they are of loadline's making,
/// whose engine is known.
pub fn level(settings: &DatabaseSettings, facts: &BTreeMap<String, String>, makes_tables: bool) -> Option<Level> {
    let known = Known { settings, facts };
    match settings.name.as_str() {
        "mariadb" | "mysql" => of_engine(&known, makes_tables),
        "postgres" => of_postgres(&known),
        "sqlite" => of_sqlite(&known),
        _ => None,
    }
}

/// What is known of a setting: what the server told, else what it was started with.
struct Known<'a> {
    settings: &'a DatabaseSettings,
    facts: &'a BTreeMap<String, String>,
}

impl Known<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let config = || self.settings.config.iter().find(|(key, _)| key.replace('-', "_") == name);
        let told = self.facts.get(name).or_else(|| config().map(|(_, value)| value));
        told.map(|value| value.trim().to_lowercase())
    }

    fn is(&self, name: &str, values: &[&str]) -> bool {
        self.value(name).is_some_and(|value| values.contains(&value.as_str()))
    }
}

/// MariaDB and MySQL: the engine decides whether there is a log, and InnoDB's settings when it is written.
fn of_engine(known: &Known<'_>, makes_tables: bool) -> Option<Level> {
    let engine = match (makes_tables, &known.settings.engine) {
        (true, Some(engine)) => engine.to_lowercase(),
        (true, None) => known.value("default_storage_engine")?,
        // Tables of others: all of one engine, or nothing is said.
        (false, _) => known.value("table_engines")?,
    };
    match engine.as_str() {
        "innodb" => of_innodb(known),
        // Its log is replayed after a crash of the server; when it reaches the disk is nobody's promise.
        "aria" => Some(Level::Crash),
        // No log: a server that is killed leaves tables to be repaired.
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
    // Half a page that a power failure left cannot be told from a whole one.
    let tears = known.is("innodb_doublewrite", &["off", "0"]);
    // With a binary log that is not synced, commits that are not in it are undone after a power failure.
    let is_logged = known.is("log_bin", &["on", "1"]) && !known.is("innodb_flush_log_at_trx_commit", &["3"]);
    let is_undone = is_logged && !known.is("sync_binlog", &["1"]);
    Some(if syncs_nothing || tears || is_undone { by_flush.min(Level::Crash) } else { by_flush })
}

fn of_postgres(known: &Known<'_>) -> Option<Level> {
    match known.value("synchronous_commit")?.as_str() {
        "off" => Some(Level::Nothing),
        _ if !known.is("fsync", &["on"]) || !known.is("full_page_writes", &["on"]) => Some(Level::Crash),
        _ => Some(Level::PowerCut),
    }
}

/// The server is the process that measures; what it has written is the system's when it dies.
fn of_sqlite(known: &Known<'_>) -> Option<Level> {
    let (journal, synchronous) = (known.value("journal_mode")?, known.value("synchronous")?);
    let is_full = ["2", "full"].contains(&synchronous.as_str());
    let is_extra = ["3", "extra"].contains(&synchronous.as_str());
    Some(match journal.as_str() {
        // What a transaction has half written cannot be undone after a crash.
        "off" | "memory" => Level::Nothing,
        // A journal that is removed may come back after a power failure, unless its folder is synced too.
        "delete" if is_extra => Level::PowerCut,
        "delete" => Level::Crash,
        _ if is_full || is_extra => Level::PowerCut,
        _ => Level::Crash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, engine: Option<&str>, facts: &[(&str, &str)]) -> Option<Level> {
        let settings = DatabaseSettings {
            name: name.to_owned(),
            engine: engine.map(str::to_owned),
            ..DatabaseSettings::default()
        };
        level(&settings, &facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(), true)
    }

    #[test]
    fn what_a_write_survives_follows_from_the_settings_that_decide_it() {
        let (nothing, crash, power) = (Some(Level::Nothing), Some(Level::Crash), Some(Level::PowerCut));
        let flush = |value| ("innodb_flush_log_at_trx_commit", value);
        for (engine, facts, expected) in [
            ("innodb", &[flush("1")][..], power),
            ("innodb", &[flush("2")], crash),
            ("innodb", &[flush("0")], nothing),
            ("innodb", &[flush("1"), ("innodb_flush_method", "nosync")], crash),
            ("innodb", &[flush("1"), ("innodb_doublewrite", "0")], crash),
            ("innodb", &[flush("1"), ("log_bin", "1"), ("sync_binlog", "0")], crash),
            ("innodb", &[flush("3"), ("log_bin", "1"), ("sync_binlog", "0")], power),
            ("innodb", &[flush("0"), ("innodb_doublewrite", "0")], nothing),
            ("innodb", &[], None),
            ("myisam", &[flush("1")], nothing),
            ("Aria", &[flush("1")], crash),
            ("rocksdb", &[flush("1")], None),
        ] {
            assert_eq!(of("mariadb", Some(engine), facts), expected, "{engine} {facts:?}");
        }
        for (commit, fsync, pages, expected) in [
            ("on", "on", "on", power),
            ("local", "on", "on", power),
            ("off", "on", "on", nothing),
            ("on", "off", "on", crash),
            ("on", "on", "off", crash),
        ] {
            let facts = [("synchronous_commit", commit), ("fsync", fsync), ("full_page_writes", pages)];
            assert_eq!(of("postgres", None, &facts), expected, "{facts:?}");
        }
        for (journal, synchronous, expected) in [
            ("wal", "2", power),
            ("wal", "1", crash),
            ("truncate", "2", power),
            ("delete", "2", crash),
            ("delete", "3", power),
            ("memory", "2", nothing),
        ] {
            assert_eq!(of("sqlite", None, &[("journal_mode", journal), ("synchronous", synchronous)]), expected);
        }
        assert_eq!(of("sqlite", None, &[]), None, "what is not told is not guessed");
        assert_eq!(of("simulated", None, &[]), None);
    }

    #[test]
    fn tables_of_others_have_the_engine_that_they_have() {
        let settings = DatabaseSettings { name: "mariadb".to_owned(), ..DatabaseSettings::default() };
        let facts = |engines: &str| {
            [("innodb_flush_log_at_trx_commit", "1"), ("default_storage_engine", "InnoDB"), ("table_engines", engines)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        assert_eq!(level(&settings, &facts("MyISAM"), false), Some(Level::Nothing));
        assert_eq!(level(&settings, &facts("InnoDB,MyISAM"), false), None);
        assert_eq!(level(&settings, &facts("MyISAM"), true), Some(Level::PowerCut));
    }
}
