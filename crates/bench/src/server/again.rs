//! What happens to a private server on purpose: its processes stand still or are ended, and it is started again on what is there.
//!
//! Invariant: only processes of the server itself are signalled, each while its identity is confirmed.

use std::time::Duration;

use super::process::{self, ProcessIdentity};
use super::start::Plan;
use super::{STOP_WITHIN, Server, ServerError};
use crate::database::recipe::{Reach, Recipe};
use crate::trial::DatabaseSettings;

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

impl Server {
    /// All of its processes stand still.
    pub fn pause(&self) {
        self.signal_all(libc::SIGSTOP);
    }

    /// They go on.
    pub fn resume(&self) {
        self.signal_all(libc::SIGCONT);
    }

    fn signal_all(&self, signal: i32) {
        self.identities().iter().for_each(|identity| identity.signal(signal));
    }

    pub(super) fn identities(&self) -> Vec<ProcessIdentity> {
        self.pids().into_iter().filter_map(ProcessIdentity::of).collect()
    }

    /// Ends all of its processes at once, as a crash does; when they are gone.
    pub fn kill(&mut self) {
        let identities = self.identities();
        identities.iter().for_each(|identity| identity.signal(libc::SIGKILL));
        if let Some(mut child) = self.child.take() {
            process::end(&mut child, libc::SIGKILL, Duration::ZERO);
        }
        process::wait_until(GONE_WITHIN, || identities.iter().all(|identity| !identity.is_running()));
    }

    /// Stops it in order; false where it had to be ended by force.
    pub fn stop_in_order(&mut self) -> bool {
        self.child.take().is_some_and(|mut child| process::end(&mut child, self.stop_signal, STOP_WITHIN))
    }

    /// Starts it again, where it was and on what is there, and waits until it lets clients in.
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
        // Both kinds of socket are where they were.
        let port = self.endpoint.tcp.as_ref().map_or(0, |(_, port)| *port);
        let child = plan.run_again(&mut self.directory, &self.endpoint.password, self.memory.as_ref(), port)?;
        self.main.set(child.id());
        self.child = Some(child);
        Ok(())
    }
}
