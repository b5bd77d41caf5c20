//! The records that exist before a trial is measured.

use crate::operation::Operation;
use crate::record::{ColumnKind, RecordType};

/// Maximum number of records in one transaction of the preparation. A million `wisconsin` rows in transactions of 10,000 instead of 1000,
/// in seconds on two cores: SQLite 0.9 instead of 1.4, MariaDB InnoDB 2.7 and 3.3, MyISAM 2.0 and 2.2, PostgreSQL 1.9 and 3.1.
const RECORDS_MAX: u64 = 10_000;

/// Approximate maximum bytes of the values of one transaction, unless a single record has more.
const BYTES_MAX: u64 = 8 << 20;

/// Returns the number of records of a type in one transaction of the preparation.
pub(super) fn chunk_records(record_type: &RecordType) -> u64 {
    let columns = record_type.identity.iter().chain(&record_type.values);
    let bytes = columns.map(|column| match column.kind {
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64 => 8,
        ColumnKind::Json => 1024,
        ColumnKind::Text(length) | ColumnKind::Blob(length) => 8 + u64::from(length),
    });
    (BYTES_MAX / bytes.sum::<u64>().max(1)).clamp(1, RECORDS_MAX)
}

/// Inserts of records 0 to `rows` - 1, in order; chunks end where measurements do, if these are short enough.
#[derive(Debug, Clone)]
pub struct Preload {
    next: u64,
    rows: u64,
    chunk: u64,
}

impl Preload {
    /// Creates all inserts for this number of rows, with `chunk` or slightly fewer in each; no inserts for 0 rows.
    pub fn new(rows: u64, per_measurement: u64, chunk: u64) -> Self {
        let (per_measurement, chunk) = (per_measurement.max(1), chunk.max(1));
        let whole = chunk / per_measurement * per_measurement;
        Preload { next: 0, rows, chunk: if whole == 0 { chunk } else { whole } }
    }

    /// Returns the number of rows still to be inserted.
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
    use crate::record::Column;

    fn chunks(rows: u64, per_measurement: u64) -> Vec<(u64, u32)> {
        let chunk = |operation| match operation {
            Operation::Insert { first, records } => (first, records),
            other => panic!("{other:?} does not write"),
        };
        Preload::new(rows, per_measurement, 1000).map(chunk).collect()
    }

    #[test]
    fn every_row_is_written_once_in_chunks_of_whole_measurements() {
        assert_eq!(chunks(2000, 300), [(0, 900), (900, 900), (1800, 200)]);
        assert_eq!(chunks(2500, 5000), [(0, 1000), (1000, 1000), (2000, 500)]);
        assert_eq!(chunks(7, 1), [(0, 7)]);
        assert_eq!(chunks(0, 10), []);
    }

    #[test]
    fn transactions_have_a_bounded_size_whatever_the_record() {
        let record_type = |length| RecordType {
            name: "t".to_owned(),
            identity: Vec::new(),
            identity_key: 0,
            identity_end: None,
            series: None,
            key: None,
            values: vec![Column { name: "c".to_owned(), kind: ColumnKind::Text(length), nullable: false, hot: true }],
        };
        assert_eq!(chunk_records(&record_type(1)), 10_000);
        assert_eq!(chunk_records(&record_type((8 << 10) - 8)), 1024);
        assert_eq!(chunk_records(&record_type(u32::MAX)), 1);
    }
}
