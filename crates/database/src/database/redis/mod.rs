//! Redis and compatible servers, through a codec of our own. Main type: [`Redis`]; the hot path is `wire`.
//!
//! A row is a hash under the key `table:key`, with a field for each column that is not null; a row that the server numbers is an entry of the stream `table:rows`. Requests of several commands are a `MULTI` and an `EXEC`, in one
//! round trip: other clients see all of it or nothing, and so does a log that a power failure has cut. If one command is refused, the effects of the others stay.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation fails or its rows are kept.

mod durability;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod key;
mod program;
pub mod recipe;
mod replica;
mod reply;
mod startup;
mod stream;
mod tables;
mod url;
mod value;
mod wire;

use std::sync::Arc;

use super::opening::server_of;
use super::session::WireSession;
use super::{Capabilities, Capability, DatabaseError, Endpoint, Entry, Opens, SessionLimits, Target, TargetSession};
use crate::trial::DatabaseSettings;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::REDIS as FUZZED;
pub use url::read_url;

use wire::RedisWire;

/// The registry's entry.
pub static REDIS: Entry = Entry {
    name: "redis",
    summary: "Redis or Valkey: a hash for each row, found by its key; a private server or database.url",
    engines: &[],
    opens: Opens::Store(open),
    recipe: Some(&recipe::REDIS),
    library: None,
    clustered: Some(&replica::COPYING),
    read_url: Some(read_url),
    capabilities: Capabilities::NONE
        .with(Capability::Values)
        .with(Capability::AtOnce)
        .with(Capability::Batches)
        .with(Capability::Updates)
        .with(Capability::Deletes)
        .with(Capability::NumberedRows)
        .with(Capability::Processes)
        .with(Capability::Counts)
        .with(Capability::LeastNumbers),
    refuses: None,
    refuses_rows: None,
    processes: &["redis-server", "valkey-server"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// A Redis server.
#[derive(Debug, Clone)]
pub struct Redis {
    endpoint: Endpoint,
    limits: Option<Arc<SessionLimits>>,
    /// Whether a write is acknowledged only once a replica has it.
    awaits_replica: bool,
}

impl Redis {
    /// Creates the target for the server at an endpoint; the unix socket is preferred where both are given. The endpoint's database is a number.
    pub fn new(endpoint: Endpoint) -> Self {
        Redis { endpoint, limits: None, awaits_replica: false }
    }

    /// Makes writes wait for a replica, or not.
    #[must_use]
    pub fn awaiting_replica(self, awaits_replica: bool) -> Self {
        Redis { awaits_replica, ..self }
    }
}

impl Target for Redis {
    fn name(&self) -> &'static str {
        REDIS.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let socket = startup::connect(&self.endpoint, self.limits.as_ref())?;
        Ok(Box::new(WireSession::within(
            RedisWire::new(socket).awaiting_replica(self.awaits_replica),
            self.limits.as_ref(),
        )))
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
    let endpoint = server_of(REDIS.name, endpoint)?;
    let awaits_replica = settings.replication.as_deref() == Some("synchronous");
    Ok(Box::new(Redis::new(endpoint.clone()).awaiting_replica(awaits_replica)))
}
