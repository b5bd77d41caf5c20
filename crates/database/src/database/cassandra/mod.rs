//! Cassandra and ScyllaDB, through a codec of our own. Main type: [`Cassandra`]; the hot path is `wire`.
//!
//! A row is found by its key. Of a key with several columns the last one orders the rows, and the others decide which rows lie together. Writes that follow each other
//! are one batch, in one round trip, of which everything is stored or nothing. No write looks whether its row exists.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation fails or its rows are kept.

mod clock;
mod durability;
mod frame;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
pub mod jars;
mod program;
mod query;
pub mod recipe;
mod startup;
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
pub use fuzzed::CASSANDRA as FUZZED;
pub use url::read_url;

use wire::CassandraWire;

/// The registry's entry.
pub static CASSANDRA: Entry = Entry {
    name: "cassandra",
    summary: "Cassandra or ScyllaDB: rows found by their key; a private server (loadline fetch cassandra) or database.url",
    engines: &[],
    opens: Opens::Store(open),
    recipe: Some(&recipe::CASSANDRA),
    library: None,
    clustered: None,
    read_url: Some(read_url),
    capabilities: Capabilities::NONE
        .with(Capability::Values)
        .with(Capability::AtOnce)
        .with(Capability::Batches)
        .with(Capability::Updates)
        .with(Capability::Deletes)
        .with(Capability::LeastNumbers)
        .with(Capability::Processes),
    refuses: None,
    refuses_rows: None,
    processes: &["java", "scylla"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// How many copies of a row must have a write, or are asked in a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consistency {
    /// One, two or three copies.
    One,
    Two,
    Three,
    /// Most of the copies.
    Quorum,
    /// All copies.
    All,
    /// Most of the copies in the data centre of the server.
    LocalQuorum,
    /// One copy in the data centre of the server.
    LocalOne,
}

impl Consistency {
    /// The names in addresses.
    const ALL: [(&'static str, Consistency); 7] = [
        ("one", Consistency::One),
        ("two", Consistency::Two),
        ("three", Consistency::Three),
        ("quorum", Consistency::Quorum),
        ("all", Consistency::All),
        ("local_quorum", Consistency::LocalQuorum),
        ("local_one", Consistency::LocalOne),
    ];

    fn of_name(name: &str) -> Option<Self> {
        Consistency::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, found)| *found)
    }

    /// Returns the number of the level in the protocol.
    fn number(self) -> u16 {
        match self {
            Consistency::One => 1,
            Consistency::Two => 2,
            Consistency::Three => 3,
            Consistency::Quorum => 4,
            Consistency::All => 5,
            Consistency::LocalQuorum => 6,
            Consistency::LocalOne => 10,
        }
    }
}

/// A Cassandra server.
#[derive(Debug, Clone)]
pub struct Cassandra {
    endpoint: Endpoint,
    limits: Option<Arc<SessionLimits>>,
    consistency: Consistency,
    /// Whether loadline has started the server, and makes the keyspace.
    is_private: bool,
}

impl Target for Cassandra {
    fn name(&self) -> &'static str {
        CASSANDRA.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let socket = startup::connect(self)?;
        let wire = CassandraWire::new(socket, self.endpoint.database.clone(), self.consistency);
        Ok(Box::new(WireSession::within(wire, self.limits.as_ref())))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn stands_still(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.stands_still())
    }

    fn removal(&self, table: &str) -> Option<String> {
        Some(tables::removal(&self.endpoint.database, table))
    }
}

fn open(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let endpoint = server_of(CASSANDRA.name, endpoint)?;
    let url = settings.url.as_deref();
    let consistency = url::consistency_of(url);
    Ok(Box::new(Cassandra { endpoint: endpoint.clone(), limits: None, consistency, is_private: url.is_none() }))
}
