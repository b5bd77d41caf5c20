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
}

/// One event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventMeasurement {
    /// `kill`, `stop` or `pause`.
    pub what: String,
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
    /// Records that were acknowledged and are gone; none where they were not counted.
    pub fn lost(&self) -> Option<u64> {
        self.acknowledged.zip(self.found).map(|(acknowledged, found)| acknowledged.saturating_sub(found))
    }

    /// Records that are there and were neither acknowledged nor may have been stored.
    pub fn surplus(&self) -> u64 {
        let most = self.acknowledged.map(|acknowledged| acknowledged + self.unknown);
        self.found.zip(most).map_or(0, |(found, most)| found.saturating_sub(most))
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
        assert_eq!(EventsMeasurement { found: Some(3), ..EventsMeasurement::default() }.lost(), None);
    }
}
