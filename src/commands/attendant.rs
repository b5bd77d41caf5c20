//! Who watches the machine while a trial is measured, and tells those who work beside the load when to begin.
//!
//! Main type: [`Attendant`]. Invariant: a machine that cannot be watched makes no trial invalid.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::front::Front;
use super::stage::Current;
use crate::load::{Changing, Clock, Observer, Recording};
use crate::measurement::{ResourceSample, Resources};
use crate::monitor::{self, Monitor, Targets};
use crate::server::interrupted;
use crate::trial::{Length, Settings};

/// Watches the machine during the measured phase.
pub(super) struct Attendant {
    targets: Option<Targets>,
    interval: Duration,
    monitor: Option<(Instant, Monitor)>,
    /// When the measured phase began.
    pub(super) begun: Option<Instant>,
    /// Tells who changes the schema that the measured phase begins, and by being dropped that it is over.
    pub(super) evolving: Option<mpsc::Sender<Arc<Changing>>>,
    changing: Option<Arc<Changing>>,
    pub(super) recording: Option<Recording>,
}

impl Attendant {
    /// For a trial on a database that is there, with what stands in front of it.
    pub fn new(
        current: &Current,
        front: Option<&Front>,
        settings: &Settings,
        evolving: Option<mpsc::Sender<Arc<Changing>>>,
    ) -> Self {
        let targets = match &current.server {
            Some(server) => Targets::server(server.pid_source()),
            None if front.is_none() && current.database.is_embedded() => Targets::embedded(),
            None => Targets::none(),
        };
        let targets = match front {
            Some(front) => targets.with_recorder(front.pid_source()),
            None => targets,
        };
        let is_long = matches!(settings.load.length, Length::Seconds(seconds) if seconds >= 10.0);
        let interval = if is_long { monitor::INTERVAL } else { monitor::SHORT_INTERVAL };
        Attendant {
            targets: Some(targets),
            interval,
            monitor: None,
            begun: None,
            evolving,
            changing: None,
            recording: None,
        }
    }

    /// What was used within the measured phase, which was so long.
    pub fn finish(self, measured_s: f64) -> Option<(Vec<ResourceSample>, Resources)> {
        let (begun, monitor) = self.monitor?;
        monitor.stop_between(begun, begun + Duration::from_secs_f64(measured_s))
    }
}

impl Observer for Attendant {
    fn measure(&mut self) {
        self.begun = Some(Instant::now());
        // A trial whose machine cannot be watched has no resources and is valid all the same.
        let monitor = self.targets.take().and_then(|targets| Monitor::start(targets, self.interval).ok());
        self.monitor = monitor.map(|monitor| (Instant::now(), monitor));
        if let (Some(evolving), Some(changing)) = (&self.evolving, &self.changing) {
            // Who changes the schema waits for this and cannot be gone.
            let _ = evolving.send(Arc::clone(changing));
        }
    }

    fn drained(&mut self) {
        self.evolving = None;
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
