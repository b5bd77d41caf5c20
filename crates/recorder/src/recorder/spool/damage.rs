//! Damage that was found when a spool was opened. Main type: [`Damage`].

use super::older::Salvaged;

/// Damage that was found when a spool was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// The number of records that are gone or changed. They are in quarantine as damaged.
    pub rows: u64,
    /// The number of records that may or may not have been acknowledged: what a crash left of records that were being written, or damage to them.
    pub uncertain_rows: u64,
    /// The number of files that are shorter than they were, have lost their beginning, or are gone.
    pub files: u64,
    /// Whether the spool's state was lost, so that the database will not know the spool again.
    pub is_state_lost: bool,
    /// Damage to the database of an older version; `None` if there was none.
    pub older: Option<Salvaged>,
}

impl Damage {
    /// Returns whether nothing was damaged. Records that were being written when a crash came do not count.
    pub fn is_none(&self) -> bool {
        (self.rows, self.files, self.is_state_lost, &self.older) == (0, 0, false, &None)
    }
}
