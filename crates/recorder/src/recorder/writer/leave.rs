//! How a lane ends, and why it gives up a batch. Main types: [`LaneEnd`] and [`Leave`].

use super::refusal::{Meaning, meaning};
use super::store::News;
use crate::database::DatabaseError;
use crate::recorder::spool::SpoolError;

/// How a lane's run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneEnd {
    /// Everything that was given to the lane is in the database.
    Drained,
    /// The lane was stopped; entries that it had not written are in the spool.
    Stopped,
    /// The lane cannot go on, for this reason.
    Failed(String),
}

/// Why a lane gives up its batch.
pub(super) enum Leave {
    Stopped,
    GaveUp(String),
    Failed(String),
    /// The ledger holds news that must be dealt with before anything is written.
    Found(Found),
    /// The entries in the spool have changed.
    Changed,
}

/// The news that a new connection finds in the ledger.
pub(super) struct Found {
    /// The entry that the ledger has come to.
    pub sequence: i64,
    /// Whether the ledger has gone back to that entry: the database has forgotten commits.
    pub has_forgotten: bool,
    /// News about the lane's opening.
    pub news: Option<News>,
}

impl LaneEnd {
    pub(super) fn of(ended: Result<LaneEnd, Leave>) -> Self {
        match ended {
            Ok(end) => end,
            Err(Leave::Stopped | Leave::GaveUp(_) | Leave::Found(_) | Leave::Changed) => LaneEnd::Stopped,
            Err(Leave::Failed(reason)) => LaneEnd::Failed(reason),
        }
    }
}

impl From<SpoolError> for Leave {
    fn from(error: SpoolError) -> Self {
        Leave::Failed(error.to_string())
    }
}

/// Returns [`Leave`] if an error ends the lane because the disk failed.
pub(super) fn ended_by(error: &DatabaseError) -> Result<(), Leave> {
    match meaning(error) {
        Meaning::Broken => Err(Leave::Failed(format!("the database's disk failed: {error}"))),
        _ => Ok(()),
    }
}
