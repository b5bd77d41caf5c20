//! Records on their way through recorders. Main types: [`RecordedFinding`] and [`RecorderFinding`].

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// Findings about records on their way through a recorder. Counts cover all trials, figures the valid ones.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RecordedFinding {
    /// Records acknowledged.
    pub acknowledged: u64,
    /// Records acknowledged and not found in the database.
    pub missing: u64,
    /// Records found twice, or found although never sent.
    pub surplus: u64,
    /// Records found behind a later one of the same source.
    pub out_of_order: u64,
    /// Records in quarantine.
    pub quarantined: u64,
    /// Records stored per second within the measured phase.
    pub stored_per_s: Estimate,
    /// From the end of the last source until the last record was stored, in seconds.
    pub buffer_s: Estimate,
    /// The largest number of records that were at once in the spools of all recorders and in the stream that they share.
    pub spooled_max: u64,
    /// CPUs that the recorders kept busy, including the NATS server where there is one; mean over trials.
    pub recorder_cpu: f64,
    /// Largest resident memory of the recorder, in bytes; the sum if there are several.
    pub memory_max_bytes: u64,
    /// Each of several recorders, in the order of their numbers; left out for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorders: Vec<RecorderFinding>,
}

/// One of several recorders of a case; figures are means over the valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RecorderFinding {
    /// Records that it stored per second within the measured phase.
    pub stored_per_s: Estimate,
    /// CPUs that its process kept busy within the measured phase.
    pub recorder_cpu: f64,
    /// Largest resident memory of its process, in bytes.
    pub memory_max_bytes: u64,
    /// Parts of the shared stream that it had at the end of a trial; 0 without a stream.
    pub parts: f64,
}
