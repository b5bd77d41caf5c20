//! The tables and statements of a measurement. Main types: [`Tables`], the tables it must have, and [`Statements`], the numbers
//! of its statements in a lane's program. `layout::recorded` defines the tables.

use std::collections::HashSet;

use super::catalogue::{Catalogue, Measurement};
use super::columns::Columns;
use super::names::{REGISTRY, table_name};
use super::registry::empty_measurement;
use super::{ledger, messages, opening};
use crate::database::Dialect;
use crate::database::dialect::index_name;
use crate::layout::recorded::{Described, MEASUREMENT, Shape, StoredColumn};
use crate::statement::{ColumnRef, Comparison, Condition, Program, Select, SqlForm, Statement, Table};

/// The tables of a measurement.
pub(super) struct Tables {
    /// The tables, in the order in which they are created.
    pub tables: Vec<Table>,
}

/// The numbers of a measurement's statements in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Statements {
    /// Finds an identity by its series: returns its number and the series.
    pub find: Option<u16>,
    /// Inserts an identity.
    pub begin: Option<u16>,
    /// Brings the end of an identity up to date.
    pub end: Option<u16>,
    /// Inserts a record.
    pub main: u16,
    /// Inserts the fields that `star-hot` keeps apart, or the single values of `eav`.
    pub second: Option<u16>,
}

fn stored(columns: &Columns) -> Vec<StoredColumn<'_>> {
    columns.iter().map(|own| StoredColumn { name: &own.column, kind: own.kind, hot: own.hot }).collect()
}

/// Returns the description of a measurement's tables.
pub(super) fn described(measurement: &Measurement) -> Described<'_> {
    let Measurement { table, shape, has_more, tags, fields, .. } = measurement;
    Described { table, shape: *shape, has_more: *has_more, tags: stored(tags), fields: stored(fields) }
}

/// Returns whether the rows of records have a column for values without a column.
pub(super) fn has_more(measurement: &Measurement) -> bool {
    measurement.has_more && measurement.shape.has_field_columns()
}

/// The tables that a recorder creates for one measurement, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTables {
    /// The table whose rows are the records, with their time stamps in `time_ns`.
    pub records: String,
    /// All of them and the recorder's own, in an order in which the last can always be dropped.
    pub all: Vec<String>,
}

/// Returns a measurement of this name with this layout and without columns, whose tables have the first of their possible names.
pub(in crate::recorder) fn named(shape: Shape, name: &str) -> Measurement {
    empty_measurement(name, &table_name(name), shape)
}

/// Returns the tables of a measurement of this name with this layout.
pub fn stored_tables(shape: Shape, name: &str) -> StoredTables {
    let measurement = named(shape, name);
    let own = [REGISTRY, ledger::TABLE, messages::TABLE, opening::TABLE].map(str::to_owned);
    let tables = Tables::of(&measurement, false).tables.into_iter().map(|table| table.name);
    StoredTables { records: described(&measurement).record_table(), all: own.into_iter().chain(tables).collect() }
}

/// The tables of a measurement's readings.
pub(in crate::recorder) struct ReadTables {
    /// The table of the identities; `None` if every record repeats the tags.
    pub identities: Option<String>,
    /// The table whose rows are the records.
    pub records: String,
    /// The table of the fields that `star-hot` keeps apart.
    pub apart: Option<String>,
    /// The table whose rows belong to those of the records, in the layouts that have one.
    pub second: Option<String>,
}

/// Returns the tables of a measurement's readings.
pub(in crate::recorder) fn read_tables(measurement: &Measurement) -> ReadTables {
    let described = described(measurement);
    ReadTables {
        identities: measurement.shape.has_identity().then(|| described.identity_table()),
        records: described.record_table(),
        apart: described.second_table().filter(|_| measurement.shape == Shape::StarHot),
        second: described.second_table(),
    }
}

/// Returns the names of all tables that are written, including the recorder's own.
pub(super) fn own_tables(catalogue: &Catalogue) -> HashSet<String> {
    let own = [REGISTRY, ledger::TABLE, messages::TABLE, opening::TABLE].map(str::to_owned);
    let tables = catalogue.measurements().iter().flat_map(|measurement| Tables::of(measurement, false).tables);
    own.into_iter().chain(tables.map(|table| table.name)).collect()
}

impl Tables {
    /// Returns the names of the tables and of their indexes, which share one namespace in some databases.
    pub(super) fn names(&self) -> Vec<String> {
        let indexes =
            |table: &Table| table.indexes.iter().map(|index| index_name(&table.name, index)).collect::<Vec<_>>();
        self.tables.iter().flat_map(|table| [vec![table.name.clone()], indexes(table)].concat()).collect()
    }

    /// Returns the tables of a measurement with its columns and, with `time_index`, an index on source and time.
    pub(super) fn of(measurement: &Measurement, time_index: bool) -> Self {
        Tables { tables: described(measurement).tables(time_index) }
    }
}

impl Statements {
    /// Adds a measurement's statements to a program.
    pub(super) fn add(measurement: &Measurement, dialect: &dyn Dialect, program: &mut Program) -> Self {
        let mut add = |statement: Statement| {
            program.statements.push(statement);
            (program.statements.len() - 1) as u16
        };
        let described = described(measurement);
        let main = add(Statement::Insert { table: described.record_table(), columns: described.record_columns() });
        let second =
            described.second_table().map(|table| add(Statement::Insert { table, columns: described.second_columns() }));
        if !measurement.shape.has_identity() {
            return Statements { main, second, ..Statements::default() };
        }
        let table = described.identity_table();
        let (series, kind) = Described::series_column();
        let [end, edited] = Described::end_columns();
        let column = |name: &str| ColumnRef { table: table.clone(), column: name.to_owned() };
        let find = add(Statement::Select(Select {
            columns: vec![column(MEASUREMENT), column(series)],
            from: table.clone(),
            conditions: vec![Condition { column: column(series), kind, comparison: Comparison::Equal }],
            ..Select::default()
        }));
        let begin = add(Statement::Insert { table: table.clone(), columns: described.identity_columns() });
        let (quoted, end) = (dialect.quote(&table), dialect.quote(end));
        let sql = format!(
            "UPDATE {quoted} SET {end} = CASE WHEN {end} > ? THEN {end} ELSE ? END, {} = ? WHERE {} = ?",
            dialect.quote(edited),
            dialect.quote(MEASUREMENT)
        );
        let end = add(Statement::Sql { sql, allow_empty: true, form: SqlForm::Prepared });
        Statements { find: Some(find), begin: Some(begin), end: Some(end), main, second }
    }
}
