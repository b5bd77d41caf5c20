//! Why a recorder does not start, and how it ended. Main types: [`StartError`] and [`End`].

use super::spool::{Counts, SpoolError};

/// Why a recorder does not start. A sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// An intake.
    #[error("{0}")]
    Intake(String),
    /// The database may forget what it commits.
    #[error("{0}")]
    Database(String),
    /// The system has no thread or runtime left.
    #[error("the recorder cannot start: {0}")]
    System(String),
}

/// How a recorder ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
    /// The counters at the end.
    pub counts: Counts,
    /// Records quarantined since the start.
    pub quarantined: u64,
    /// What went wrong.
    pub failures: Vec<String>,
}
