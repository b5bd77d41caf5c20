//! Records that the database refused, and what stands for those that were damaged. Main types: [`Refusal`], before one is kept, and [`Quarantined`], after.

/// Why an entry is quarantined that is not as it was written.
pub(super) const DAMAGED: &str = "the entry's checksum is wrong: the spool's disk or file was damaged";
/// Why rows are quarantined of which nothing is left; those that may not have been wanted any more are as many at most.
pub(super) fn gone(rows: u64, is_certain: bool) -> String {
    let (most, unless) = if is_certain { ("", "") } else { ("up to ", ", unless they had been dealt with before") };
    format!("{most}{rows} records are gone{unless}: the spool's disk or files were damaged")
}

/// A record, or a damaged entry, in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Quarantined {
    /// Its number.
    pub id: i64,
    /// Who sent it.
    pub source: String,
    /// When it was quarantined, in nanoseconds since 1970.
    pub quarantined_ns: i64,
    /// Why.
    pub reason: String,
    /// Number of records.
    pub rows: u64,
    /// The line as it was sent; what is not UTF-8 is replaced.
    pub line: String,
}

/// What one record of an entry is quarantined with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The record's number within the entry, from 0; -1 for an entry that is damaged, which is never replayed.
    pub row: i64,
    /// How many records it stands for: one, or all of an entry that is damaged.
    pub rows: u32,
    /// The line.
    pub body: Vec<u8>,
    /// Why.
    pub reason: String,
}
