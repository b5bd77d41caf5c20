//! Observations of one kind of operation. Main type: [`OperationMeasurement`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::imported::{StatedTimes, TimeKind};
use crate::units::NS_PER_S;

/// Observations of one kind of operation in the measured phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationMeasurement {
    /// Operations whose intended time was in the measured phase.
    pub scheduled: u64,
    /// Operations that ended correctly; a read that found nothing counts here and in `empty`.
    pub completed: u64,
    /// Operations answered with an error or with a wrong number of changed rows.
    pub failed: u64,
    /// Operations not answered when the drain phase ended.
    pub abandoned: u64,
    /// Completed reads that found nothing although they should have.
    pub empty: u64,
    /// Records written or read by the completed operations.
    pub records: u64,
    /// Rows in the answers to completed queries; `None` for other operations, and where rows were not counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<u64>,
    /// Answers with a wrong value, which count as failed operations; `None` where values are not checked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wrong: Option<u64>,
    /// done - intended, of completed operations.
    pub response_time: Histogram,
    /// done - sent, of completed operations.
    pub residence_time: Histogram,
    /// sent - intended, of completed operations.
    pub schedule_lag: Histogram,
    /// Time for which abandoned operations had waited since their intended time when the trial ended: their response time is
    /// longer than this (censored).
    #[serde(default)]
    pub censored_time: Histogram,
    /// Times as another tool states them, where it kept no histogram: that histogram is empty then.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub stated: BTreeMap<TimeKind, StatedTimes>,
    /// Whether these operations are made of others that are counted separately: they are in no total.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub composite: bool,
}

impl OperationMeasurement {
    /// Adds the observations of another loop or trial.
    pub fn merge(&mut self, other: &OperationMeasurement) {
        for kind in [TimeKind::ResponseTime, TimeKind::ResidenceTime, TimeKind::ScheduleLag] {
            let none = StatedTimes::default();
            let (mine, theirs) = (self.stated.get(&kind), other.stated.get(&kind));
            if mine.is_some() || theirs.is_some() {
                let (mine, theirs) = (mine.unwrap_or(&none), theirs.unwrap_or(&none));
                let joined = mine.joined(self.completed, theirs, other.completed);
                self.stated.insert(kind, joined);
            }
        }
        self.composite |= other.composite;
        self.scheduled += other.scheduled;
        self.completed += other.completed;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.empty += other.empty;
        self.records += other.records;
        self.rows = self.rows.zip(other.rows).map(|(mine, theirs)| mine + theirs).or(self.rows).or(other.rows);
        self.wrong = self.wrong.zip(other.wrong).map(|(mine, theirs)| mine + theirs).or(self.wrong).or(other.wrong);
        self.response_time.merge(&other.response_time);
        self.residence_time.merge(&other.residence_time);
        self.schedule_lag.merge(&other.schedule_lag);
        self.censored_time.merge(&other.censored_time);
    }

    /// Returns the recorded times of a kind; response times of abandoned operations count with the time for which they had waited.
    pub fn times(&self, kind: TimeKind) -> Histogram {
        match kind {
            TimeKind::ResponseTime => {
                let mut all = self.response_time.clone();
                all.merge(&self.censored_time);
                all
            }
            TimeKind::ResidenceTime => self.residence_time.clone(),
            TimeKind::ScheduleLag => self.schedule_lag.clone(),
        }
    }

    /// Returns the mean of a time, in seconds; `None` where it is not known.
    pub fn mean_s(&self, kind: TimeKind) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 { Some(all.mean_ns() / NS_PER_S) } else { self.stated.get(&kind)?.mean_s }
    }

    /// Returns a quantile (0..1) of a time, in seconds; `None` where it is not known.
    pub fn quantile_s(&self, kind: TimeKind, quantile: f64) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 {
            return Some(all.quantile_ns(quantile) as f64 / NS_PER_S);
        }
        self.stated.get(&kind)?.quantile_s(quantile)
    }
}
