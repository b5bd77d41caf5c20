//! Columns: what each holds, and those of one role, found by the names that clients use. Main types: [`Column`] and [`Columns`].

use std::collections::HashMap;

pub use crate::layout::recorded::FieldKind;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What clients call it.
    pub name: String,
    /// What the table calls it.
    pub column: String,
    /// What it holds; tags are texts.
    pub kind: FieldKind,
    /// Whether `star-hot` keeps it in the main table.
    pub hot: bool,
}

/// Columns in the order that they were added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    /// All columns.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }

    /// The columns as a list.
    pub fn as_slice(&self) -> &[Column] {
        &self.columns
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The place of the column of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a column, unless there is one of its name.
    pub(super) fn add(&mut self, column: Column) {
        if !self.by_name.contains_key(&column.name) {
            self.by_name.insert(column.name.clone(), self.columns.len());
            self.columns.push(column);
        }
    }
}
