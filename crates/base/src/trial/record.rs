//! Settings of records: those of YCSB, and a study's own columns.
//!
//! Main types: [`UsertableSettings`], [`CustomColumn`]. Invariant: they are part of the stored form, and of the ids of trials.

use serde::{Deserialize, Serialize};

use super::Fill;

/// Settings of the record type `usertable`; the defaults are those of YCSB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsertableSettings {
    /// Fields of a record.
    pub fields: u16,
    /// Length of a field in characters, or the largest length where lengths differ.
    pub field_length: u32,
    /// Smallest length of a field, where lengths differ.
    pub field_length_least: u32,
    /// Distribution of the lengths: `constant`, `uniform` or `zipfian`.
    pub field_lengths: String,
    /// Prefix of the fields' names, before their number.
    pub field_prefix: String,
    /// Whether keys are `hashed` or `ordered`.
    pub keys: String,
    /// Smallest number of digits of a key.
    pub key_digits: u32,
}

impl Default for UsertableSettings {
    fn default() -> Self {
        UsertableSettings {
            fields: 10,
            field_length: 100,
            field_length_least: 1,
            field_lengths: "constant".to_owned(),
            field_prefix: "field".to_owned(),
            keys: "hashed".to_owned(),
            key_digits: 1,
        }
    }
}

/// A column of a custom record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomColumn {
    /// Name of the column.
    pub name: String,
    /// `smallint`, `int`, `bigint`, `float`, `text` or `blob`.
    pub kind: String,
    /// The fill of the column.
    pub fill: Fill,
    /// Whether the layout `star-hot` keeps it in the main table.
    pub hot: bool,
}
