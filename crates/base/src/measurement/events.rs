//! What was observed of events while a load ran. Main type: [`EventsMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AsideMeasurement;

/// The events of a trial, and what became of what was acknowledged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventsMeasurement {
    /// In the order of their beginning.
    pub events: Vec<EventMeasurement>,
    /// Records that the database had acknowledged, those that were there before among them; none where the load adds none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged: Option<u64>,
    /// Records that the tables held in the end; none where they were not counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub found: Option<u64>,
    /// Records that were sent and neither acknowledged nor known to be refused: they may be there or not.
    #[serde(default)]
    pub unknown: u64,
    /// Those of them that are there; none where nobody looked for each of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown_found: Option<u64>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventMeasurement {
    /// `kill`, `stop`, `pause` or `cut-power`.
    pub what: String,
    /// Blocks that the disk had taken and not synced when its power was cut, and changes to names; none for other events.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unsynced: Option<u64>,
    /// When it happened, in seconds after the start of the measured phase.
    pub start_s: f64,
    /// How long until the server let clients in again, or went on, in seconds.
    pub away_s: f64,
    /// The longest time in which no operation was completed that met it, in seconds: its gap in service. None where the load ended within it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gap_s: Option<f64>,
    /// Per kind of operation, what was intended while the server was away.
    #[serde(default)]
    pub intended: BTreeMap<String, AsideMeasurement>,
    /// Why the server did not come back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

impl EventsMeasurement {
    /// Records that were acknowledged and are gone; none where they were not counted. Where nobody looked for those of which nobody knows, as many of them as
    /// are there may stand for others that are gone: it is the least then.
    pub fn lost(&self) -> Option<u64> {
        let others = self.unknown_found.unwrap_or(0);
        self.acknowledged.zip(self.found).map(|(acknowledged, found)| (acknowledged + others).saturating_sub(found))
    }

    /// Records that are there and were neither acknowledged nor may have been stored.
    pub fn surplus(&self) -> u64 {
        let others = self.unknown_found.unwrap_or(self.unknown);
        let most = self.acknowledged.map(|acknowledged| acknowledged + others);
        self.found.zip(most).map_or(0, |(found, most)| found.saturating_sub(most))
    }

    /// How many more may be gone than [`EventsMeasurement::lost`] says.
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
