//! The statements that the workload `replay` sends: those of a trace, each at its time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::trace::Replay;

/// A replay in the form that is stored with its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySettings {
    /// The file of the trace, as the study names it.
    pub trace: String,
    /// The checksum of the trace's content: another trace makes another case.
    pub sum: String,
    /// Time of the trace at which the replay ends, in seconds; `None` for the end of the trace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until_s: Option<f64>,
    /// Speed as a multiple of that in the trace, where the study sets one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speed: Option<f64>,
    /// Statements that are left out because they change something.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub left_out: u64,
    /// Name of each kind of statement, and the statement or description that it stands for.
    pub kinds: Vec<(String, String)>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The load of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReplayLoad {
    /// Number of statements.
    pub statements: u64,
    /// The time that the statements take in the trace, in seconds, above 0.
    pub seconds: f64,
    /// Shortest length of a trial of a search, in seconds: the trace is sent as many times as that takes. `None` where a trial sends it once, as where it
    /// changes something.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub least_s: Option<f64>,
    /// Number of times that the trace is sent; `None` for once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passes: Option<u32>,
}

impl ReplayLoad {
    /// Returns the statements per second in the trace.
    pub fn own_rate_per_s(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    /// Returns the time to send all passes at a rate, in seconds.
    pub fn lasts_s(&self, rate_per_s: Option<f64>) -> f64 {
        f64::from(self.passes.unwrap_or(1)) * self.seconds / self.speed(rate_per_s)
    }

    /// Returns the load with as many passes as it takes to last for `seconds`, or for the shortest length of a trial where that is `None`.
    pub fn lasting(self, seconds: Option<f64>, rate_per_s: Option<f64>) -> Self {
        let Some(least_s) = self.least_s else { return self };
        let one_s = self.seconds / self.speed(rate_per_s);
        // The conversion turns a number that is too large into the largest.
        let passes = (seconds.unwrap_or(least_s) / one_s).ceil() as u32;
        ReplayLoad { passes: Some(passes).filter(|passes| *passes > 1), ..self }
    }

    /// Returns the speed at this rate, as a multiple of that in the trace.
    pub fn speed(&self, rate_per_s: Option<f64>) -> f64 {
        rate_per_s.map_or(1.0, |rate| rate / self.own_rate_per_s())
    }
}

/// The replay in memory, with all that is sent. It is not stored: the checksum distinguishes traces.
#[derive(Clone, Default)]
pub struct Replayed(pub Option<Arc<Replay>>);

impl PartialEq for Replayed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(replay) => write!(f, "Replayed({} statements)", replay.statements),
            None => f.write_str("Replayed(nothing)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_sent_as_often_as_a_trial_lasts() {
        let once = ReplayLoad { statements: 100, seconds: 2.0, least_s: None, passes: None };
        assert_eq!((once.speed(Some(100.0)), once.lasts_s(Some(100.0))), (2.0, 1.0));
        assert_eq!(once.lasting(Some(9.0), Some(100.0)), once);
        let often = ReplayLoad { least_s: Some(2.5), ..once };
        assert_eq!(often.lasting(None, Some(100.0)).passes, Some(3));
        assert_eq!(often.lasting(Some(9.1), Some(100.0)).lasts_s(Some(100.0)), 10.0);
        assert_eq!(often.lasting(Some(0.5), Some(100.0)).passes, None);
    }
}
