//! ClickHouse, through a codec of our own over its HTTP interface. Main type: [`Clickhouse`]; the hot path is `wire`.
//!
//! A table is a `MergeTree` ordered by its key. Rows go in as RowBinary, one `INSERT` for the rows of a step, which the server stores whole or not at all; rows come back in the same form. The server has no
//! transactions: several steps of a request are several queries, and those before a refused one stay.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation fails or its rows are kept.

mod dialect;
mod durability;
mod exchange;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
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

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::CLICKHOUSE as FUZZED;

use settings::Own;

/// The registry's entry.
pub static CLICKHOUSE: Entry = Entry {
    name: "clickhouse",
    summary: "ClickHouse over HTTP, engines MergeTree, Log and Memory; a private server or database.url",
    engines: &ENGINES,
    opens: Opens::Store(open),
    recipe: Some(&recipe::CLICKHOUSE),
    library: None,
    clustered: None,
    read_url: Some(|url| url::FORM.read(url)),
    capabilities: Capabilities::NONE
        .with(Capability::Values)
        .with(Capability::AtOnce)
        .with(Capability::Batches)
        .with(Capability::Ranges)
        .with(Capability::Indexes)
        .with(Capability::Figures)
        .with(Capability::LeastNumbers)
        .with(Capability::Partitions)
        .with(Capability::Processes),
    refuses: None,
    refuses_rows: None,
    processes: &["clickhouse-server", "clickhouse-serv", "clickhouse"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// The names of the engines, the default first.
static ENGINES: [&str; 3] = ["mergetree", "log", "memory"];

/// The engine of the tables that are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// Parts ordered by the key, merged in the background.
    MergeTree,
    /// A file for each column, to which each insert appends.
    Log,
    /// Nothing on the disk.
    Memory,
}

impl Engine {
    /// Returns the engine of a study's settings; `None` where there is no such engine here.
    fn of(settings: &DatabaseSettings) -> Option<Self> {
        let asked = settings.engine.as_deref().unwrap_or(ENGINES[0]);
        let all = [Engine::MergeTree, Engine::Log, Engine::Memory];
        all.into_iter().find(|engine| engine.name().eq_ignore_ascii_case(asked))
    }

    fn name(self) -> &'static str {
        match self {
            Engine::MergeTree => "MergeTree",
            Engine::Log => "Log",
            Engine::Memory => "Memory",
        }
    }
}

/// A ClickHouse server.
#[derive(Debug)]
pub struct Clickhouse {
    endpoint: Endpoint,
    engine: Engine,
    config: BTreeMap<String, String>,
    limits: Option<Arc<SessionLimits>>,
    /// What the settings of the study belong to, once the server has said so.
    own: OnceLock<Own>,
}

impl Target for Clickhouse {
    fn name(&self) -> &'static str {
        CLICKHOUSE.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(Box::new(WireSession::within(startup::connect(self)?, self.limits.as_ref())))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn stands_still(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.stands_still())
    }

    fn removal(&self, table: &str) -> Option<String> {
        Some(tables::removal(table, ""))
    }
}

fn open(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let endpoint = server_of(CLICKHOUSE.name, endpoint)?;
    let engine = Engine::of(settings).ok_or_else(|| {
        let asked = settings.engine.as_deref().unwrap_or_default();
        DatabaseError::Unavailable(format!("clickhouse has no engine {asked:?} here; there are {}", ENGINES.join(", ")))
    })?;
    let (endpoint, config) = (endpoint.clone(), settings.config.clone());
    Ok(Box::new(Clickhouse { endpoint, engine, config, limits: None, own: OnceLock::new() }))
}
