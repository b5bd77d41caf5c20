//! The agents that drove the load of a case. Main type: [`AgentsFinding`].

use schemars::JsonSchema;
use serde::Serialize;

/// The agents that drove the load of a case, over all valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct AgentsFinding {
    /// Longest time between the first and the last start of agents in one trial, in seconds.
    pub starts_apart_s: f64,
    /// The agents, in their order.
    pub each: Vec<AgentFinding>,
}

/// One of the agents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct AgentFinding {
    /// Name of its host; left out of JSON if it is the machine of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Number of its clients.
    pub clients: u32,
    /// Operations that it completed per second.
    pub throughput_per_s: f64,
    /// CPUs that its load threads kept busy.
    pub cpus: f64,
    /// Median response time in seconds; null where it completed nothing.
    pub response_time_p50_s: Option<f64>,
    /// 99th percentile of response time in seconds; null where it completed nothing.
    pub response_time_p99_s: Option<f64>,
}
