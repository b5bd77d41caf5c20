//! `[[tables]]`: a study's own tables.

use serde::{Deserialize, Serialize};

use super::Fill;

/// A table that the study describes in the database's own words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableSettings {
    /// Name of the table.
    pub name: String,
    /// SQL that creates the table, in order.
    pub create: Vec<String>,
    /// Number of rows that the table is filled with.
    pub rows: u64,
    /// The columns that are filled; the database generates the values of the others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub columns: Vec<ColumnFill>,
    /// SQL that is executed after filling, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub then: Vec<String>,
    /// SQL that removes the table, in order; empty for `DROP TABLE`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub drop: Vec<String>,
}

/// A column of a study's own table, with its fill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnFill {
    /// Name of the column.
    pub name: String,
    /// Fill of the column. A row counts as an operation: fills may refer to earlier columns.
    pub fill: Fill,
}
