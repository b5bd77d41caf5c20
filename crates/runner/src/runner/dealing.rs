//! Which nodes of a private server clients and readers connect to.
//!
//! Main functions: [`Current::target_of_clients`] and [`Current::of_readers`]. Invariant: whoever writes is connected to a node that takes writes.

use std::collections::BTreeMap;
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
    /// Waits until all nodes have what was filled, and returns what the clients of the load connect to.
    ///
    /// # Errors
    /// Fails if a node does not get it within the time limit of statements.
    pub(super) fn target_of_clients(&self, settings: &Settings) -> anyhow::Result<Arc<dyn Target>> {
        let Some(nodes) = &self.nodes else { return Ok(Arc::clone(&self.target)) };
        self.await_even_nodes()?;
        let database = &settings.database;
        let reads = settings.freshness.is_none() && database.read_from.is_some();
        let deal = match () {
            () if reads => Deal::Replicas,
            () if database.connect_to.is_some() => Deal::All,
            () => Deal::Primary,
        };
        Ok(Arc::new(nodes.dealt(deal).seeking_another(database.reconnect_to.is_some())))
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

    /// Waits until each node that takes writes has what the others have acknowledged, so that any of them can be asked for all of it.
    ///
    /// # Errors
    /// Fails if a node does not get it within the time limit of statements.
    pub(super) fn await_even_writers(&self) -> anyhow::Result<()> {
        let all_write = self.nodes.as_ref().is_some_and(|nodes| nodes.clustered().promotes().is_none());
        if all_write { self.await_even_nodes() } else { Ok(()) }
    }

    /// Returns errors with their numbers, and in words what they mean in a cluster.
    pub(super) fn explained(&self, errors: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let Some(nodes) = &self.nodes else { return errors.clone() };
        let code = |message: &str| Some(message.strip_suffix(')')?.rsplit_once('(')?.1.to_owned());
        let explained = |message: &String| match code(message).and_then(|code| nodes.clustered().explains(&code)) {
            Some(words) => format!("{words}: {message}"),
            None => message.clone(),
        };
        errors.iter().map(|(message, count)| (explained(message), *count)).collect()
    }

    /// Waits until all nodes have what is committed now.
    ///
    /// # Errors
    /// Fails if a node does not get it within the time limit of statements.
    fn await_even_nodes(&self) -> anyhow::Result<()> {
        let within = self.patience.map_or(EVEN_WITHIN, |Patience(seconds)| Duration::from_secs_f64(seconds));
        Ok(self.nodes.iter().try_for_each(|nodes| nodes.await_even(within, interrupted))?)
    }
}
