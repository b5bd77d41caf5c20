//! Metrics: the figures of a trial that can be compared between cases, by name.
//!
//! A trial gives one value per metric, because the trial is the unit of analysis: a trial's p99 is one observation of that
//! trial. The percentiles that are shown for a case come from merged histograms instead. Invariant: a metric that a
//! trial did not observe has no value, and is never 0 instead.

use crate::data::sensor_record_bytes;
use crate::histogram::Histogram;
use crate::imported::TimeKind::{self, ResidenceTime, ResponseTime};
use crate::measurement::{GroupMeasurement, Measurement, OperationMeasurement, RecordedMeasurement, ResourceSample};
use crate::report::case_trials::background_name;
use crate::statistics::summary::{Interval, mean, t_interval};
use crate::trial::Arrivals;
use crate::units::{Carried, NS_PER_S, show_bit_rate, show_bytes, show_number, show_seconds};
use TimeFigure::{Mean, Quantile};

/// A figure of a trial.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Name as in `metric` of a claim.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    figure: Figure,
}

/// Where a metric's value comes from.
#[derive(Clone, Copy)]
enum Figure {
    /// The trial as a whole.
    Trial(fn(&Measurement) -> Option<f64>),
    /// Times of all operations, or of one kind of them.
    Times(TimeKind, TimeFigure),
}

/// A figure of times.
#[derive(Clone, Copy)]
enum TimeFigure {
    Mean,
    Quantile(f64),
}

/// All metrics.
pub const METRICS: [Metric; 44] = [
    metric("throughput", "operations per second", true, |trial| Some(trial.throughput_per_s())),
    metric("records", "records per second", true, Measurement::known_records_per_s),
    CONTENT_BYTES,
    metric("stored", "records stored per second", true, |trial| stored(trial, |recorded| recorded.stored_per_s)),
    metric("buffer", "seconds until all was stored", false, |trial| stored(trial, |recorded| recorded.buffer_s)),
    metric("intake", "blocks taken in", true, intake),
    metric("carried_share", "share of what is offered that is taken in", true, carried_share),
    metric("disk_share", "share of the disk's write speed taken in", true, disk_share),
    metric("answer", "longest answer of the recorder", false, |trial| trial.recorded?.answer_max_s),
    metric("execution_time", "execution time per client", false, execution_time),
    times("response_time_mean", "mean response time", ResponseTime, Mean),
    times("response_time_p50", "median response time", ResponseTime, Quantile(0.5)),
    times("response_time_p90", "response time p90", ResponseTime, Quantile(0.9)),
    times("response_time_p99", "response time p99", ResponseTime, Quantile(0.99)),
    times("response_time_p999", "response time p99.9", ResponseTime, Quantile(0.999)),
    times("response_time_max", "longest response time", ResponseTime, Quantile(1.0)),
    times("residence_time_mean", "mean residence time", ResidenceTime, Mean),
    times("residence_time_p50", "median residence time", ResidenceTime, Quantile(0.5)),
    times("residence_time_p90", "residence time p90", ResidenceTime, Quantile(0.9)),
    times("residence_time_p99", "residence time p99", ResidenceTime, Quantile(0.99)),
    times("residence_time_p999", "residence time p99.9", ResidenceTime, Quantile(0.999)),
    times("residence_time_max", "longest residence time", ResidenceTime, Quantile(1.0)),
    // A server whose processes are not known, or which is no process of its own, has used nothing that was counted.
    metric("server_cpu", "CPUs busy with the server", false, |trial| {
        used(trial, |mean| mean.server_cpu).filter(|cpus| *cpus > 0.0)
    }),
    metric("client_cpu", "CPUs busy with loadline", false, |trial| used(trial, |mean| mean.client_cpu)),
    metric("recorder_cpu", "CPUs busy with the recorder", false, recorder_cpu),
    metric("client_cpu_per_operation", "client CPU time per operation", false, client_cpu_per_operation),
    metric("write_requests", "write requests per second", false, |trial| used(trial, |mean| mean.write_requests_per_s)),
    metric("written_bytes", "bytes written per second", false, |trial| used(trial, |mean| mean.written_bytes_per_s)),
    metric("disk_written", "written to the disk beside the load", true, |trial| {
        trial.disk.as_ref().map(|disk| disk.written_bytes_per_s)
    }),
    metric("memory_used", "memory used", false, |trial| used(trial, |mean| mean.memory_used_bytes)),
    metric("iowait", "share of CPU time waiting for disks", false, |trial| used(trial, |mean| mean.iowait)),
    metric("system", "share of CPU time in the kernel", false, |trial| used(trial, |mean| mean.system)),
    metric("event_bytes", "bytes of events per second", true, event_bytes),
    metric("freshness_mean", "mean freshness", false, |trial| {
        seen(trial, |all| Some(all.freshness.mean_ns() / NS_PER_S))
    }),
    metric("freshness_p50", "median freshness", false, |trial| freshness(trial, 0.5)),
    metric("freshness_p90", "freshness p90", false, |trial| freshness(trial, 0.9)),
    metric("freshness_p99", "freshness p99", false, |trial| freshness(trial, 0.99)),
    metric("freshness_p999", "freshness p99.9", false, |trial| freshness(trial, 0.999)),
    metric("freshness_max", "largest freshness", false, |trial| freshness(trial, 1.0)),
    metric("freshness_lost", "share of sightings lost", false, lost),
    metric("user", "share of CPU time in user mode", false, |trial| used(trial, |mean| mean.user)),
    metric("idle", "share of CPU time without work", true, |trial| used(trial, |mean| mean.idle)),
    metric("received_bytes", "bytes received per second", false, |trial| used(trial, |mean| mean.received_bytes_per_s)),
    metric("sent_bytes", "bytes sent per second", false, |trial| used(trial, |mean| mean.sent_bytes_per_s)),
];

