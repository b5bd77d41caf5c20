//! The kinds of values in a field's column. Main type: [`FieldKind`].

use crate::record::ColumnKind;

/// The kind of values in a field's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// 64-bit floating-point numbers.
    Float,
    /// 64-bit integers.
    Int,
    /// 0 or 1.
    Boolean,
    /// Text.
    Text,
}

/// Maximum length of stored texts in characters; longer than an intake accepts.
const TEXT_CHARACTERS_MAX: u32 = 0x3f_ffff;

/// The type of columns of unbounded text.
pub const TEXT: ColumnKind = ColumnKind::Text(TEXT_CHARACTERS_MAX);

impl FieldKind {
    const ALL: [(FieldKind, &'static str); 4] = [
        (FieldKind::Float, "float"),
        (FieldKind::Int, "integer"),
        (FieldKind::Boolean, "boolean"),
        (FieldKind::Text, "text"),
    ];

    /// Returns the name in the registry and in messages.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Returns the kind with this name in the registry.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Returns the kind as which values of a column of this type are sent; `None` for bytes, which the line protocol does not have.
    pub fn sent(kind: ColumnKind) -> Option<Self> {
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => Some(FieldKind::Int),
            ColumnKind::Float64 => Some(FieldKind::Float),
            ColumnKind::Text(_) | ColumnKind::Json => Some(FieldKind::Text),
            ColumnKind::Blob(_) => None,
        }
    }

    /// Returns the type of the column.
    pub fn column_kind(self) -> ColumnKind {
        match self {
            FieldKind::Float => ColumnKind::Float64,
            FieldKind::Int => ColumnKind::Int64,
            FieldKind::Boolean => ColumnKind::Int16,
            FieldKind::Text => TEXT,
        }
    }
}
