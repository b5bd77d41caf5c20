//! What was observed of schema changes while a load ran. Main type: [`EvolutionMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The schema changes of a trial, and the other operations during them and outside of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EvolutionMeasurement {
    /// In the order of their beginning.
    pub changes: Vec<ChangeMeasurement>,
    /// Per kind of change, and `outside` of all: per kind of operation those that were intended then. Runs of before have `during` and
    /// `outside` in its place, by whether an operation's time met that of a change, which counted the long ones more often; they
    /// are not read any more.
    #[serde(default)]
    pub intended: BTreeMap<String, BTreeMap<String, AsideMeasurement>>,
    /// The longest time without any completed operation, in seconds, that met a change of each kind, and that met none (`outside`).
    #[serde(default)]
    pub silences_s: BTreeMap<String, f64>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChangeMeasurement {
    /// `add`: the schema gets a field; `write`: records get a value of it, one transaction each; `erase`: they lose it;
    /// `remove`: the schema loses it.
    pub what: String,
    /// When it began, in seconds after the start of the measured phase.
    pub start_s: f64,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// Records written; 0 for a change of the schema alone.
    pub records: u64,
    /// Records that could not be written, or 1 for a change that was refused.
    pub failed: u64,
    /// The statement that the database accepted, where one changed a table.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub statement: Option<String>,
    /// Whether the load ended before it: its time is in part that of a server without a load.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub outlasted: bool,
    /// The first message of what failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// A part of the operations of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AsideMeasurement {
    /// Done as they should be.
    pub completed: u64,
    /// Answered with an error.
    pub failed: u64,
    /// done - intended, of completed ones.
    pub response_time: Histogram,
}

impl AsideMeasurement {
    /// Adds what another loop or trial saw.
    pub fn merge(&mut self, other: &AsideMeasurement) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.response_time.merge(&other.response_time);
    }
}
