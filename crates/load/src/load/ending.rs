//! How an operation ended, and when: [`Ending`], [`Times`].

use crate::database::DatabaseError;

/// The times of one operation, by the engine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Time at which it should have been sent.
    pub intended_ns: u64,
    /// Time at which it was sent.
    pub sent_ns: u64,
    /// Time at which its answer was complete.
    pub done_ns: u64,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending<'a> {
    /// The operation succeeded.
    Completed {
        /// Whether it found nothing although it should have.
        empty: bool,
    },
    /// The operation failed with an error.
    Failed(&'a DatabaseError),
    /// No answer had come when the trial ended.
    Abandoned,
}
