//! Observations of a client. Main type: [`ClientMeasurement`].

use serde::{Deserialize, Serialize};

use super::resources::is_zero;
use crate::histogram::CompactHistogram;
use crate::units::NS_PER_S;

/// One client's share of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientMeasurement {
    /// Operations completed in the measured phase.
    pub completed: u64,
    /// Operations failed in the measured phase.
    pub failed: u64,
    /// Time from the start of the measured phase to the client's last answer, in seconds.
    pub elapsed_s: f64,
    /// Running time of the operations that the client completed, in seconds; 0 where it was not counted.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub running_s: f64,
    /// Response times of the client's completed operations; `None` where it completed none, or where there are too many clients to keep their times.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response_time: Option<ClientTimes>,
}

/// Response times of one client, in seconds; quantiles are within 3.2 %.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientTimes {
    /// Mean, exact.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Largest, exact.
    pub max_s: f64,
}

impl ClientTimes {
    /// Summarises the times of a client that has completed something.
    pub fn of(times: &CompactHistogram) -> Self {
        let quantile_s = |quantile| times.quantile_ns(quantile) as f64 / NS_PER_S;
        ClientTimes {
            mean_s: times.mean_ns() / NS_PER_S,
            p50_s: quantile_s(0.5),
            p99_s: quantile_s(0.99),
            max_s: times.max_ns() as f64 / NS_PER_S,
        }
    }
}
