//! Settings of records: those of YCSB, a study's own columns, and sources with the times of their records.
//!
//! Main types: [`UsertableSettings`], [`CustomColumn`], [`SeriesSettings`], [`TimeIndex`]. Invariant: they are part of the stored form, and of the ids of trials.

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

/// Sources, and the times of their records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SeriesSettings {
    /// Number of sources, at least 1.
    pub sources: u32,
    /// Time from one reading of a source to its next, in nanoseconds; at least 1,000.
    pub interval_ns: i64,
    /// By how much a reading is later than the interval says, at most, as a share of the interval, 0..0.5.
    pub jitter: f64,
    /// Share of the readings that were never made, 0..0.5: each source is silent for a while, again and again.
    pub missing: f64,
    /// Share of the records that arrive late, 0..0.5.
    pub late_share: f64,
    /// How late they arrive at most, in nanoseconds.
    pub late_up_to_ns: i64,
    /// Share of the records that repeat an earlier one of their source, 0..0.5.
    pub repeated: f64,
}

/// The index on sources and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeIndex {
    /// Source first: the readings of a source lie together.
    #[default]
    SourceTime,
    /// Time first: the readings of a moment lie together.
    TimeSource,
    /// The table itself is kept in the order of source and time, where the database can: both are the first columns of its primary key.
    SourceTimeKey,
    /// The same in the order of time and source.
    TimeSourceKey,
    /// Source first, and behind the time every column that a question names: the index alone answers.
    SourceTimeCovering,
    /// The same with the time first.
    TimeSourceCovering,
    /// No index.
    None,
}

impl TimeIndex {
    /// Returns whether it has every column that a question names.
    pub fn is_covering(self) -> bool {
        matches!(self, TimeIndex::SourceTimeCovering | TimeIndex::TimeSourceCovering)
    }

    /// All of them, by the name that studies give.
    pub const NAMES: [(&'static str, TimeIndex); 7] = [
        ("source-time", TimeIndex::SourceTime),
        ("time-source", TimeIndex::TimeSource),
        ("source-time-key", TimeIndex::SourceTimeKey),
        ("time-source-key", TimeIndex::TimeSourceKey),
        ("source-time-covering", TimeIndex::SourceTimeCovering),
        ("time-source-covering", TimeIndex::TimeSourceCovering),
        ("none", TimeIndex::None),
    ];
}
