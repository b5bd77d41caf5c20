//! Errors at the start of a recorder, and the result of its run. Main types: [`StartError`] and [`End`].

use super::spool::{Counts, SpoolError};

/// The reason why a recorder does not start. A sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The spool cannot be opened.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// An intake cannot be started.
    #[error("{0}")]
    Intake(String),
    /// The database is not fit: it may forget what it commits.
    #[error("{0}")]
    Database(String),
    /// The system has no thread or runtime left.
    #[error("the recorder cannot start: {0}")]
    System(String),
}

/// The result of a recorder's run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
    /// The counters at the end.
    pub counts: Counts,
    /// Records quarantined since the start.
    pub quarantined: u64,
    /// The errors that occurred.
    pub failures: Vec<String>,
}
