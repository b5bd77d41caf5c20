//! The description of a table, and functions shared by its parts.
//!
//! Main type: [`Described`].

use crate::draft::catalogue::Table;
use crate::trial::{Fill, TableSettings};

/// A table of the study, with remarks about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The table.
    pub table: TableSettings,
    /// The table's schema as statements write it; `None` if its name leads to it without a schema.
    pub schema: Option<String>,
    /// Remarks on differences from the original.
    pub remarks: Vec<String>,
}

/// Returns the index of a table that another table refers to.
pub fn referred(tables: &[Table], schema: &str, name: &str) -> Option<usize> {
    tables.iter().position(|table| table.schema == schema && table.name.eq_ignore_ascii_case(name))
}

/// Returns the fill with nulls in the given share of values.
pub fn with_nulls(fill: Fill, nulls: f64) -> Fill {
    let percent = (1e3 * nulls).round() / 10.0;
    if percent <= 0.0 || matches!(fill, Fill::Null) {
        return fill;
    }
    if percent >= 100.0 {
        return Fill::Null;
    }
    match fill {
        Fill::Weighted(choices) => {
            let sum: f64 = choices.iter().map(|(_, weight)| weight).sum();
            let scale = (100.0 - percent) / sum;
            let scaled = choices.into_iter().map(|(fill, weight)| (fill, (1e3 * weight * scale).round() / 1e3));
            let mut choices: Vec<(Fill, f64)> = scaled.filter(|(_, weight)| *weight > 0.0).collect();
            choices.push((Fill::Null, percent));
            Fill::Weighted(choices)
        }
        // A fill that counts, or that is drawn from rows, cannot stand within another one.
        fill if is_plain(&fill) => {
            Fill::Weighted(vec![(fill, (1e1 * (100.0 - percent)).round() / 1e1), (Fill::Null, percent)])
        }
        fill => fill,
    }
}

/// Returns whether a fill may stand within another one.
fn is_plain(fill: &Fill) -> bool {
    matches!(
        fill,
        Fill::Uniform(..)
            | Fill::Zipf(..)
            | Fill::Normal(..)
            | Fill::RandomText(_)
            | Fill::RandomBytes(_)
            | Fill::Text(_)
            | Fill::Number(_)
            | Fill::OneOf(_)
            | Fill::Quantiles(_)
            | Fill::Times(_)
            | Fill::Now(..)
    )
}
