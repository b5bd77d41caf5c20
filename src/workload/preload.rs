//! The records that are there before a trial is measured.

use crate::operation::Operation;

/// Records in one transaction of the preparation, at most.
pub(super) const CHUNK_RECORDS: u64 = 1000;

/// Inserts of records 0 to `rows` - 1, in order; chunks end where measurements do, as far as these are short enough.
#[derive(Debug, Clone)]
pub struct Preload {
    next: u64,
    rows: u64,
    chunk: u64,
}

impl Preload {
    /// All inserts for this number of rows; none for 0.
    pub fn new(rows: u64, per_measurement: u64) -> Self {
        let per_measurement = per_measurement.max(1);
        let whole = CHUNK_RECORDS / per_measurement * per_measurement;
        Preload { next: 0, rows, chunk: if whole == 0 { CHUNK_RECORDS } else { whole } }
    }

    /// Rows that are still to be inserted.
    pub fn left(&self) -> u64 {
        self.rows - self.next
    }
}

impl Iterator for Preload {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let records = self.chunk.min(self.left());
        if records == 0 {
            return None;
        }
        let first = self.next;
        self.next += records;
        Some(Operation::Insert { first, records: records as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(rows: u64, per_measurement: u64) -> Vec<(u64, u32)> {
        let chunk = |operation| match operation {
            Operation::Insert { first, records } => (first, records),
            other => panic!("{other:?} does not write"),
        };
        Preload::new(rows, per_measurement).map(chunk).collect()
    }

    #[test]
    fn every_row_is_written_once_in_chunks_of_whole_measurements() {
        assert_eq!(chunks(2000, 300), [(0, 900), (900, 900), (1800, 200)]);
        assert_eq!(chunks(2500, 5000), [(0, 1000), (1000, 1000), (2000, 500)]);
        assert_eq!(chunks(7, 1), [(0, 7)]);
        assert_eq!(chunks(0, 10), []);
    }
}
