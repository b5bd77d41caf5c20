//! Queries over records that are no rows of typed columns: members of documents, rows of attributes, columns of text.

use super::{ColumnKind, Comparison, Hints, TableColumn};

/// A query over records in a [`Form`]. Columns are named as the form names them, with the types that they are read as.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectRecords {
    /// Table name.
    pub table: String,
    /// The column that holds the record's key as it is.
    pub key: TableColumn,
    /// Where all other columns are.
    pub form: Form,
    /// Columns of the answer, which has a row for each record; empty for the record whole: its key and, of a document, that.
    pub columns: Vec<TableColumn>,
    /// Comparisons with bound values, all of which must hold.
    pub conditions: Vec<(TableColumn, Comparison)>,
    /// Order of the answer; `true` is descending.
    pub order: Vec<(TableColumn, bool)>,
    /// How many records at most.
    pub limit: Option<u64>,
    /// How many records, those with the highest keys, are looked at; all where there is none.
    pub window: Option<u64>,
    /// What the database is told besides.
    pub hints: Hints,
}

/// How a table holds a record's columns besides its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// As members of the JSON document in this column.
    Document(String),
    /// As rows with the column's name in the one column and its value, as text, in the other.
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
    /// The kinds of the bound values.
    pub fn kinds(&self) -> Vec<Option<ColumnKind>> {
        self.conditions.iter().map(|(column, _)| Some(column.kind)).collect()
    }
}
