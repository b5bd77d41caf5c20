//! The figures of reasons that have figures of their own: [`Failed`], [`EmptyReads`], [`Little`], [`RetentionTrouble`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::show_seconds;

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

/// What stands in the way when old readings are thrown away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum RetentionTrouble {
    /// The database refused it.
    #[error("{failed} attempts to throw old readings away failed, first \"{first}\": {error}")]
    Failed {
        /// Attempts that failed.
        failed: u64,
        /// What failed first: `delete`, `drop` or `add`.
        first: String,
        /// The database's message.
        error: String,
    },
    /// No step was old as a whole.
    #[error(
        "nothing was old enough to be thrown away in the measured phase: the data's clock went on by {} since the load began; lower retention.step, or raise load.duration",
        show_seconds(*advanced_s)
    )]
    NothingOld {
        /// Seconds by which the data's clock went on since the load began.
        advanced_s: f64,
    },
    /// The first step did not end within the measured phase.
    #[error(
        "no step ended within the measured phase, and {} of the data's time were due at its end: deletions took longer than that, or waited for those who write; raise load.duration, or lower \
         retention.step",
        show_seconds(*behind_s)
    )]
    NoneEnded {
        /// Seconds of the data's time that were due at the end.
        behind_s: f64,
    },
    /// Readings that questions are about became old.
    #[error(
        "readings that questions are about became older than retention.keep, when the data's clock had gone on by {} since the load began; raise retention.keep, lower load.duration or write less",
        show_seconds(*advanced_s)
    )]
    Asked {
        /// Seconds by which the data's clock went on since the load began.
        advanced_s: f64,
    },
}
