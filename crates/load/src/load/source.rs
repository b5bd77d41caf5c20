//! Where a client's operations come from: [`Source`].

use crate::operation::{Operation, OperationKind};
use crate::record::Cells;
use crate::statement::Request;

/// A source of a client's operations: a workload, laid out as statements with values.
pub trait Source: Send {
    /// Fills the request, which is empty, with the client's next operation.
    fn next(&mut self, request: &mut Request) -> Operation;

    /// Returns the kind as which the operation that has begun and its immediate successors are counted together; `None` if it stands alone.
    fn compound(&self) -> Option<OperationKind> {
        None
    }

    /// Notes that the running operation was answered, successfully or not. If a further part of the same compound must
    /// be sent at once, clears the request, fills it with that operation and returns it; `None` if the client is free.
    fn done(&mut self, succeeded: bool, request: &mut Request) -> Option<Operation> {
        let (_, _) = (succeeded, request);
        None
    }

    /// Returns whether the values of its answers are checked, so that their rows must be kept.
    fn checks_answers(&self) -> bool {
        false
    }

    /// Returns whether checking or making answers may take the client long, so that others in its thread would wait.
    fn works_long(&self) -> bool {
        false
    }

    /// Makes the answer to the running operation from its rows, where the client does that and not the database, and returns its number of rows; `None` where the rows
    /// are the answer.
    ///
    /// # Errors
    /// What is wrong with the rows, as a sentence.
    fn unpack(&mut self, rows: &mut Cells) -> Result<Option<u64>, String> {
        let _ = rows;
        Ok(None)
    }

    /// Checks the rows of the answer to the running operation.
    ///
    /// # Errors
    /// What is wrong with them, as a sentence.
    fn check(&mut self, rows: &Cells) -> Result<(), String> {
        let _ = rows;
        Ok(())
    }

    /// Returns when the next operation is due, in nanoseconds after the start of the measured phase, for a source that
    /// has times of its own; `None` after its last operation.
    fn due_ns(&self) -> Option<i64> {
        None
    }

    /// Returns whether the next operation continues what has begun on the same connection.
    fn is_inside(&self) -> bool {
        false
    }

    /// Skips the next operation, which will not be sent, and returns its kind.
    fn pass_over(&mut self) -> Option<OperationKind> {
        None
    }
}
