//! The columns of a role, found by the names that clients use. Main types: [`Column`] and [`Columns`].

use std::collections::HashMap;

pub use crate::layout::recorded::FieldKind;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The column's name, as clients use it.
    pub name: String,
    /// The column's name in the table.
    pub column: String,
    /// The kind of value that it holds; tags are texts.
    pub kind: FieldKind,
    /// Whether `star-hot` keeps it in the main table.
    pub hot: bool,
}

/// Columns in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    /// Iterates over all columns.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }

    /// Returns the columns as a slice.
    pub fn as_slice(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the place of the column with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a column, unless there is one with its name.
    pub(super) fn add(&mut self, column: Column) {
        if !self.by_name.contains_key(&column.name) {
            self.by_name.insert(column.name.clone(), self.columns.len());
            self.columns.push(column);
        }
    }
}
