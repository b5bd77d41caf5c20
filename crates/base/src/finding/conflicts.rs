//! Findings about conflicts between transactions. Main type: [`ConflictsFinding`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Conflicts of a case, over all its valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ConflictsFinding {
    /// By message, how often an operation was sent again.
    pub sent_again: BTreeMap<String, u64>,
    /// Operations that were due in these trials.
    pub scheduled: u64,
    /// Transactions, those of the warm-up included, that nodes of a cluster refused or interrupted because another node had changed the same rows first, by the nodes' own counters; null
    /// where no trial shows it.
    pub between_nodes: Option<u64>,
}
