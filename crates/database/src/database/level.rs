//! Durability levels: what an acknowledged write survives, by the settings that decide it.
//!
//! Main types: [`Level`], and [`Known`], from which each database derives its level. Invariant: a setting that is neither told by the
//! server nor set by loadline is not guessed: the level is `None` then.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::trial::DatabaseSettings;

/// The worst event that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: a `kill -9` of the server may lose it.
    Nothing,
    /// A `kill -9` of the server, but no power failure of its machine.
    Crash,
    /// A power failure of the machine, as far as its disk keeps what it was told to sync.
    PowerCut,
}

impl Level {
    /// All levels, the weakest first.
    pub const ALL: [Level; 3] = [Level::Nothing, Level::Crash, Level::PowerCut];
    /// The names of the levels in studies and in results, in the order of `ALL`.
    pub const NAMES: [&'static str; 3] = ["none", "crash", "power-cut"];

    /// Returns the name of the level.
    pub fn name(self) -> &'static str {
        Level::NAMES[self as usize]
    }

    /// Returns the level with this name; `None` where there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// The known values of settings: those that the server told, else those that it was started with. Records the names looked up: these are the settings that decide.
pub struct Known<'a> {
    /// The settings of the study.
    pub settings: &'a DatabaseSettings,
    /// The settings that the server told.
    facts: &'a BTreeMap<String, String>,
    asked: RefCell<Deciding>,
}

/// The settings that decide what a write survives, with their values; `None` for an unknown value.
pub type Deciding = BTreeMap<String, Option<String>>;

impl<'a> Known<'a> {
    /// Creates the known settings of a database from those of the study and those that its server told.
    pub fn new(settings: &'a DatabaseSettings, facts: &'a BTreeMap<String, String>) -> Self {
        Known { settings, facts, asked: RefCell::default() }
    }

    /// Returns the settings looked up so far.
    pub fn into_asked(self) -> Deciding {
        self.asked.into_inner()
    }

    /// Returns the value of a setting in lower case; `None` where it is unknown.
    pub fn value(&self, name: &str) -> Option<String> {
        let config = || self.settings.config.iter().find(|(key, _)| key.replace('-', "_") == name);
        let told = self.facts.get(name).or_else(|| config().map(|(_, value)| value));
        let value = told.map(|value| value.trim().to_lowercase());
        self.asked.borrow_mut().insert(name.to_owned(), value.clone());
        value
    }

