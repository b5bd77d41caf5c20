//! Monitoring: the resources that the machine, the server and loadline used during a trial, read from `/proc`.
//!
//! Main type: [`Monitor`]. Invariant: readings are counters, so that anything missed between two of them is in the
//! next; monitoring measures its own cost and never fails because a process vanished.

mod counters;
mod disk_speed;
mod disk_sync;
mod environment;
mod others;
mod process;
mod reader;
mod remote;
mod summary;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use disk_speed::disk_speed;
pub use disk_sync::disk_sync;
pub use environment::{environment, machine_cpus};
pub use others::{Others, pids_named};
pub use process::cpu_s_of;
pub use remote::{LINE_BYTES_MOST, Remote, RemoteHost, WatchAddress, check_watcher_name, read_address, serve};

use crate::database::Namespace;
use crate::measurement::{ResourceSample, Resources};
use counters::Counters;
use reader::Reader;

/// The usual time between two readings.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// The time between two readings for trials of a few seconds.
pub const SHORT_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum share of the measured phase for which a remote machine must have been watched.
const WATCHED_LEAST: f64 = 0.9;
/// Maximum number of readings. Beyond it, every second reading is dropped and the interval is doubled: memory does not grow with the length of a run.
const MOST_READINGS: usize = 4096;

/// A function that appends the pids that the server's processes have at the time of the call.
pub type PidSource = Box<dyn FnMut(&mut Vec<u32>) + Send>;

/// The processes whose resources are counted separately from the machine's; loadline's own always are.
pub struct Targets {
    server_pids: Option<PidSource>,
    recorder_pids: Option<PidSource>,
    agent_pids: Option<PidSource>,
    embedded: bool,
    network: Option<(Namespace, &'static str)>,
}

impl Targets {
    /// Targets for a server on another machine: only loadline and the machine.
    pub fn none() -> Self {
        Targets { server_pids: None, recorder_pids: None, agent_pids: None, embedded: false, network: None }
    }

    /// Targets for a server on this machine.
    pub fn server(pids: PidSource) -> Self {
        Targets { server_pids: Some(pids), recorder_pids: None, agent_pids: None, embedded: false, network: None }
    }

    /// Targets for a database inside loadline: CPU and memory of both are loadline's, and bytes that loadline's process
    /// writes count as written by the server.
    pub fn embedded() -> Self {
        Targets { server_pids: None, recorder_pids: None, agent_pids: None, embedded: true, network: None }
    }

    /// Adds the processes between the load and the server, counted separately from both.
    pub fn with_recorder(self, pids: PidSource) -> Self {
        Targets { recorder_pids: Some(pids), ..self }
    }

    /// Adds processes that drive a part of the load: they count as loadline's own.
    pub fn with_agents(self, pids: PidSource) -> Self {
        Targets { agent_pids: Some(pids), ..self }
    }

    /// Counts one interface of another network namespace instead of all of the machine's.
    pub fn on_network(self, namespace: Namespace, interface: &'static str) -> Self {
        Targets { network: Some((namespace, interface)), ..self }
    }
}

/// The result of monitoring on two machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Samples over time.
    pub samples: Vec<ResourceSample>,
    /// Means over the whole time.
    pub resources: Resources,
}

/// The reason why there is no monitoring.
#[derive(Debug, thiserror::Error)]
#[error("cannot monitor: {}: {source}", path.display())]
pub struct MonitorError {
    /// The file that could not be read, or the thread that could not be started.
    path: PathBuf,
    /// The operating system's error.
    source: io::Error,
}

/// A thread that reads the counters at equal intervals until it is stopped. Dropping it stops it.
#[derive(Debug)]
pub struct Monitor {
    thread: Option<JoinHandle<Vec<Counters>>>,
    stop: Arc<AtomicBool>,
}

