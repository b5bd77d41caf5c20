//! What was observed of schema changes while a load ran. Main type: [`EvolutionMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The schema changes of a trial, and the other operations during them and outside of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EvolutionMeasurement {
    /// In the order of their beginning.
    pub changes: Vec<ChangeMeasurement>,
    /// Operations whose time met that of a change, per kind.
    pub during: BTreeMap<String, AsideMeasurement>,
    /// All others, per kind.
    pub outside: BTreeMap<String, AsideMeasurement>,
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
