//! Metrics: the figures of a trial that can be compared between cases, by name.
//!
//! A trial gives one value per metric, because the trial is the unit of analysis: a trial's p99 is one observation of that
//! trial. The percentiles that are shown for a case come from merged histograms instead. Invariant: a metric that a
//! trial did not observe has no value, and is never 0 instead.

use crate::histogram::Histogram;
use crate::measurement::{Measurement, ResourceSample};
use crate::units::NS_PER_S;

/// A figure of a trial.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Name as in `metric` of a claim.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    value: fn(&Measurement) -> Option<f64>,
}

/// All metrics.
pub const METRICS: [Metric; 14] = [
    metric("throughput", "operations per second", true, |trial| Some(trial.throughput_per_s())),
    metric("records", "records per second", true, |trial| Some(trial.records_per_s())),
    metric("response_time_mean", "mean response time", false, |trial| times(trial, Histogram::mean_ns)),
    metric("response_time_p50", "median response time", false, |trial| quantile(trial, 0.5)),
    metric("response_time_p90", "response time p90", false, |trial| quantile(trial, 0.9)),
    metric("response_time_p99", "response time p99", false, |trial| quantile(trial, 0.99)),
    metric("response_time_p999", "response time p99.9", false, |trial| quantile(trial, 0.999)),
    metric("server_cpu", "CPUs busy with the server", false, |trial| used(trial, |mean| mean.server_cpu)),
    metric("client_cpu_per_operation", "client CPU time per operation", false, client_cpu_per_operation),
    metric("write_requests", "write requests per second", false, |trial| used(trial, |mean| mean.write_requests_per_s)),
    metric("written_bytes", "bytes written per second", false, |trial| used(trial, |mean| mean.written_bytes_per_s)),
    metric("memory_used", "memory used", false, |trial| used(trial, |mean| mean.memory_used_bytes)),
    metric("iowait", "share of CPU time waiting for disks", false, |trial| used(trial, |mean| mean.iowait)),
    metric("system", "share of CPU time in the kernel", false, |trial| used(trial, |mean| mean.system)),
];

impl Metric {
    /// The metric of a name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The trial's value; none where it was not observed.
    pub fn of(&self, trial: &Measurement) -> Option<f64> {
        (self.value)(trial).filter(|value| value.is_finite())
    }
}

const fn metric(
    name: &'static str,
    title: &'static str,
    more_is_better: bool,
    value: fn(&Measurement) -> Option<f64>,
) -> Metric {
    Metric { name, title, more_is_better, value }
}

/// Response times of all kinds of operation together.
pub fn response_times(trial: &Measurement) -> Histogram {
    let mut all = Histogram::new();
    trial.operations.values().for_each(|operation| all.merge(&operation.response_time));
    all
}

fn times(trial: &Measurement, figure: impl Fn(&Histogram) -> f64) -> Option<f64> {
    let all = response_times(trial);
    (all.count() > 0).then(|| figure(&all) / NS_PER_S)
}

fn quantile(trial: &Measurement, quantile: f64) -> Option<f64> {
    times(trial, |all| all.quantile_ns(quantile) as f64)
}

fn used(trial: &Measurement, figure: impl Fn(&ResourceSample) -> f64) -> Option<f64> {
    trial.resources.as_ref().map(|resources| figure(&resources.mean))
}

fn client_cpu_per_operation(trial: &Measurement) -> Option<f64> {
    let completed = trial.completed();
    (completed > 0).then(|| trial.client_cpu_s / completed as f64)
}
