//! The sightings of written events by the readers of a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Freshness in a trial, by group of readers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FreshnessMeasurement {
    /// Sightings of each group of readers, by its name.
    pub groups: BTreeMap<String, Box<GroupMeasurement>>,
    /// Mean length of an event's record, in bytes.
    pub record_bytes: f64,
    /// Time from the start of a write until the historian had stored the event; `None` without a historian.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stored: Option<GroupMeasurement>,
    /// CPU time of each part except the load threads over the measured phase, in CPUs: 1.5 is one and a half.
    pub cpus: BTreeMap<String, f64>,
    /// Protection of the connections to the NATS server, as in `TLS 1.3, AES 256 GCM; the server has proven who it is`; `None` without protection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub protection: Option<String>,
}

/// The sightings of a group of readers, all of its readers together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupMeasurement {
    /// Number of readers.
    pub readers: u32,
    /// Time from the start of a write until a reader had the event.
    pub freshness: Histogram,
    /// Expected number of sightings: acknowledged events times the readers that look for them.
    pub expected: u64,
    /// Expected sightings that were missing when the trial ended.
    pub lost: u64,
    /// Sightings of events that the same reader had seen before.
    pub duplicates: u64,
    /// Number of polls, or of messages.
    pub polls: u64,
    /// Rows that were read, including those read again.
    pub rows: u64,
    /// Rows that had been read before.
    pub read_again: u64,
    /// How often subscribers were cut off because they could not keep up.
    #[serde(default)]
    pub cut_off: u64,
    /// Name of the host on which an agent read; `None` on the machine of the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Largest error of every time above because the host has another clock, in seconds; 0 on the machine of the run.
    #[serde(skip_serializing_if = "super::resources::is_zero", default)]
    pub clock_error_s: f64,
    /// Freshness for each reader, by its number in the group; empty where it was not kept.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub each: BTreeMap<u32, Histogram>,
}

impl GroupMeasurement {
    /// Adds the sightings of the same group in another trial.
    pub fn merge(&mut self, other: &GroupMeasurement) {
        self.readers = self.readers.max(other.readers);
        self.freshness.merge(&other.freshness);
        self.expected += other.expected;
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.polls += other.polls;
        self.rows += other.rows;
        self.read_again += other.read_again;
        self.cut_off += other.cut_off;
        self.host = self.host.take().or_else(|| other.host.clone());
        self.clock_error_s = self.clock_error_s.max(other.clock_error_s);
        for (reader, freshness) in &other.each {
            self.each.entry(*reader).or_default().merge(freshness);
        }
    }
}

impl FreshnessMeasurement {
    /// Returns all groups together; readers of different groups are not told apart by their numbers.
    pub fn all(&self) -> GroupMeasurement {
        let mut all = GroupMeasurement::default();
        self.groups.values().for_each(|group| all.merge(group));
        all.each.clear();
        all
    }
}