/// Bytes of the content of records that are written, per second.
pub const CONTENT_BYTES: Metric =
    metric("content_bytes", "bytes of record content written per second", true, content_bytes);

/// The load line of a case; no figure of a single trial.
pub const LOAD_LINE: Metric = metric("load_line", "load line", true, |_| None);

impl Metric {
    /// The metric of a name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The trial's value; none where it was not observed.
    pub fn of(&self, trial: &Measurement) -> Option<f64> {
        let value = match self.figure {
            Figure::Trial(value) => value(trial),
            Figure::Times(kind, Mean) => trial.mean_s(kind),
            Figure::Times(kind, Quantile(quantile)) => trial.quantile_s(kind, quantile),
        };
        value.filter(|value| value.is_finite())
    }

    /// A quantile of all operations, or sightings, of a case's trials together, as tables and plots show it; none for other figures.
    pub fn of_all(&self, trials: &[&Measurement]) -> Option<f64> {
        let mut all = Histogram::new();
        let quantile = match self.figure {
            Figure::Times(kind, Quantile(quantile)) if trials.iter().all(|trial| trial.imported.is_none()) => {
                trials.iter().for_each(|trial| all.merge(&trial.times(kind)));
                quantile
            }
            _ => {
                let named =
                    [("freshness_p50", 0.5), ("freshness_p90", 0.9), ("freshness_p99", 0.99), ("freshness_max", 1.0)];
                let (_, quantile) = named.into_iter().find(|(name, _)| *name == self.name)?;
                let seen = trials.iter().filter_map(|trial| trial.freshness.as_ref());
                seen.for_each(|seen| all.merge(&seen.all().freshness));
                quantile
            }
        };
        let value_ns = if quantile >= 1.0 { all.max_ns() } else { all.quantile_ns(quantile) };
        (all.count() > 0).then(|| value_ns as f64 / NS_PER_S)
    }

    /// The figure of a case, as in its table, with the interval of its trials' mean where the figure lies within.
    pub fn show_case(&self, trials: &[&Measurement], values: &[f64], interval: Option<Interval>) -> String {
        let mean = mean(values).unwrap_or(f64::NAN);
        let Some(all) = self.of_all(trials) else { return self.show_mean(mean, interval, values.len()) };
        self.show_mean(all, interval.filter(|found| found.low <= all && all <= found.high), values.len())
    }

    /// Whether it is a quantile or the largest of many values of a trial, so that the mean over trials is not that of all values.
    pub fn is_quantile(&self) -> bool {
        let of_sightings = ["freshness_p50", "freshness_p90", "freshness_p99", "freshness_p999", "freshness_max"];
        matches!(self.figure, Figure::Times(_, Quantile(_))) || of_sightings.contains(&self.name)
    }

