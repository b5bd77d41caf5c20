//! What the workload `replay` sends: statements of a trace, each at its time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::trace::Replay;

/// A replay, as it is stored with its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySettings {
    /// The file of the trace, as the study names it.
    pub trace: String,
    /// The sum over what it has: another trace is another case.
    pub sum: String,
    /// Where the trace is left, in seconds of its time; none for its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until_s: Option<f64>,
    /// How many times as fast as in the trace, where the study says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speed: Option<f64>,
    /// Statements that are left out because they change something.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub left_out: u64,
    /// Names of the kinds of statements, and what stands behind them.
    pub kinds: Vec<(String, String)>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The load that a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReplayLoad {
    /// Statements.
    pub statements: u64,
    /// The time that they take in the trace, in seconds, above 0.
    pub seconds: f64,
    /// How long a trial of a search lasts at least, in seconds: the trace is sent as often as that takes. None where a trial sends it once, as where it
    /// changes something.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub least_s: Option<f64>,
    /// How often it is sent; none for once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub passes: Option<u32>,
}

impl ReplayLoad {
    /// Statements a second in the trace.
    pub fn own_rate_per_s(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    /// How long it takes to send all, as often as that is to be, in seconds.
    pub fn lasts_s(&self, rate_per_s: Option<f64>) -> f64 {
        f64::from(self.passes.unwrap_or(1)) * self.seconds / self.speed(rate_per_s)
    }

    /// The same, sent as often as it takes to last so long, or as its trials last at least.
    pub fn lasting(self, seconds: Option<f64>, rate_per_s: Option<f64>) -> Self {
        let Some(least_s) = self.least_s else { return self };
        let one_s = self.seconds / self.speed(rate_per_s);
        // A number that is too large becomes the largest.
        let passes = (seconds.unwrap_or(least_s) / one_s).ceil() as u32;
        ReplayLoad { passes: Some(passes).filter(|passes| *passes > 1), ..self }
    }

    /// How many times as fast as in the trace they are sent at this rate.
    pub fn speed(&self, rate_per_s: Option<f64>) -> f64 {
        rate_per_s.map_or(1.0, |rate| rate / self.own_rate_per_s())
    }
}

/// All that is sent, in memory. It is no part of what is stored: the sum tells traces apart.
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
