//! The finding of a search for the load line.
//!
//! Main type: [`LoadLine`].

use schemars::JsonSchema;
use serde::Serialize;

use super::Outcome;
use crate::trial::Levels;

/// A load line: the highest arrival rate whose quantile of response time stays below the bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct LoadLine {
    /// Levels that the cases of the search have in common.
    pub levels: Levels,
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound in seconds.
    pub below_s: f64,
    /// The arrival rate; null where no line was found.
    pub arrival_rate_per_s: Option<f64>,
    /// For a replay, the speed at that rate as a multiple of that in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// The bracket: the highest rate that was confirmed, which is the line, and the lowest rate above it that was refuted. It contains the line
    /// with 95 % confidence. Null where no rate was confirmed, or none was refuted.
    pub ci95: Option<[f64; 2]>,
    /// Whether the trials at that rate show with 99 % confidence that the bound is kept.
    pub verified: bool,
    /// The quantile at the line over all its valid trials together, in seconds.
    pub quantile_s: Option<f64>,
    /// Trials at the line.
    pub trials: u64,
    /// Whether other work on the machine, or trials that could not be driven or used, ended the search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// How the search ended.
    pub outcome: Outcome,
}
