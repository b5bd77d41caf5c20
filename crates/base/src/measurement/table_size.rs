//! What the tables of a trial take on the disk.

use serde::{Deserialize, Serialize};

/// Tables with their indexes right behind a trial: before a database has put in order what the trial left.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableSize {
    /// Bytes of all tables of the trial, with their indexes, as the database states them.
    pub bytes: u64,
    /// Records that the tables hold.
    pub records: u64,
}

impl TableSize {
    /// Bytes on the disk for each record; none where there are no records.
    pub fn bytes_per_record(&self) -> Option<f64> {
        (self.records > 0).then(|| self.bytes as f64 / self.records as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_of_no_records() {
        assert_eq!(TableSize { bytes: 4096, records: 0 }.bytes_per_record(), None);
        assert_eq!(TableSize { bytes: 4096, records: 16 }.bytes_per_record(), Some(256.0));
    }
}
