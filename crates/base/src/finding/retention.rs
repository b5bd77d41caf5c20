//! The finding on readings that were thrown away while others came in. Main type: [`RetentionFinding`].

use schemars::JsonSchema;
use serde::Serialize;

use super::EvolutionFinding;

/// What was retired in the valid trials of a case, and what the other operations were like meanwhile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RetentionFinding {
    /// How readings were retired: `delete` or `drop`.
    pub by: String,
    /// Length of a step, in seconds of the data's time.
    pub step_s: f64,
    /// Steps that were retired whole.
    pub steps: u64,
    /// Rows that were deleted; null where partitions were dropped, whose rows nobody counts.
    pub rows: Option<u64>,
    /// The part of the measured phases in which something was retired, 0..1.
    pub busy: f64,
    /// The largest number of seconds of the data's time that were due and not retired yet at the end of a trial.
    pub behind_s: f64,
    /// The changes of the tables, and the operations of the load during them and outside of them.
    pub meanwhile: EvolutionFinding,
}
