//! Parts of a dry run. Main type: [`Attempt`].

use crate::database::{Answer, DatabaseError};

/// A part of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// What becomes first of the part before it.
    pub before: Before,
    /// Whether it leaves together with others, so that it is kept, where it is taken, before it is answered.
    pub is_of_many: bool,
}

/// What becomes, within a dry run, of what was attempted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It stays, until the end of the dry run.
    Kept,
    /// It is undone.
    Undone,
    /// It left together with this one ([`Attempt::is_of_many`]): it stays if it was taken, and is undone if it was refused.
    AsAnswered,
}

impl Before {
    /// What goes before the next attempt.
    pub(super) fn behind(outcome: &Result<Answer, DatabaseError>) -> Self {
        if outcome.is_ok() { Before::Kept } else { Before::Undone }
    }
}
