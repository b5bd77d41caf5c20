//! ClickHouse's own settings in `database.config`: those of a query, those of a MergeTree table, and those of the server itself. Main type: [`Own`].
//!
//! Invariant: a setting that the server does not know is refused before anything is made, never ignored.

use std::collections::BTreeMap;

use super::dialect::ClickhouseDialect;
use super::exchange::{Line, ask};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Dialect};

/// Settings of the server itself, which a private server is started with.
pub(super) const OF_SERVER: [&str; 16] = [
    "background_pool_size",
    "background_merges_mutations_concurrency_ratio",
    "background_schedule_pool_size",
    "builtin_dictionaries_reload_interval",
    "keep_alive_timeout",
    "mark_cache_size",
    "max_concurrent_queries",
    "max_connections",
    "max_keep_alive_requests",
    "max_open_files",
    "max_server_memory_usage",
    "max_server_memory_usage_to_ram_ratio",
    "max_thread_pool_size",
    "mlock_executable",
    "total_memory_tracker_sample_probability",
    "uncompressed_cache_size",
];

/// Settings that older versions do not have, with the values at which newer ones do the same as these.
const LATER: [(&str, &[&str]); 5] = [
    ("async_insert", &["0", "false"]),
    ("wait_for_async_insert", &["1", "true"]),
    ("fsync_after_insert", &["0", "false"]),
    ("fsync_part_directory", &["0", "false"]),
    ("min_rows_to_fsync_after_merge", &["0"]),
];

/// The settings of `database.config` by what they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// For each query, in its URL.
    pub of_queries: Vec<(String, String)>,
    /// For each table, where it is made.
    pub of_tables: Vec<(String, String)>,
}

impl Own {
    /// Asks the server what the settings belong to.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the first setting that the server does not know.
    pub(super) fn of(
        config: &BTreeMap<String, String>,
        channel: &mut Channel,
        line: &Line,
        version: &str,
    ) -> Result<Self, DatabaseError> {
        let mut own = Own::default();
        if config.is_empty() {
            return Ok(own);
        }
        let names = config.keys().map(|name| ClickhouseDialect.literal(name)).collect::<Vec<_>>().join(", ");
        let mut known = |table: &str| -> Result<Vec<String>, DatabaseError> {
            let found = ask(channel, line, &format!("SELECT name FROM system.{table} WHERE name IN ({names})"))?;
            Ok(found.lines().map(str::to_owned).collect())
        };
        let (of_queries, of_tables) = (known("settings")?, known("merge_tree_settings")?);
        for (name, value) in config {
            let pair = (name.clone(), value.clone());
            match name.as_str() {
                _ if of_queries.contains(name) => own.of_queries.push(pair),
                _ if of_tables.contains(name) => own.of_tables.push(pair),
                known if OF_SERVER.contains(&known) => {}
                known if is_as_before(known, value) => {}
                _ => {
                    return Err(DatabaseError::Unavailable(format!(
                        "database.config.{name} = \"{value}\": ClickHouse {version} has no such setting; its system.settings and \
                         system.merge_tree_settings list those that it has"
                    )));
                }
            }
        }
        Ok(own)
    }

    /// Returns the value of a setting that the study gives.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let all = self.of_queries.iter().chain(&self.of_tables);
        all.clone().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Returns whether a version without the setting does what this value says.
fn is_as_before(name: &str, value: &str) -> bool {
    LATER.iter().any(|(known, values)| *known == name && values.contains(&value.trim().to_lowercase().as_str()))
}

/// Returns the value of a setting: that of the study, else that of the server; `None` where this version does not have it, and that says nothing.
///
/// # Errors
/// The server's error.
pub(super) fn value(
    channel: &mut Channel,
    line: &Line,
    own: &Own,
    name: &str,
) -> Result<Option<String>, DatabaseError> {
    if let Some(value) = own.value(name) {
        return Ok(Some(value.to_owned()));
    }
    let literal = ClickhouseDialect.literal(name);
    for table in ["settings", "merge_tree_settings"] {
        let found = ask(channel, line, &format!("SELECT value FROM system.{table} WHERE name = {literal}"))?;
        if !found.is_empty() {
            return Ok(Some(found));
        }
    }
    let before = LATER.iter().find(|(known, _)| *known == name).and_then(|(_, values)| values.first());
    Ok(before.map(|value| (*value).to_owned()))
}
