//! The use of a machine in the measured phase of a trial: its own figures, those of the processes that are told apart, and what others took.
//!
//! Main type: [`MachineWatch`]. Invariant: it never runs on the load's own threads.

use std::time::{Duration, Instant};

use super::stolen::stolen_permitted;
use crate::measurement::{ResourceSample, Resources};
use crate::monitor::{self, Monitor, Others, Remote, Targets, Watched, machine_cpus};
use crate::trial::{Length, Settings};

/// Watches a machine during the measured phase.
pub(super) struct MachineWatch {
    targets: Option<Targets>,
    interval: Duration,
    /// Names of the processes of a server that loadline did not start.
    servers: &'static [&'static str],
    monitor: Option<(Instant, Monitor)>,
    others: Option<Others>,
    others_cpu: Option<f64>,
}

impl MachineWatch {
    /// Prepares to watch this machine, where these processes are told apart.
    pub fn new(targets: Targets, settings: &Settings, servers: &'static [&'static str]) -> Self {
        let interval = interval_of(settings);
        MachineWatch { targets: Some(targets), interval, servers, monitor: None, others: None, others_cpu: None }
    }

    /// Counts these processes, which drive the load, as loadline's own.
    pub fn add_agents(&mut self, pids: Vec<u32>) {
        if !pids.is_empty() {
            let own = move |all: &mut Vec<u32>| all.extend(&pids);
            self.targets = self.targets.take().map(|targets| targets.with_agents(Box::new(own)));
        }
    }

    /// Begins to watch: the measured phase begins.
    pub fn measure(&mut self) {
        self.others = Some(Others::begin(self.servers));
        // A trial whose machine cannot be watched has no resources but is valid.
        let monitor = self.targets.take().and_then(|targets| Monitor::start(targets, self.interval).ok());
        self.monitor = monitor.map(|monitor| (Instant::now(), monitor));
    }

    /// Ends counting what others use: the load is over.
    pub fn drained(&mut self) {
        self.others_cpu = self.others.take().and_then(Others::end);
    }

    /// Ends watching and returns samples and means of the measured phase; with the server's machine, if that is another one, its figures instead of
    /// this machine's. `None` if nothing was watched.
    pub fn finish(self, remote: Option<Remote>, measured_s: f64) -> Option<(Vec<ResourceSample>, Resources)> {
        let (begun, monitor) = self.monitor?;
        let end = begun + Duration::from_secs_f64(measured_s);
        // A wrong value of the variable was reported before the first trial.
        let stolen_permitted = stolen_permitted().unwrap_or_default();
        if let Some(remote) = remote {
            let Watched { samples, resources } = monitor.stop_between_with(remote, begun, end)?;
            return Some((samples, Resources { stolen_permitted, ..resources }));
        }
        let (samples, resources) = monitor.stop_between(begun, end)?;
        let (cpus, others_cpu) = (machine_cpus(), self.others_cpu);
        Some((samples, Resources { others_cpu, cpus, stolen_permitted, ..resources }))
    }
}

/// Returns the interval between two readings in a trial.
pub(super) fn interval_of(settings: &Settings) -> Duration {
    match lasts_s(settings) {
        Some(seconds) if seconds >= 10.0 => monitor::INTERVAL,
        _ => monitor::SHORT_INTERVAL,
    }
}

/// Returns the duration of a trial in seconds, if it is known.
pub(super) fn lasts_s(settings: &Settings) -> Option<f64> {
    match (settings.load.replay, settings.load.length) {
        (Some(replay), _) => Some(replay.lasts_s(settings.load.rate_per_s)),
        (None, Length::Seconds(seconds)) => Some(seconds),
        (None, _) => None,
    }
}
