//! `[retention]`: how old readings are thrown away while others come in. Main type: [`RetentionSettings`].
//!
//! Invariant: ages are those of the data's own time. A trial that writes an hour of readings in a second throws away an hour of readings in that second.

use serde::{Deserialize, Serialize};

/// What is kept, and how the rest is thrown away.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetentionSettings {
    /// How readings are thrown away.
    pub by: RetireBy,
    /// How far behind the newest reading another one may lie and stay, in nanoseconds.
    pub keep_ns: i64,
    /// The span of time that is thrown away at once, in nanoseconds. With [`RetireBy::Drop`] it is the length of a partition.
    pub step_ns: i64,
    /// The span of time whose readings one transaction deletes, in nanoseconds; at most `step_ns`.
    pub transaction_ns: i64,
}

/// A way to throw readings away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetireBy {
    /// All readings stay.
    None,
    /// `DELETE` of the rows.
    #[default]
    Delete,
    /// Partitions are dropped.
    Drop,
}

impl RetireBy {
    /// All ways, with their names in a study.
    pub const NAMES: [(&'static str, RetireBy); 3] =
        [("none", RetireBy::None), ("delete", RetireBy::Delete), ("drop", RetireBy::Drop)];
}
