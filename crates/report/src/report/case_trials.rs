//! Groups the trials of a case, and computes figures over them. Main type: [`CaseTrials`].

use crate::finding::{Estimate, TimeFinding};
use crate::histogram::Histogram;
use crate::measurement::{Measurement, is_growing};
use crate::statistics::summary::{mean, sample_sd, t_interval};
use crate::trial::Case;
use crate::units::NS_PER_S;

/// The trials of one case, in the order of their rounds.
#[derive(Debug, Clone)]
pub struct CaseTrials<'a> {
    /// The case.
    pub case: &'a Case,
    /// The trial left out because the study discards the first of each case.
    pub discarded: Option<&'a Measurement>,
    /// The trials that count, valid or not.
    pub trials: Vec<&'a Measurement>,
}

impl<'a> CaseTrials<'a> {
    /// Returns the valid trials, from which figures are computed.
    pub fn valid(&self) -> impl Iterator<Item = &'a Measurement> + '_ {
        self.trials.iter().copied().filter(|trial| trial.is_valid())
    }
}

/// Returns whether the database fell behind in these trials of a case, taken together.
pub fn is_overloaded(trials: &[&Measurement]) -> bool {
    let total = |count: fn(&Measurement) -> u64| trials.iter().map(|trial| count(trial)).sum::<u64>() as f64;
    let in_work = trials.iter().map(|trial| trial.in_work()).sum();
    let is_open = trials.iter().any(|trial| trial.carried.is_some());
    is_open
        && (total(Measurement::abandoned) > 0.0
            || is_growing(total(Measurement::backlog), total(Measurement::scheduled), in_work))
}

/// Returns the mean, spread and interval of one value per trial.
pub fn estimate(values: &[f64]) -> Estimate {
    Estimate {
        mean: mean(values),
        sd: sample_sd(values),
        n: values.len() as u64,
        // A rate is never negative: an interval that reaches below 0 is cut off there and marked so.
        ci95: t_interval(values, 0.95).map(|interval| [interval.low.max(0.0), interval.high]),
        cut_off: t_interval(values, 0.95).is_some_and(|interval| interval.low < 0.0),
    }
}

/// Returns the times of a merged histogram, in seconds.
pub fn time_finding(merged: &Histogram) -> TimeFinding {
    if merged.count() == 0 {
        return TimeFinding::default();
    }
    let quantile = |quantile| Some(merged.quantile_ns(quantile) as f64 / NS_PER_S);
    TimeFinding {
        mean: Some(merged.mean_ns() / NS_PER_S),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: Some(merged.max_ns() as f64 / NS_PER_S),
    }
}
