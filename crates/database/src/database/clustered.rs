//! Clusters: how private servers of a database become its nodes, and what they are asked.
//!
//! Main types: [`Clustered`], and [`Node`] with [`NodeRecipe`], which starts one of them. Invariant: nodes have numbers from 1, in the order in which they are started, and keep them.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::recipe::{CommandLine, Reach, Readiness, Recipe};
use super::{Endpoint, Namespace};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// How private servers of a database become the nodes of a cluster. Methods return values only; the work is done in `server/`.
pub trait Clustered: Send + Sync {
    /// Returns the maximum number of nodes.
    fn nodes_most(&self) -> u32;

    /// Returns the number of ports that a node needs besides that for clients.
    fn ports(&self) -> usize;

    /// Returns how a node is made and started. `members` are all nodes of the cluster in the order of their numbers. With `again`, the node has been a
    /// member before and is started on its data.
    fn node(&self, number: u32, members: &[Member], again: bool) -> Box<dyn Recipe>;

    /// Returns the question whose answer is 1 or t once the node asked is a member: the primary, a replica that receives what the primary writes, or a node that has the others' data. It
    /// and the other questions are put by [`TargetSession::ask`](super::TargetSession::ask).
    fn is_member(&self, is_primary: bool) -> &'static str;

    /// Returns the question whose answer is 1 or t once the primary has this number of replicas; `None` where it is enough that these say so.
    fn has_replicas(&self, _count: u32) -> Option<String> {
        None
    }

    /// Returns the question for the position that the node with the newest data has reached.
    fn position(&self) -> &'static str;

    /// Returns the question whose answer is 1 or t once the node asked has everything up to a position.
    fn has_reached(&self, position: &str) -> String;

    /// Returns in words what an error code means in a cluster; `None` where it means the same as on a server that is alone.
    fn explains(&self, _code: &str) -> Option<&'static str> {
        None
    }

    /// Returns the question how many transactions the node asked has refused or interrupted because another node had changed the same rows first; `None` where nodes do not
    /// count them.
    fn conflicts(&self) -> Option<&'static str> {
        None
    }

    /// Returns the setting because of which a node that ends comes back without its data, in words; `None` where it has them. A primary that comes back so empties its replicas.
    fn forgets_at_its_end(&self, _settings: &DatabaseSettings) -> Option<String> {
        None
    }

    /// Returns the question that makes a replica the primary; it is answered with 1 or t once the replica takes writes. `None` where there are no replicas, because all nodes take writes.
    fn promotes(&self) -> Option<&'static str>;
}

/// What is different about a node. Everything else is as for a server that is alone.
pub trait Node: Send + Sync {
    /// Returns how a server that is alone is started.
    fn alone(&self) -> &'static dyn Recipe;

    /// Returns the files that the commands need, as [`Recipe::files`] does.
    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        self.alone().files(password, reach)
    }

    /// Returns the commands that make the data directory, as [`Recipe::initialise`] does.
    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine>;

    /// Returns the command that runs the node, as [`Recipe::start`] does.
    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine;
}

/// The recipe of a node.
#[derive(Debug)]
pub struct NodeRecipe<N>(pub N);

impl<N: Node> Recipe for NodeRecipe<N> {
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        self.0.alone().find_binary(settings)
    }

    fn users(&self) -> &'static [&'static str] {
        self.0.alone().users()
    }

    fn encryptions(&self) -> &'static [&'static str] {
        self.0.alone().encryptions()
    }

    fn has_tls(&self) -> bool {
        self.0.alone().has_tls()
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        self.0.alone().reserved_settings()
    }

    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        self.0.files(password, reach)
    }

    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine> {
        self.0.initialise(binary, directory, user)
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        self.0.start(binary, directory, port, settings, reach)
    }

    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
        self.0.alone().endpoint(directory, port, settings, reach)
    }

    fn hello(&self, endpoint: &Endpoint) -> Vec<u8> {
        self.0.alone().hello(endpoint)
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        self.0.alone().readiness(answer)
    }

    fn stop_signal(&self) -> i32 {
        self.0.alone().stop_signal()
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        self.0.alone().facts()
    }
}

/// A node of a cluster that is being started.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// Free ports of the node's address for the node alone, besides that for clients.
    pub ports: Vec<u16>,
    /// The address at which other nodes reach it if it is on a host of its own; `None` for 127.0.0.1.
    pub host: Option<Ipv4Addr>,
    /// The address at which the node takes clients; `None` until it is started.
    pub endpoint: Option<Endpoint>,
}

impl Member {
    /// Returns the address at which other nodes reach the node.
    pub fn address(&self) -> Ipv4Addr {
        self.host.unwrap_or(Ipv4Addr::LOCALHOST)
    }
}

/// The host of a node alone. Other nodes reach it over a switch, from which it can be cut off. Clones are the same host, which is there as long as one of them is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHost {
    /// The host's network namespace.
    pub namespace: Namespace,
    /// The address at which other nodes reach it.
    pub address: Ipv4Addr,
    /// The network namespace of the switch.
    pub switch: Namespace,
    /// Name of the port of the switch that the host's link ends at.
    pub port: String,
}

impl NodeHost {
    /// Returns how clients reach the node: from its own host, so that they still do when it is cut off from the others.
    pub fn reach(&self) -> Reach {
        let own = Some(self.namespace.clone());
        Reach { namespace: own.clone(), clients: own, address: Ipv4Addr::LOCALHOST }
    }
}

/// Returns the number of nodes that the settings ask for.
pub fn count_of(settings: &DatabaseSettings, clustered: Option<&dyn Clustered>) -> u32 {
    clustered.and(settings.nodes).map_or(1, |nodes| nodes.max(1))
}
