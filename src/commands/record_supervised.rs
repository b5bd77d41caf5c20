//! Reports to the supervisor that started the recorder: it takes data in, all its parts make progress, its status. Main type: [`Supervised`].
//!
//! Invariant: a part that is stuck ends the signs of life; a database that is down does not end them.

use std::time::{Duration, Instant};

use super::record_parts::Parts;
use crate::recorder::log;
use crate::recorder::supervisor::Supervisor;

/// Interval between two status reports.
const STATUS_EVERY: Duration = Duration::from_secs(5);
/// Number of signs of life sent in the time in which one is required.
const SIGNS: u32 = 4;
/// Time for everything at the end that the time of the writers does not bound: requests, uploads, the last sync.
const END_MAX: Duration = Duration::from_secs(60);

/// The supervisor, and what was reported to it.
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

    /// Reports everything that has changed.
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

    /// Reports that the configuration is being read again.
    pub(super) fn begin_reload(&self) {
        if self.is_ready {
            self.supervisor.reloading();
        }
    }

    /// Reports that the reload is complete.
    pub(super) fn end_reload(&self) {
        if self.is_ready {
            self.supervisor.ready(&self.status);
        }
    }

    /// Reports that the recorder is stopping; its writers may take up to `drain`.
    pub(super) fn stopping(&self, reason: &str, drain: Duration) {
        self.supervisor.stopping(&format!("stopping: {reason}"), drain + END_MAX);
    }
}
