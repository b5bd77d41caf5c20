//! A table on its way to another program: columns with a type, and rows of fields.
//!
//! Main type: [`Table`]. Invariant: every row has a field for each column, of the column's type or [`Field::Missing`].

use std::fmt::Write as _;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers from 0 on.
    Count,
    /// Numbers.
    Figure,
    /// Yes or no.
    Flag,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// Text.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number.
    Figure(f64),
    /// Yes or no.
    Flag(bool),
    /// It was not observed, or there is none.
    Missing,
}

impl Field {
    /// The field, or [`Field::Missing`].
    pub fn or_missing<T: Into<Field>>(value: Option<T>) -> Field {
        value.map_or(Field::Missing, Into::into)
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Field::Text(text)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Field::Text(text.to_owned())
    }
}

impl From<u64> for Field {
    fn from(count: u64) -> Self {
        Field::Count(count)
    }
}

impl From<f64> for Field {
    fn from(figure: f64) -> Self {
        Field::Figure(figure)
    }
}

impl From<bool> for Field {
    fn from(flag: bool) -> Self {
        Field::Flag(flag)
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Field::Text(text) => f.write_str(text),
            Field::Count(count) => write!(f, "{count}"),
            Field::Figure(figure) => write!(f, "{figure}"),
            Field::Flag(flag) => write!(f, "{flag}"),
            Field::Missing => Ok(()),
        }
    }
}

/// Columns and rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Name and kind of each column.
    pub columns: Vec<(String, Kind)>,
    /// The rows' fields, in the order of the columns.
    pub rows: Vec<Vec<Field>>,
}

impl Table {
    /// Comma-separated values after RFC 4180, a heading first. What is missing is an empty field.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        push_line(&mut out, self.columns.iter().map(|(name, _)| name.clone()));
        for row in &self.rows {
            push_line(&mut out, row.iter().map(Field::to_string));
        }
        out
    }
}

fn push_line(out: &mut String, fields: impl IntoIterator<Item = String>) {
    for (place, field) in fields.into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let quoted = field.contains([',', '"', '\n', '\r']);
        // Writing to a String does not fail.
        let _ = if quoted {
            write!(out, "{comma}\"{}\"", field.replace('"', "\"\""))
        } else {
            write!(out, "{comma}{field}")
        };
    }
    out.push('\n');
}
