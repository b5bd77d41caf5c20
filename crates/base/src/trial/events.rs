//! `[[events]]`: what happens to the server while it is measured. Main type: [`EventSettings`].

use serde::{Deserialize, Serialize};

/// One of `[[events]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSettings {
    /// When it happens, in seconds after the measured phase begins.
    pub at_s: f64,
    /// What happens.
    pub what: EventKind,
    /// How long the server stays away, in seconds: until it goes on, or is started again.
    pub lasts_s: f64,
}

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// All of its processes are killed, and it is started again on what is there.
    Kill,
    /// It is stopped in order, and started again.
    Stop,
    /// All of its processes stand still, and go on.
    Pause,
}

impl EventKind {
    /// Its name in studies.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Kill => "kill",
            EventKind::Stop => "stop",
            EventKind::Pause => "pause",
        }
    }
}
