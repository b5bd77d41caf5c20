//! Deliberate disturbances of a private server: its processes are paused or ended, and it is started again on the existing data.
//!
//! Invariant: only processes of the server itself are signalled, each while its identity is confirmed.

use std::time::Duration;

use super::process::{self, ProcessIdentity};
use super::start::Plan;
use super::{STOP_WITHIN, Server, ServerError};
use crate::database::recipe::{Reach, Recipe};
use crate::trial::DatabaseSettings;

/// How long killed processes may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(10);

impl Server {
    /// Pauses all processes of the server.
    pub fn pause(&self) {
        self.signal_all(libc::SIGSTOP);
    }

    /// Resumes all paused processes.
    pub fn resume(&self) {
        self.signal_all(libc::SIGCONT);
    }

    fn signal_all(&self, signal: i32) {
        self.identities().iter().for_each(|identity| identity.signal(signal));
    }

    pub(super) fn identities(&self) -> Vec<ProcessIdentity> {
        self.pids().into_iter().filter_map(ProcessIdentity::of).collect()
    }

    /// Ends all processes of the server at once, as a crash does, and returns when they are gone.
    pub fn kill(&mut self) {
        let identities = self.identities();
        identities.iter().for_each(|identity| identity.signal(libc::SIGKILL));
        if let Some(mut child) = self.child.take() {
            process::end(&mut child, libc::SIGKILL, Duration::ZERO);
        }
        process::wait_until(GONE_WITHIN, || identities.iter().all(|identity| !identity.is_running()));
    }

    /// Stops the server in order; returns false if it had to be ended by force.
    pub fn stop_in_order(&mut self) -> bool {
        self.child.take().is_some_and(|mut child| process::end(&mut child, self.stop_signal, STOP_WITHIN))
    }

    /// Starts the server again, at the same place and on the existing data, and waits until it accepts clients.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn start_again(
        &mut self,
        reach: &Reach,
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
    ) -> Result<(), ServerError> {
        let plan = Plan::new(recipe, settings, reach)?;
        // The sockets of both kinds stay where they were.
        let port = self.endpoint.tcp.as_ref().map_or(0, |(_, port)| *port);
        let child = plan.run_again(&mut self.directory, &self.endpoint.password, self.memory.as_ref(), port)?;
        self.main.set(child.id());
        self.child = Some(child);
        Ok(())
    }
}
