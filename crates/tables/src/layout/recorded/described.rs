//! The tables of a measurement, derived from its columns. Main type: [`Described`].

use super::kind::{FieldKind, TEXT};
use super::shape::Shape;
use crate::layout::RECORD_ID;
use crate::record::ColumnKind;
use crate::statement::{ForeignKey, Table, TableColumn};

/// Name of the column that numbers identities.
pub const MEASUREMENT: &str = "measurement";
/// Name of the column with the time stamp.
pub const TIME: &str = "time_ns";
/// Name of the column that holds tags or fields without a column of their own.
pub const MORE: &str = "more";
/// Name of the column that an identity is found by.
pub(super) const SERIES: &str = "series";
const BEGIN: &str = "begin_ns";
const END: &str = "end_ns";
const EDITED: &str = "edited_ns";

/// A column of a tag or of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredColumn<'m> {
    /// Name of the column in the table.
    pub name: &'m str,
    /// Kind of the values; tags are texts.
    pub kind: FieldKind,
    /// Whether the layout `star-hot` keeps the column in the main table.
    pub hot: bool,
}

/// The properties of a measurement that its tables depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described<'m> {
    /// Name of its table, or the beginning of the names of its tables.
    pub table: &'m str,
    /// The layout.
    pub shape: Shape,
    /// Whether tags and fields without a column of their own are stored in a JSON column.
    pub has_more: bool,
    /// The columns of tags.
    pub tags: Vec<StoredColumn<'m>>,
    /// The columns of fields.
    pub fields: Vec<StoredColumn<'m>>,
}

impl Described<'_> {
    /// Returns the name of the table that holds the identities.
    pub fn identity_table(&self) -> String {
        format!("{}_identity", self.table)
    }

    /// Returns the columns of an identity's end and of the time at which the end was written.
    pub fn end_columns() -> [&'static str; 2] {
        [END, EDITED]
    }

    /// Returns the column that an identity is found by, and its type.
    pub fn series_column() -> (&'static str, ColumnKind) {
        (SERIES, ColumnKind::Text(32))
    }

    /// Returns the table whose rows are the records.
    pub fn record_table(&self) -> String {
        match self.shape {
            Shape::Wide => self.table.to_owned(),
            Shape::StarHot => format!("{}_main", self.table),
            Shape::Star | Shape::Json | Shape::Eav => format!("{}_values", self.table),
        }
    }

    /// Returns the table whose rows belong to those of records; `None` if the layout has none.
    pub fn second_table(&self) -> Option<String> {
        match self.shape {
            Shape::StarHot => Some(format!("{}_secondary", self.table)),
            Shape::Eav => Some(format!("{}_cells", self.table)),
            Shape::Wide | Shape::Star | Shape::Json => None,
        }
    }

    /// Returns the table that a new column is added to.
    pub fn table_of(&self, is_tag: bool, hot: bool) -> String {
        match self.shape {
            Shape::Wide => self.table.to_owned(),
            _ if is_tag => self.identity_table(),
            Shape::StarHot if !hot => format!("{}_secondary", self.table),
            _ => self.record_table(),
        }
    }

    /// Returns the columns of the identity table.
    pub fn identity_columns(&self) -> Vec<TableColumn> {
        let (series, kind) = Self::series_column();
        let series = TableColumn { name: series.to_owned(), kind, nullable: false };
        let mut columns = vec![number(MEASUREMENT), series, number(BEGIN), number(END), number(EDITED)];
        columns.extend(self.tags.iter().map(value));
        columns.extend(self.has_more.then(|| json(MORE)));
        columns
    }

    /// Returns the columns of the record table.
    pub fn record_columns(&self) -> Vec<TableColumn> {
        let mut columns = vec![number(RECORD_ID)];
        if self.shape.has_identity() {
            columns.push(number(MEASUREMENT));
        }
        columns.push(number(TIME));
        match self.shape {
            Shape::Wide => columns.extend(self.tags.iter().chain(&self.fields).map(value)),
            Shape::Star => columns.extend(self.fields.iter().map(value)),
            Shape::StarHot => columns.extend(self.fields.iter().filter(|field| field.hot).map(value)),
            Shape::Json => columns.push(json("fields")),
            Shape::Eav => {}
        }
        columns.extend((self.has_more && self.shape.has_field_columns()).then(|| json(MORE)));
        columns
    }

    /// Returns the columns of the second table.
    pub fn second_columns(&self) -> Vec<TableColumn> {
        let mut columns = vec![number(RECORD_ID)];
        match self.shape {
            Shape::StarHot => columns.extend(self.fields.iter().filter(|field| !field.hot).map(value)),
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

    /// Returns all tables, in the order in which they are created. With `time_index`, the records have an index on their source and time; in
    /// the layout `wide`, whose rows have no number of a source, it is on the time alone.
    pub fn tables(&self, time_index: bool) -> Vec<Table> {
        let mut tables = Vec::new();
        let mut records = plain(&self.record_table(), self.record_columns(), &[RECORD_ID]);
        if self.shape.has_identity() {
            let name = self.identity_table();
            let mut identity = plain(&name, self.identity_columns(), &[MEASUREMENT]);
            identity.unique.push(vec![SERIES.to_owned()]);
            tables.push(identity);
            records.foreign_keys.push(refers(MEASUREMENT, &name));
        }
        // The foreign key needs an index that begins with its column, which both of these do.
        let source = self.shape.has_identity().then_some(MEASUREMENT);
        let columns: Vec<_> = source.into_iter().chain(time_index.then_some(TIME)).map(str::to_owned).collect();
        records.indexes.extend((!columns.is_empty()).then_some(columns));
        let record_table = records.name.clone();
        tables.push(records);
        if let Some(name) = self.second_table() {
            let key: &[&str] = if self.shape == Shape::Eav { &[RECORD_ID, "field"] } else { &[RECORD_ID] };
            let mut second = plain(&name, self.second_columns(), key);
            second.foreign_keys.push(refers(RECORD_ID, &record_table));
            tables.push(second);
        }
        tables
    }
}

fn number(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false }
}

fn json(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Json, nullable: true }
}

fn value(column: &StoredColumn<'_>) -> TableColumn {
    TableColumn { name: column.name.to_owned(), kind: column.kind.column_kind(), nullable: true }
}

fn plain(name: &str, columns: Vec<TableColumn>, key: &[&str]) -> Table {
    crate::layout::columns::table(name, columns, key.iter().map(|column| (*column).to_owned()).collect())
}

fn refers(column: &str, table: &str) -> ForeignKey {
    ForeignKey { columns: vec![column.to_owned()], table: table.to_owned(), references: vec![column.to_owned()] }
}
