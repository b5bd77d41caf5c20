//! Points: from a run's trials to what queueing models are fitted to, one set per combination of the other factors.
//!
//! Main function: [`curves`]. Invariant: a standard error comes from the trials, or from batches within them; it is never
//! assumed.

use crate::histogram::Histogram;
use crate::imported::TimeKind;
use crate::measurement::{IntervalMeasurement, Measurement};
use crate::queueing::{Point, Points, QuantilePoint, Timer};
use crate::report::analyse::CaseTrials;
use crate::report::growth::{Loaded, series};
use crate::statistics::summary::{mean, sample_sd};
use crate::trial::{Arrivals, Levels};
use crate::units::NS_PER_S;

/// Quantiles that every point has.
pub const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The setting that a closed loop's points differ in.
const CLIENTS: &str = "load.clients";
/// Batches within a trial.
const BATCHES: usize = 10;
/// Below this many trials their spread alone is too uncertain for a weight.
const TRIALS_ENOUGH: usize = 5;

/// The points of one combination of the other factors' levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Levels without the arrival rate, or without the clients of a closed loop.
    pub levels: Levels,
    /// The points.
    pub points: Points,
}

/// The points of all combinations, in the order of the cases. `quantile` is given with each point besides [`QUANTILES`].
pub fn curves(groups: &[CaseTrials<'_>], timer: Timer, quantile: Option<f64>) -> Vec<Curve> {
    let mut quantiles = QUANTILES.to_vec();
    quantiles.extend(quantile.filter(|wanted| QUANTILES.iter().all(|known| (known - wanted).abs() > 1e-9)));
    quantiles.sort_by(f64::total_cmp);
    let open = series(groups).into_iter().map(|series| Curve {
        points: Points(series.cases.iter().map(|case| open_point(case, timer, &quantiles)).collect()),
        levels: series.levels,
    });
    let mut all: Vec<Curve> = open.collect();
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
        let point = Point { workers, throughput_per_s, ..timed(&trials, timer, &quantiles) };
        match all.iter_mut().find(|curve| curve.levels == levels) {
            Some(curve) => curve.points.0.push(point),
            None => all.push(Curve { levels, points: Points(vec![point]) }),
        }
    }
    all
}

fn open_point(case: &Loaded<'_, '_>, timer: Timer, quantiles: &[f64]) -> Point {
    Point {
        arrival_rate_per_s: Some(case.offered_per_s),
        workers: Some(case.group.case.settings.load.clients),
        throughput_per_s: case.carried_per_s.mean,
        ..timed(&case.trials, timer, quantiles)
    }
}

/// The times that begin where the timer does.
fn kind(timer: Timer) -> TimeKind {
    if timer == Timer::Intended { TimeKind::ResponseTime } else { TimeKind::ResidenceTime }
}

/// A point with its times alone. Quantiles are those of all trials' times together; their errors are over trials.
fn timed(trials: &[&Measurement], timer: Timer, quantiles: &[f64]) -> Point {
    let means: Vec<f64> = trials.iter().filter_map(|trial| trial.mean_s(kind(timer))).collect();
    if means.is_empty() {
        return Point::default();
    }
    let mut merged = Histogram::new();
    trials.iter().for_each(|trial| merged.merge(&trial.times(kind(timer))));
    let quantile = |quantile: f64| {
        let values: Vec<f64> = trials.iter().filter_map(|trial| trial.quantile_s(kind(timer), quantile)).collect();
        // Quantiles that a tool states without a histogram are those of a trial: of several trials there is none.
        let value_s = match (&values[..], merged.count()) {
            ([only], 0) => *only,
            (_, 0) => return None,
            _ => merged.quantile_ns(quantile) as f64 / NS_PER_S,
        };
        let se_s = standard_error(&values).filter(|_| values.len() >= TRIALS_ENOUGH);
        Some(QuantilePoint { quantile, value_s, se_s })
    };
    let within = || (timer == Timer::Intended).then(|| standard_error_within(trials)).flatten();
    let over = standard_error(&means);
    let se_s = if means.len() < TRIALS_ENOUGH { over.into_iter().chain(within()).reduce(f64::max) } else { over };
    Point {
        mean_s: mean(&means).filter(|mean_s| *mean_s > 0.0),
        se_s,
        quantiles: quantiles
            .iter()
            .filter_map(|wanted| quantile(*wanted))
            .filter(|point| point.value_s > 0.0)
            .collect(),
        ..Point::default()
    }
}

fn standard_error(values: &[f64]) -> Option<f64> {
    sample_sd(values).map(|sd| sd / (values.len() as f64).sqrt()).filter(|se| *se > 0.0)
}

/// The standard error of the mean response time of all trials, from means over batches of consecutive intervals.
fn standard_error_within(trials: &[&Measurement]) -> Option<f64> {
    let batches: Vec<f64> = trials.iter().flat_map(|trial| batch_means(&trial.series)).collect();
    if batches.len() < BATCHES { None } else { standard_error(&batches) }
}

/// Mean response times of [`BATCHES`] consecutive parts of a trial; fewer when there are not enough intervals.
fn batch_means(series: &[IntervalMeasurement]) -> Vec<f64> {
    let length = series.len().div_ceil(BATCHES).max(1);
    let batch = |intervals: &[IntervalMeasurement]| {
        let count: u64 = intervals.iter().map(|interval| interval.completed).sum();
        let sum: f64 = intervals.iter().map(|interval| interval.completed as f64 * interval.response_time_mean_s).sum();
        (count > 0).then(|| sum / count as f64)
    };
    series.chunks(length).filter_map(batch).collect()
}
