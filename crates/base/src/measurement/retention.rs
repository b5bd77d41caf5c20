//! Observations of readings that were thrown away while others came in. Main type: [`RetentionMeasurement`].

use serde::{Deserialize, Serialize};

use super::EvolutionMeasurement;

/// What was retired in the measured phase of a trial, and what the other operations were like meanwhile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetentionMeasurement {
    /// Readings that were retired: counted by the database where it deleted rows, otherwise those whose time lies in the partitions that were dropped.
    pub retired: u64,
    /// Steps of the data's time that were retired whole.
    pub steps: u64,
    /// Seconds by which the data's own clock went on since the load began, warm-up included.
    pub advanced_s: f64,
    /// How long the retiring took of the measured phase, in seconds.
    pub took_s: f64,
    /// Seconds of the data's time that were due and not retired yet, at the end of the measured phase; less than a step is 0.
    pub behind_s: f64,
    /// Whether the retiring stopped at readings that questions are about.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_held: bool,
    /// The changes of the tables, and the operations of the load during them and outside of them. Changes are `delete`, `drop` and `add`; their `records` are rows that were deleted.
    pub meanwhile: EvolutionMeasurement,
}
