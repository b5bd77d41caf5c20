//! Metrics: the figures of a trial that can be compared between cases, by name.
//!
//! A trial gives one value per metric, because the trial is the unit of analysis: a trial's p99 is one observation of
//! that trial. The percentiles that are shown for a case come from merged histograms instead. Invariant: a metric that
//! a trial did not observe has no value, and is never 0 instead.

use crate::data::sensor_record_bytes;
use crate::histogram::Histogram;
use crate::imported::TimeKind::{self, ResidenceTime, ResponseTime};
use crate::measurement::{Measurement, OperationMeasurement, RecordedMeasurement, ResourceSample};
use crate::statistics::summary::{Interval, mean, t_interval};
use crate::trial::Arrivals;
use crate::units::{Carried, NS_PER_S, show_bit_rate, show_bytes, show_number, show_seconds};
use TimeFigure::{Mean, Quantile};
use Unit::{BitsPerSecond, Bytes, BytesPerSecond, Count, MegabytesPerSecond, Percent, Seconds, Share};

/// A figure of a trial.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Name, as in `metric` of a claim.
    pub name: &'static str,
    /// Name in words, for people.
    pub title: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether larger values are better.
    pub more_is_better: bool,
    figure: Figure,
}

/// The unit of a metric's values, which decides how they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number, with the words after it.
    Count(&'static str),
    /// Seconds, shown in a suitable unit.
    Seconds,
    /// Bytes, shown in a suitable unit.
    Bytes,
    /// Bytes per second, shown in a suitable unit.
    BytesPerSecond,
    /// Bytes per second, shown as bits per second.
    BitsPerSecond,
    /// Bytes per second, shown as millions of bytes per second.
    MegabytesPerSecond,
    /// A share, shown in percent with one digit after the point.
    Share,
    /// A share, shown in percent with all its digits.
    Percent,
}

/// The source of a metric's value.
#[derive(Clone, Copy)]
enum Figure {
    /// A figure of the trial as a whole.
    Trial(fn(&Measurement) -> Option<f64>),
    /// A figure of the times of all operations, or of one kind of them.
    Times(TimeKind, TimeFigure),
    /// A figure of the freshness of all sightings.
    Freshness(TimeFigure),
}

/// A figure of times.
#[derive(Clone, Copy)]
enum TimeFigure {
    Mean,
    Quantile(f64),
}

/// All metrics of trials, one per line: name, title, unit, whether more is better, and how it is computed.
pub const METRICS: [Metric; 45] = [
    metric("throughput", "operations per second", OPERATIONS_PER_S, true, |trial| Some(trial.throughput_per_s())),
    metric("records", "records per second", RECORDS_PER_S, true, Measurement::known_records_per_s),
    CONTENT_BYTES,
    BYTES_PER_RECORD,
    metric("stored", "records stored per second", RECORDS_PER_S, true, |trial| stored(trial, |all| all.stored_per_s)),
    metric("buffer", "seconds until all was stored", Seconds, false, |trial| stored(trial, |all| all.buffer_s)),
    metric("intake", "blocks taken in", BitsPerSecond, true, intake),
    metric("carried_share", "share of what is offered that is taken in", Share, true, carried_share),
    metric("disk_share", "share of the disk's write speed taken in", Share, true, disk_share),
    metric("answer", "longest answer of the recorder", Seconds, false, |trial| trial.recorded.as_ref()?.answer_max_s),
    metric("execution_time", "execution time per client", Seconds, false, execution_time),
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
    metric("server_cpu", "CPUs busy with the server", CPUS, false, server_cpu),
    metric("client_cpu", "CPUs busy with loadline", CPUS, false, Measurement::client_cpus),
    metric("recorder_cpu", "CPUs busy with the recorder", CPUS, false, recorder_cpu),
    metric("client_cpu_per_operation", "client CPU time per operation", Seconds, false, client_cpu_per_operation),
    metric("write_requests", "write requests per second", Count(" requests/s"), false, |trial| {
        used(trial, |mean| mean.write_requests_per_s)
    }),
    metric("written_bytes", "bytes written per second", BytesPerSecond, false, |trial| {
        used(trial, |mean| mean.written_bytes_per_s)
    }),
    metric("disk_written", "written to the disk beside the load", BytesPerSecond, true, |trial| {
        trial.disk.as_ref().map(|disk| disk.written_bytes_per_s)
    }),
    metric("memory_used", "memory used", Bytes, false, |trial| used(trial, |mean| mean.memory_used_bytes)),
    metric("iowait", "share of CPU time waiting for disks", Share, false, |trial| used(trial, |mean| mean.iowait)),
    metric("system", "share of CPU time in the kernel", Share, false, |trial| used(trial, |mean| mean.system)),
    metric("event_bytes", "bytes of events per second", MegabytesPerSecond, true, event_bytes),
    freshness("freshness_mean", "mean freshness", Mean),
    freshness("freshness_p50", "median freshness", Quantile(0.5)),
    freshness("freshness_p90", "freshness p90", Quantile(0.9)),
    freshness("freshness_p99", "freshness p99", Quantile(0.99)),
    freshness("freshness_p999", "freshness p99.9", Quantile(0.999)),
    freshness("freshness_max", "largest freshness", Quantile(1.0)),
    metric("freshness_lost", "share of sightings lost", Percent, false, lost),
    metric("user", "share of CPU time in user mode", Share, false, |trial| used(trial, |mean| mean.user)),
    metric("idle", "share of CPU time without work", Share, true, |trial| used(trial, |mean| mean.idle)),
    metric("received_bytes", "bytes received per second", BytesPerSecond, false, |trial| {
        used(trial, |mean| mean.received_bytes_per_s)
    }),
    metric("sent_bytes", "bytes sent per second", BytesPerSecond, false, |trial| {
        used(trial, |mean| mean.sent_bytes_per_s)
    }),
];

