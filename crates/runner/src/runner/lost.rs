//! The loss of an agent. Main type: [`AgentLost`].

use std::fmt;

use crate::reason::Reason;

/// An agent that was lost, and with it the trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLost {
    /// The agent's number, from 1.
    pub agent: u32,
    /// Number of agents.
    pub of: u32,
    /// Its host, if it is not this machine.
    pub host: Option<String>,
    /// What became of it.
    pub why: String,
}

impl AgentLost {
    /// Returns why the trial is invalid.
    pub fn reason(&self) -> Reason {
        Reason::AgentLost { agent: self.agent, of: self.of, host: self.host.clone(), why: self.why.clone() }
    }
}

impl fmt::Display for AgentLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(f)
    }
}

impl std::error::Error for AgentLost {}
