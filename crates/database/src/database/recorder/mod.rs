//! A recorder in the place of a database: requests of whole records become line protocol, which a recorder takes over HTTP or from a
//! stream of a NATS server.
//!
//! Main type: [`RecorderDatabase`]. It is not in the registry: `database.name` names the database that the recorder writes to, `recorder.path` the
//! way to the recorder. [`recipe`] starts a private recorder and a private NATS server.
//!
//! Where the endpoint asks for TLS, both use it; the codecs do not notice.
//!
//! Invariant: a request succeeds only when the other side has acknowledged the records.

mod dealt;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod http;
mod lines;
#[cfg(test)]
mod lying;
mod nats;
pub mod recipe;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::session::WireSession;
use super::{DatabaseError, Endpoint, Target, TargetSession};
use crate::record::RecordType;
use crate::statement::{Program, Statement};

pub use dealt::Recorders;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::FRONTS as FUZZED;
pub use lines::Lines;
pub use stream::{StreamSession, create_stream};

/// The way that records take to the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// HTTP requests to the recorder itself.
    Http,
    /// Messages to a NATS server, below this subject.
    Nats(String),
}

/// A recorder that takes in records.
pub struct RecorderDatabase {
    endpoint: Endpoint,
    way: Way,
    lines: Arc<Lines>,
}

impl RecorderDatabase {
    /// Creates a target that sends records of a type to an endpoint, as a measurement of this name. The endpoint's password is the token;
    /// `per_measurement` consecutive records have one source.
    pub fn new(endpoint: Endpoint, way: Way, name: &str, record_type: &RecordType, per_measurement: u64) -> Self {
        RecorderDatabase { endpoint, way, lines: Arc::new(Lines::new(name, record_type, per_measurement)) }
    }
}

impl Target for RecorderDatabase {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let lines = Arc::clone(&self.lines);
        Ok(match &self.way {
            Way::Http => Box::new(WireSession::new(http::HttpWire::connect(&self.endpoint, lines)?)),
            Way::Nats(subject) => Box::new(WireSession::new(nats::NatsWire::connect(&self.endpoint, subject, lines)?)),
        })
    }
}

/// Checks that the program only inserts records.
fn check(program: &Program) -> Result<(), DatabaseError> {
    match program.statements.first() {
        Some(Statement::Insert { .. }) => Ok(()),
        other => Err(DatabaseError::refused("recorder", format!("a recorder takes whole records and not {other:?}"))),
    }
}
