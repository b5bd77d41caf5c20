//! Queries over records that are not rows of typed columns: members of documents, rows of attributes, columns of text.

use super::{ColumnKind, Comparison, Hints, TableColumn};

/// A query over records in a [`Form`]. Columns are named as the form names them, with the types that they are read as.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectRecords {
    /// Table name.
    pub table: String,
    /// The column that holds the record's key as it is.
    pub key: TableColumn,
    /// The form of all other columns.
    pub form: Form,
    /// Columns of the answer, which has a row for each record; empty for the whole record: its key and, of a document, the document.
    pub columns: Vec<TableColumn>,
    /// Comparisons with bound values, all of which must hold.
    pub conditions: Vec<(TableColumn, Comparison)>,
    /// Order of the answer; `true` is descending.
    pub order: Vec<(TableColumn, bool)>,
    /// Largest number of records; `None` for no limit.
    pub limit: Option<u64>,
    /// Number of records with the highest keys to which the query is restricted; `None` for all records.
    pub window: Option<u64>,
    /// Hints to the database on how to execute the query.
    pub hints: Hints,
}

/// The form in which a table holds a record's columns other than its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// As members of the JSON document in the named column.
    Document(String),
    /// As rows with the column's name in one column and its value, as text, in the other.
    Rows {
        /// Column with the names.
        attribute: String,
        /// Column with the values.
        value: String,
    },
    /// As columns of text.
    Texts,
}

impl SelectRecords {
    /// Returns the kinds of the bound values.
    pub fn kinds(&self) -> Vec<Option<ColumnKind>> {
        self.conditions.iter().map(|(column, _)| Some(column.kind)).collect()
    }
}