const OPERATIONS_PER_S: Unit = Count(" operations/s");
const RECORDS_PER_S: Unit = Count(" records/s");
const CPUS: Unit = Count(" CPUs");

/// Bytes of content of the records written, per second.
pub const CONTENT_BYTES: Metric =
    metric("content_bytes", "bytes of record content written per second", BytesPerSecond, true, content_bytes);

/// Bytes that tables and indexes take on the disk for each record, right after the trial.
pub const BYTES_PER_RECORD: Metric =
    metric("bytes_per_record", "bytes on disk per record", Bytes, false, |trial| trial.table_size?.bytes_per_record());

/// The load line of a case; it is not a figure of a single trial.
pub const LOAD_LINE: Metric = metric("load_line", "load line", Count("/s"), true, |_| None);

/// Names of all metrics: the values that `metric` of a claim may have.
pub static NAMES: [&str; METRICS.len() + 1] = {
    let mut names = [LOAD_LINE.name; METRICS.len() + 1];
    let mut place = 0;
    while place < METRICS.len() {
        names[place] = METRICS[place].name;
        place += 1;
    }
    names
};

/// Returns the name under which operations of the background load are reported.
pub fn background_name(kind: &str) -> String {
    format!("{kind} beside")
}

impl Metric {
    /// Returns the metric with this name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Returns the trial's value; `None` if it was not observed.
    pub fn of(&self, trial: &Measurement) -> Option<f64> {
        let value = match self.figure {
            Figure::Trial(value) => value(trial),
            Figure::Times(kind, Mean) => trial.mean_s(kind),
            Figure::Times(kind, Quantile(quantile)) => trial.quantile_s(kind, quantile),
            Figure::Freshness(figure) => freshness_s(trial, figure),
        };
        value.filter(|value| value.is_finite())
    }

    /// Returns a quantile over all operations, or sightings, of a case's trials together, as tables and plots show it; `None` for other figures.
    pub fn of_all(&self, trials: &[&Measurement]) -> Option<f64> {
        let mut all = Histogram::new();
        let quantile = match self.figure {
            Figure::Times(kind, Quantile(quantile)) if trials.iter().all(|trial| trial.imported.is_none()) => {
                trials.iter().for_each(|trial| all.merge(&trial.times(kind)));
                quantile
            }
            Figure::Freshness(Quantile(quantile)) => {
                let seen = trials.iter().filter_map(|trial| trial.freshness.as_ref());
                seen.for_each(|seen| all.merge(&seen.all().freshness));
                quantile
            }
            _ => return None,
        };
        let value_ns = if quantile >= 1.0 { all.max_ns() } else { all.quantile_ns(quantile) };
        (all.count() > 0).then(|| value_ns as f64 / NS_PER_S)
    }

