//! What the one who started the recorder is told of it: that it takes data in, that all its parts move, how it goes. Main type: [`Supervised`].
//!
//! Invariant: a part that is stuck ends the signs of life; a database that is down does not.

use std::time::{Duration, Instant};

use super::record_parts::Parts;
use crate::recorder::log;
use crate::recorder::supervisor::Supervisor;

/// How often it is looked how it goes.
const STATUS_EVERY: Duration = Duration::from_secs(5);
/// Signs of life within the time of one that is asked for.
const SIGNS: u32 = 4;
/// What comes to an end beside the writers, and is not bounded by their time: requests, uploads, the last sync.
const END_MAX: Duration = Duration::from_secs(60);

/// Whoever is told, and what he was told.
pub(super) struct Supervised {
    supervisor: Supervisor,
    is_ready: bool,
    status: String,
    looked: Option<Instant>,
    was_alive: Option<Instant>,
    stuck: Option<String>,
}

impl Supervised {
    pub(super) fn new(supervisor: Supervisor) -> Self {
        let status = String::new();
        Supervised { supervisor, is_ready: false, status, looked: None, was_alive: None, stuck: None }
    }

    /// Tells what there is to tell now.
    pub(super) fn look(&mut self, parts: &Parts) {
        if !self.supervisor.is_there() {
            return;
        }
        if !self.is_ready && parts.takes_in() {
            self.is_ready = true;
            self.status = parts.status();
            self.supervisor.ready(&self.status);
        }
        self.show_life(parts);
        if self.looked.is_none_or(|looked| looked.elapsed() >= STATUS_EVERY) {
            self.looked = Some(Instant::now());
            let status = parts.status();
            if status != self.status {
                self.supervisor.status(&status);
                self.status = status;
            }
        }
    }

    fn show_life(&mut self, parts: &Parts) {
        let Some(within) = self.supervisor.watchdog() else { return };
        if self.was_alive.is_some_and(|was_alive| was_alive.elapsed() < within / SIGNS) {
            return;
        }
        let stuck = parts.stuck(within);
        if stuck.is_none() {
            self.supervisor.alive();
            self.was_alive = Some(Instant::now());
        }
        match (&stuck, &self.stuck) {
            (Some(part), None) => {
                log::error(
                    "a part does not move any more; whoever watches over the recorder is told no more that it does",
                    &[("part", part)],
                );
            }
            (None, Some(_)) => log::info("all parts move again", &[]),
            _ => {}
        }
        self.stuck = stuck;
    }

    /// The configuration is read again now.
    pub(super) fn begin_reload(&self) {
        if self.is_ready {
            self.supervisor.reloading();
        }
    }

    /// That is done.
    pub(super) fn end_reload(&self) {
        if self.is_ready {
            self.supervisor.ready(&self.status);
        }
    }

    /// It comes to an end; its writers may go on for this long.
    pub(super) fn stopping(&self, reason: &str, drain: Duration) {
        self.supervisor.stopping(&format!("stopping: {reason}"), drain + END_MAX);
    }
}
