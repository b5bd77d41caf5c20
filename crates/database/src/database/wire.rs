//! Wires: connections as state machines without I/O of their own, for event loops that drive many of them on one thread.
//!
//! The loop sends the bytes that [`Wire::start`] and [`Wire::advance`] append to `out`, and gives the bytes that arrive to
//! [`Wire::advance`] until it says that the request is done.

use std::os::fd::RawFd;

use super::tls::SharedSecure;
use super::{Answer, DatabaseError};
use crate::record::Cells;
use crate::statement::Request;

/// A connection with a lean codec. One request at a time.
pub trait Wire: Send {
    /// The socket, in blocking or non-blocking mode as the driver sets it. The wire closes it when dropped.
    fn fd(&self) -> RawFd;

    /// What protects the socket, where something does: whoever drives the wire seals what it sends, and opens what arrives.
    fn secure(&self) -> Option<SharedSecure> {
        None
    }

    /// Begins a request: appends the first bytes to send.
    fn start(&mut self, request: &Request, out: &mut Vec<u8>);

    /// Takes in bytes that arrived and may append further bytes to send. Bytes behind [`Progress::consumed`] must be given
    /// again, followed by more; a wire consumes whole messages and never more than its own answer.
    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress;

    /// Takes in bytes that arrive while no request is running, and may append bytes to send: how many were consumed.
    ///
    /// # Errors
    /// [`Unasked`]: the connection is given up. With most servers nothing may come then.
    fn unasked(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unasked> {
        let (_, _) = (input, out);
        Err(Unasked::Wrong)
    }

    /// From now on keeps the rows that are read (`Some`) or only counts them (`None`). Gives back what was kept.
    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells>;
}

/// Why a connection is given up that said something while no request was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// The server ends the connection in order: what it answered before holds.
    Ended,
    /// Nothing of the kind may come then.
    Wrong,
}

/// How far a request has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Bytes of the input taken in.
    pub consumed: usize,
    /// The outcome; none while the request is still running. [`DatabaseError::Lost`] ends the wire.
    pub outcome: Option<Result<Answer, DatabaseError>>,
}