impl Monitor {
    /// Starts monitoring; the first reading is done on return. An interval below 10 ms becomes 10 ms.
    ///
    /// # Errors
    /// When `/proc` cannot be read or no thread can be started.
    pub fn start(targets: Targets, interval: Duration) -> Result<Monitor, MonitorError> {
        let reader = Reader::new(targets)?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (ready, first) = sync_channel(1);
        let interval = interval.max(Duration::from_millis(10));
        let thread = thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || watch(reader, interval, &seen, &ready))
            .map_err(|source| MonitorError { path: "thread \"monitor\"".into(), source })?;
        // An error means that the thread has ended; stopping it then gives no readings.
        let _ = first.recv();
        Ok(Monitor { thread: Some(thread), stop })
    }

    /// Ends monitoring with a last reading. Returns samples and means from the return of [`Monitor::start`] until now;
    /// `None` if no time has passed.
    pub fn stop(self) -> Option<(Vec<ResourceSample>, Resources)> {
        let readings = self.finish();
        let (from, to) = (readings.first()?.at, readings.last()?.at);
        summary::summarise(&readings, from, to)
    }

    /// Ends monitoring with a last reading. Returns samples and means of the time from `from` to `to`, as far as it was
    /// monitored. Counters at both ends are interpolated between readings. `at_s` counts from `from`. `None` if nothing
    /// of that time was monitored.
    pub fn stop_between(self, from: Instant, to: Instant) -> Option<(Vec<ResourceSample>, Resources)> {
        summary::summarise(&self.finish(), from, to)
    }

    /// Does the same for a server on another machine: the figures of machine and server are that machine's, those of
    /// loadline and the recorder this one's. `None` if nothing of that time was monitored.
    pub fn stop_between_with(self, remote: Remote, from: Instant, to: Instant) -> Option<Watched> {
        let (own, cpus) = (self.finish(), remote.host.cpus);
        let read = remote.finish(to);
        let (first, last) = (own.first()?.at, own.last()?.at);
        let joined = |there: &Counters| {
            let here = summary::counters_at(&own, there.at.clamp(first, last))?;
            Some(Counters { client: here.client, recorder: here.recorder, ..*there })
        };
        let readings: Vec<Counters> = read.counters.iter().filter_map(joined).collect();
        let (samples, resources) = summary::summarise(&readings, from, to)?;
        let others_cpu = read.others_cpu(from, to);
        // If the watcher was lost on the way, its earlier readings say nothing about the whole.
        let is_whole = resources.mean.at_s >= WATCHED_LEAST * (to - from).as_secs_f64();
        let server_unknown = !read.has_server || !is_whole;
        let resources = Resources { others_cpu, cpus: Some(cpus), server_unknown, ..resources };
        Some(Watched { samples, resources })
    }

    fn finish(mut self) -> Vec<Counters> {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Vec<Counters>> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads the counters until stopped; runs in the monitor's thread.
fn watch(mut reader: Reader, mut interval: Duration, stop: &AtomicBool, ready: &SyncSender<()>) -> Vec<Counters> {
    let mut readings = vec![reader.read()];
    // The channel has room for one message, and nobody else sends.
    let _ = ready.send(());
    let mut next = readings[0].at + interval;
    while !stop.load(Ordering::Acquire) {
        let now = Instant::now();
        if now < next {
            thread::park_timeout(next - now);
            continue;
        }
        readings.push(reader.read());
        if readings.len() >= MOST_READINGS {
            thin(&mut readings);
            interval *= 2;
        }
        // Missed readings are not made up for.
        while next <= now {
            next += interval;
        }
    }
    readings.push(reader.read());
    readings
}

/// Drops every second reading, and keeps the first. Counters lose only resolution.
fn thin<T>(readings: &mut Vec<T>) {
    let mut place = 0;
    readings.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_first_reading_and_halves_the_rest() {
        let start = Instant::now();
        let mut readings: Vec<_> = (0..7).map(|second| Counters::zero(start + Duration::from_secs(second))).collect();
        thin(&mut readings);
        let kept: Vec<_> = readings.iter().map(|reading| (reading.at - start).as_secs()).collect();
        assert_eq!(kept, [0, 2, 4, 6]);
    }

    #[test]
    fn a_monitor_that_is_stopped_at_once_still_gives_its_two_readings() {
        let monitor = Monitor::start(Targets::none(), INTERVAL).unwrap();
        let (samples, resources) = monitor.stop().unwrap();
        assert_eq!((samples.len(), resources.samples), (1, 1));
        assert!(resources.mean.at_s > 0.0 && resources.mean.at_s.is_finite());
    }
}
