//! What happened in a part of the measured phase.
//!
//! Main type: [`IntervalMeasurement`].

use serde::{Deserialize, Serialize};

/// What happened in one interval of the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct IntervalMeasurement {
    /// End of the interval, seconds after the start of the measured phase.
    pub end_s: f64,
    /// Operations whose intended time is in it.
    #[serde(default)]
    pub scheduled: u64,
    /// Operations completed in it.
    pub completed: u64,
    /// Operations failed in it.
    pub failed: u64,
    /// Mean response time of the completed ones, in seconds; 0 without any.
    pub response_time_mean_s: f64,
    /// Largest response time of the completed ones, in seconds.
    pub response_time_max_s: f64,
    /// Quantiles of it: p50 and p99; none where they were not kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_time_quantiles_s: Option<[f64; 2]>,
}