    /// Returns the figure of a case, as in its table, with the interval of its trials' mean if the figure lies within it.
    pub fn show_case(&self, trials: &[&Measurement], values: &[f64], interval: Option<Interval>) -> String {
        let mean = mean(values).unwrap_or(f64::NAN);
        let Some(all) = self.of_all(trials) else { return self.show_mean(mean, interval, values.len()) };
        self.show_mean(all, interval.filter(|found| found.low <= all && all <= found.high), values.len())
    }

    /// Returns whether the metric is a quantile or the largest of many values of a trial, so that the mean over trials is not the figure of all values.
    pub fn is_quantile(&self) -> bool {
        matches!(self.figure, Figure::Times(_, Quantile(_)) | Figure::Freshness(Quantile(_)))
    }

    /// Returns whether the metric is a figure of times, so that each kind of operation has its own.
    pub fn is_time(&self) -> bool {
        matches!(self.figure, Figure::Times(..))
    }

    /// Returns the trial's value for one kind of operation, also for a kind that was part of another one; `None` if it
    /// was not observed, or if the metric is not a time.
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

    /// Returns a value, without its unit if [`Metric::unit_behind`] gives one.
    pub fn show(&self, value: f64) -> String {
        match self.unit {
            Count(_) => show_number(value),
            Seconds => show_seconds(value),
            Bytes => show_bytes(value),
            BytesPerSecond => format!("{}/s", show_bytes(value)),
            BitsPerSecond => show_bit_rate(8.0 * value),
            MegabytesPerSecond => format!("{} MB/s", show_number(value / 1e6)),
            Share => format!("{:.1} %", value * 100.0),
            Percent => format!("{} %", show_number(value * 100.0)),
        }
    }

    /// Returns the unit to be written after values; empty if the values include it.
    pub fn unit_behind(&self) -> &'static str {
        match self.unit {
            Count(unit) => unit,
            _ => "",
        }
    }

    /// Returns the mean over trials with its interval: `7,512 operations/s [7,301, 7,723], n = 12`, `7.00 ms [6.81 ms, 7.19 ms], n = 12`; without an
    /// interval for a single trial. No metric can be below 0, and neither can an end of its interval.
    pub fn show_estimate(&self, values: &[f64]) -> String {
        self.show_mean(mean(values).unwrap_or(f64::NAN), t_interval(values, 0.95), values.len())
    }

    /// Returns the same for a mean whose interval is known.
    pub fn show_mean(&self, mean: f64, interval: Option<Interval>, n: usize) -> String {
        let interval = interval.map(|Interval { low, high }| [low, high]);
        let carried = Carried::by(interval);
        let show = |value: f64| carried.show(value, |value| self.show(value));
        let mean = format!("{}{}", show(mean), self.unit_behind());
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
    unit: Unit,
    more_is_better: bool,
    value: fn(&Measurement) -> Option<f64>,
) -> Metric {
    Metric { name, title, unit, more_is_better, figure: Figure::Trial(value) }
}

const fn times(name: &'static str, title: &'static str, kind: TimeKind, figure: TimeFigure) -> Metric {
    Metric { name, title, unit: Seconds, more_is_better: false, figure: Figure::Times(kind, figure) }
}

const fn freshness(name: &'static str, title: &'static str, figure: TimeFigure) -> Metric {
    Metric { name, title, unit: Seconds, more_is_better: false, figure: Figure::Freshness(figure) }
}

/// Returns the freshness of all sightings, in seconds; `None` if nobody looked, or saw nothing.
fn freshness_s(trial: &Measurement, figure: TimeFigure) -> Option<f64> {
    let seen = trial.freshness.as_ref()?.all().freshness;
    let value_ns = match figure {
        Mean => seen.mean_ns(),
        Quantile(1.0) => seen.max_ns() as f64,
        Quantile(quantile) => seen.quantile_ns(quantile) as f64,
    };
    (seen.count() > 0).then(|| value_ns / NS_PER_S)
}