    /// Whether it is a figure of times, which every kind of operation has its own of.
    pub fn is_time(&self) -> bool {
        matches!(self.figure, Figure::Times(..))
    }

    /// The trial's value for one kind of operation, those that were a part of another one included; none where it was not
    /// observed, or when the metric is no time.
    pub fn of_operation(&self, trial: &Measurement, kind: &str) -> Option<f64> {
        let Figure::Times(time, figure) = self.figure else { return None };
        let mut all = OperationMeasurement::default();
        let beside = trial.background.iter().filter(|(own, _)| background_name(own) == kind).map(|(_, each)| each);
        let own = [&trial.operations, &trial.parts].into_iter().filter_map(|kinds| kinds.get(kind));
        own.chain(beside).for_each(|each| all.merge(each));
        let value = match figure {
            Mean => all.mean_s(time),
            Quantile(quantile) => all.quantile_s(time, quantile),
        };
        value.filter(|value| value.is_finite())
    }

    /// A value without its unit where `unit` gives one, else with it.
    pub fn show(&self, value: f64) -> String {
        match self.name {
            name if name.starts_with("response_time")
                || name.starts_with("residence_time")
                || name == "execution_time"
                || name == "buffer"
                || name == "answer"
                || name == "client_cpu_per_operation" =>
            {
                show_seconds(value)
            }
            "event_bytes" => format!("{} MB/s", show_number(value / 1e6)),
            "freshness_lost" => format!("{} %", show_number(value * 100.0)),
            name if name.starts_with("freshness") => show_seconds(value),
            "intake" => show_bit_rate(8.0 * value),
            "written_bytes" | "disk_written" | "content_bytes" | "received_bytes" | "sent_bytes" => {
                format!("{}/s", show_bytes(value))
            }
            "memory_used" => show_bytes(value),
            "iowait" | "system" | "user" | "idle" | "disk_share" | "carried_share" => format!("{:.1} %", value * 100.0),
            _ => show_number(value),
        }
    }

    /// The unit to be written behind values; empty where they carry it.
    pub fn unit(&self) -> &'static str {
        match self.name {
            "throughput" => " operations/s",
            "records" | "stored" => " records/s",
            "server_cpu" | "client_cpu" | "recorder_cpu" => " CPUs",
            "write_requests" => " requests/s",
            "load_line" => "/s",
            _ => "",
        }
    }

    /// Mean over trials with its interval: `7,512 operations/s [7,301, 7,723], n = 12`, `7.00 ms [6.81 ms, 7.19 ms], n = 12`;
    /// without an interval where there is one trial. No metric can be below 0, and neither can an end of its interval.
    pub fn show_estimate(&self, values: &[f64]) -> String {
        self.show_mean(mean(values).unwrap_or(f64::NAN), t_interval(values, 0.95), values.len())
    }

    /// The same of a mean whose interval is known.
    pub fn show_mean(&self, mean: f64, interval: Option<Interval>, n: usize) -> String {
        let interval = interval.map(|Interval { low, high }| [low, high]);
        let carried = Carried::by(interval);
        let show = |value: f64| carried.show(value, |value| self.show(value));
        let mean = format!("{}{}", show(mean), self.unit());
        match interval {
            Some([low, high]) => {
                let cut = if low < 0.0 { " (cut off)" } else { "" };
                format!("{mean} [{}{cut}, {}], n = {n}", show(low.max(0.0)), show(high))
            }
            None => format!("{mean}, n = {n}"),
        }
    }
}

const fn metric(
    name: &'static str,
    title: &'static str,
    more_is_better: bool,
    value: fn(&Measurement) -> Option<f64>,
) -> Metric {
    Metric { name, title, more_is_better, figure: Figure::Trial(value) }
}

const fn times(name: &'static str, title: &'static str, kind: TimeKind, figure: TimeFigure) -> Metric {
    Metric { name, title, more_is_better: false, figure: Figure::Times(kind, figure) }
}

