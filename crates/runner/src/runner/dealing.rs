//! Which nodes of a private server clients and readers connect to.
//!
//! Main functions: [`Current::target_of_clients`] and [`Current::of_readers`]. Invariant: whoever writes is connected to a node that takes writes.

use std::sync::Arc;
use std::time::Duration;

use super::entry::reached_by;
use super::opening::Opening;
use super::stage::Current;
use crate::database::recipe::Reach;
use crate::database::{Deal, Target};
use crate::server::interrupted;
use crate::study::Patience;
use crate::trial::Settings;

/// How long nodes may take for what was filled where connections have no time limits.
const EVEN_WITHIN: Duration = Duration::from_secs(300);

impl Current {
    fn dealt(&self, deal: Deal) -> Arc<dyn Target> {
        match &self.nodes {
            Some(nodes) => Arc::new(nodes.dealt(deal)),
            None => Arc::clone(&self.target),
        }
    }

    /// Returns what the clients of the load connect to.
    pub(super) fn target_of_clients(&self, settings: &Settings) -> Arc<dyn Target> {
        let reads = settings.freshness.is_none() && settings.database.read_from.is_some();
        self.dealt(if reads { Deal::Replicas } else { Deal::Primary })
    }

    /// Returns what the readers of the workload `freshness` connect to, and the data with which another process opens it.
    pub(super) fn of_readers(&self, settings: &Settings, group: u32) -> (Arc<dyn Target>, Opening) {
        let opening = self.reach();
        let (Some(nodes), Some(server), true) = (&self.nodes, &self.server, settings.database.read_from.is_some())
        else {
            return (Arc::clone(&self.target), opening);
        };
        // All readers of a group are on one node, as those of one reading computer would be.
        let number = nodes.dealt(Deal::Replicas).node_of(group);
        let own = server.node(number).map(|node| reached_by(node.endpoint(), &settings.database, &Reach::LOOPBACK));
        (Arc::new(nodes.dealt(Deal::Node(number))), Opening { endpoint: own, ..opening })
    }

    /// Waits until all nodes have what is committed now.
    ///
    /// # Errors
    /// Fails if a node does not get it within the time limit of statements.
    pub(super) fn await_even_nodes(&self) -> anyhow::Result<()> {
        let within = self.patience.map_or(EVEN_WITHIN, |Patience(seconds)| Duration::from_secs_f64(seconds));
        Ok(self.nodes.iter().try_for_each(|nodes| nodes.await_even(within, interrupted))?)
    }
}
