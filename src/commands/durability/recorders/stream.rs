//! Messages of a stream of NATS. The stream is made here; JetStream's answer acknowledges a message.
//!
//! Main type: [`StreamConnection`]. Invariant: each message has an id that no other has, so that it is recognised when it comes again.

use std::net::SocketAddr;

use super::connection::{ANSWER_WITHIN, Answered, Connection, Said};
use crate::database::recorder::{StreamSession, create_stream};
use crate::database::{DatabaseError, Endpoint};

/// The stream, and the first word of its subjects.
pub const STREAM: &str = "measurements";
/// The durable consumer of those who take from it.
pub const CONSUMER: &str = "loadline";

/// What JetStream says that cannot take a message now.
const NOT_NOW: &str = "503";

/// A connection to a NATS server.
pub struct StreamConnection {
    session: StreamSession,
    source: u64,
    /// Number of the message, over all connections of this process.
    message: u64,
}

/// The number of connections so far: ids of two connections differ.
static CONNECTIONS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Returns the endpoint at an address.
fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint { tcp: Some((address.ip().to_string(), address.port())), ..Endpoint::default() }
}

/// Makes the stream, in files.
///
/// # Errors
/// Fails if the server has no JetStream, for instance.
pub fn make(address: SocketAddr) -> anyhow::Result<()> {
    Ok(create_stream(&endpoint(address), STREAM, STREAM).map(drop)?)
}

impl StreamConnection {
    /// Opens a connection for the source with this number.
    ///
    /// # Errors
    /// Fails if the server cannot be reached.
    pub fn open(address: SocketAddr, source: u64) -> anyhow::Result<Self> {
        let mut session = StreamSession::connect(&endpoint(address), STREAM)?;
        session.answer_within(ANSWER_WITHIN);
        let connection = CONNECTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(StreamConnection { session, source, message: connection << 32 })
    }
}

impl Connection for StreamConnection {
    fn send(&mut self, lines: &str, _: u64) -> anyhow::Result<Answered> {
        self.message += 1;
        let (subject, id) = (format!("{STREAM}.s{}", self.source), format!("{}-{}", self.source, self.message));
        match self.session.publish(&subject, &id, lines.as_bytes()) {
            Ok(()) => Ok((Said::Acknowledged, true)),
            Err(DatabaseError::Refused { code, .. }) if code == NOT_NOW => Ok((Said::Later, true)),
            Err(DatabaseError::Refused { code, message }) => Ok((Said::Refused(format!("{code} {message}")), true)),
            Err(error) => Err(error.into()),
        }
    }
}