/// A figure of all sightings; none where nobody looked, or saw nothing.
fn seen(trial: &Measurement, figure: impl Fn(&GroupMeasurement) -> Option<f64>) -> Option<f64> {
    let all = trial.freshness.as_ref()?.all();
    figure(&all).filter(|_| all.freshness.count() > 0)
}

/// The freshness that a share of all sightings stayed below, in seconds.
fn freshness(trial: &Measurement, quantile: f64) -> Option<f64> {
    seen(trial, |all| {
        Some(match quantile {
            1.0 => all.freshness.max_ns() as f64 / NS_PER_S,
            _ => all.freshness.quantile_ns(quantile) as f64 / NS_PER_S,
        })
    })
}

/// Sightings that were missing at the end, as a share of those that there should have been.
fn lost(trial: &Measurement) -> Option<f64> {
    let all = trial.freshness.as_ref()?.all();
    (all.expected > 0).then(|| all.lost as f64 / all.expected as f64)
}

/// Content of the events that were written, in bytes per second.
pub fn event_bytes(trial: &Measurement) -> Option<f64> {
    Some(trial.records_per_s() * trial.freshness.as_ref()?.record_bytes)
}

fn used(trial: &Measurement, figure: impl Fn(&ResourceSample) -> f64) -> Option<f64> {
    trial.resources.as_ref().map(|resources| figure(&resources.mean))
}

/// What the records written have as content, where all have as much: those of the record type `sensor`.
fn content_bytes(trial: &Measurement) -> Option<f64> {
    let settings = &trial.trial.case.settings;
    let bytes = (settings.record.type_name == "sensor").then(|| sensor_record_bytes(&settings.record))?;
    let writes = !trial.operations.is_empty() && trial.operations.keys().all(|kind| kind == "insert");
    trial.known_records_per_s().filter(|_| writes).map(|records_per_s| records_per_s * f64::from(bytes))
}

/// Length of the measured phase over the operations completed in it: the figure of Ruottinen (2015, section 5.2), who has the clients
/// execute as many queries each and divides the time that all of them took by their number.
fn execution_time(trial: &Measurement) -> Option<f64> {
    let completed = trial.completed();
    (completed > 0 && trial.carried.is_none()).then(|| trial.measured_s / completed as f64)
}

/// Bytes of blocks that were acknowledged per second; none where nothing was uploaded.
pub fn intake(trial: &Measurement) -> Option<f64> {
    let block_bytes = trial.recorded.map(|recorded| recorded.block_bytes).filter(|bytes| *bytes > 0.0)?;
    Some(trial.throughput_per_s() * block_bytes)
}

/// What is told of records that became stored; none where they are to wait.
fn stored(trial: &Measurement, figure: fn(&RecordedMeasurement) -> f64) -> Option<f64> {
    trial.recorded.as_ref().filter(|recorded| !recorded.is_kept_waiting).map(figure)
}

/// The intake as a share of what sources offer; none in a closed loop, which offers what is taken in.
fn carried_share(trial: &Measurement) -> Option<f64> {
    let is_open = trial.trial.case.settings.load.arrivals != Arrivals::Closed;
    let offered_per_s = Some(trial.offered_per_s()).filter(|offered| is_open && *offered > 0.0)?;
    Some(intake(trial)? / trial.recorded?.block_bytes / offered_per_s)
}

/// The intake as a share of what the disk took right before the trial.
pub fn disk_share(trial: &Measurement) -> Option<f64> {
    Some(intake(trial)? / trial.recorded?.disk_bytes_per_s?)
}

/// None where nothing is in front of the database.
fn recorder_cpu(trial: &Measurement) -> Option<f64> {
    used(trial, |mean| mean.recorder_cpu).filter(|_| trial.trial.case.settings.recorded().is_some())
}

fn client_cpu_per_operation(trial: &Measurement) -> Option<f64> {
    let completed = trial.completed();
    trial.known_client_cpu_s().filter(|_| completed > 0).map(|cpu_s| cpu_s / completed as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_a_study_may_name_has_figures() {
        for name in crate::study::METRICS {
            assert!(
                *name == LOAD_LINE.name || Metric::named(name).is_some(),
                "claims may name {name}, which no trial has"
            );
        }
        for metric in &METRICS {
            assert!(crate::study::METRICS.contains(&metric.name), "no claim may name {}", metric.name);
        }
    }
}
