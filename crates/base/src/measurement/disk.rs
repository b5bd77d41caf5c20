//! What a writer beside the load wrote to the disk.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The writer of `[disk]` in the measured phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskMeasurement {
    /// Bytes per second that the operating system took. Without syncs much of it is in the page cache at the end.
    pub accepted_bytes_per_s: f64,
    /// Bytes per second of which the disk said that it has them: the time of the last sync is counted too.
    pub written_bytes_per_s: f64,
    /// How long the last sync took, in seconds.
    pub flush_s: f64,
    /// Time of a block, with its sync where each has one.
    pub block_time: Histogram,
}
