//! Publish-subscribe over NATS in the place of a database: what writers would insert is published, a message for each write.
//!
//! Main types: [`NatsDatabase`], which the load engine drives as any other, and [`Subscriber`]. It stands in no registry: studies name
//! the database that a historian stores into, and `freshness.path` how events get there. The private server is started
//! as the one in front of a recorder is.
//!
//! Plain subjects, without a stream: a write is answered when the server has taken its message and given it to those who
//! subscribe, in memory. Nothing is on disk then; a subscriber that cannot keep up is cut off by the server.
//!
//! Invariant: a message holds the rows of one write, whole.

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

/// What comes before the name of a table in a subject.
const SUBJECT: &str = "events";

/// The subject that rows of a table are published under.
pub fn subject_of(table: &str) -> String {
    format!("{SUBJECT}.{table}")
}

/// A NATS server that rows are published to.
#[derive(Debug, Clone)]
pub struct NatsDatabase {
    endpoint: Endpoint,
}

impl NatsDatabase {
    /// The server that listens at an endpoint.
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
