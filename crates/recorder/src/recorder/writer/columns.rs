//! Columns: what each holds, and those of one role, found by the names that clients use. Main types: [`Column`] and [`Columns`].

use std::collections::HashMap;

use crate::record::ColumnKind;

/// What a field's column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// Numbers of 64 bits with a point.
    Float,
    /// Whole numbers of 64 bits.
    Int,
    /// 0 or 1.
    Boolean,
    /// Text.
    Text,
}

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

/// Texts are stored up to this many characters; more than an intake lets through.
const TEXT_CHARACTERS_MAX: u32 = 0x3f_ffff;

/// The type of columns of unbounded text.
pub(super) const TEXT: ColumnKind = ColumnKind::Text(TEXT_CHARACTERS_MAX);

impl FieldKind {
    const ALL: [(FieldKind, &'static str); 4] = [
        (FieldKind::Float, "float"),
        (FieldKind::Int, "integer"),
        (FieldKind::Boolean, "boolean"),
        (FieldKind::Text, "text"),
    ];

    /// Its name in the registry and in messages.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The type of its column.
    pub(super) fn column_kind(self) -> ColumnKind {
        match self {
            FieldKind::Float => ColumnKind::Float64,
            FieldKind::Int => ColumnKind::Int64,
            FieldKind::Boolean => ColumnKind::Int16,
            FieldKind::Text => TEXT,
        }
    }
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
