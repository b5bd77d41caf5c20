//! What a search for the load line found.
//!
//! Main type: [`LoadLine`].

use schemars::JsonSchema;
use serde::Serialize;

use super::Outcome;
use crate::trial::Levels;

/// A load line: the highest arrival rate whose quantile of response time stays below the bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct LoadLine {
    /// Levels of the cases that it was sought among.
    pub levels: Levels,
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound in seconds.
    pub below_s: f64,
    /// The arrival rate; null where there is none.
    pub arrival_rate_per_s: Option<f64>,
    /// Of a replay, how many times as fast as in the trace its statements are sent at that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Its bracket: the highest rate that was confirmed, which is the line, and the lowest one above it that was refuted. It holds the line
    /// with 95 %. Null where none was confirmed, or none was refuted.
    pub ci95: Option<[f64; 2]>,
    /// Whether the trials at that rate say with 99 % that the bound is kept.
    pub verified: bool,
    /// The quantile at the line, of all its valid trials together, in seconds.
    pub quantile_s: Option<f64>,
    /// Trials at the line.
    pub trials: u64,
    /// Whether other work on the machine, or trials that could not be driven or used, ended the search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// How the search ended.
    pub outcome: Outcome,
}
