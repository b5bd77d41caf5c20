//! The agents that drove the load of a case. Main types: [`AgentsFinding`] and [`HostUse`].

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
    /// Use of its host; left out of JSON if that is the machine of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_use: Option<HostUse>,
    /// Median response time in seconds; null where it completed nothing.
    pub response_time_p50_s: Option<f64>,
    /// 99th percentile of response time in seconds; null where it completed nothing.
    pub response_time_p99_s: Option<f64>,
}

/// Means of the use of an agent's host in the measured phases of all valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct HostUse {
    /// Number of its CPUs.
    pub cpus: u32,
    /// Share of its CPU time that was used, 0..1.
    pub busy_share: f64,
    /// Largest share of its CPU time that a hypervisor gave to other machines in one trial, 0..1.
    pub stolen_share_most: f64,
    /// CPUs that the agent's process kept busy.
    pub client_cpus: f64,
    /// CPUs that others kept busy, a database on the same host among them; null where that is not known.
    pub others_cpus: Option<f64>,
    /// Most CPUs that others kept busy before the load of a trial began; null where that is not known.
    pub others_cpus_before_most: Option<f64>,
    /// Resident memory of the agent's process, in bytes.
    pub client_memory_bytes: f64,
    /// Bytes received on all of its network interfaces per second.
    pub received_bytes_per_s: f64,
    /// Bytes sent on all of its network interfaces per second.
    pub sent_bytes_per_s: f64,
}
