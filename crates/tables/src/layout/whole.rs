//! Records as a key and all other columns, for layouts that keep a record's fields together. Main type: [`Whole`].

use super::key::RecordKey;
use crate::operation::Fields;
use crate::query::Place;
use crate::record::{Column, Generator, RecordType};
use crate::statement::{Request, TableColumn};

/// The key of a record type, and its other columns.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    /// The key.
    pub key: RecordKey,
    /// Identity columns except the key, then value columns.
    pub columns: Vec<Column>,
    /// Number of identity columns among them.
    pub identity: usize,
}

impl Whole {
    /// Splits a record type into its key and its other columns.
    pub(super) fn of(record_type: &RecordType) -> Self {
        let key = RecordKey::of(record_type);
        let identity = record_type.identity.iter().enumerate().filter(|(place, _)| Some(*place) != key.place);
        let identity: Vec<_> = identity.map(|(_, column)| column.clone()).collect();
        let count = identity.len();
        Whole {
            key,
            columns: identity.into_iter().chain(record_type.values.iter().cloned()).collect(),
            identity: count,
        }
    }

    /// Returns the key as the only column by which rows are found.
    pub(super) fn key_columns(&self) -> Vec<TableColumn> {
        vec![self.key.column.clone()]
    }

    /// Returns a column of the record type under its own name and type.
    pub(super) fn named(place: Place, record_type: &RecordType) -> TableColumn {
        super::columns::table_column(place.column(record_type))
    }

    /// Appends the identity of a record, without the key.
    #[inline]
    fn append_identity(&self, record: u64, generator: &dyn Generator, request: &mut Request) {
        let first = request.cells.len();
        let measurement = generator.measurement_of(record);
        let so_far = record - generator.first_record_of(measurement) + 1;
        generator.identity(measurement, so_far, &mut request.cells);
        if let Some(place) = self.key.place {
            request.cells.remove(first + place);
        }
    }

    /// Appends all columns of a record.
    #[inline]
    pub(super) fn append(&self, record: u64, generator: &dyn Generator, request: &mut Request) {
        self.append_identity(record, generator, request);
        generator.values(record, &mut request.cells);
    }

    /// Appends all columns of a record, some of them with the values of another record.
    pub(super) fn append_updated(
        &self,
        record: u64,
        (like, fields): (u64, Fields),
        generator: &dyn Generator,
        request: &mut Request,
    ) {
        self.append_identity(record, generator, request);
        match fields {
            Fields::All => generator.values(like, &mut request.cells),
            Fields::One(place) => {
                let values = request.cells.len();
                generator.values(record, &mut request.cells);
                let others = request.cells.len();
                generator.values(like, &mut request.cells);
                request.cells.exchange(values + usize::from(place), others + usize::from(place));
                request.cells.truncate(others);
            }
        }
    }
}

/// Returns the elements of `values` that an operation concerns.
pub(super) fn chosen<T>(values: &[T], fields: Fields) -> &[T] {
    match fields {
        Fields::All => values,
        Fields::One(place) => values.get(usize::from(place)).map_or(&[], std::slice::from_ref),
    }
}
