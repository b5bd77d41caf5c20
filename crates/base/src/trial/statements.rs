//! The study's own statements, and the values of their parameters.
//!
//! Main types: [`SqlStatement`] and [`Fill`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A statement of the workload `sql`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqlStatement {
    /// Name in results; `None` for the statement's number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Text with `?` for each parameter.
    pub sql: String,
    /// Relative frequency, above 0.
    pub weight: f64,
    /// Fill of each parameter.
    pub params: Vec<Fill>,
    /// Whether a query may find no row.
    pub allow_empty: bool,
    /// The number of rows that the statement must find or change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<u64>,
    /// Further statements of the same transaction; empty for a single statement.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub then: Vec<SqlPart>,
}

impl SqlStatement {
    /// Returns the fills of all parameters, in their order, including those of the further statements of the transaction.
    pub fn fills(&self) -> impl Iterator<Item = &Fill> {
        self.params.iter().chain(self.then.iter().flat_map(|part| &part.params))
    }
}

/// A further statement of a transaction of the workload `sql`; fields as in [`SqlStatement`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqlPart {
    /// Text with `?` for each parameter.
    pub sql: String,
    /// Fill of each parameter.
    pub params: Vec<Fill>,
    /// Whether a query may find no row.
    pub allow_empty: bool,
    /// The number of rows that the statement must find or change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<u64>,
}

/// The source of the values of a column or a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Whole or fractional numbers, evenly spread over `[low, high]`, both included for whole numbers.
    Uniform(f64, f64),
    /// Whole numbers in `[low, high]`, the lowest most frequent, with this exponent.
    Zipf(i64, i64, f64),
    /// Normally distributed numbers: mean and standard deviation.
    Normal(f64, f64),
    /// Numbers that wander slowly from reading to reading between the first number and the second, in multiples of the third from the first on.
    Drift(f64, f64, f64),
    /// Numbers that count up from the first number in steps of the second.
    Sequence(i64, i64),
    /// Random letters and digits of this length.
    RandomText(u32),
    /// Random bytes of this length.
    RandomBytes(u32),
    /// A constant text.
    Text(String),
    /// A constant number.
    Number(f64),
    /// One of the texts, all equally likely.
    OneOf(Vec<String>),
    /// Numbers between ascending bounds: each interval between neighbouring bounds is equally likely, and values are uniform within it.
    Quantiles(Vec<f64>),
    /// Times between ascending bounds, distributed as in `Quantiles` and written as text.
    Times(Times),
    /// A time around the present, offset by seconds between the first and the second number, written in the time zone of the third; where that is empty,
    /// written in UTC without a time zone.
    Now(f64, f64, String),
    /// One of the fills, with a probability proportional to its weight.
    Weighted(Vec<(Fill, f64)>),
    /// Null.
    Null,
    /// The value of an earlier parameter of the operation, by that parameter's number from 1.
    Same(u32),
    /// The value of an earlier parameter plus a number; plus seconds, where the value is a time.
    Plus(u32, Box<Fill>),
    /// The first value of a random row of those that a query returned before the trial.
    From(String),
    /// Another value of the row from which an earlier parameter has its value: the number of that parameter, and of the value in the row, both from 1.
    RowOf(u32, u32),
    /// Numbers that count up, in steps of the second, from the number that a query returned before the trial.
    SequenceFrom(String, i64),
    /// This many values as one, in the form of a PostgreSQL array: `{4,1,9}`.
    Array(u32, Box<Fill>),
    /// Numbers that count up from the first number in steps of the second, each repeated the third number of times.
    Blocks(i64, i64, u64),
    /// Times that count up, each repeated several times.
    TimeBlocks(TimeBlocks),
    /// Numbers that count up from the first number in steps of the second, and start again after the third number of values.
    Cycle(i64, i64, u64),
    /// A text of this many letters for a number from the inner fill: equal numbers give equal texts, and different numbers different ones as far as letters suffice.
    TextOf(u32, Box<Fill>),
    /// The first value of a random row of a CSV file, whose first line names the columns.
    FromCsv(String),
    /// A value from the answer to an earlier statement of the same transaction: that statement's number, and the number of the value in its first row, from 1.
    AnswerOf(u32, u32),
}

/// Times that count up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBlocks {
    /// The first time, in microseconds since 1970.
    pub first_us: i64,
    /// The step from one time to the next, in microseconds.
    pub step_us: i64,
    /// Number of values that each time is repeated for, at least 1.
    pub times: u64,
    /// Time zone written after each time, as in `+00`; empty for none.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub zone: String,
}

/// Ascending times, in microseconds since 1970, and their written form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The bounds, at least two.
    pub bounds_us: Vec<i64>,
    /// Time zone written after each time, as in `+00`; empty for none.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub zone: String,
}

impl Fill {
    /// Returns the query that must be answered before a trial, if the fill has one.
    pub fn query(&self) -> Option<&str> {
        match self {
            Fill::From(sql) | Fill::SequenceFrom(sql, _) => Some(sql),
            _ => None,
        }
    }

    /// Returns the key of the fill's rows in [`Asked`], if it takes its values from rows.
    pub fn source(&self) -> Option<Cow<'_, str>> {
        match self {
            Fill::FromCsv(path) => Some(Cow::Owned(format!("file {path}"))),
            _ => self.query().map(Cow::Borrowed),
        }
    }

    /// Returns the fill itself and the fills that it is made of.
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

/// Rows that the database returned for the queries of a study, and rows of CSV files, by [`Fill::source`]; values are texts, and `None` is null.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked(pub BTreeMap<String, Arc<Vec<Vec<Option<String>>>>>);

impl Asked {
    /// Returns the rows of a query or of a file; `None` before they were read.
    pub fn rows(&self, sql: &str) -> Option<&Arc<Vec<Vec<Option<String>>>>> {
        self.0.get(sql)
    }
}
