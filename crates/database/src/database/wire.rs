//! Wires: connections as state machines without I/O of their own, for event loops that drive many of them on one thread.
//!
//! The loop sends the bytes that [`Wire::start`] and [`Wire::advance`] append to `out`, and passes the bytes that arrive to
//! [`Wire::advance`] until it reports the outcome of the request.

use std::os::fd::RawFd;

use super::tls::SharedSecure;
use super::{Answer, DatabaseError};
use crate::record::Cells;
use crate::statement::Request;

/// A connection with a lean codec. One request at a time.
pub trait Wire: Send {
    /// Returns the socket, in blocking or non-blocking mode as the driver sets it. The wire closes it when dropped.
    fn fd(&self) -> RawFd;

    /// Returns the TLS connection on the socket, if any: the driver of the wire must seal the bytes that it sends and open those that arrive.
    fn secure(&self) -> Option<SharedSecure> {
        None
    }

    /// Begins a request: appends the first bytes to send.
    fn start(&mut self, request: &Request, out: &mut Vec<u8>);

    /// Takes in bytes that arrived and may append further bytes to send. Bytes behind [`Progress::consumed`] must be passed
    /// again, followed by more; a wire consumes whole messages and never more than its own answer.
    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress;

    /// Takes in bytes that arrive while no request is running, and may append bytes to send. Returns the number of bytes consumed.
    ///
    /// # Errors
    /// [`Unasked`]: the connection must be given up. Most servers may not send anything then.
    fn unasked(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unasked> {
        let (_, _) = (input, out);
        Err(Unasked::Wrong)
    }

    /// Returns whether the server has said, in the answer that is now complete, that it closes the connection behind it. The driver then opens another one for the
    /// next request.
    fn is_over(&self) -> bool {
        false
    }

    /// Keeps the rows read from now on (`Some`) or only counts them (`None`). Returns the rows kept so far.
    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells>;
}

/// The reason to give up a connection whose server sent something while no request was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// The server closes the connection in an orderly way: its earlier answers are valid.
    Ended,
    /// The server may not send such a message then.
    Wrong,
}

/// The progress of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The number of input bytes consumed.
    pub consumed: usize,
    /// The outcome; `None` while the request is still running. [`DatabaseError::Lost`] ends the wire.
    pub outcome: Option<Result<Answer, DatabaseError>>,
}
