//! Events that happen to the server during the measurement: `[[events]]`.
//!
//! Main type: [`Happening`]. Invariant: the server is always given back, never left paused, on a slow or full disk, with a cut link or cut off; if it does not come back, the
//! reason is reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::entry::entry_of;
use super::members::MEMBER_WITHIN;
use super::stage::Current;
use super::unanswered::Counted;
use crate::database::Nodes;
use crate::database::recipe::{Reach, Recipe};
use crate::link::Plug;
use crate::load::{Changing, Observed};
use crate::measurement::{EventMeasurement, EventsMeasurement, Measurement};
use crate::random::derive;
use crate::server::{Cluster, Faults, PowerDisk, Server, interrupted};
use crate::study::plan::private_server;
use crate::trial::{DatabaseSettings, EventKind, EventSettings, Trial};

/// Names of the events in the load engine, which assigns operations to them by these names.
const NAMES: [&str; 16] = [
    "event 1", "event 2", "event 3", "event 4", "event 5", "event 6", "event 7", "event 8", "event 9", "event 10",
    "event 11", "event 12", "event 13", "event 14", "event 15", "event 16",
];

/// Longest wait after an event, at the end of a load, for the first completed operation.
const HEARD_WITHIN: Duration = Duration::from_millis(200);

/// A server with the events that happen to it.
pub struct Happening {
    server: Cluster,
    /// The nodes of the server, if it has several.
    nodes: Option<Nodes>,
    recipe: &'static dyn Recipe,
    reach: Reach,
    /// The server's own settings.
    own: DatabaseSettings,
    events: Vec<EventSettings>,
    /// The plug of the link in front of the server, if there is one.
    plug: Option<Plug>,
    /// The seed of what a power cut keeps by chance.
    seed: u64,
}

/// The events that have happened, with the server.
pub struct Happened {
    server: Cluster,
    events: Vec<EventMeasurement>,
    silences_s: BTreeMap<String, f64>,
}

impl Happening {
    /// Takes the server of a trial until its events are over; returns `None` if the study has no events.
    ///
    /// # Errors
    /// Fails if there is no server that loadline started.
    pub fn take(trial: &Trial, current: &mut Current) -> anyhow::Result<Option<Self>> {
        let settings = &trial.case.settings;
        if settings.events.is_empty() {
            return Ok(None);
        }
        let entry = entry_of(&settings.database)?;
        let recipe = entry.recipe.context("events need a server that loadline has started")?;
        let reach = current.reach_of_front();
        let own = private_server(&settings.database).unwrap_or_else(|| settings.database.clone());
        let server = current.server.take().context("events need a server that loadline has started")?;
        let plug = current.link.as_ref().map(|link| link.network.plug());
        let (nodes, events, seed) = (current.nodes.clone(), settings.events.clone(), trial.seed);
        Ok(Some(Happening { server, nodes, recipe, reach, own, events, plug, seed }))
    }

    /// Waits for the measured phase and makes the events happen until the load is over.
    pub fn run(mut self, begins: &Receiver<Arc<Changing>>) -> Happened {
        let mut events = Vec::new();
        let Ok(changing) = begins.recv() else {
            return Happened { server: self.server, events, silences_s: Default::default() };
        };
        let (begun, begun_ns) = (Instant::now(), changing.now_ns());
        for (event, name) in std::mem::take(&mut self.events).iter().zip(NAMES) {
            let due = begun + Duration::from_secs_f64(event.at_s);
            if !is_waited(begins, due) {
                break;
            }
            let start_ns = changing.begin(name);
            let outcome = self.happen(event, begins);
            let end_ns = changing.end();
            let (unsynced, error) = match outcome {
                Ok(unsynced) => (unsynced, None),
                Err(error) => (None, Some(error)),
            };
            let is_gone = error.is_some();
            events.push(EventMeasurement {
                what: event.what.name().to_owned(),
                node: self.nodes.as_ref().map(|_| event.node),
                start_s: start_ns.saturating_sub(begun_ns) as f64 / 1e9,
                away_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
                error,
                unsynced,
                ..EventMeasurement::default()
            });
            if is_gone {
                break;
            }
        }
        // Wait until the load is over, so that the silence after the last event is known.
        while is_waited(begins, Instant::now() + HEARD_WITHIN) {}
        Happened { server: self.server, events, silences_s: changing.silences_s() }
    }

