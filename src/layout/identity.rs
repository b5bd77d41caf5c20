//! The identity table of the star layouts: written once when a measurement begins, updated once when it ends.

use std::ops::Range;

use super::columns::{MEASUREMENT, add, column_ref, insert, next_cell, number_column, table, table_column};
use crate::record::{Generator, RecordType};
use crate::statement::{ColumnRef, Expect, ForeignKey, Join, Program, Request, Statement, Step};

/// The table `<table>_identity` and its statements.
pub(super) struct Identity {
    name: String,
    begin: u16,
    end: Option<End>,
}

/// What is written when a measurement ends.
struct End {
    statement: u16,
    /// The place of the column among the identity columns.
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
        let end = record_type.identity_end.map(|column| {
            let set = vec![table_column(&record_type.identity[column])];
            let key = vec![number_column(MEASUREMENT)];
            End { statement: add(program, Statement::Update { table: name.clone(), set, key }), column }
        });
        Identity { name, begin, end }
    }

    /// The reference of a table's column `measurement` to this table.
    pub(super) fn foreign_key(&self) -> ForeignKey {
        let column = || vec![MEASUREMENT.to_owned()];
        ForeignKey { columns: column(), table: self.name.clone(), references: column() }
    }

    /// The join of this table to one that refers to it.
    pub(super) fn join(&self, from: &str) -> Join {
        let on = vec![(column_ref(&self.name, MEASUREMENT), column_ref(from, MEASUREMENT))];
        Join { table: self.name.clone(), on }
    }

    /// All identity columns, to be named in a query.
    pub(super) fn column_refs(&self, record_type: &RecordType) -> impl Iterator<Item = ColumnRef> {
        record_type.identity.iter().map(|column| column_ref(&self.name, &column.name))
    }

    /// Appends the rows of the measurements that begin within these records. Those that end within them too are
    /// written with their end: it is known by then, and one statement does for two.
    pub(super) fn begin(&self, records: &Range<u64>, generator: &dyn Generator, request: &mut Request) {
        let per_measurement = generator.records_per_measurement();
        let begun = records.start.div_ceil(per_measurement)..records.end.div_ceil(per_measurement);
        if begun.is_empty() {
            return;
        }
        let first_cell = next_cell(&request.cells);
        for measurement in begun.clone() {
            let is_whole = (measurement + 1) * per_measurement <= records.end;
            request.cells.int(measurement as i64);
            generator.identity(measurement, if is_whole { per_measurement } else { 0 }, &mut request.cells);
        }
        insert(request, self.begin, (begun.end - begun.start) as u32, first_cell);
    }

    /// Appends the update of the measurement that began before these records and ends within them, if there is one.
    pub(super) fn end(&self, records: &Range<u64>, generator: &dyn Generator, request: &mut Request) {
        let Some(End { statement, column }) = self.end else {
            return;
        };
        let per_measurement = generator.records_per_measurement();
        let measurement = records.start / per_measurement;
        let began_before = measurement * per_measurement < records.start;
        if !began_before || (measurement + 1) * per_measurement > records.end {
            return;
        }
        let identity = request.cells.len();
        generator.identity(measurement, per_measurement, &mut request.cells);
        let first_cell = next_cell(&request.cells);
        request.cells.repeat(identity + column);
        request.cells.int(measurement as i64);
        request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Changed(1) });
    }
}
