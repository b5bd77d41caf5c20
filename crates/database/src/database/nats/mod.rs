//! Publish-subscribe over NATS in the place of a database: the rows that writers would insert are published, one message for each write.
//!
//! Main types: [`NatsDatabase`], which the load engine drives as any other database, and [`Subscriber`]. It is not in the registry: studies name
//! the database that a historian stores into, and `freshness.path` selects how events get there. The private server is started
//! as the one in front of a recorder is.
//!
//! Plain subjects, without a stream: a write is acknowledged when the server has taken its message and passed it to the
//! subscribers, in memory. Nothing is on disk then; the server disconnects a subscriber that cannot keep up.
//!
//! Invariant: a message holds all rows of one write.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod message;
mod protect;
mod subscriber;
mod wire;

use super::session::WireSession;
use super::{DatabaseError, Endpoint, Target, TargetSession};

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::NATS as FUZZED;
pub use message::{decode, encode};
pub(in crate::database) use protect::connect;
pub use subscriber::Subscriber;

use wire::NatsWire;

/// The prefix of the subjects, in front of the table's name.
const SUBJECT: &str = "events";

/// Returns the subject that the rows of a table are published under.
pub fn subject_of(table: &str) -> String {
    format!("{SUBJECT}.{table}")
}

/// A NATS server that rows are published to.
#[derive(Debug, Clone)]
pub struct NatsDatabase {
    endpoint: Endpoint,
}

impl NatsDatabase {
    /// Creates the target for the server at an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        NatsDatabase { endpoint }
    }
}

impl Target for NatsDatabase {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let (socket, _) = connect(&self.endpoint)?;
        let mut session = WireSession::new(NatsWire::new(socket));
        session.greet(&self.endpoint)?;
        Ok(Box::new(session))
    }
}
