//! Statements that ran: from the counters of a database, from its logs, or from a file.
//!
//! Main type: [`Seen`]. Invariant: what is kept does not grow with how much ran.

mod collector;
mod counters;
mod digest;
mod lines;
mod log;
mod mysql_log;
mod postgres_log;
mod script;
#[cfg(test)]
mod tests;

pub use collector::{Call, Collector, Ran, SAMPLES_MOST, STATEMENT_BYTES_MOST, Sample, Takes};
pub use counters::{Counters, CountersError, grammar_of};
pub use log::{LogError, LogForm, TOLD_BY_BYTES, read_log};

/// What ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// Statements, the most frequent first.
    pub statements: Vec<Ran>,
    /// Over how many seconds, where something tells.
    pub seconds: Option<f64>,
    /// What was passed over, and how often: settings, transactions, what asks the catalogue.
    pub passed_over: Vec<(&'static str, f64)>,
    /// What is to be said of where it comes from.
    pub notes: Vec<String>,
}
