//! `[layout]`: how records become tables. Main type: [`LayoutSettings`].
//!
//! Invariant: it is part of the stored form, and of the ids of trials.

use serde::{Deserialize, Serialize};

use super::TimeIndex;

/// `[layout]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LayoutSettings {
    /// Name in the registry.
    pub name: String,
    /// Columns of records, each of which gets a secondary index.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub indexes: Vec<String>,
    /// The index on the sources and times of records; `None` where they have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_index: Option<TimeIndex>,
    /// Length of a partition of the data's time, in nanoseconds; `None` where tables have no partitions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub partition_ns: Option<i64>,
    /// Most readings of a source in a row; `None` where a row is one record or a part of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub readings_per_row: Option<u32>,
    /// Whether each client writes into its own tables.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub tables_per_client: bool,
    /// Whether the tables are those that a recorder creates, including its row for each writer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub tables_as_recorded: bool,
    /// Whether a recorder's tables have an index on source and time; false if the tables are not a recorder's.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub recorded_index: bool,
}
