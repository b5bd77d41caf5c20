//! A connection over which a source sends requests, whatever their protocol.
//!
//! Main type: [`Connection`]. Invariant: a request is acknowledged only by what its protocol calls an acknowledgement of all of it.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer: the request then counts as sent, and the connection is given up.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What has become of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is acknowledged.
    Acknowledged,
    /// It is refused for good, with these words.
    Refused(String),
    /// It is not acknowledged, and might be later.
    Later,
}

/// An answer, and whether the connection can be used for the next request.
pub type Answered = (Said, bool);

/// A connection of a source.
pub trait Connection: Send {
    /// Sends a number of lines as one request and waits for its answer.
    ///
    /// # Errors
    /// Fails if there is no whole answer; the connection is of no use then.
    fn send(&mut self, lines: &str, count: u64) -> anyhow::Result<Answered>;
}

/// Opens a connection on which nothing is waited for longer than [`ANSWER_WITHIN`].
///
/// # Errors
/// Fails if nobody listens.
pub fn dial(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
