//! Size of the tables of a trial on the disk.

use serde::{Deserialize, Serialize};

/// Size of tables and indexes right after a trial, before the database has reorganised the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableSize {
    /// Bytes of all tables of the trial, with their indexes, as the database reports them.
    pub bytes: u64,
    /// Records in the tables.
    pub records: u64,
}

impl TableSize {
    /// Returns the bytes on the disk per record; `None` where there are no records.
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
