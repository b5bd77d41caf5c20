//! What tells the rows of a table apart, where its key does not say it. Main type: [`Apart`].

/// How the rows of a table are told apart besides by its whole primary key, for databases that keep rows by their time. The last column of the key alone is the number of a record, and no
/// two rows have the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// Table name.
    pub table: String,
    /// The column with the source of a row's reading; `None` where rows have none. Where the table has no [`Table::time`](super::Table::time), the number is all that tells rows apart.
    pub source: Option<String>,
    /// How often a reading can come, where it can come more than once.
    pub again: Option<Again>,
}

/// Readings that come more than once, with the same source and time: the rounds in which they come are told apart by the number of the round, modulo `rounds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// The number of records in a round, at least 1.
    pub round: u64,
    /// The number of rounds, at least 1: between the first and the last time that a reading comes lie fewer.
    pub rounds: u64,
}
