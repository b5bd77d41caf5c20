//! A recorder in the place of a database: requests of whole records become line protocol, which a recorder takes over HTTP or from a
//! stream of a NATS server.
//!
//! Main type: [`RecorderDatabase`]. It stands in no registry: `database.name` says where the recorder writes to, `recorder.path` what
//! is in front of it. [`recipe`] says how a private recorder and a private NATS server are started.
//!
//! Where the endpoint asks for TLS, both speak it; the codecs do not know.
//!
//! Invariant: an answer is good only when the other side has acknowledged the records.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod http;
mod lines;
#[cfg(test)]
mod lying;
mod nats;
pub mod recipe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::session::WireSession;
use super::{DatabaseError, Endpoint, Target, TargetSession};
use crate::record::RecordType;
use crate::statement::{Program, Statement};

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::FRONTS as FUZZED;
pub(in crate::database) use http::read_answer;
pub use lines::Lines;
pub use nats::create_stream;

/// How records get to the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// As requests to the recorder itself.
    Http,
    /// As messages to a NATS server, below this subject.
    Nats(String),
}

/// What takes records in.
pub struct RecorderDatabase {
    endpoint: Endpoint,
    way: Way,
    lines: Arc<Lines>,
}

impl RecorderDatabase {
    /// Takes records of a type in at an endpoint, whose password is the token, as a measurement of this name; `per_measurement` consecutive records have one source.
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

/// Whether all that is asked for is to insert records.
fn check(program: &Program) -> Result<(), DatabaseError> {
    match program.statements.first() {
        Some(Statement::Insert { .. }) => Ok(()),
        other => Err(DatabaseError::refused("recorder", format!("a recorder takes whole records and not {other:?}"))),
    }
}
