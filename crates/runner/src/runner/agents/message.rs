//! The messages between the run and an agent. Main types: [`ToAgent`] and [`FromAgent`].
//!
//! ```text
//! run     Ping   Prepare           Ping   Start at ...                                Ping   Stop (instead, at any time)
//! agent   Pong             Ready   Pong                Alive   Alive   Alive   Done   Pong
//! ```
//!
//! Invariant: a message is one line of JSON, with no line break in it.

use serde::{Deserialize, Serialize};

use super::super::opening::Opening;
use super::super::reading::ReadersOrder;
use crate::database::Endpoint;
use crate::load::{Observed, Share};
use crate::measurement::{OTHERS_BEFORE_MOST, Resources};
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
    /// Whether the agent watches its host, because the run does not.
    pub watches_host: bool,
}

/// A message to an agent.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Connect the clients of a share, and send nothing yet.
    Prepare(Box<Order>),
    /// Start a group of readers, whose process speaks in lines.
    Read(Box<ReadersOrder>),
    /// Pass this line on to the readers.
    Line(String),
    /// Say what your clock reads.
    Ping(u32),
    /// Begin at this time of the agent's own monotonic clock, in nanoseconds.
    Start(u64),
    /// The run is still there.
    Watched,
    /// End at once.
    Stop,
}

impl ToAgent {
    /// Returns the address of the database, if it is in this message.
    pub fn endpoint(&mut self) -> Option<&mut Endpoint> {
        match self {
            ToAgent::Prepare(order) => order.opening.endpoint.as_mut(),
            ToAgent::Read(order) => order.reach.endpoint.as_mut(),
            _ => None,
        }
    }
}

/// A message from an agent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// All clients of the share are connected.
    Ready(Readiness),
    /// The number of the ping, and what the agent's monotonic clock reads, in nanoseconds.
    Pong(u32, u64),
    /// The agent is at work.
    Alive,
    /// A line of the readers.
    Line(String),
    /// The share is done.
    Done(Box<ShareDone>),
    /// The share could not be carried out.
    Failed(
        /// The error with its causes.
        String,
    ),
}

/// What an agent knows before the load begins.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Readiness {
    /// Number of CPUs of its host; `None` if it does not watch it.
    pub cpus: Option<u32>,
    /// CPUs that others keep busy there; `None` if it does not watch its host.
    pub others_cpu: Option<f64>,
}

impl Readiness {
    /// Returns the CPUs that others keep busy and the number of all, if these are more than nearly none.
    pub fn is_disturbed(&self) -> Option<(f64, u32)> {
        let others_cpu = self.others_cpu.filter(|others_cpu| *others_cpu > OTHERS_BEFORE_MOST)?;
        Some((others_cpu, self.cpus?))
    }
}

/// What became of a share.
#[derive(Serialize, Deserialize)]
pub struct ShareDone {
    /// What its clients observed.
    pub observed: Observed,
    /// Time from the planned start to its own, in seconds.
    pub began_late_s: f64,
    /// Use of its host in the measured phase, if it watched it.
    pub resources: Option<Resources>,
}

impl ShareDone {
    /// Checks what an agent reports on `clients` clients.
    ///
    /// # Errors
    /// Fails with what cannot be.
    pub fn check(&self, clients: usize) -> Result<(), String> {
        self.observed.check(clients)?;
        if !(0.0..f64::INFINITY).contains(&self.began_late_s) {
            return Err(format!("it began {} s late", self.began_late_s));
        }
        match self.resources.as_ref().is_none_or(Resources::is_possible) {
            true => Ok(()),
            false => Err("what it reports of its host cannot be".to_owned()),
        }
    }
}
