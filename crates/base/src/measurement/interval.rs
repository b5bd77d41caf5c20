//! Observations in a part of the measured phase.
//!
//! Main type: [`IntervalMeasurement`].

use serde::{Deserialize, Serialize};

/// Observations in one interval of the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct IntervalMeasurement {
    /// End of the interval, seconds after the start of the measured phase.
    pub end_s: f64,
    /// Operations whose intended time is in the interval.
    #[serde(default)]
    pub scheduled: u64,
    /// Operations completed in the interval.
    pub completed: u64,
    /// Operations failed in the interval.
    pub failed: u64,
    /// Mean response time of the completed operations, in seconds; 0 without any.
    pub response_time_mean_s: f64,
    /// Largest response time of the completed operations, in seconds.
    pub response_time_max_s: f64,
    /// Response time of the completed operations in seconds, p50 and p99; `None` where the quantiles were not kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_time_quantiles_s: Option<[f64; 2]>,
}
