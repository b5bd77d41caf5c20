//! QuestDB, through the protocol of PostgreSQL. Main type: [`Questdb`]; the hot path is `wire`, over the codec of `postgres`.
//!
//! A table has a log of its writes and is ordered by the time of its rows. Rows of a request are stored whole or not at all. A write is acknowledged when it is in the log; whoever
//! reads or counts waits until it is in the table. The server neither keeps a second row with the same key out nor removes rows.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation fails, waits, or its rows are kept.

mod applied;
mod dialect;
mod durability;
pub mod jar;
mod program;
pub mod recipe;
mod settings;
mod startup;
mod tables;
mod url;
mod value;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::opening::server_of;
use super::session::WireSession;
use super::{Capabilities, Capability, DatabaseError, Endpoint, Entry, Opens, SessionLimits, Target, TargetSession};
use crate::trial::DatabaseSettings;

pub use url::read_url;

use wire::QuestdbWire;

/// The registry's entry.
pub static QUESTDB: Entry = Entry {
    name: "questdb",
    summary: "QuestDB: tables ordered by time, prepared statements in binary; a private server (loadline fetch questdb) or database.url",
    engines: &[],
    opens: Opens::Store(open),
    recipe: Some(&recipe::QUESTDB),
    library: None,
    clustered: None,
    read_url: Some(read_url),
    capabilities: Capabilities::NONE
        .with(Capability::Values)
        .with(Capability::AtOnce)
        .with(Capability::Batches)
        .with(Capability::Ranges)
        .with(Capability::Indexes)
        .with(Capability::Figures)
        .with(Capability::Processes),
    refuses: None,
    refuses_rows: None,
    processes: &["java"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// A QuestDB server.
#[derive(Debug)]
pub struct Questdb {
    endpoint: Endpoint,
    config: BTreeMap<String, String>,
    limits: Option<Arc<SessionLimits>>,
    /// Set once the server has been asked whether it knows the settings of the study.
    is_checked: OnceLock<()>,
}

impl Target for Questdb {
    fn name(&self) -> &'static str {
        QUESTDB.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(Box::new(WireSession::within(QuestdbWire::new(startup::connect(self)?), self.limits.as_ref())))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn stands_still(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.stands_still())
    }

    fn removal(&self, table: &str) -> Option<String> {
        Some(tables::removal(table))
    }
}

fn open(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let endpoint = server_of(QUESTDB.name, endpoint)?.clone();
    // The settings of somebody's own server are not the study's.
    let config = if settings.url.is_none() { settings.config.clone() } else { BTreeMap::new() };
    Ok(Box::new(Questdb { endpoint, config, limits: None, is_checked: OnceLock::new() }))
}