    /// Makes an event happen. Returns the number of unsynced blocks and names after a power cut; fails with the reason if the server did not come back.
    fn happen(&mut self, event: &EventSettings, begins: &Receiver<Arc<Changing>>) -> Result<Option<u64>, String> {
        let back = Instant::now() + Duration::from_secs_f64(event.lasts_s);
        let lasts = || is_waited(begins, back);
        let mut unsynced = None;
        match event.what {
            EventKind::Kill => self.node(event)?.kill(),
            EventKind::Stop => drop(self.node(event)?.stop_in_order()),
            EventKind::Promote => {
                self.server.leave(event.node);
                self.node(event)?.kill();
                lasts();
                let nodes = self.nodes.as_ref().ok_or("the server has one node")?;
                let number = event.node + 1;
                nodes.promote(number).map_err(|error| error.to_string())?;
                self.server.take_over(number, nodes.clustered());
                return Ok(None);
            }
            EventKind::CutPower => {
                let seed = derive(self.seed, event.at_s.to_bits());
                let away = || {
                    lasts();
                };
                let lost = self.node(event)?.cut_power(event.keeps, seed, away).map_err(|error| error.to_string())?;
                unsynced = Some(lost.unsynced());
            }
            EventKind::Pause => {
                let node = self.node(event)?;
                node.pause();
                lasts();
                node.resume();
            }
            EventKind::SlowDisk => {
                let sync_takes = Duration::from_secs_f64(event.sync_takes_s);
                with_disk(self.node(event)?, Faults { sync_takes, ..Faults::default() }, lasts)?;
            }
            EventKind::FullDisk => {
                let room = self.node(event)?.disk().map(PowerDisk::used_bytes);
                with_disk(self.node(event)?, Faults { room, ..Faults::default() }, lasts)?;
            }
            EventKind::CutLink => {
                let plug = self.plug.as_ref().ok_or("there is no link in front of the server")?;
                plug.pull().map_err(|error| error.to_string())?;
                lasts();
                plug.put_back().map_err(|error| error.to_string())?;
            }
            EventKind::CutNode => {
                let host = self.server.host(event.node).ok_or("the nodes have no hosts of their own")?;
                let plug = Plug::of_node(host);
                plug.pull().map_err(|error| error.to_string())?;
                lasts();
                plug.put_back().map_err(|error| error.to_string())?;
            }
        }
        if event.what.leaves_the_server() {
            if self.node(event)?.is_running() {
                return self.await_joined(event).map(|()| None);
            }
            // Some servers end when their disk is full.
            self.node(event)?.kill();
        } else {
            lasts();
        }
        let again = self.server.start_again(event.node, &self.reach, self.recipe, &self.own);
        again.map_err(|error| error.to_string())?;
        let is_back = |nodes: &Nodes| nodes.await_member(event.node, MEMBER_WITHIN, interrupted);
        self.nodes.as_ref().map_or(Ok(()), is_back).map_err(|error| error.to_string())?;
        Ok(unsynced)
    }

    /// Waits until the nodes are one cluster again if one of them was cut off.
    fn await_joined(&self, event: &EventSettings) -> Result<(), String> {
        let nodes = self.nodes.as_ref().filter(|_| event.what == EventKind::CutNode);
        // A connection that survives continues up to as long after the cut as the cut took.
        let within = MEMBER_WITHIN + Duration::from_secs_f64(event.lasts_s);
        let joined = nodes.map(|nodes| nodes.await_joined(within, interrupted));
        joined.unwrap_or(Ok(())).map_err(|error| error.to_string())
    }

    /// Returns the node that an event happens to.
    fn node(&mut self, event: &EventSettings) -> Result<&mut Server, String> {
        let number = event.node;
        self.server.node_mut(number).ok_or_else(|| format!("the server has no node {number}"))
    }
}

/// Gives a server's disk faults until `lasts` returns.
fn with_disk(server: &Server, faults: Faults, lasts: impl Fn() -> bool) -> Result<(), String> {
    server.set_disk_faults(faults).map_err(|error| error.to_string())?;
    lasts();
    server.set_disk_faults(Faults::default()).map_err(|error| error.to_string())
}

/// Waits until a time and returns whether the load is still running.
fn is_waited(begins: &Receiver<Arc<Changing>>, until: Instant) -> bool {
    match begins.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Err(RecvTimeoutError::Timeout) => true,
        Ok(_) | Err(RecvTimeoutError::Disconnected) => false,
    }
}

impl Happened {
    /// Gives the server back and returns the events.
    pub fn give_back(self, current: &mut Current) -> Events {
        (current.server, current.is_spent) = (Some(self.server), true);
        Events { events: self.events, silences_s: self.silences_s }
    }
}

/// The events that happened to a server.
pub struct Events {
    events: Vec<EventMeasurement>,
    silences_s: BTreeMap<String, f64>,
}

impl Events {
    /// Returns the form of the events that is stored.
    pub fn measured(mut self, measurement: &Measurement, observed: &Observed, counted: Counted) -> EventsMeasurement {
        let workload = &measurement.trial.case.settings.workload;
        let mut parts = observed.tally.asides.parts(&workload.kind_names());
        for (event, name) in self.events.iter_mut().zip(NAMES) {
            event.intended = parts.remove(name).unwrap_or_default();
            event.gap_s = self.silences_s.get(name).copied();
        }
        let open: u64 = measurement.operations.values().map(|seen| seen.failed + seen.abandoned).sum();
        let most = open * u64::from(workload.batch.max(1));
        let (acknowledged, found) = counted.stored.unzip();
        let (unknown, unknown_found) = counted.unanswered.map_or((most, None), |(sent, found)| (sent, Some(found)));
        EventsMeasurement { events: self.events, acknowledged, found, unknown, unknown_found }
    }
}
