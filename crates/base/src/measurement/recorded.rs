//! The fate of the acknowledged records. Main type: [`RecordedMeasurement`].

use serde::{Deserialize, Serialize};

use super::agent::differing;
use crate::reason::Reason;

/// The conservation of records over a whole trial, and the rate at which they were stored. Counts are of records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordedMeasurement {
    /// Records acknowledged to the load's clients, including the warm-up and the ends of sources.
    pub acknowledged: u64,
    /// Records sent and never answered, which may be stored or not.
    pub unknown: u64,
    /// Records committed in the database, as the recorder counts; without a recorder, the acknowledged records.
    pub committed: u64,
    /// Records in the spools of all recorders, and in the stream that they share, when the trial ended.
    pub spooled: u64,
    /// Records in quarantine.
    pub quarantined: u64,
    /// Records found in the database's table afterwards.
    pub found: u64,
    /// Records acknowledged and not found.
    pub missing: u64,
    /// Records found more than once, or found although never sent.
    pub surplus: u64,
    /// Records found behind a later one of the same source, among those that the same lane of the recorder stored.
    pub out_of_order: u64,
    /// Records stored per second within the measured phase.
    pub stored_per_s: f64,
    /// Time from the end of the last source until the last record was stored, in seconds.
    pub buffer_s: f64,
    /// The largest number of records that were at once in the spools of all recorders and in the stream that they share.
    pub spooled_max: u64,
    /// Largest resident memory of the recorder, in bytes; the sum if there are several.
    #[serde(default)]
    pub memory_max_bytes: u64,
    /// Whether acknowledged blocks are expected to wait at the end of the trial, because they are not to be processed.
    #[serde(default)]
    pub is_kept_waiting: bool,
    /// Mean size in bytes of the acknowledged blocks; 0 where records were sent.
    #[serde(default)]
    pub block_bytes: f64,
    /// Blocks acknowledged per second of the measured phase, each counted by the share of its upload's time within it; `None` in
    /// measurements of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_s: Option<f64>,
    /// Bytes per second that the disk took right before the trial; `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_s: Option<f64>,
    /// The longest time that the recorder took to answer its watcher, in seconds; `None` without a watcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_max_s: Option<f64>,
    /// Requests of the watcher that the recorder did not answer.
    #[serde(default)]
    pub unanswered: u64,
    /// Protection of the clients' connections, as in `TLS 1.3, AES 256 GCM; the server has proven who it is`; `None` without protection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<String>,
    /// Each of several recorders, in the order of their numbers; empty for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorders: Vec<RecorderMeasurement>,
    /// How often a recorder took a part of the shared stream while the load lasted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parts_moved: u64,
}

/// One of several recorders of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecorderMeasurement {
    /// Records that it stored, in the whole trial. Those of a shared stream may have come to another recorder.
    pub committed: u64,
    /// Records that it stored per second within the measured phase.
    pub stored_per_s: f64,
    /// CPUs that its process kept busy within the measured phase.
    pub recorder_cpu: f64,
    /// Largest resident memory of its process, in bytes.
    pub memory_max_bytes: u64,
    /// Parts of the shared stream that it had at the end; 0 without a stream.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parts: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Returns the place of the recorder whose rate of storing differs most from that of the others, and the ratio of the two; `None` if none differs by half or
/// more.
pub fn outlying_recorder(stored_per_s: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    differing(stored_per_s)
}

impl RecordedMeasurement {
    /// Returns the reasons why records were lost, repeated or mixed up; empty when all is as promised.
    pub fn reasons(&self) -> Vec<Reason> {
        let RecordedMeasurement { acknowledged, unknown, committed, spooled, quarantined, .. } = *self;
        let RecordedMeasurement { missing, surplus, out_of_order, unanswered, .. } = *self;
        let counted = committed + spooled + quarantined;
        let found = [
            (
                counted < acknowledged || counted > acknowledged + unknown,
                Reason::RecorderCountsDiffer { acknowledged, committed, spooled, quarantined },
            ),
            (missing > spooled + quarantined, Reason::RecordsMissing { missing }),
            (surplus > 0, Reason::RecordsSurplus { surplus }),
            (out_of_order > 0, Reason::RecordsOutOfOrder { out_of_order }),
            (spooled > 0 && !self.is_kept_waiting, Reason::RecordsSpooled { spooled }),
            (quarantined > 0, Reason::RecordsQuarantined { quarantined }),
            (unanswered > 0, Reason::RecorderUnanswered { unanswered }),
        ];
        found.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, reason)| reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_repeated_mixed_up_or_not_accounted_for_is_told() {
        let good = || RecordedMeasurement { acknowledged: 10, committed: 10, found: 10, ..Default::default() };
        assert_eq!(good().reasons(), []);
        let unanswered = RecordedMeasurement { unknown: 2, committed: 11, found: 11, ..good() };
        assert_eq!(unanswered.reasons(), []);
        let told = |changed: RecordedMeasurement| {
            changed.reasons().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert!(
            told(RecordedMeasurement { committed: 9, missing: 1, ..good() }).contains("1 acknowledged records are not")
        );
        assert!(told(RecordedMeasurement { committed: 11, ..good() }).contains("counts 11 committed"));
        assert!(told(RecordedMeasurement { surplus: 1, ..good() }).contains("twice"));
        assert!(told(RecordedMeasurement { out_of_order: 1, ..good() }).contains("order"));
        let waiting = told(RecordedMeasurement { committed: 9, spooled: 1, missing: 1, found: 9, ..good() });
        assert_eq!(waiting, "1 records were still spooled when the trial ended; make load.drain longer");
        assert!(
            told(RecordedMeasurement { committed: 9, quarantined: 1, missing: 1, ..good() }).contains("quarantine")
        );
    }
}
