//! Figures of a trial that another tool measured.
//!
//! Main types: [`ImportedFrom`] and [`StatedTimes`]. Invariant: what a tool does not report is absent here, and is never filled in
//! with a zero or a guess.

use serde::{Deserialize, Serialize};

/// The three times of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// done - intended.
    ResponseTime,
    /// done - sent.
    ResidenceTime,
    /// sent - intended.
    ScheduleLag,
}

impl TimeKind {
    /// Returns the short name for headings: `response`, `residence`, `lag`.
    pub fn short(self) -> &'static str {
        match self {
            TimeKind::ResponseTime => "response",
            TimeKind::ResidenceTime => "residence",
            TimeKind::ScheduleLag => "lag",
        }
    }
}

/// The origin of an imported trial, and what its tool does not report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// Name of the tool, as the tool writes it.
    pub tool: String,
    /// Version of the tool, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// The files of this trial.
    pub files: Vec<String>,
    /// Operations by the tool's own count, where its kinds of operation do not add up to that count: a read-modify-write of YCSB is
    /// one operation, and is counted as a read and an update as well.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operations: Option<u64>,
    /// Whether the number of records per operation is known.
    pub records_known: bool,
    /// Whether the tool would have reported reads that found nothing.
    pub empty_known: bool,
    /// Sentences on this tool's figures that a reader should know.
    pub notes: Vec<String>,
}

/// Times of completed operations as a tool states them, where it kept no histogram.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StatedTimes {
    /// Mean, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_s: Option<f64>,
    /// Smallest, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_s: Option<f64>,
    /// Largest, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_s: Option<f64>,
    /// Quantiles (0..1) with their values in seconds, lowest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quantiles: Vec<(f64, f64)>,
}

impl StatedTimes {
    /// Returns whether nothing is stated.
    pub fn is_empty(&self) -> bool {
        *self == StatedTimes::default()
    }

    /// Returns the value at a quantile, in seconds, if exactly that quantile is stated.
    pub fn quantile_s(&self, quantile: f64) -> Option<f64> {
        self.quantiles.iter().find(|(stated, _)| (stated - quantile).abs() < 1e-9).map(|(_, value_s)| *value_s)
    }

    /// Returns what is known of `count` and `other_count` operations together: the mean, the smallest and the largest time. Quantiles
    /// of parts do not give those of the whole, so the result has none.
    pub fn joined(&self, count: u64, other: &StatedTimes, other_count: u64) -> StatedTimes {
        if count == 0 || other_count == 0 {
            return if count == 0 { other.clone() } else { self.clone() };
        }
        let (weight, other_weight) = (count as f64, other_count as f64);
        let mean = |(mine, theirs): (f64, f64)| (mine * weight + theirs * other_weight) / (weight + other_weight);
        StatedTimes {
            mean_s: self.mean_s.zip(other.mean_s).map(mean),
            min_s: self.min_s.zip(other.min_s).map(|(mine, theirs)| mine.min(theirs)),
            max_s: self.max_s.zip(other.max_s).map(|(mine, theirs)| mine.max(theirs)),
            quantiles: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_by_operations_and_quantiles_of_parts_are_not_those_of_the_whole() {
        let stated = |mean_s: f64, p99_s: f64| StatedTimes {
            mean_s: Some(mean_s),
            min_s: Some(mean_s / 2.0),
            max_s: None,
            quantiles: vec![(0.99, p99_s)],
        };
        let both = stated(1.0, 2.0).joined(300, &stated(2.0, 9.0), 100);
        assert_eq!((both.mean_s, both.min_s, both.max_s), (Some(1.25), Some(0.5), None));
        assert_eq!(both.quantile_s(0.99), None);
        assert_eq!(stated(1.0, 2.0).joined(5, &StatedTimes::default(), 0).quantile_s(0.99), Some(2.0));
    }
}
