//! How a measurement becomes tables and statements. Main types: [`Tables`], what there must be, and [`Statements`], the numbers
//! of a measurement's statements in a lane's program.

use std::collections::HashSet;

use super::catalogue::{Catalogue, Measurement, Shape};
use super::columns::Columns;
use super::columns::{Column, TEXT};
use super::names::{REGISTRY, table_name};
use super::{ledger, messages, opening};
use crate::database::Dialect;
use crate::database::dialect::index_name;
use crate::layout::RECORD_ID;
use crate::record::ColumnKind;
use crate::statement::{ColumnRef, Comparison, Condition, ForeignKey, Program, Select, Statement, Table, TableColumn};

/// The column that numbers identities.
pub(super) const MEASUREMENT: &str = "measurement";
/// The column of the time stamp.
pub(super) const TIME: &str = "time_ns";
/// The column of what has no column.
pub(super) const MORE: &str = "more";
const SERIES: &str = "series";
const BEGIN: &str = "begin_ns";
const END: &str = "end_ns";
const EDITED: &str = "edited_ns";

/// The tables of a measurement.
pub(super) struct Tables {
    /// In the order that they are created in.
    pub tables: Vec<Table>,
}

/// Numbers of statements in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Statements {
    /// Finds an identity by its series.
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

fn number(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false }
}

fn json(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Json, nullable: true }
}

fn value(column: &Column) -> TableColumn {
    TableColumn { name: column.column.clone(), kind: column.kind.column_kind(), nullable: true }
}

/// The name of the table that holds a measurement's identities.
pub(super) fn identity_table(measurement: &Measurement) -> String {
    format!("{}_identity", measurement.table)
}

/// The table whose rows are the records.
pub(super) fn record_table(measurement: &Measurement) -> String {
    match measurement.shape {
        Shape::Wide => measurement.table.clone(),
        Shape::StarHot => format!("{}_main", measurement.table),
        Shape::Star | Shape::Json | Shape::Eav => format!("{}_values", measurement.table),
    }
}

fn second_table(measurement: &Measurement) -> Option<String> {
    match measurement.shape {
        Shape::StarHot => Some(format!("{}_secondary", measurement.table)),
        Shape::Eav => Some(format!("{}_cells", measurement.table)),
        Shape::Wide | Shape::Star | Shape::Json => None,
    }
}

/// The table that a new column goes to.
pub(super) fn table_of(measurement: &Measurement, is_tag: bool, hot: bool) -> String {
    match measurement.shape {
        Shape::Wide => measurement.table.clone(),
        _ if is_tag => identity_table(measurement),
        Shape::StarHot if !hot => format!("{}_secondary", measurement.table),
        _ => record_table(measurement),
    }
}

/// Columns of the rows of an identity.
pub(super) fn identity_columns(measurement: &Measurement) -> Vec<TableColumn> {
    let series = TableColumn { name: SERIES.to_owned(), kind: ColumnKind::Text(32), nullable: false };
    let mut columns = vec![number(MEASUREMENT), series, number(BEGIN), number(END), number(EDITED)];
    columns.extend(measurement.tags.iter().map(value));
    columns.extend(measurement.has_more.then(|| json(MORE)));
    columns
}

/// Columns of the rows of records.
pub(super) fn record_columns(measurement: &Measurement) -> Vec<TableColumn> {
    let mut columns = vec![number(RECORD_ID)];
    if measurement.shape.has_identity() {
        columns.push(number(MEASUREMENT));
    }
    columns.push(number(TIME));
    match measurement.shape {
        Shape::Wide => columns.extend(measurement.tags.iter().chain(measurement.fields.iter()).map(value)),
        Shape::Star => columns.extend(measurement.fields.iter().map(value)),
        Shape::StarHot => columns.extend(measurement.fields.iter().filter(|field| field.hot).map(value)),
        Shape::Json => columns.push(json("fields")),
        Shape::Eav => {}
    }
    columns.extend(has_more(measurement).then(|| json(MORE)));
    columns
}

/// Whether rows of records have a column of what has no column.
pub(super) fn has_more(measurement: &Measurement) -> bool {
    measurement.has_more && measurement.shape.has_field_columns()
}

/// Columns of the rows that go with those of records.
pub(super) fn second_columns(measurement: &Measurement) -> Vec<TableColumn> {
    let mut columns = vec![number(RECORD_ID)];
    match measurement.shape {
        Shape::StarHot => columns.extend(measurement.fields.iter().filter(|field| !field.hot).map(value)),
        Shape::Eav => {
            columns.push(TableColumn { name: "field".to_owned(), kind: ColumnKind::Text(255), nullable: false });
            let nullable = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: true };
            columns.push(nullable("float_value", ColumnKind::Float64));
            columns.push(nullable("integer_value", ColumnKind::Int64));
            columns.push(nullable("text_value", TEXT));
        }
        Shape::Wide | Shape::Star | Shape::Json => {}
    }
    columns
}

