//! Measurements of the load engine's threads. Main type: [`LoopMeasurement`].
//!
//! Invariant: a figure that the kernel or an older version does not report is absent, and never 0.

use serde::{Deserialize, Serialize};

/// One thread of the load engine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoopMeasurement {
    /// The method of waiting for answers: `epoll`, `io_uring` or `blocking`.
    pub driver: String,
    /// Number of clients of this thread.
    pub clients: u32,
    /// The CPU that the thread was bound to, if it was bound to one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<u32>,
    /// CPU time of the thread in the measured phase, in seconds.
    pub cpu_s: f64,
    /// Length of the measured phase as the thread saw it, in seconds.
    pub wall_s: f64,
    /// 99th percentile of an upper bound on the time for which an arrived answer waited to be read, in seconds.
    pub pass_s_p99: f64,
    /// Number of passes over arrived answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passes: Option<u64>,
    /// Number of parts of answers that were read, as they arrived; an answer of ordinary size arrives in one part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answers: Option<u64>,
    /// Time for which the thread was ready to run and had no CPU, in seconds; `None` where the kernel does not report it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delayed_s: Option<f64>,
    /// How often the thread got a CPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u64>,
    /// Whether the thread waited for its turn rather than interrupt another one (the scheduler's batch policy).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub gives_way: bool,
}
