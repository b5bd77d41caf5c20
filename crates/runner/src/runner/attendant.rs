//! Who attends a load: watches the machine, and tells instruments and others when the measured phase begins and ends.
//!
//! Main type: [`Attendant`]. Invariant: nothing of it is on the load's own threads.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::facts::{processes_of, watched};
use super::front::Front;
use super::instruments::Instrument;
use super::stage::Current;
use super::staged_link::StagedLink;
use super::stolen::stolen_permitted;
use super::telling::Telling;
use crate::link;
use crate::load::{Changing, Clock, Observer, Recording};
use crate::measurement::{ResourceSample, Resources, Timeline, Told};
use crate::monitor::{self, Monitor, Others, Remote, Targets, Watched, machine_cpus, pids_named};
use crate::server::interrupted;
use crate::trial::{Length, Settings};

/// What was seen of machine and database.
pub(super) struct Attended {
    /// Over time.
    pub samples: Vec<ResourceSample>,
    /// On average.
    pub resources: Resources,
    /// Both on one axis.
    pub timeline: Option<Timeline>,
}

/// Watches the machine during the measured phase.
pub(super) struct Attendant {
    targets: Option<Targets>,
    interval: Duration,
    monitor: Option<(Instant, Monitor)>,
    /// Names of the processes of a server that loadline has not started.
    servers: &'static [&'static str],
    /// Whether nothing is known of the server's processes.
    server_unknown: bool,
    /// Watches the server's machine, where that is another one.
    remote: Option<Remote>,
    others: Option<Others>,
    /// Asks the database what it tells of itself.
    telling: Option<Telling>,
    others_cpu: Option<f64>,
    /// When the measured phase began.
    pub begun: Option<Instant>,
    /// Tells who changes the schema that the measured phase begins, and by being dropped that it is over.
    pub evolving: Option<mpsc::Sender<Arc<Changing>>>,
    changing: Option<Arc<Changing>>,
    /// Where raw times go.
    pub recording: Option<Recording>,
    /// What is measured beside the operations.
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
        let is_long = lasts_s(settings).is_some_and(|seconds| seconds >= 10.0);
        let interval = if is_long { monitor::INTERVAL } else { monitor::SHORT_INTERVAL };
        let remote = watched(&settings.database, interval)?;
        let telling = match lasts_s(settings) {
            Some(seconds) if seconds >= TOLD_FROM_S && front.is_none() => {
                current.target.sql().and_then(|database| Telling::begin(database, told_every(seconds)))
            }
            _ => None,
        };
        Ok(Attendant {
            targets: Some(targets),
            interval,
            monitor: None,
            servers,
            server_unknown,
            remote,
            telling,
            others: None,
            others_cpu: None,
            begun: None,
            evolving,
            changing: None,
            recording: None,
            instruments: Vec::new(),
        })
    }

    /// Ends watching: samples and means of the measured phase, and what the database told meanwhile.
    pub fn finish(mut self, measured_s: f64) -> Option<Attended> {
        let telling = self.telling.take().zip(self.begun);
        let told = telling.map_or_else(Told::default, |(telling, begun)| telling.finish(begun));
        let (samples, resources) = self.resources(measured_s)?;
        let timeline = Timeline::of(&samples, &resources, &told);
        Some(Attended { samples, resources, timeline })
    }

    fn resources(self, measured_s: f64) -> Option<(Vec<ResourceSample>, Resources)> {
        let (begun, monitor) = self.monitor?;
        if let Some(remote) = self.remote {
            let end = begun + Duration::from_secs_f64(measured_s);
            let Watched { samples, resources } = monitor.stop_between_with(remote, begun, end)?;
            let stolen_permitted = stolen_permitted().unwrap_or_default();
            return Some((samples, Resources { stolen_permitted, ..resources }));
        }
        let (samples, resources) = monitor.stop_between(begun, begun + Duration::from_secs_f64(measured_s))?;
        let (others_cpu, server_unknown) = (self.others_cpu, self.server_unknown);
        // What is wrong with the variable was said before the first trial.
        let (cpus, stolen_permitted) = (machine_cpus(), stolen_permitted().unwrap_or_default());
        Some((samples, Resources { others_cpu, server_unknown, cpus, stolen_permitted, ..resources }))
    }
}

/// From how many seconds on the database is asked what it tells of itself: shorter trials would see the asking.
const TOLD_FROM_S: f64 = 2.0;

/// How long a trial lasts, where that is known.
fn lasts_s(settings: &Settings) -> Option<f64> {
    match (settings.load.replay, settings.load.length) {
        (Some(replay), _) => Some(replay.lasts_s(settings.load.rate_per_s)),
        (None, Length::Seconds(seconds)) => Some(seconds),
        (None, _) => None,
    }
}

/// How often it is asked: once a second, and ten times in a trial.
fn told_every(seconds: f64) -> Duration {
    Duration::from_secs_f64((seconds / 10.0).clamp(0.5, 1.0))
}

/// Names of the processes of a server at an address of this machine that loadline has not started; none of one elsewhere.
fn servers_of(settings: &Settings) -> &'static [&'static str] {
    let is_here = |url: &String| {
        url.starts_with("unix:") || ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| url.contains(host))
    };
    match settings.database.url.as_ref().is_some_and(is_here) {
        true => processes_of(&settings.database.name),
        false => &[],
    }
}

/// With a link, the network that is watched is the server's end of it.
fn on_link(targets: Targets, link: Option<&StagedLink>) -> Targets {
    match link {
        Some(link) => targets.on_network(link.network.server().namespace.clone(), link::WIRE),
        None => targets,
    }
}

impl Observer for Attendant {
    fn measure(&mut self) {
        self.others = Some(Others::begin(self.servers));
        self.begun = Some(Instant::now());
        // A trial whose machine cannot be watched has no resources and is valid all the same.
        let monitor = self.targets.take().and_then(|targets| Monitor::start(targets, self.interval).ok());
        self.monitor = monitor.map(|monitor| (Instant::now(), monitor));
        self.instruments.iter_mut().for_each(|instrument| instrument.measure());
        if let (Some(evolving), Some(changing)) = (&self.evolving, &self.changing) {
            // Who changes the schema waits for this and cannot be gone.
            let _ = evolving.send(Arc::clone(changing));
        }
    }

    fn drained(&mut self) {
        self.evolving = None;
        self.others_cpu = self.others.take().and_then(Others::end);
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
