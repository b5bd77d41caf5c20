//! InfluxDB 1.x, through a codec of our own over its HTTP interface. Main type: [`Influxdb`]; the hot path is `wire`.
//!
//! A table is a measurement, and a row a point: its time, its tags and its fields (`database/points`). Rows go in as line protocol and come back in answers to InfluxQL, as MessagePack. The server has no
//! transactions: several steps of a request are several requests, and those before a refused one stay. A second point with the same tags and time takes the place of the first one.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation fails or its rows are kept.

mod answer;
mod durability;
mod exchange;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod influxql;
mod msgpack;
mod program;
mod questions;
pub mod recipe;
mod rules;
mod settings;
mod startup;
mod tables;
mod url;
mod wire;

use std::sync::{Arc, OnceLock};

use super::opening::server_of;
use super::session::WireSession;
use super::{Capabilities, Capability, DatabaseError, Endpoint, Entry, Opens, SessionLimits, Target, TargetSession};
use crate::statement::Program;
use crate::trial::DatabaseSettings;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::INFLUXDB as FUZZED;

/// The registry's entry.
pub static INFLUXDB: Entry = Entry {
    name: "influxdb",
    summary: "InfluxDB 1.x over HTTP: line protocol in, InfluxQL out; a private server or database.url",
    engines: &[],
    opens: Opens::Store(open),
    recipe: Some(&recipe::INFLUXDB),
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
        .with(Capability::Processes),
    refuses: Some(|program, _| refusal(program)),
    refuses_rows: None,
    processes: &["influxd"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// Returns why InfluxDB cannot execute a program; `None` where it can.
fn refusal(program: &Program) -> Option<String> {
    match program::Plan::of(program).err()? {
        DatabaseError::Refused { message, .. } => Some(message),
        error => Some(error.to_string()),
    }
}

/// An InfluxDB server.
#[derive(Debug)]
pub struct Influxdb {
    endpoint: Endpoint,
    /// Whether account and database are the study's, and made by it.
    is_private: bool,
    limits: Option<Arc<SessionLimits>>,
    /// Set once the account and the database of a private server are there.
    is_made: OnceLock<()>,
}

impl Target for Influxdb {
    fn name(&self) -> &'static str {
        INFLUXDB.name
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
        Some(tables::removal(table))
    }
}

fn open(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let endpoint = server_of(INFLUXDB.name, endpoint)?.clone();
    let is_private = settings.url.is_none();
    Ok(Box::new(Influxdb { endpoint, is_private, limits: None, is_made: OnceLock::new() }))
}
