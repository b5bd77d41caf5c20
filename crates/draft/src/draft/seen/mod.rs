//! Collects the statements that ran: from the counters of a database, from its logs, or from a file.
//!
//! Main type: [`Seen`]. Invariant: memory does not grow with the number of calls.

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

/// The statements that ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// The statements, the most frequent first.
    pub statements: Vec<Ran>,
    /// The seconds that the calls span, if known.
    pub seconds: Option<f64>,
    /// The reasons for passing over calls, with their numbers: settings, transactions, queries on the catalogue.
    pub passed_over: Vec<(&'static str, f64)>,
    /// Remarks on the source of the statements.
    pub notes: Vec<String>,
}
