//! The key of a record in a table that has one row, or one group of rows, for each record: [`RecordKey`].
//!
//! Invariant: the order of the keys is the order of scans, in every layout.

use super::columns::{RECORD_ID, number_column, table_column};
use crate::record::{Generator, RecordType};
use crate::statement::{Request, TableColumn};

/// The key of a record: an identity column of the record type or, if it has none as key, the record's number in a column of the layout's own.
#[derive(Debug, Clone)]
pub(super) struct RecordKey {
    /// The column.
    pub column: TableColumn,
    /// Index of the column among the identity columns; `None` for the record's number.
    pub place: Option<usize>,
}

impl RecordKey {
    /// Returns the key of a type's records.
    pub(super) fn of(record_type: &RecordType) -> Self {
        let column = match record_type.key {
            Some(place) => table_column(&record_type.identity[place]),
            None => number_column(RECORD_ID),
        };
        RecordKey { column, place: record_type.key }
    }

    /// Appends the key of a record.
    #[inline]
    pub(super) fn append(&self, record: u64, generator: &dyn Generator, request: &mut Request) {
        match self.place {
            None => request.cells.int(record as i64),
            Some(place) => {
                let first = request.cells.len();
                generator.identity(generator.measurement_of(record), 1, &mut request.cells);
                request.cells.keep_one(first, place);
            }
        }
    }
}
