//! From counters to rates: samples of intervals, and means over exactly the requested time.
//!
//! Invariant: means come from the counters at both ends of the time, never from the mean of samples.

use std::time::Instant;

use super::counters::{Counters, MachineCpu, ProcessCounters};
use crate::measurement::{ResourceSample, Resources};

/// Returns the samples between `from` and `to`, whose first and last intervals may be shorter than the others, and the means over the whole time.
/// Counters are assumed to grow evenly between two readings. `None` without two readings, or if no time passed.
pub(super) fn summarise(readings: &[Counters], from: Instant, to: Instant) -> Option<(Vec<ResourceSample>, Resources)> {
    let (earliest, latest) = (readings.first()?.at, readings.last()?.at);
    let (from, to) = (from.max(earliest), to.min(latest));
    if from >= to {
        return None;
    }
    let mut points = vec![counters_at(readings, from)?];
    points.extend(readings.iter().filter(|reading| reading.at > from && reading.at < to));
    points.push(counters_at(readings, to)?);
    let samples: Vec<_> = points.windows(2).map(|pair| sample(&pair[0], &pair[1], from)).collect();
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let mut mean = sample(first, last, from);
    let level = |of: fn(&Counters) -> u64| mean_level(&points, of);
    mean.memory_used_bytes = level(|counters| counters.memory_used_bytes);
    mean.server_memory_bytes = level(|counters| counters.server.memory_bytes);
    mean.recorder_memory_bytes = level(|counters| counters.recorder.memory_bytes);
    mean.client_memory_bytes = level(|counters| counters.client.memory_bytes);
    let monitor_cpu_s = last.monitor_cpu_ns.saturating_sub(first.monitor_cpu_ns) as f64 * 1e-9;
    let resources = Resources { mean, samples: samples.len() as u32, monitor_cpu_s, ..Resources::default() };
    Some((samples, resources))
}

/// Returns the counters at a time between two readings; `None` outside of all readings.
pub(super) fn counters_at(readings: &[Counters], at: Instant) -> Option<Counters> {
    let next = readings.partition_point(|reading| reading.at < at);
    let after = readings.get(next)?;
    if after.at == at {
        return Some(*after);
    }
    let before = readings.get(next.checked_sub(1)?)?;
    let share = (at - before.at).as_secs_f64() / (after.at - before.at).as_secs_f64();
    let between = |of: fn(&Counters) -> u64| {
        let (low, high) = (of(before) as f64, of(after) as f64);
        // Added to the lower reading, so that large counters lose no precision; levels may fall.
        if high >= low {
            of(before) + ((high - low) * share).round() as u64
        } else {
            of(before) - ((low - high) * share).round() as u64
        }
    };
    let process = |of: [fn(&Counters) -> u64; 3]| {
        let [cpu_ns, written_bytes, memory_bytes] = of.map(between);
        ProcessCounters { cpu_ns, written_bytes, memory_bytes }
    };
    Some(Counters {
        at,
        machine: MachineCpu {
            user: between(|counters| counters.machine.user),
            system: between(|counters| counters.machine.system),
            iowait: between(|counters| counters.machine.iowait),
            idle: between(|counters| counters.machine.idle),
            stolen: between(|counters| counters.machine.stolen),
        },
        context_switches: between(|counters| counters.context_switches),
        write_requests: between(|counters| counters.write_requests),
        written_bytes: between(|counters| counters.written_bytes),
        received_bytes: between(|counters| counters.received_bytes),
        sent_bytes: between(|counters| counters.sent_bytes),
        memory_used_bytes: between(|counters| counters.memory_used_bytes),
        server: process([|c| c.server.cpu_ns, |c| c.server.written_bytes, |c| c.server.memory_bytes]),
        recorder: process([|c| c.recorder.cpu_ns, |c| c.recorder.written_bytes, |c| c.recorder.memory_bytes]),
        client: process([|c| c.client.cpu_ns, |c| c.client.written_bytes, |c| c.client.memory_bytes]),
        monitor_cpu_ns: between(|counters| counters.monitor_cpu_ns),
    })
}

/// Returns the rates between two readings, and the levels at the later one.
fn sample(first: &Counters, last: &Counters, start: Instant) -> ResourceSample {
    let seconds = (last.at - first.at).as_secs_f64();
    let grown = |of: fn(&Counters) -> u64| of(last).saturating_sub(of(first)) as f64;
    let times: [fn(&Counters) -> u64; 5] =
        [|c| c.machine.user, |c| c.machine.system, |c| c.machine.iowait, |c| c.machine.idle, |c| c.machine.stolen];
    // The kernel's times of idle CPUs may fall for a moment: what has grown is the whole. An interval shorter than a clock tick may contain none.
    let ticks: f64 = times.iter().map(|of| grown(*of)).sum();
    let share = |of: fn(&Counters) -> u64| if ticks > 0.0 { grown(of) / ticks } else { 0.0 };
    let per_s = |of: fn(&Counters) -> u64| if seconds > 0.0 { grown(of) / seconds } else { 0.0 };
    ResourceSample {
        at_s: (last.at - start).as_secs_f64(),
        user: share(|counters| counters.machine.user),
        system: share(|counters| counters.machine.system),
        iowait: share(|counters| counters.machine.iowait),
        idle: share(|counters| counters.machine.idle),
        stolen: share(|counters| counters.machine.stolen),
        server_cpu: per_s(|counters| counters.server.cpu_ns) * 1e-9,
        recorder_cpu: per_s(|counters| counters.recorder.cpu_ns) * 1e-9,
        client_cpu: per_s(|counters| counters.client.cpu_ns) * 1e-9,
        write_requests_per_s: per_s(|counters| counters.write_requests),
        written_bytes_per_s: per_s(|counters| counters.written_bytes),
        server_written_bytes_per_s: per_s(|counters| counters.server.written_bytes),
        memory_used_bytes: last.memory_used_bytes as f64,
        server_memory_bytes: last.server.memory_bytes as f64,
        recorder_memory_bytes: last.recorder.memory_bytes as f64,
        client_memory_bytes: last.client.memory_bytes as f64,
        received_bytes_per_s: per_s(|counters| counters.received_bytes),
        sent_bytes_per_s: per_s(|counters| counters.sent_bytes),
        context_switches_per_s: per_s(|counters| counters.context_switches),
    }
}

