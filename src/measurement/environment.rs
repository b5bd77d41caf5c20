//! The machine and the software that measurements were made on. Main type: [`Environment`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LinkMeasurement;

/// The machine and the software of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Version of loadline.
    pub loadline: String,
    /// Name of the machine.
    pub machine: String,
    /// Model of its CPU.
    pub cpu: String,
    /// Number of CPUs that loadline may use.
    pub cpus: u32,
    /// CPU frequency governor, if the kernel tells.
    pub governor: Option<String>,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Operating system and kernel.
    pub kernel: String,
    /// File system and device of the run directory, if known.
    pub disk: Option<String>,
    /// How long that disk took to make a few bytes durable, before the first trial; none where it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_sync: Option<DiskSync>,
    /// Per database of the run: version and the settings that matter, name by name.
    pub databases: BTreeMap<String, BTreeMap<String, String>>,
    /// What each link of the run carried when it was first made, before anything else was on it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, LinkMeasurement>,
}

/// Times of syncs of one overwritten page each: the least that a durable commit costs on this disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskSync {
    /// Median, in seconds.
    pub p50_s: f64,
    /// 90th percentile, in seconds.
    pub p90_s: f64,
    /// How many were tried.
    pub count: u32,
}
