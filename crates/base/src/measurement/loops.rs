//! What is stored of the load engine's threads. Main type: [`LoopMeasurement`].
//!
//! Invariant: what the kernel or an older version does not tell is absent, and never 0.

use serde::{Deserialize, Serialize};

/// One thread of the load engine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoopMeasurement {
    /// How it waits for answers: `epoll`, `io_uring` or `blocking`.
    pub driver: String,
    /// Clients that it carries.
    pub clients: u32,
    /// The CPU that its thread was bound to, if to one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<u32>,
    /// Its CPU time in the measured phase, in seconds.
    pub cpu_s: f64,
    /// Length of the measured phase as it saw it, in seconds.
    pub wall_s: f64,
    /// How long an answer that had arrived waited until the loop read it: at most this, at p99, in seconds.
    pub pass_s_p99: f64,
    /// Passes over answers that had arrived.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passes: Option<u64>,
    /// Parts of answers that they read, as they arrived; an answer of ordinary size arrives in one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answers: Option<u64>,
    /// Time in which its thread was ready to run and had no CPU, in seconds; none where the kernel does not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delayed_s: Option<f64>,
    /// How often its thread got a CPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u64>,
    /// Whether its thread waited for its turn rather than interrupt another one (the scheduler's batch policy).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub gives_way: bool,
}
