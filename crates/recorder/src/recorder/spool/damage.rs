//! What was found damaged when a spool was opened. Main type: [`Damage`].

use super::older::Salvaged;

/// What was found damaged when a spool was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// Records that are gone or not as they were. They are in quarantine, as such.
    pub rows: u64,
    /// Records of which nobody can tell whether they were acknowledged: what a crash has left of those that were being written, or damage to them.
    pub uncertain_rows: u64,
    /// Files that are shorter than they were, have no beginning any more, or are gone.
    pub files: u64,
    /// Whether what the spool knows of itself was lost: the database will not know it again.
    pub is_state_lost: bool,
    /// What was damaged of the database that older versions kept.
    pub older: Option<Salvaged>,
}

impl Damage {
    /// Whether anything was damaged. What was being written in a crash is not.
    pub fn is_none(&self) -> bool {
        (self.rows, self.files, self.is_state_lost, &self.older) == (0, 0, false, &None)
    }
}