    /// Returns whether the value of a setting is known and among `values`.
    pub fn is(&self, name: &str, values: &[&str]) -> bool {
        self.value(name).is_some_and(|value| values.contains(&value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::find;

    fn level(settings: &DatabaseSettings, facts: &BTreeMap<String, String>, makes_tables: bool) -> Option<Level> {
        find(&settings.name)?.level(settings, facts, makes_tables)
    }

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
        for (log, sync, on_rewrite, expected) in [
            ("yes", "always", "no", power),
            ("yes", "always", "yes", crash),
            ("yes", "no", "no", crash),
            ("yes", "everysec", "no", nothing),
            ("no", "always", "no", nothing),
        ] {
            let facts = [("appendonly", log), ("appendfsync", sync), ("no_appendfsync_on_rewrite", on_rewrite)];
            assert_eq!(of("redis", None, &facts), expected, "{facts:?}");
        }
        for (sync, writes, expected) in [
            ("batch", "true", power),
            ("group", "true", power),
            ("periodic", "true", nothing),
            ("batch", "false", nothing),
        ] {
            let facts = [("commitlog_sync", sync), ("durable_writes", writes)];
            assert_eq!(of("cassandra", None, &facts), expected, "{facts:?}");
        }
        for (mode, expected) in [("sync", crash), ("async", crash), ("nosync", crash), ("other", None)] {
            assert_eq!(of("questdb", None, &[("cairo.commit.mode", mode)]), expected, "{mode}");
        }
        for delay in ["0s", "100ms"] {
            assert_eq!(of("influxdb", None, &[("data.wal_fsync_delay", delay)]), crash, "{delay}");
        }
        assert_eq!(of("sqlite", None, &[]), None, "what is not told is not guessed");
        assert_eq!(of("simulated", None, &[]), None);
    }

    #[test]
    fn ferretdb_survives_what_its_sqlite_does_and_of_other_servers_nothing_is_known() {
        let (crash, power) = (Some(Level::Crash), Some(Level::PowerCut));
        for (synchronous, expected) in
            [("full", power), ("extra", power), ("normal", crash), ("off", crash), ("3", None)]
        {
            assert_eq!(of("mongodb", None, &[("synchronous", synchronous)]), expected, "{synchronous}");
        }
        assert_eq!(of("mongodb", None, &[]), None, "a server that does not tell");
    }

    #[test]
    fn a_part_survives_what_is_synced_before_it_is_acknowledged() {
        let (nothing, crash, power) = (Some(Level::Nothing), Some(Level::Crash), Some(Level::PowerCut));
        for (engine, [later, waits, inserts, folders, merges], expected) in [
            (None, ["0", "1", "1", "1", "1"], power),
            (None, ["1", "1", "1", "1", "1"], power),
            (None, ["1", "0", "1", "1", "1"], nothing),
            (None, ["0", "1", "1", "1", "0"], crash),
            (None, ["0", "1", "1", "0", "1"], crash),
            (None, ["0", "1", "0", "0", "0"], crash),
            (Some("Memory"), ["0", "1", "1", "1", "1"], nothing),
            (Some("log"), ["0", "1", "1", "1", "1"], None),
        ] {
            let facts = [
                ("async_insert", later),
                ("wait_for_async_insert", waits),
                ("fsync_after_insert", inserts),
                ("fsync_part_directory", folders),
                ("min_rows_to_fsync_after_merge", merges),
            ];
            assert_eq!(of("clickhouse", engine, &facts), expected, "{engine:?} {facts:?}");
        }
        assert_eq!(of("clickhouse", None, &[]), None);
    }

    #[test]
    fn the_settings_of_a_level_give_it() {
        for entry in crate::database::REGISTRY {
            for (level, given) in entry.levels {
                let config = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
                let engine = entry.engines.first().map(|engine| (*engine).to_owned());
                let settings =
                    DatabaseSettings { name: entry.name.to_owned(), engine, config, ..DatabaseSettings::default() };
                assert_eq!(entry.level(&settings, &BTreeMap::new(), true), Some(*level), "{}: {given:?}", entry.name);
                assert_eq!(Level::of_name(level.name()), Some(*level));
            }
            // The levels that a database can be asked for include the best that it has.
            let best = entry.levels.iter().map(|(level, _)| *level).max();
            let most = match entry.name {
                // Neither comes back after a cut of the power, whatever its settings.
                "questdb" | "influxdb" => Level::Crash,
                // It acknowledges from its memory.
                "victoriametrics" => Level::Nothing,
                _ => Level::PowerCut,
            };
            assert_eq!(best, entry.level.map(|_| most), "{}", entry.name);
        }
    }

    #[test]
    fn the_settings_that_decide_are_known() {
        let settings = DatabaseSettings { name: "postgres".to_owned(), ..DatabaseSettings::default() };
        let told = |commit: &str| {
            let facts = [("synchronous_commit", commit), ("fsync", "on"), ("shared_buffers", "128MB")];
            let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let deciding = find("postgres").unwrap().deciding(&settings, &facts).into_iter();
            deciding.map(|(name, value)| format!("{name}={}", value.unwrap_or_default())).collect::<Vec<_>>()
        };
        assert_eq!(told("off"), ["synchronous_commit=off"]);
        assert_eq!(told("on"), ["fsync=on", "full_page_writes=", "synchronous_commit=on"]);
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