/// The tables that a recorder makes for one measurement, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTables {
    /// The one whose rows are the records, with their time stamps in `time_ns`.
    pub records: String,
    /// All of them and the recorder's own, in an order in which the last can always be dropped.
    pub all: Vec<String>,
}

/// The tables of a measurement of this name that is laid out so.
pub fn stored_tables(shape: Shape, name: &str) -> StoredTables {
    let measurement = Measurement {
        name: name.to_owned(),
        table: table_name(name),
        shape,
        has_more: false,
        tags: Columns::default(),
        fields: Columns::default(),
        impossible: super::catalogue::no_columns_impossible(),
    };
    let own = [REGISTRY, ledger::TABLE, messages::TABLE, opening::TABLE].map(str::to_owned);
    let tables = Tables::of(&measurement).tables.into_iter().map(|table| table.name);
    StoredTables { records: record_table(&measurement), all: own.into_iter().chain(tables).collect() }
}

/// The names of all tables that are written, the recorder's own among them.
pub(super) fn own_tables(catalogue: &Catalogue) -> HashSet<String> {
    let own = [REGISTRY, ledger::TABLE, messages::TABLE, opening::TABLE].map(str::to_owned);
    let tables = catalogue.measurements().iter().flat_map(|measurement| Tables::of(measurement).tables);
    own.into_iter().chain(tables.map(|table| table.name)).collect()
}

impl Tables {
    /// The names of its tables and of their indexes, which share one space in some databases.
    pub(super) fn names(&self) -> Vec<String> {
        let indexes =
            |table: &Table| table.indexes.iter().map(|index| index_name(&table.name, index)).collect::<Vec<_>>();
        self.tables.iter().flat_map(|table| [vec![table.name.clone()], indexes(table)].concat()).collect()
    }

    /// The tables that a measurement with these columns has.
    pub(super) fn of(measurement: &Measurement) -> Self {
        let plain = |name: &str, columns: Vec<TableColumn>, key: &[&str]| Table {
            name: name.to_owned(),
            columns,
            primary_key: key.iter().map(|column| (*column).to_owned()).collect(),
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
        };
        let refers = |column: &str, table: &str| ForeignKey {
            columns: vec![column.to_owned()],
            table: table.to_owned(),
            references: vec![column.to_owned()],
        };
        let mut tables = Vec::new();
        let mut records = plain(&record_table(measurement), record_columns(measurement), &[RECORD_ID]);
        if measurement.shape.has_identity() {
            let name = identity_table(measurement);
            let mut identity = plain(&name, identity_columns(measurement), &[MEASUREMENT]);
            identity.unique.push(vec![SERIES.to_owned()]);
            tables.push(identity);
            records.indexes.push(vec![MEASUREMENT.to_owned()]);
            records.foreign_keys.push(refers(MEASUREMENT, &name));
        }
        let record_table = records.name.clone();
        tables.push(records);
        if let Some(name) = second_table(measurement) {
            let key: &[&str] = if measurement.shape == Shape::Eav { &[RECORD_ID, "field"] } else { &[RECORD_ID] };
            let mut second = plain(&name, second_columns(measurement), key);
            second.foreign_keys.push(refers(RECORD_ID, &record_table));
            tables.push(second);
        }
        Tables { tables }
    }
}

impl Statements {
    /// Adds a measurement's statements to a program.
    pub(super) fn add(measurement: &Measurement, dialect: &dyn Dialect, program: &mut Program) -> Self {
        let mut add = |statement: Statement| {
            program.statements.push(statement);
            (program.statements.len() - 1) as u16
        };
        let main = add(Statement::Insert { table: record_table(measurement), columns: record_columns(measurement) });
        let second = second_table(measurement)
            .map(|table| add(Statement::Insert { table, columns: second_columns(measurement) }));
        if !measurement.shape.has_identity() {
            return Statements { main, second, ..Statements::default() };
        }
        let table = identity_table(measurement);
        let column = |name: &str| ColumnRef { table: table.clone(), column: name.to_owned() };
        let find = add(Statement::Select(Select {
            columns: vec![column(MEASUREMENT)],
            from: table.clone(),
            conditions: vec![Condition {
                column: column(SERIES),
                kind: ColumnKind::Text(32),
                comparison: Comparison::Equal,
            }],
            ..Select::default()
        }));
        let begin = add(Statement::Insert { table: table.clone(), columns: identity_columns(measurement) });
        let (quoted, end) = (dialect.quote(&table), dialect.quote(END));
        let sql = format!(
            "UPDATE {quoted} SET {end} = CASE WHEN {end} > ? THEN {end} ELSE ? END, {} = ? WHERE {} = ?",
            dialect.quote(EDITED),
            dialect.quote(MEASUREMENT)
        );
        let end = add(Statement::Sql { sql, allow_empty: true });
        Statements { find: Some(find), begin: Some(begin), end: Some(end), main, second }
    }
}
