//! The attendant of a load: watches the machine, and tells instruments and observers when the measured phase begins and ends.
//!
//! Main type: [`Attendant`]. Invariant: it never runs on the load's own threads.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::facts::{processes_of, watched};
use super::front::Front;
use super::instruments::Instrument;
use super::machine::{MachineWatch, interval_of, lasts_s};
use super::stage::Current;
use super::staged_link::StagedLink;
use super::telling::Telling;
use crate::link;
use crate::load::{Changing, Clock, Observer, Recording};
use crate::measurement::{ResourceSample, Resources, Timeline, Told};
use crate::monitor::{Remote, Targets, pids_named};
use crate::server::interrupted;
use crate::trial::Settings;

/// Observations of the machine and the database.
pub(super) struct Attended {
    /// Resource samples over time.
    pub samples: Vec<ResourceSample>,
    /// Mean resource use.
    pub resources: Resources,
    /// Timeline of machine and database on one time axis.
    pub timeline: Option<Timeline>,
}

/// Watches the machine during the measured phase.
pub(super) struct Attendant {
    machine: MachineWatch,
    /// True if the server's processes are unknown.
    server_unknown: bool,
    /// Watches the server's machine if it is a different one.
    remote: Option<Remote>,
    /// Asks the database for its own statistics.
    telling: Option<Telling>,
    /// Start of the measured phase; `None` before it.
    pub begun: Option<Instant>,
    /// Tells the thread next to the load (schema changes or events) that the measured phase begins, and by being dropped that it is over.
    pub evolving: Option<mpsc::Sender<Arc<Changing>>>,
    changing: Option<Arc<Changing>>,
    /// The recording of raw times.
    pub recording: Option<Recording>,
    /// Instruments that measure something besides the operations.
    pub instruments: Vec<Box<dyn Instrument>>,
}

impl Attendant {
    pub fn new(
        current: &Current,
        front: Option<&Front>,
        settings: &Settings,
        evolving: Option<mpsc::Sender<Arc<Changing>>>,
    ) -> anyhow::Result<Self> {
        let servers = servers_of(settings);
        let found = pids_named(servers);
        let server_unknown = settings.database.url.is_some() && found.is_empty();
        let targets = match &current.server {
            Some(server) => Targets::server(server.pid_source()),
            None if !found.is_empty() => Targets::server(Box::new(move |pids| pids.extend(&found))),
            None if front.is_none() && current.target.is_embedded() => Targets::embedded(),
            None => Targets::none(),
        };
        let targets = match front {
            Some(front) => targets.with_recorder(front.pid_source()),
            None => targets,
        };
        let targets = on_link(targets, current.link.as_ref());
        let machine = MachineWatch::new(targets, settings, servers);
        let remote = watched(&settings.database, current.muster.as_deref(), interval_of(settings))?;
        let telling = match lasts_s(settings) {
            Some(seconds) if seconds >= TOLD_FROM_S && front.is_none() => {
                current.target.sql().and_then(|database| Telling::begin(database, told_every(seconds)))
            }
            _ => None,
        };
        Ok(Attendant {
            machine,
            server_unknown,
            remote,
            telling,
            begun: None,
            evolving,
            changing: None,
            recording: None,
            instruments: Vec::new(),
        })
    }

    /// Counts these processes, which drive the load, as loadline's own.
    pub fn watch_agents(&mut self, pids: Vec<u32>) {
        self.machine.add_agents(pids);
    }

    /// Ends watching and returns samples and means of the measured phase, with what the database reported in it.
    pub fn finish(mut self, measured_s: f64) -> Option<Attended> {
        let telling = self.telling.take().zip(self.begun);
        let told = telling.map_or_else(Told::default, |(telling, begun)| telling.finish(begun));
        let (samples, resources) = self.resources(measured_s)?;
        let timeline = Timeline::of(&samples, &resources, &told);
        Some(Attended { samples, resources, timeline })
    }

    fn resources(self, measured_s: f64) -> Option<(Vec<ResourceSample>, Resources)> {
        let is_elsewhere = self.remote.is_some();
        let (samples, resources) = self.machine.finish(self.remote, measured_s)?;
        let server_unknown = if is_elsewhere { resources.server_unknown } else { self.server_unknown };
        Some((samples, Resources { server_unknown, ..resources }))
    }
}

/// Minimum duration of a trial, in seconds, for asking the database for statistics: shorter trials would be disturbed by the queries.
const TOLD_FROM_S: f64 = 2.0;

/// Returns the interval between two queries: a tenth of the trial, but at least 0.5 s and at most 1 s.
fn told_every(seconds: f64) -> Duration {
    Duration::from_secs_f64((seconds / 10.0).clamp(0.5, 1.0))
}

/// Returns the process names of a server on this machine that loadline did not start; empty for a server elsewhere.
fn servers_of(settings: &Settings) -> &'static [&'static str] {
    let is_here = |url: &String| {
        url.starts_with("unix:") || ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| url.contains(host))
    };
    match settings.database.url.as_ref().is_some_and(is_here) {
        true => processes_of(&settings.database.name),
        false => &[],
    }
}

/// Watches the server's end of the network link, if there is a link.
fn on_link(targets: Targets, link: Option<&StagedLink>) -> Targets {
    match link {
        Some(link) => targets.on_network(link.network.server().namespace.clone(), link::WIRE),
        None => targets,
    }
}

impl AsMut<Attendant> for Attendant {
    fn as_mut(&mut self) -> &mut Attendant {
        self
    }
}

impl Observer for Attendant {
    fn measure(&mut self) {
        self.begun = Some(Instant::now());
        self.machine.measure();
        self.instruments.iter_mut().for_each(|instrument| instrument.measure());
        if let (Some(evolving), Some(changing)) = (&self.evolving, &self.changing) {
            // The thread next to the load waits for this and cannot be gone.
            let _ = evolving.send(Arc::clone(changing));
        }
    }

    fn drained(&mut self) {
        self.evolving = None;
        self.machine.drained();
        self.instruments.iter_mut().for_each(|instrument| instrument.drained());
    }

    fn changing(&mut self, clock: Clock) -> Option<Arc<Changing>> {
        self.changing = self.evolving.as_ref().map(|_| Arc::new(Changing::new(clock)));
        self.changing.clone()
    }

    fn is_interrupted(&mut self) -> bool {
        interrupted()
    }

    fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }
}
