//! The order for a group of readers, as it is passed to a process here or on the host of an agent. Main type: [`ReadersOrder`].

use serde::{Deserialize, Serialize};

use super::opening::Opening;
use crate::database::Endpoint;
use crate::trial::Settings;

/// The order of a group of readers.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReadersOrder {
    /// The trial's settings.
    pub settings: Settings,
    /// The group's number, from 0.
    pub group: u32,
    /// The data with which the database of the events is opened.
    pub reach: Opening,
    /// The NATS server that events are published to; `None` if they are not published.
    pub nats: Option<Endpoint>,
    /// Time by which the readers' clock is ahead of that of the writers, in nanoseconds; 0 on the same machine.
    pub ahead_ns: i64,
}