/// Returns the mean over time of a level that is assumed to change evenly between readings.
fn mean_level(points: &[Counters], of: fn(&Counters) -> u64) -> f64 {
    let (mut area, mut seconds) = (0.0, 0.0);
    for pair in points.windows(2) {
        let length = (pair[1].at - pair[0].at).as_secs_f64();
        area += (of(&pair[0]) as f64 + of(&pair[1]) as f64) / 2.0 * length;
        seconds += length;
    }
    if seconds > 0.0 { area / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Makes readings at these milliseconds; each counter has the given value times a factor of its own.
    fn readings(points: &[(u64, u64)]) -> (Instant, Vec<Counters>) {
        let start = Instant::now();
        let reading = |(at_ms, value): &(u64, u64)| Counters {
            machine: MachineCpu { user: value * 2, system: *value, iowait: 0, idle: *value, stolen: 0 },
            write_requests: *value,
            written_bytes: value * 512,
            memory_used_bytes: value * 10,
            server: ProcessCounters { cpu_ns: value * 1_000_000, written_bytes: *value, memory_bytes: 7 },
            monitor_cpu_ns: *value,
            ..Counters::zero(start + Duration::from_millis(*at_ms))
        };
        (start, points.iter().map(reading).collect())
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-6 * right.abs().max(1.0)
    }

    #[test]
    fn means_come_from_both_ends_and_not_from_samples() {
        // A long quiet interval and a short busy one: the mean of samples would be 525 per second.
        let (start, readings) = readings(&[(0, 0), (1000, 50), (1100, 150)]);
        let (samples, resources) = summarise(&readings, start, start + Duration::from_millis(1100)).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(close(samples[0].write_requests_per_s, 50.0) && close(samples[1].write_requests_per_s, 1000.0));
        assert!(close(resources.mean.write_requests_per_s, 150.0 / 1.1));
        assert!(close(resources.mean.server_cpu, 0.150 / 1.1));
        assert!(close(resources.mean.user, 0.5) && close(resources.mean.idle, 0.25));
        assert!(close(resources.mean.memory_used_bytes, (250.0 + 100.0) / 1.1));
        assert!(close(resources.mean.server_memory_bytes, 7.0));
        assert_eq!(resources.samples, 2);
    }

    #[test]
    fn a_time_inside_of_the_readings_is_cut_out_exactly() {
        let (start, readings) = readings(&[(0, 0), (1000, 1000), (2000, 1000), (3000, 4000)]);
        let from = start + Duration::from_millis(500);
        let (samples, resources) = summarise(&readings, from, start + Duration::from_millis(2500)).unwrap();
        assert_eq!(samples.len(), 3);
        assert!(close(samples[0].at_s, 0.5) && close(samples[2].at_s, 2.0));
        assert!(close(resources.mean.write_requests_per_s, (500.0 + 1500.0) / 2.0));
        assert!(close(resources.monitor_cpu_s, 2000e-9));
    }

    #[test]
    fn without_time_between_readings_there_is_no_summary() {
        let (start, readings) = readings(&[(0, 0), (1000, 50)]);
        assert_eq!(summarise(&readings, start + Duration::from_secs(2), start + Duration::from_secs(3)), None);
        assert_eq!(summarise(&readings, start, start), None);
        assert_eq!(summarise(&readings[..1], start, start + Duration::from_secs(1)), None);
        assert_eq!(summarise(&[], start, start + Duration::from_secs(1)), None);
    }

    #[test]
    fn shares_of_time_are_a_whole_though_the_time_of_idle_cpus_falls() {
        let (start, mut readings) = readings(&[(0, 0), (1000, 100)]);
        (readings[0].machine.idle, readings[1].machine.idle) = (1002, 1000);
        let (_, resources) = summarise(&readings, start, start + Duration::from_secs(1)).unwrap();
        assert!(close(resources.mean.user, 2.0 / 3.0) && close(resources.mean.system, 1.0 / 3.0));
        assert!(close(resources.mean.idle, 0.0));
    }

    #[test]
    fn a_level_that_falls_is_followed() {
        let (start, mut readings) = readings(&[(0, 0), (1000, 0)]);
        (readings[0].memory_used_bytes, readings[1].memory_used_bytes) = (1000, 0);
        let middle = counters_at(&readings, start + Duration::from_millis(250)).unwrap();
        assert_eq!(middle.memory_used_bytes, 750);
    }
}
