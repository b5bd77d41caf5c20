//! How an operation ended, and when: [`Ending`], [`Times`].

use crate::database::DatabaseError;

/// The times of one operation, by the engine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When its answer was complete.
    pub done_ns: u64,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending<'a> {
    /// As it should; `empty` when it read nothing although it should have.
    Completed {
        /// Whether nothing was found.
        empty: bool,
    },
    /// With an error.
    Failed(&'a DatabaseError),
    /// Without an answer when the trial ended.
    Abandoned,
}
