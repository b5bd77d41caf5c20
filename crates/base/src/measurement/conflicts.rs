//! Conflicts between transactions, and operations that were sent again because of them. Main type: [`ConflictsMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Conflicts between the transactions of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConflictsMeasurement {
    /// By message, how often an operation of the measured phase was sent again; empty where none was.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub sent_again: BTreeMap<String, u64>,
    /// Transactions of the whole trial, warm-up included, that nodes of a cluster refused or interrupted because another node had changed the same rows first, by the nodes' own
    /// counters; `None` where the database does not count them, or a node did not answer or was started again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub between_nodes: Option<u64>,
}
