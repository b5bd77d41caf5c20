//! The start of every request of a session: it takes in what the server has sent since the last answer.

use super::{Prepare, WireSession};
use crate::database::{DatabaseError, Unasked};

impl<W: Prepare + 'static> WireSession<W> {
    /// Takes in what the server has sent since the last answer; must be called before each request. Messages that servers may send unasked are passed over.
    /// Anything else would be taken for the answer to the next request, and each later answer for that of the request before.
    pub(super) fn begin(&mut self) -> Result<(), DatabaseError> {
        if self.channel.is_scripted() {
            return Ok(());
        }
        self.channel.receive_some()?;
        if self.channel.input().is_empty() {
            return Ok(());
        }
        self.out.clear();
        match self.wire.unasked(self.channel.input(), &mut self.out) {
            Ok(consumed) => {
                self.channel.consume(consumed);
                if self.out.is_empty() { Ok(()) } else { self.channel.send(&self.out) }
            }
            // The server's last message is the answer to the next request.
            Err(Unasked::Ended) => Ok(()),
            Err(Unasked::Wrong) => {
                Err(DatabaseError::Lost("the server sent more than the answer to what was asked".to_owned()))
            }
        }
    }
}
