//! `[freshness]`: the readers of the events that the workload `freshness` writes.

use serde::{Deserialize, Serialize};

/// Readers of events, and the path of the events to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FreshnessSettings {
    /// The path of an event from its writer to its readers.
    pub path: EventPath,
    /// Number of tables that events are written into; `None` for one per writer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tables: Option<u32>,
    /// Groups of readers that are reported separately; at least 1. On the path `both` there are as many that poll as that subscribe.
    pub groups: u32,
    /// Readers per group, each with its own connection; at least 1.
    pub readers: u32,
    /// Whether a group consists of threads of this process or is a process of its own.
    pub run_as: RunAs,
    /// The way in which readers find new rows of a table.
    pub poll: Poll,
    /// Time from one poll of a reader to its next, in seconds; not used by [`Poll::Notify`].
    pub every_s: f64,
    /// Time for which keys that were passed over are asked for again, in seconds.
    pub look_back_s: f64,
    /// Number of rows for [`Poll::Window`].
    pub window: u32,
    /// Whether readers write what they find into result tables, as the readers in the slides do.
    pub results: bool,
    /// Share of sightings that may be missing or duplicated before a trial is invalid, 0..1.
    pub tolerated: f64,
    /// Protection of the connections to the NATS server: `verify` is TLS with a certificate that all of them know; `None` for no protection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
}

/// The path of an event from its writer to its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventPath {
    /// Writers write into the database, readers poll it.
    #[default]
    Database,
    /// Writers write into the database, which notifies readers of new rows: [`Poll::Notify`].
    Notify,
    /// Writers publish, a historian subscribes and stores, readers subscribe too.
    Subscribe,
    /// Writers publish, a historian subscribes and stores; some readers subscribe, and some poll the database.
    Both,
}

/// The form of a group of readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunAs {
    /// Threads of the process that writes.
    #[default]
    Threads,
    /// Threads of a separate process for each group.
    Processes,
    /// Threads of a process for each group on the host of an agent.
    Agents,
}

/// The way in which a reader finds new rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Poll {
    /// Rows with a key above the highest one seen.
    #[default]
    Key,
    /// The latest rows, a stated number of them.
    Window,
    /// As `key`, whenever the database notifies the reader.
    Notify,
}

impl Default for FreshnessSettings {
    fn default() -> Self {
        FreshnessSettings {
            path: EventPath::Database,
            tables: None,
            groups: 2,
            readers: 1,
            run_as: RunAs::Threads,
            poll: Poll::Key,
            every_s: 0.002,
            look_back_s: 0.1,
            window: 1_000,
            results: false,
            tolerated: 0.0,
            tls: None,
        }
    }
}

impl EventPath {
    /// Returns whether writers publish events, which a historian stores.
    pub fn publishes(self) -> bool {
        matches!(self, EventPath::Subscribe | EventPath::Both)
    }

    /// Returns whether a group of readers, by its number from 0, subscribes; if not, it polls the database.
    pub fn subscribes(self, group: u32, groups: u32) -> bool {
        match self {
            EventPath::Database | EventPath::Notify => false,
            EventPath::Subscribe => true,
            EventPath::Both => group < groups,
        }
    }
}

impl FreshnessSettings {
    /// Returns the number of tables for a number of writers.
    pub fn tables_of(&self, writers: u32) -> u32 {
        self.tables.unwrap_or(writers).min(writers).max(1)
    }

    /// Returns the number of groups of readers on all paths together.
    pub fn groups_in_all(&self) -> u32 {
        if self.path == EventPath::Both { 2 * self.groups } else { self.groups }
    }

    /// Returns the tables that a reader of a group reads, by their numbers. Where there are more readers than tables, several readers read the same table.
    pub fn tables_read(&self, reader: u32, writers: u32) -> Vec<u32> {
        let (tables, readers) = (self.tables_of(writers), self.readers.max(1));
        if readers >= tables { vec![reader % tables] } else { (reader..tables).step_by(readers as usize).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_reader_in_each_group() {
        for (tables, readers) in [(1, 1), (3, 6), (6, 3), (7, 3), (5, 5)] {
            let settings = FreshnessSettings { tables: Some(tables), readers, ..FreshnessSettings::default() };
            let mut read: Vec<u32> = (0..readers).flat_map(|reader| settings.tables_read(reader, 9)).collect();
            assert!(read.iter().all(|table| *table < tables));
            read.sort_unstable();
            read.dedup();
            assert_eq!(read.len() as u32, tables, "{tables} tables, {readers} readers");
        }
        assert_eq!(FreshnessSettings::default().tables_of(4), 4, "one for each writer");
        assert_eq!(FreshnessSettings { tables: Some(9), ..FreshnessSettings::default() }.tables_of(4), 4);
    }

    #[test]
    fn on_both_ways_half_of_the_groups_subscribe() {
        let both = FreshnessSettings { path: EventPath::Both, ..FreshnessSettings::default() };
        let ways: Vec<bool> = (0..both.groups_in_all()).map(|group| both.path.subscribes(group, both.groups)).collect();
        assert_eq!(ways, [true, true, false, false]);
    }
}
