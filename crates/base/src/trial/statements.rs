//! The statements of a study of its own, and what their parameters are filled with.
//!
//! Main types: [`SqlStatement`] and [`Fill`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A statement of the workload `sql`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqlStatement {
    /// What it is called in results; none for its number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Text with `?` for each parameter.
    pub sql: String,
    /// Relative frequency, above 0.
    pub weight: f64,
    /// How each parameter is filled.
    pub params: Vec<Fill>,
    /// Whether a query may find no row.
    pub allow_empty: bool,
    /// How many rows it must find, or change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<u64>,
    /// What follows in the same transaction; empty for a statement that stands for itself.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub then: Vec<SqlPart>,
}

impl SqlStatement {
    /// The fills of all parameters, in their order, with those of the statements that follow in the transaction.
    pub fn fills(&self) -> impl Iterator<Item = &Fill> {
        self.params.iter().chain(self.then.iter().flat_map(|part| &part.params))
    }
}

/// A further statement of a transaction of the workload `sql`; fields as in [`SqlStatement`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqlPart {
    /// Text with `?` for each parameter.
    pub sql: String,
    /// How each parameter is filled.
    pub params: Vec<Fill>,
    /// Whether a query may find no row.
    pub allow_empty: bool,
    /// How many rows it must find, or change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<u64>,
}

/// How a column or a parameter gets its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Whole or fractional numbers, evenly spread over `[low, high]`, both included for whole numbers.
    Uniform(f64, f64),
    /// Whole numbers in `[low, high]`, the lowest most frequent, with this exponent.
    Zipf(i64, i64, f64),
    /// Normally distributed numbers: mean and standard deviation.
    Normal(f64, f64),
    /// Counts up from the first number by the second.
    Sequence(i64, i64),
    /// Random letters and digits of this length.
    RandomText(u32),
    /// Random bytes of this length.
    RandomBytes(u32),
    /// Always the same text.
    Text(String),
    /// Always the same number.
    Number(f64),
    /// One of these texts, each as likely.
    OneOf(Vec<String>),
    /// Numbers between bounds that ascend: each stretch from one to the next is as likely, and evenly spread within.
    Quantiles(Vec<f64>),
    /// The same of times, which are written as text.
    Times(Times),
    /// A time around the present one: seconds from it, from the first to the second, written in the zone that the third says; in UTC, and with no zone
    /// behind it, where that is empty.
    Now(f64, f64, String),
    /// One of these, as often as its weight says.
    Weighted(Vec<(Fill, f64)>),
    /// No value.
    Null,
    /// The value of an earlier parameter of the operation, by its number from 1.
    Same(u32),
    /// That value and a number more; seconds, where it is a time.
    Plus(u32, Box<Fill>),
    /// One of the rows that a query answered before the trial: its first value.
    From(String),
    /// Another value of the row that an earlier parameter has its value from: that parameter's number, and the value's, from 1.
    RowOf(u32, u32),
    /// Counts up from the number that a query answered before the trial, by the second.
    SequenceFrom(String, i64),
    /// So many values as one, as PostgreSQL writes an array: `{4,1,9}`.
    Array(u32, Box<Fill>),
    /// Counts up as a sequence does, from the first number by the second, and stays at each for so many.
    Blocks(i64, i64, u64),
    /// The same of times.
    TimeBlocks(TimeBlocks),
    /// Counts up from the first number by the second, and begins again after so many.
    Cycle(i64, i64, u64),
    /// A text of this many letters for a number that the fill gives: equal numbers have equal texts, and others have others as far as letters go.
    TextOf(u32, Box<Fill>),
    /// One of the rows of a CSV file, behind its first, which names the columns: its first value.
    FromCsv(String),
    /// What an earlier statement of the same transaction answered: that statement's number, and which value of its first row, from 1.
    AnswerOf(u32, u32),
}

/// Times that count up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBlocks {
    /// The first, in microseconds since 1970.
    pub first_us: i64,
    /// From one to the next, in microseconds.
    pub step_us: i64,
    /// For how many it stays at each, at least 1.
    pub times: u64,
    /// What stands behind each, as in `+00`; empty for nothing.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub zone: String,
}

/// Times that ascend, in microseconds since 1970, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The bounds, at least two.
    pub bounds_us: Vec<i64>,
    /// What stands behind each, as in `+00`; empty for nothing.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub zone: String,
}

impl Fill {
    /// The query that has to be answered before a trial, where there is one.
    pub fn query(&self) -> Option<&str> {
        match self {
            Fill::From(sql) | Fill::SequenceFrom(sql, _) => Some(sql),
            _ => None,
        }
    }

    /// What its rows are kept under in [`Asked`], where it takes its values from some.
    pub fn source(&self) -> Option<Cow<'_, str>> {
        match self {
            Fill::FromCsv(path) => Some(Cow::Owned(format!("file {path}"))),
            _ => self.query().map(Cow::Borrowed),
        }
    }

    /// Itself, and what it is made of.
    pub fn parts(&self) -> Vec<&Fill> {
        let mut parts = vec![self];
        match self {
            Fill::Weighted(choices) => parts.extend(choices.iter().flat_map(|(fill, _)| fill.parts())),
            Fill::Plus(_, inner) | Fill::Array(_, inner) | Fill::TextOf(_, inner) => parts.extend(inner.parts()),
            _ => {}
        }
        parts
    }
}

/// Rows that a database answered to the queries of a study, by the query, and those of CSV files, by [`Fill::source`]: values as text, null as none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked(pub BTreeMap<String, Arc<Vec<Vec<Option<String>>>>>);

impl Asked {
    /// The rows of a query, or of a file; none before it was asked.
    pub fn rows(&self, sql: &str) -> Option<&Arc<Vec<Vec<Option<String>>>>> {
        self.0.get(sql)
    }
}
