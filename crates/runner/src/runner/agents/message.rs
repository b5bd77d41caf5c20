//! The messages between the run and an agent. Main types: [`ToAgent`] and [`FromAgent`].
//!
//! ```text
//! run     Prepare            Ping   Start at ...                                Stop (instead, at any time)
//! agent              Ready   Pong               Alive   Alive   Alive   Done
//! ```
//!
//! Invariant: a message is one line of JSON, with no line break in it.

use serde::{Deserialize, Serialize};

use super::super::opening::Opening;
use crate::load::{Observed, Share};
use crate::trial::Trial;

/// The largest message in bytes. The observations of 100,000 clients take about 20 MB.
pub const MESSAGE_BYTES_MOST: u64 = 256 << 20;

/// The order for one share of a trial.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// The trial as it is, with the settings of the whole load.
    pub trial: Trial,
    /// The share of its load.
    pub share: Share,
    /// The data with which the database is opened.
    pub opening: Opening,
    /// Number of load threads, if the study does not say; `None` for as many as the agent's machine is good for.
    pub loops: Option<u32>,
}

/// A message to an agent.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Connect the clients of a share, and send nothing yet.
    Prepare(Box<Order>),
    /// Say what your clock reads.
    Ping(u32),
    /// Begin at this time of the agent's own monotonic clock, in nanoseconds.
    Start(u64),
    /// The run is still there.
    Watched,
    /// End at once.
    Stop,
}

/// A message from an agent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// All clients of the share are connected.
    Ready,
    /// The number of the ping, and what the agent's monotonic clock reads, in nanoseconds.
    Pong(u32, u64),
    /// The agent is at work.
    Alive,
    /// The share is done.
    Done(Box<ShareDone>),
    /// The share could not be carried out.
    Failed(
        /// The error with its causes.
        String,
    ),
}

/// What became of a share.
#[derive(Serialize, Deserialize)]
pub struct ShareDone {
    /// What its clients observed.
    pub observed: Observed,
    /// Time from the planned start to its own, in seconds.
    pub began_late_s: f64,
}
