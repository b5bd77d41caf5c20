//! Observations of schema changes while a load ran. Main type: [`EvolutionMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The schema changes of a trial, and the other operations during them and outside of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EvolutionMeasurement {
    /// The changes, in the order of their beginning.
    pub changes: Vec<ChangeMeasurement>,
    /// Per kind of change, and for `outside` of all: per kind of operation, the operations intended then. Older runs have `during` and
    /// `outside` in its place, by whether an operation's time overlapped that of a change, which counted long operations more often; those
    /// fields are not read any more.
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
    /// Start of the change, in seconds after the start of the measured phase.
    pub start_s: f64,
    /// Duration of the change, in seconds.
    pub took_s: f64,
    /// Records written; 0 for a change of the schema alone.
    pub records: u64,
    /// Records that could not be written, or 1 for a change that was refused.
    pub failed: u64,
    /// The statement that the database accepted, where one changed a table.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub statement: Option<String>,
    /// Whether the load ended before the change did: a part of its duration is that of a server without a load.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub outlasted: bool,
    /// The first error message.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// A part of the operations of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AsideMeasurement {
    /// Operations that ended correctly.
    pub completed: u64,
    /// Operations answered with an error.
    pub failed: u64,
    /// done - intended, of completed operations.
    pub response_time: Histogram,
}

impl AsideMeasurement {
    /// Adds the observations of another loop or trial.
    pub fn merge(&mut self, other: &AsideMeasurement) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.response_time.merge(&other.response_time);
    }
}
