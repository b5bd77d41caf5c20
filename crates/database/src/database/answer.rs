//! What comes of a request. Main type: [`Answer`].

/// An insert that passes over rows which a unique key forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassingOver {
    /// The index of the prepared statement.
    pub statement: u16,
    /// True if [`Answer::changed`] also counts the rows that were passed over.
    pub counts_all: bool,
}

/// The result of a request, over all its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// The number of rows read.
    pub rows: u64,
    /// The number of rows changed by inserts and updates.
    pub changed: u64,
    /// The number of steps that expected rows and found none.
    pub empty: u32,
}
