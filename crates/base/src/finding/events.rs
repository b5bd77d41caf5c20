//! What was found about events that happened to a server while it was measured. Main type: [`EventsFinding`].

use schemars::JsonSchema;
use serde::Serialize;

/// The events of a case, over all its valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct EventsFinding {
    /// In the order of their times.
    pub events: Vec<EventFinding>,
    /// Trials in which the records were counted in the end.
    pub counted: u64,
    /// Records that were acknowledged in these trials.
    pub acknowledged: u64,
    /// Of these, records that are gone.
    pub lost: u64,
    /// Records that may be gone besides: as many that nobody was promised may be there in their place.
    pub hidden: u64,
    /// Trials in which the server did not come back.
    pub not_back: u64,
    /// Trials in which some are gone.
    pub trials_with_loss: u64,
    /// Records that are there although nobody had sent them, or they were refused.
    pub surplus: u64,
    /// Operations that failed, whenever they were due: those that were under way when it happened among them.
    pub failed: u64,
    /// Operations that were due.
    pub scheduled: u64,
}

/// One event of `[[events]]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct EventFinding {
    /// `kill`, `stop`, `pause` or `cut-power`.
    pub what: String,
    /// When it happened, in seconds after the start of the measured phase, mean.
    pub start_s: f64,
    /// Trials in which it happened.
    pub n: u64,
    /// Blocks and names that the disk had not synced when its power was cut, mean; null for other events.
    pub unsynced: Option<f64>,
    /// How long until the server let clients in again, or went on, mean in seconds.
    pub away_s: f64,
    /// The longest, in seconds.
    pub away_max_s: f64,
    /// Its gap in service: the longest time in which no operation was completed that met it, mean in seconds; null where no trial shows it.
    pub gap_s: Option<f64>,
    /// The longest, in seconds.
    pub gap_max_s: Option<f64>,
    /// Operations that were intended while the server was away and completed in the end.
    pub completed: u64,
    /// Those of them that failed.
    pub failed: u64,
}
