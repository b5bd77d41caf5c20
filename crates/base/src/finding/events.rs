//! Findings about events of a server while it was measured. Main type: [`EventsFinding`].

use schemars::JsonSchema;
use serde::Serialize;

use super::TimeFinding;

/// The events of a case, over all its valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct EventsFinding {
    /// The events, in the order of their times.
    pub events: Vec<EventFinding>,
    /// Trials in which the records were counted at the end.
    pub counted: u64,
    /// Records that were acknowledged in these trials.
    pub acknowledged: u64,
    /// Acknowledged records that are gone.
    pub lost: u64,
    /// Further records that may be gone: as many unacknowledged records may be present in their place.
    pub hidden: u64,
    /// Trials in which the server did not come back.
    pub not_back: u64,
    /// Trials in which acknowledged records are gone.
    pub trials_with_loss: u64,
    /// Records that are present although they were never sent, or were refused.
    pub surplus: u64,
    /// Operations that failed, whenever they were due, including those under way at the time of an event.
    pub failed: u64,
    /// Operations that were due.
    pub scheduled: u64,
}

/// One event of `[[events]]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct EventFinding {
    /// `kill`, `stop`, `pause`, `cut-power`, `slow-disk`, `full-disk`, `cut-link`, `cut-node` or `promote`.
    pub what: String,
    /// Number of the node that it happened to, from 1; null where the server has one node.
    pub node: Option<u32>,
    /// Mean time of the event, in seconds after the start of the measured phase.
    pub start_s: f64,
    /// Trials in which it happened.
    pub n: u64,
    /// Blocks and names that the disk had not synced when its power was cut, mean; null for other events.
    pub unsynced: Option<f64>,
    /// Mean time until the server or the node accepted clients again or continued, until the replica took writes, until all nodes had the same data again after one was cut off, or for which its disk was slow or full or its link was cut, in seconds.
    pub away_s: f64,
    /// Longest such time, in seconds.
    pub away_max_s: f64,
    /// The gap in service: the longest time without a completed operation that met the event, mean in seconds; null where no trial shows it.
    pub gap_s: Option<f64>,
    /// Longest gap in service, in seconds.
    pub gap_max_s: Option<f64>,
    /// Operations that were intended meanwhile and completed later.
    pub completed: u64,
    /// Operations that were intended meanwhile and failed.
    pub failed: u64,
    /// Response times of operations that were intended meanwhile and completed.
    pub response_time_s: TimeFinding,
}
