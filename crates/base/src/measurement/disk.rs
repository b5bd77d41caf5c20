//! Writes to the disk by a writer beside the load.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The writer of `[disk]` in the measured phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskMeasurement {
    /// Bytes per second that the operating system accepted. Without syncs, many of them are only in the page cache at the end.
    pub accepted_bytes_per_s: f64,
    /// Bytes per second that the disk has confirmed: the time of the last sync is included.
    pub written_bytes_per_s: f64,
    /// Duration of the last sync, in seconds.
    pub flush_s: f64,
    /// Time of a block, with its sync where each has one.
    pub block_time: Histogram,
}
