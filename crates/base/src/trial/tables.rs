//! Tables of a study's own: `[[tables]]`.

use serde::{Deserialize, Serialize};

use super::Fill;

/// A table that the study describes in the database's own words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableSettings {
    /// Its name.
    pub name: String,
    /// SQL that makes it, in order.
    pub create: Vec<String>,
    /// Rows that it is filled with.
    pub rows: u64,
    /// The columns that are filled; the database makes the values of the others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub columns: Vec<ColumnFill>,
    /// SQL that follows the filling, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub then: Vec<String>,
    /// SQL that removes it, in order; empty for `DROP TABLE`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub drop: Vec<String>,
}

/// A column of a table of the study's own, and what it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnFill {
    /// Its name.
    pub name: String,
    /// How it gets its values. A row counts as an operation: fills may name columns before theirs.
    pub fill: Fill,
}
