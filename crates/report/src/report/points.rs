//! Extracts the points to which queueing models are fitted from a run's trials, one set per combination of the other factors.
//!
//! Main function: [`curves`]. Invariant: a standard error comes from the spread of the trials, with their number, or from batches within the
//! only trial; it is never assumed. Batches of raw times, if a run has them, give quantiles an error too.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::imported::TimeKind;
use crate::measurement::{IntervalMeasurement, Measurement};
use crate::queueing::{Point, Points, QuantilePoint, Timer};
use crate::report::case_trials::CaseTrials;
use crate::report::growth::{Loaded, series};
use crate::statistics::batches::Batches;
use crate::statistics::summary::{mean, sample_sd};
use crate::trial::{Arrivals, Levels};
use crate::units::NS_PER_S;

/// The quantiles of every point.
pub const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The setting in which a closed loop's points differ.
const CLIENTS: &str = "load.clients";
/// The number of batches within a trial.
const BATCHES: usize = 10;

/// The points of one combination of the other factors' levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The levels without the arrival rate, or without the clients of a closed loop.
    pub levels: Levels,
    /// The points of the curve.
    pub points: Points,
}

/// Batches of raw times by trial id; empty if there are none.
pub type Sampled = BTreeMap<String, Batches>;

/// Returns the points of all combinations, in the order of the cases. Each point has `quantile` in addition to [`QUANTILES`].
pub fn curves(groups: &[CaseTrials<'_>], timer: Timer, quantile: Option<f64>, sampled: &Sampled) -> Vec<Curve> {
    let mut quantiles = QUANTILES.to_vec();
    quantiles.extend(quantile.filter(|wanted| QUANTILES.iter().all(|known| (known - wanted).abs() > 1e-9)));
    quantiles.sort_by(f64::total_cmp);
    // Models describe constant rates: a mean over peaks and lulls is not a point of a model.
    let stays = |case: &&Loaded<'_, '_>| case.group.case.settings.load.profile.is_empty();
    let open = series(groups).into_iter().map(|series| Curve {
        points: Points(
            series.cases.iter().filter(stays).map(|case| open_point(case, timer, &quantiles, sampled)).collect(),
        ),
        levels: series.levels,
    });
    let mut all: Vec<Curve> = open.filter(|curve| !curve.points.0.is_empty()).collect();
    for group in groups.iter().filter(|group| group.case.settings.load.arrivals == Arrivals::Closed) {
        let trials: Vec<&Measurement> = group.valid().collect();
        if trials.is_empty() {
            continue;
        }
        let mut levels = group.case.levels.clone();
        levels.remove(CLIENTS);
        let throughputs: Vec<f64> = trials.iter().map(|trial| trial.throughput_per_s()).collect();
        let workers = Some(group.case.settings.load.clients).filter(|clients| *clients > 0);
        let throughput_per_s = mean(&throughputs);
        let point = Point { workers, throughput_per_s, ..timed(&trials, timer, &quantiles, sampled) };
        match all.iter_mut().find(|curve| curve.levels == levels) {
            Some(curve) => curve.points.0.push(point),
            None => all.push(Curve { levels, points: Points(vec![point]) }),
        }
    }
    all
}

fn open_point(case: &Loaded<'_, '_>, timer: Timer, quantiles: &[f64], sampled: &Sampled) -> Point {
    Point {
        arrival_rate_per_s: Some(case.offered_per_s),
        workers: Some(case.group.case.settings.load.clients),
        throughput_per_s: case.carried_per_s.mean,
        ..timed(&case.trials, timer, quantiles, sampled)
    }
}

/// Returns the kind of times that begin where the timer does.
fn kind(timer: Timer) -> TimeKind {
    if timer == Timer::Intended { TimeKind::ResponseTime } else { TimeKind::ResidenceTime }
}

/// Returns a point with only its times. Quantiles are those of all trials' times together; their errors are over trials.
fn timed(trials: &[&Measurement], timer: Timer, quantiles: &[f64], sampled: &Sampled) -> Point {
    let raw = |trial: &Measurement| sampled.get(&trial.trial.id).map(Batches::all);
    let of_trial = |trial: &&Measurement| raw(trial).unwrap_or_else(|| trial.times(kind(timer)));
    let each: Vec<Histogram> = trials.iter().map(of_trial).filter(|all| all.count() > 0).collect();
    let mut merged = Histogram::new();
    each.iter().for_each(|all| merged.merge(all));
    if merged.count() == 0 {
        return stated(trials, kind(timer), quantiles);
    }
    let means: Vec<f64> = each.iter().map(|all| all.mean_ns() / NS_PER_S).collect();
    // If trials do not differ at all, the spread within them is used instead.
    let over = standard_error(&means);
    let trials_counted = over.and_then(|_| u32::try_from(each.len()).ok());
    let quantile = |quantile: f64| {
        let values: Vec<f64> = each.iter().map(|all| all.quantile_ns(quantile) as f64 / NS_PER_S).collect();
        let value_s = merged.quantile_ns(quantile) as f64 / NS_PER_S;
        let within = || error_of_batches(trials, sampled, |batches| batches.quantile_error_ns(quantile));
        let se_s = if trials_counted.is_some() { standard_error(&values) } else { within() };
        QuantilePoint { quantile, value_s, se_s }
    };
    let of_series = || (timer == Timer::Intended).then(|| standard_error_within(trials)).flatten();
    let within = || error_of_batches(trials, sampled, Batches::mean_error_ns).or_else(of_series);
    Point {
        mean_s: mean(&means).filter(|mean_s| *mean_s > 0.0),
        se_s: over.or_else(within),
        trials: trials_counted,
        quantiles: quantiles.iter().map(|wanted| quantile(*wanted)).filter(|point| point.value_s > 0.0).collect(),
        ..Point::default()
    }
}

/// Returns the standard error of a figure over all trials, from the error within each; `None` unless every trial has one.
fn error_of_batches(
    trials: &[&Measurement],
    sampled: &Sampled,
    error_ns: impl Fn(&Batches) -> Option<f64>,
) -> Option<f64> {
    let of_trial = |trial: &&Measurement| error_ns(sampled.get(&trial.trial.id)?);
    let errors: Vec<f64> = trials.iter().map(of_trial).collect::<Option<_>>()?;
    let variance: f64 = errors.iter().map(|error| error * error).sum();
    Some(variance.sqrt() / errors.len() as f64 / NS_PER_S).filter(|error_s| *error_s > 0.0)
}

/// Returns a point of times that another tool states without a histogram. Stated quantiles apply to one trial, so there are none for several
/// trials together.
fn stated(trials: &[&Measurement], kind: TimeKind, quantiles: &[f64]) -> Point {
    let means: Vec<f64> = trials.iter().filter_map(|trial| trial.mean_s(kind)).collect();
    let quantile = |quantile: &f64| match trials {
        [only] => Some(QuantilePoint { quantile: *quantile, value_s: only.quantile_s(kind, *quantile)?, se_s: None }),
        _ => None,
    };
    Point {
        mean_s: mean(&means).filter(|mean_s| *mean_s > 0.0),
        se_s: standard_error(&means),
        trials: u32::try_from(means.len()).ok().filter(|count| *count >= 2),
        quantiles: quantiles.iter().filter_map(quantile).filter(|point| point.value_s > 0.0).collect(),
        ..Point::default()
    }
}

fn standard_error(values: &[f64]) -> Option<f64> {
    sample_sd(values).map(|sd| sd / (values.len() as f64).sqrt()).filter(|se| *se > 0.0)
}

/// Returns the standard error of the mean response time of all trials, from means over batches of consecutive intervals.
fn standard_error_within(trials: &[&Measurement]) -> Option<f64> {
    let batches: Vec<f64> = trials.iter().flat_map(|trial| batch_means(&trial.series)).collect();
    if batches.len() < BATCHES { None } else { standard_error(&batches) }
}

/// Returns the mean response times of [`BATCHES`] consecutive parts of a trial; fewer if there are not enough intervals.
fn batch_means(series: &[IntervalMeasurement]) -> Vec<f64> {
    let length = series.len().div_ceil(BATCHES).max(1);
    let batch = |intervals: &[IntervalMeasurement]| {
        let count: u64 = intervals.iter().map(|interval| interval.completed).sum();
        let sum: f64 = intervals.iter().map(|interval| interval.completed as f64 * interval.response_time_mean_s).sum();
        (count > 0).then(|| sum / count as f64)
    };
    series.chunks(length).filter_map(batch).collect()
}
