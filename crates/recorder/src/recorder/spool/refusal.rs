//! Records that the database refused, and stand-ins for damaged ones. Main types: [`Refusal`], before it is kept, and [`Quarantined`], after.

/// The reason for quarantining an entry that is not as it was written.
pub(super) const DAMAGED: &str = "the entry's checksum is wrong: the spool's disk or file was damaged";
/// Returns the reason for quarantining rows of which nothing is left. Unless it is certain that they were still needed, their number is an upper bound.
pub(super) fn gone(rows: u64, is_certain: bool) -> String {
    let (most, unless) = if is_certain { ("", "") } else { ("up to ", ", unless they had been dealt with before") };
    format!("{most}{rows} records are gone{unless}: the spool's disk or files were damaged")
}

/// A record, or a damaged entry, in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Quarantined {
    /// The record's number in quarantine.
    pub id: i64,
    /// The sender's own name for itself.
    pub source: String,
    /// The time of the quarantining, in nanoseconds since 1970.
    pub quarantined_ns: i64,
    /// The reason for the refusal.
    pub reason: String,
    /// The number of records that it stands for.
    pub rows: u64,
    /// The line as it was sent; bytes that are not UTF-8 are replaced.
    pub line: String,
}

/// A refused record of an entry, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The record's number within the entry, from 0; -1 for an entry that is damaged, which is never replayed.
    pub row: i64,
    /// The number of records that it stands for: one, or all records of a damaged entry.
    pub rows: u32,
    /// The record's line.
    pub body: Vec<u8>,
    /// The reason for the refusal.
    pub reason: String,
}
