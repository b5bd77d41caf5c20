//! Clusters: how private servers of a database become its nodes, and what they are asked.
//!
//! Main type: [`Clustered`]. Invariant: nodes have numbers from 1, in the order in which they are started, and keep them.

use super::Endpoint;
use super::recipe::Recipe;
use crate::trial::DatabaseSettings;

/// How private servers of a database become the nodes of a cluster. Methods return values only; the work is done in `server/`.
pub trait Clustered: Send + Sync {
    /// Returns the number of nodes where a study does not say.
    fn nodes_usual(&self) -> u32;

    /// Returns the maximum number of nodes.
    fn nodes_most(&self) -> u32;

    /// Returns the number of ports that a node needs besides that for clients.
    fn ports(&self) -> usize;

    /// Returns how a node is made and started. `members` are all nodes of the cluster in the order of their numbers. With `again`, the node has been a
    /// member before and is started on its data.
    fn node(&self, number: u32, members: &[Member], again: bool) -> Box<dyn Recipe>;

    /// Returns the query whose answer is 1 or t once the node asked is a member with this number: a replica that is streaming, or a node that has the others' data.
    fn is_member(&self, number: u32) -> &'static str;

    /// Returns the query for the position that the node with the newest data has reached.
    fn position(&self) -> &'static str;

    /// Returns the query whose answer is 1 or t once the node asked has everything up to a position.
    fn has_reached(&self, position: &str) -> String;

    /// Returns in words what an error code means in a cluster; `None` where it means the same as on a server that is alone.
    fn explains(&self, _code: &str) -> Option<&'static str> {
        None
    }

    /// Returns the query for how many transactions the node asked has refused or interrupted because another node had changed the same rows first; `None` where nodes do not
    /// count them.
    fn conflicts(&self) -> Option<&'static str> {
        None
    }

    /// Returns the query that makes a replica the primary and waits until it takes writes; `None` where there are no replicas, because all nodes take writes.
    fn promotes(&self) -> Option<&'static str>;
}

/// A node of a cluster that is being started.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// Free ports of 127.0.0.1 for the node alone, besides that for clients.
    pub ports: Vec<u16>,
    /// The address at which the node takes clients; `None` until it is started.
    pub endpoint: Option<Endpoint>,
}

/// Returns the number of nodes that the settings ask for.
pub fn count_of(settings: &DatabaseSettings, clustered: Option<&dyn Clustered>) -> u32 {
    clustered.map_or(1, |clustered| settings.nodes.unwrap_or_else(|| clustered.nodes_usual()).max(1))
}
