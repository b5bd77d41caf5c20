//! What the tables of a measurement are: from its columns to tables. Main type: [`Described`].

use super::kind::{FieldKind, TEXT};
use super::shape::Shape;
use crate::layout::RECORD_ID;
use crate::record::ColumnKind;
use crate::statement::{ForeignKey, Table, TableColumn};

/// The column that numbers identities.
pub const MEASUREMENT: &str = "measurement";
/// The column of the time stamp.
pub const TIME: &str = "time_ns";
/// The column of what has no column.
pub const MORE: &str = "more";
/// What an identity is found by.
pub(super) const SERIES: &str = "series";
const BEGIN: &str = "begin_ns";
const END: &str = "end_ns";
const EDITED: &str = "edited_ns";

/// A column of a tag or of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredColumn<'m> {
    /// What the table calls it.
    pub name: &'m str,
    /// What it holds; tags are texts.
    pub kind: FieldKind,
    /// Whether `star-hot` keeps it in the main table.
    pub hot: bool,
}

/// A measurement, as far as its tables depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described<'m> {
    /// What its tables are called, or begin with.
    pub table: &'m str,
    /// How it is laid out.
    pub shape: Shape,
    /// Whether what has no column goes to a column of JSON.
    pub has_more: bool,
    /// Columns of tags.
    pub tags: Vec<StoredColumn<'m>>,
    /// Columns of fields.
    pub fields: Vec<StoredColumn<'m>>,
}

impl Described<'_> {
    /// The name of the table that holds its identities.
    pub fn identity_table(&self) -> String {
        format!("{}_identity", self.table)
    }

    /// The column of identities that is their end, and the one that says when that was written.
    pub fn end_columns() -> [&'static str; 2] {
        [END, EDITED]
    }

    /// The column that an identity is found by, and its type.
    pub fn series_column() -> (&'static str, ColumnKind) {
        (SERIES, ColumnKind::Text(32))
    }

    /// The table whose rows are the records.
    pub fn record_table(&self) -> String {
        match self.shape {
            Shape::Wide => self.table.to_owned(),
            Shape::StarHot => format!("{}_main", self.table),
            Shape::Star | Shape::Json | Shape::Eav => format!("{}_values", self.table),
        }
    }

    /// The table of the rows that go with those of records.
    pub fn second_table(&self) -> Option<String> {
        match self.shape {
            Shape::StarHot => Some(format!("{}_secondary", self.table)),
            Shape::Eav => Some(format!("{}_cells", self.table)),
            Shape::Wide | Shape::Star | Shape::Json => None,
        }
    }

    /// The table that a new column goes to.
    pub fn table_of(&self, is_tag: bool, hot: bool) -> String {
        match self.shape {
            Shape::Wide => self.table.to_owned(),
            _ if is_tag => self.identity_table(),
            Shape::StarHot if !hot => format!("{}_secondary", self.table),
            _ => self.record_table(),
        }
    }

    /// Columns of the rows of an identity.
    pub fn identity_columns(&self) -> Vec<TableColumn> {
        let (series, kind) = Self::series_column();
        let series = TableColumn { name: series.to_owned(), kind, nullable: false };
        let mut columns = vec![number(MEASUREMENT), series, number(BEGIN), number(END), number(EDITED)];
        columns.extend(self.tags.iter().map(value));
        columns.extend(self.has_more.then(|| json(MORE)));
        columns
    }

    /// Columns of the rows of records.
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

    /// Columns of the rows that go with those of records.
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

    /// All its tables, in the order that they are created in.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        let mut records = plain(&self.record_table(), self.record_columns(), &[RECORD_ID]);
        if self.shape.has_identity() {
            let name = self.identity_table();
            let mut identity = plain(&name, self.identity_columns(), &[MEASUREMENT]);
            identity.unique.push(vec![SERIES.to_owned()]);
            tables.push(identity);
            records.indexes.push(vec![MEASUREMENT.to_owned()]);
            records.foreign_keys.push(refers(MEASUREMENT, &name));
        }
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
