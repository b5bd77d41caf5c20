//! The figures of reasons that have figures of their own: [`Failed`], [`EmptyReads`], [`Little`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error message of failed operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// The database's message.
    pub message: String,
    /// Number of operations that failed with it.
    pub count: u64,
}

/// Reads of one kind that found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyReads {
    /// The kind of operation.
    pub operation: String,
    /// The beginning of the study's own statement, for statements of a study.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sql: Option<String>,
    /// Number of reads that found nothing.
    pub empty: u64,
}

/// The two sides that Little's law compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Little {
    /// Running operations, and clients, each of which runs one operation.
    Clients,
    /// Running operations as clients counted them, and throughput times residence time.
    Counted,
    /// Running operations, and the clients that were working.
    AtWork,
    /// Operations in the system, and operations waiting and running.
    InSystem,
}
