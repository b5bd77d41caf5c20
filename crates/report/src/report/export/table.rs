//! Defines a table for export: columns with a type, and rows of fields.
//!
//! Main type: [`Table`]. Invariant: every row has a field for each column, of the column's type or [`Field::Missing`].

use std::fmt::Write as _;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers from 0.
    Count,
    /// Numbers.
    Figure,
    /// Truth values.
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
    /// A truth value.
    Flag(bool),
    /// The value was not observed, or does not exist.
    Missing,
}

impl Field {
    /// Returns the value as a field, or [`Field::Missing`].
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

/// A table of columns and rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The name and the kind of each column.
    pub columns: Vec<(String, Kind)>,
    /// The rows' fields, in the order of the columns.
    pub rows: Vec<Vec<Field>>,
}

impl Table {
    /// Returns comma-separated values by RFC 4180, with a heading. Missing values are empty fields. Text that a spreadsheet would take for a
    /// formula is preceded by an apostrophe.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        push_line(&mut out, self.columns.iter().map(|(name, _)| harmless(name.clone())));
        for row in &self.rows {
            let cell = |field: &Field| match field {
                Field::Text(text) => harmless(text.clone()),
                number => number.to_string(),
            };
            push_line(&mut out, row.iter().map(cell));
        }
        out
    }
}

/// Returns text that no spreadsheet executes. Names of cases and messages of servers may begin as formulas do; numbers stay as they are.
fn harmless(text: String) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if is_formula { format!("'{text}") } else { text }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_formula_and_numbers_stay_numbers() {
        let cells = ["=1+2", "+x", "-1.5", "-x", "@SUM(1,2)", "\tx", "a=b", ""];
        let mut row: Vec<Field> = cells.into_iter().map(Field::from).collect();
        row.push(Field::Figure(-1.5));
        let columns = (0..row.len()).map(|place| (format!("={place}"), Kind::Text)).collect();
        let csv = Table { columns, rows: vec![row] }.csv();
        assert_eq!(csv.lines().nth(1), Some("'=1+2,'+x,-1.5,'-x,\"'@SUM(1,2)\",'\tx,a=b,,-1.5"));
        assert!(csv.starts_with("'=0,'=1,"));
    }
}
