//! What a session does before it asks anything: it takes in what came since the last answer.

use super::{Prepare, WireSession};
use crate::database::{DatabaseError, Unasked};

impl<W: Prepare + 'static> WireSession<W> {
    /// To be called before anything is asked: takes in what came since the last answer. What servers may say unasked is passed over; more would be taken for the answer
    /// to what is asked next, and each answer from then on for the one to what was asked before.
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
            // What it says at its end is the answer to what is asked next.
            Err(Unasked::Ended) => Ok(()),
            Err(Unasked::Wrong) => {
                Err(DatabaseError::Lost("the server sent more than the answer to what was asked".to_owned()))
            }
        }
    }
}
