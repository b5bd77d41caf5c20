//! The nodes of a private server as one target.
//!
//! Main function: [`open`]. Invariant: a target with nodes is opened only once every node is a member of its cluster.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use super::entry::{open_within_limits, reached_by};
use crate::database::recipe::Reach;
use crate::database::{Endpoint, Entry, Nodes, Target};
use crate::server::{Cluster, interrupted};
use crate::study::Patience;
use crate::trial::DatabaseSettings;

/// How long a node may take to become a member of its cluster once it accepts clients.
pub(super) const MEMBER_WITHIN: Duration = Duration::from_secs(60);

/// Opens the database of the stage: the nodes of a private server if it has several, else the server at the endpoint or the embedded database.
///
/// # Errors
/// Fails if it cannot be opened, or if a node does not become a member of its cluster.
pub(super) fn open(
    entry: &Entry,
    settings: &DatabaseSettings,
    endpoint: Option<&Endpoint>,
    (server, reach): (Option<&Cluster>, &Reach),
    patience: Option<Patience>,
) -> anyhow::Result<(Arc<dyn Target>, Option<Nodes>)> {
    let (Some(clustered), Some(server)) = (entry.clustered, server.filter(|server| server.count() > 1)) else {
        return Ok((open_within_limits(entry, settings, endpoint, patience)?, None));
    };
    let open = |(number, own): (usize, &Endpoint)| {
        // Writes to a replica that has taken over have no other replica to wait for.
        let replication = settings.replication.clone().filter(|_| number == 0);
        let of_node = DatabaseSettings { replication, ..settings.clone() };
        open_within_limits(entry, &of_node, Some(&reached_by(own, settings, reach)), patience)
    };
    let members = server.endpoints().iter().enumerate().map(open).collect::<anyhow::Result<Vec<Arc<dyn Target>>>>()?;
    let nodes = Nodes::new(clustered, members).context("the server has no nodes")?;
    for number in 1..=server.count() {
        nodes.await_member(number, MEMBER_WITHIN, interrupted)?;
    }
    Ok((Arc::new(nodes.clone()), Some(nodes)))
}

/// Returns what a report says of the nodes; `None` for a server that is alone.
pub(super) fn fact(settings: &DatabaseSettings, nodes: Option<&Nodes>, has_hosts: bool) -> Option<(String, String)> {
    let nodes = nodes?;
    let count = nodes.count();
    let how = match nodes.clustered().promotes() {
        Some(_) => {
            let when = settings.replication.as_deref().unwrap_or("asynchronous");
            format!("{count}: a primary, and {when} replication to the others")
        }
        None => format!("{count}, which all take writes"),
    };
    let place = if has_hosts { ", each on a host of its own" } else { "" };
    Some(("nodes".to_owned(), format!("{how}{place}")))
}
