//! Parts of a dry run. Main type: [`Attempt`].

use crate::database::{Answer, DatabaseError};

/// A request as part of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The fate of the previous attempt, decided before this one.
    pub before: Before,
    /// True if the request is sent together with others, so that a successful one is kept before its answer is read.
    pub is_of_many: bool,
}

/// The fate of the previous attempt within a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The attempt is kept until the end of the dry run.
    Kept,
    /// The attempt is undone.
    Undone,
    /// The attempt was sent together with this one ([`Attempt::is_of_many`]): it is kept if it succeeded and undone if it was refused.
    AsAnswered,
}

impl Before {
    /// Returns the fate of an attempt with this outcome.
    pub(super) fn behind(outcome: &Result<Answer, DatabaseError>) -> Self {
        if outcome.is_ok() { Before::Kept } else { Before::Undone }
    }
}