/// Returns the sightings that were missing at the end, as a share of those expected.
fn lost(trial: &Measurement) -> Option<f64> {
    let all = trial.freshness.as_ref()?.all();
    (all.expected > 0).then(|| all.lost as f64 / all.expected as f64)
}

/// Returns the content of the events that were written, in bytes per second.
pub fn event_bytes(trial: &Measurement) -> Option<f64> {
    Some(trial.records_per_s() * trial.freshness.as_ref()?.record_bytes)
}

fn used(trial: &Measurement, figure: impl Fn(&ResourceSample) -> f64) -> Option<f64> {
    trial.resources.as_ref().map(|resources| figure(&resources.mean))
}

/// Returns the content of the records written, in bytes, if all records have equally much: those of the record type `sensor`.
fn content_bytes(trial: &Measurement) -> Option<f64> {
    let settings = &trial.trial.case.settings;
    let bytes = (settings.record.type_name == "sensor").then(|| sensor_record_bytes(&settings.record))?;
    let writes = !trial.operations.is_empty() && trial.operations.keys().all(|kind| kind == "insert");
    trial.known_records_per_s().filter(|_| writes).map(|records_per_s| records_per_s * f64::from(bytes))
}

/// Returns the length of the measured phase divided by the operations completed in it: the figure of Ruottinen (2015, section 5.2), where each client
/// executes equally many queries and the time that all of them took is divided by their number.
fn execution_time(trial: &Measurement) -> Option<f64> {
    let completed = trial.completed();
    (completed > 0 && trial.carried.is_none()).then(|| trial.measured_s / completed as f64)
}

/// Returns the bytes of acknowledged blocks per second; `None` if nothing was uploaded.
pub fn intake(trial: &Measurement) -> Option<f64> {
    let block_bytes = trial.recorded.as_ref().map(|recorded| recorded.block_bytes).filter(|bytes| *bytes > 0.0)?;
    Some(trial.throughput_per_s() * block_bytes)
}

/// Returns a figure of the records that became stored; `None` if records are left to wait.
fn stored(trial: &Measurement, figure: fn(&RecordedMeasurement) -> f64) -> Option<f64> {
    trial.recorded.as_ref().filter(|recorded| !recorded.is_kept_waiting).map(figure)
}

/// Returns the intake as a share of what sources offer; `None` in a closed loop, which offers what is taken in.
fn carried_share(trial: &Measurement) -> Option<f64> {
    let is_open = trial.trial.case.settings.load.arrivals != Arrivals::Closed;
    let offered_per_s = Some(trial.offered_per_s()).filter(|offered| is_open && *offered > 0.0)?;
    Some(intake(trial)? / trial.recorded.as_ref()?.block_bytes / offered_per_s)
}

/// Returns the intake as a share of the rate that the disk took right before the trial.
pub fn disk_share(trial: &Measurement) -> Option<f64> {
    Some(intake(trial)? / trial.recorded.as_ref()?.disk_bytes_per_s?)
}

/// Returns the server's CPU time; `None` if its processes are not known, or if it is not a process of its own.
fn server_cpu(trial: &Measurement) -> Option<f64> {
    used(trial, |mean| mean.server_cpu).filter(|cpus| *cpus > 0.0)
}

/// Returns the recorder's CPU time; `None` if nothing is in front of the database.
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
    fn every_metric_has_one_name_and_one_title() {
        for what in [|metric: &Metric| metric.name, |metric: &Metric| metric.title] {
            let mut all: Vec<&str> = METRICS.iter().chain([&LOAD_LINE]).map(what).collect();
            all.sort_unstable();
            let count = all.len();
            all.dedup();
            assert_eq!(all.len(), count);
        }
        assert!(NAMES.iter().all(|name| *name == LOAD_LINE.name || Metric::named(name).is_some()));
    }

    #[test]
    fn values_are_shown_in_their_units() {
        let show = |name: &str, value: f64| {
            let metric = Metric::named(name).unwrap();
            metric.show(value) + metric.unit_behind()
        };
        assert_eq!(show("throughput", 7_512.0), "7,512 operations/s");
        assert_eq!(show("residence_time_p99", 0.0125), "12.5 ms");
        assert_eq!(show("iowait", 0.5), "50.0 %");
        assert_eq!(show("intake", 1e6), "8 Mbit/s");
    }
}
