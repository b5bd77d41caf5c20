//! Observations of events while a load ran. Main type: [`EventsMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AsideMeasurement;

/// The events of a trial, and the fate of the acknowledged records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventsMeasurement {
    /// The events, in the order of their beginning.
    pub events: Vec<EventMeasurement>,
    /// Records that the database had acknowledged, including those present before the load; `None` where the load adds none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged: Option<u64>,
    /// Records in the tables at the end; `None` where they were not counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub found: Option<u64>,
    /// Records that were sent and neither acknowledged nor known to be refused: they may be stored or not.
    #[serde(default)]
    pub unknown: u64,
    /// Records of unknown fate that are stored; `None` where they were not looked for one by one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown_found: Option<u64>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventMeasurement {
    /// `kill`, `stop`, `pause`, `cut-power`, `slow-disk`, `full-disk`, `cut-link`, `cut-node` or `promote`.
    pub what: String,
    /// Number of the node that it happened to, from 1; `None` where the server has one node.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<u32>,
    /// Blocks that the disk had taken and not synced when its power was cut, plus changes to names; `None` for other events.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unsynced: Option<u64>,
    /// Time of the event, in seconds after the start of the measured phase.
    pub start_s: f64,
    /// Time until the server or the node accepted clients again or continued, until the replica took writes, until all nodes had the same data again after one was cut off, or for which its disk was slow or full or its link was cut, in seconds.
    pub away_s: f64,
    /// The gap in service: the longest time without a completed operation that met the event, in seconds. `None` where the load ended within it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gap_s: Option<f64>,
    /// Per kind of operation, the operations intended while the server was away.
    #[serde(default)]
    pub intended: BTreeMap<String, AsideMeasurement>,
    /// The reason why the server did not come back; `None` where it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

impl EventsMeasurement {
    /// Returns the number of acknowledged records that are gone; `None` where records were not counted. Where records of unknown fate were not looked for, the
    /// stored ones among them may hide as many that are gone: the number is a lower bound then.
    pub fn lost(&self) -> Option<u64> {
        let others = self.unknown_found.unwrap_or(0);
        self.acknowledged.zip(self.found).map(|(acknowledged, found)| (acknowledged + others).saturating_sub(found))
    }

    /// Returns the number of stored records that were neither acknowledged nor of unknown fate.
    pub fn surplus(&self) -> u64 {
        let others = self.unknown_found.unwrap_or(self.unknown);
        let most = self.acknowledged.map(|acknowledged| acknowledged + others);
        self.found.zip(most).map_or(0, |(found, most)| found.saturating_sub(most))
    }

    /// Returns how many more records may be gone than [`EventsMeasurement::lost`] returns.
    pub fn hidden(&self) -> u64 {
        if self.unknown_found.is_some() || self.found.is_none() { 0 } else { self.unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_nobody_sent_is_told_from_what_nobody_knows() {
        let of = |found| EventsMeasurement {
            acknowledged: Some(100),
            found: Some(found),
            unknown: 5,
            ..EventsMeasurement::default()
        };
        let told = |found| (of(found).lost(), of(found).surplus());
        assert_eq!(
            [told(99), told(100), told(105), told(106)],
            [(Some(1), 0), (Some(0), 0), (Some(0), 0), (Some(0), 1)]
        );
        let known = |found, there| EventsMeasurement { unknown_found: Some(there), ..of(found) };
        assert_eq!(known(100, 3).lost(), Some(3), "three that nobody was promised stand for three that are gone");
        assert_eq!((known(103, 3).lost(), known(103, 3).surplus(), known(104, 3).surplus()), (Some(0), 0, 1));
        assert_eq!((of(100).hidden(), known(100, 3).hidden()), (5, 0));
        assert_eq!(EventsMeasurement { found: Some(3), ..EventsMeasurement::default() }.lost(), None);
    }
}
