//! The identity table of the star layouts: written once when a measurement begins, updated once when it ends later than in the same operation.

use std::ops::Range;

use super::access::change;
use super::columns::{
    MEASUREMENT, RECORD_ID, add, column_ref, equals, insert, next_cell, number_column, table, table_column,
};
use super::query::PathTable;
use crate::query::Place;
use crate::record::{ColumnKind, Generator, RecordType};
use crate::statement::{ColumnRef, Comparison, ForeignKey, Join, Program, Request, Select, Statement};

/// The table `<table>_identity` and its statements.
pub(super) struct Identity {
    name: String,
    begin: u16,
    end: Option<End>,
    delete: Option<u16>,
}

/// The update that is written when a measurement ends.
struct End {
    statement: u16,
    /// Index of the column among the identity columns.
    column: usize,
}

impl Identity {
    /// Adds the table and its statements to a program.
    pub(super) fn new(record_type: &RecordType, prefix: &str, program: &mut Program) -> Self {
        let name = format!("{prefix}_identity");
        let mut columns = vec![number_column(MEASUREMENT)];
        columns.extend(record_type.identity.iter().map(table_column));
        let mut described = table(&name, columns.clone(), vec![MEASUREMENT.to_owned()]);
        let key = &record_type.identity[..record_type.identity_key];
        if !key.is_empty() {
            described.unique.push(key.iter().map(|column| column.name.clone()).collect());
        }
        program.tables.push(described);
        let begin = add(program, Statement::Insert { table: name.clone(), columns });
        Identity { name, begin, end: None, delete: None }
    }

    /// Adds the statement of [`Identity::end`].
    pub(super) fn add_end(&mut self, program: &mut Program, record_type: &RecordType) {
        self.end = record_type.identity_end.map(|column| {
            let set = vec![table_column(&record_type.identity[column])];
            let key = vec![number_column(MEASUREMENT)];
            End { statement: add(program, Statement::Update { table: self.name.clone(), set, key }), column }
        });
    }

    /// Returns the reference from a table's column `measurement` to this table.
    pub(super) fn foreign_key(&self) -> ForeignKey {
        let column = || vec![MEASUREMENT.to_owned()];
        ForeignKey { columns: column(), table: self.name.clone(), references: column() }
    }

    /// Returns the join of this table to one that refers to it.
    pub(super) fn join(&self, from: &str) -> Join {
        let on = vec![(column_ref(&self.name, MEASUREMENT), column_ref(from, MEASUREMENT))];
        Join { table: self.name.clone(), on }
    }

    /// Returns this table as the first one on a query's path; the next table is joined by the number of the measurement.
    pub(super) fn path_table(&self) -> PathTable {
        let holds = Box::new(|place| matches!(place, Place::Identity(_)));
        PathTable { name: self.name.clone(), has_records: false, link: Some(MEASUREMENT), holds }
    }

    /// Returns references to all identity columns, for use in a query.
    pub(super) fn column_refs(&self, record_type: &RecordType) -> impl Iterator<Item = ColumnRef> {
        record_type.identity.iter().map(|column| column_ref(&self.name, &column.name))
    }

    /// Appends the rows of the measurements that begin within these records. Measurements that also end within them are
    /// written with their end: it is known by then, and one statement suffices.
    pub(super) fn begin(&self, records: &Range<u64>, generator: &dyn Generator, request: &mut Request) {
        if let Some(alternating) = generator.alternating() {
            return self.begin_in_turn(records.start..records.end.min(alternating), generator, request);
        }
        let first = generator.measurement_of(records.start);
        let began_before = generator.first_record_of(first) < records.start;
        let begun = first + u64::from(began_before)..generator.measurement_of(records.end - 1) + 1;
        if begun.is_empty() {
            return;
        }
        let first_cell = next_cell(&request.cells);
        for measurement in begun.clone() {
            let (from, to) = (generator.first_record_of(measurement), generator.first_record_of(measurement + 1));
            request.cells.int(measurement as i64);
            generator.identity(measurement, if to <= records.end { to - from } else { 0 }, &mut request.cells);
        }
        insert(request, self.begin, (begun.end - begun.start) as u32, first_cell);
    }

    /// Appends the rows of measurements that alternate and do not end: each begins with the record of its own number.
    fn begin_in_turn(&self, begun: Range<u64>, generator: &dyn Generator, request: &mut Request) {
        if begun.is_empty() {
            return;
        }
        let first_cell = next_cell(&request.cells);
        for measurement in begun.clone() {
            request.cells.int(measurement as i64);
            generator.identity(measurement, 0, &mut request.cells);
        }
        insert(request, self.begin, (begun.end - begun.start) as u32, first_cell);
    }

    /// Returns the scan of whole records, without its limit: it reads the columns of `read` in the order of the
    /// records' own key or, without one, of their numbers.
    pub(super) fn scan(&self, read: &Select, record_type: &RecordType) -> Select {
        let key = record_type.key.map(|place| &record_type.identity[place]);
        let mut from_key = match key {
            Some(column) => equals(&self.name, &column.name, column.kind),
            None => equals(&read.from, RECORD_ID, ColumnKind::Int64),
        };
        from_key.comparison = Comparison::GreaterOrEqual;
        let order = vec![(from_key.column.clone(), false)];
        Select { conditions: vec![from_key], order, ..read.clone() }
    }

    /// Adds the statement of [`Identity::delete`].
    pub(super) fn add_delete(&mut self, program: &mut Program) {
        let (table, key) = (self.name.clone(), vec![number_column(MEASUREMENT)]);
        self.delete = Some(add(program, Statement::Delete { table, key }));
    }

    /// Appends the deletion of a record's identity if the record is the only one of its measurement; a shared identity stays.
    pub(super) fn delete(&self, record: u64, generator: &dyn Generator, request: &mut Request) {
        let (Some(statement), 1) = (self.delete, generator.records_per_measurement()) else { return };
        let first_cell = next_cell(&request.cells);
        request.cells.int(record as i64);
        change(request, statement, first_cell, 1);
    }

    /// Appends the update of the measurement that began before these records and ends within them, if there is one.
    pub(super) fn end(&self, records: &Range<u64>, generator: &dyn Generator, request: &mut Request) {
        let Some(End { statement, column }) = self.end else {
            return;
        };
        let measurement = generator.measurement_of(records.start);
        let (from, to) = (generator.first_record_of(measurement), generator.first_record_of(measurement + 1));
        if from == records.start || to > records.end {
            return;
        }
        let identity = request.cells.len();
        generator.identity(measurement, to - from, &mut request.cells);
        let first_cell = next_cell(&request.cells);
        request.cells.repeat(identity + column);
        request.cells.int(measurement as i64);
        change(request, statement, first_cell, 1);
    }
}
