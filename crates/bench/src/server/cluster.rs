//! Private servers that form a cluster: started one after another, and always ended together.
//!
//! Main type: [`Cluster`]. Invariant: a node has the same number, place and port for as long as the cluster lives, and nodes end in the reverse order of their
//! start: a primary would wait for a replica that stands still.

use std::io;
use std::path::Path;

use super::port::HeldPort;
use super::start::{Source, start};
use super::{KeptData, PidSource, PowerDisk, Server, ServerError};
use crate::database::recipe::{Reach, Recipe};
use crate::database::{Clustered, Endpoint, Member, NodeHost, count_of};
use crate::trial::DatabaseSettings;

/// A private server of one or several nodes. Dropping it stops all of them and removes their directories.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
}

/// A node: a server, and how it is started again.
struct Node {
    server: Server,
    /// How it is started again; `None` for a server that is alone, whose recipe the caller has.
    again: Option<Box<dyn Recipe>>,
    /// Whether it was ended on purpose and does not come back.
    is_left: bool,
    /// Its own host, if it has one. It is given up after the server has ended.
    host: Option<NodeHost>,
    /// Where it listens to other nodes.
    _ports: Vec<HeldPort>,
}

impl Node {
    fn alone(server: Server) -> Self {
        Node { server, again: None, is_left: false, host: None, _ports: Vec::new() }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.server.fmt(formatter)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        while let Some(node) = self.nodes.pop() {
            drop(node);
        }
    }
}

impl Cluster {
    /// Starts the nodes that the settings ask for, each with a directory of its own, and waits until each accepts clients. Each is on the one of `hosts` that
    /// has its place; without hosts, all are where `reach` says. A server that is alone continues with `kept` data, as in [`Server::start_with`].
    ///
    /// # Errors
    /// See [`ServerError`]. Nothing is left behind.
    pub fn start(
        (reach, hosts): (&Reach, &[NodeHost]),
        (recipe, clustered): (&dyn Recipe, Option<&dyn Clustered>),
        settings: &DatabaseSettings,
        parent: Option<&Path>,
        kept: Option<&KeptData>,
    ) -> Result<Cluster, ServerError> {
        let count = count_of(settings, clustered);
        let Some(clustered) = clustered.filter(|_| count > 1) else {
            let server = start(recipe, settings, parent, kept.map_or(Source::New, Source::Kept), reach)?;
            return Ok(Cluster { nodes: vec![Node::alone(server)] });
        };
        let host = |number: u32| hosts.get(number.saturating_sub(1) as usize);
        let held = (1..=count).map(|_| (0..clustered.ports()).map(|_| HeldPort::take()).collect());
        let held = held.collect::<Result<Vec<Vec<HeldPort>>, ServerError>>()?;
        let mut members: Vec<Member> =
            (1..=count).zip(&held).map(|(number, ports)| member(ports, host(number))).collect();
        let mut cluster = Cluster { nodes: Vec::new() };
        for (number, ports) in (1..=count).zip(held) {
            let own = host(number).map(NodeHost::reach);
            let reach = own.as_ref().unwrap_or(reach);
            let recipe = clustered.node(number, &members, false);
            // All nodes have the accounts of the first one.
            let first = cluster.nodes.first().map(|node| node.server.endpoint().password.clone());
            let source = first.as_deref().map_or(Source::New, Source::Copied);
            let server =
                start(&*recipe, settings, parent, source, reach).map_err(|error| of_node(error, number, count))?;
            if let Some(member) = members.get_mut(number as usize - 1) {
                member.endpoint = Some(server.endpoint().clone());
            }
            let again = Some(clustered.node(number, &members, true));
            cluster.nodes.push(Node { server, again, is_left: false, host: host(number).cloned(), _ports: ports });
        }
        Ok(cluster)
    }

    /// Attaches the disk that the first node's data is on.
    #[must_use]
    pub fn on(mut self, disk: PowerDisk) -> Self {
        let nodes = std::mem::take(&mut self.nodes);
        let mut disk = Some(disk);
        let attach = |node: Node| match disk.take() {
            Some(disk) => Node { server: node.server.on(disk), ..node },
            None => node,
        };
        self.nodes = nodes.into_iter().map(attach).collect();
        self
    }

    /// Returns the first node.
    pub fn first(&self) -> Option<&Server> {
        self.nodes.first().map(|node| &node.server)
    }

    /// Returns the node with a number, from 1.
    pub fn node(&self, number: u32) -> Option<&Server> {
        self.nodes.get(number.checked_sub(1)? as usize).map(|node| &node.server)
    }

    /// Returns the node with a number, from 1, mutably.
    pub fn node_mut(&mut self, number: u32) -> Option<&mut Server> {
        self.nodes.get_mut(number.checked_sub(1)? as usize).map(|node| &mut node.server)
    }

    /// Returns the host of the node with a number, from 1; `None` if it has none of its own.
    pub fn host(&self, number: u32) -> Option<&NodeHost> {
        self.nodes.get(number.checked_sub(1)? as usize)?.host.as_ref()
    }

    /// Returns the number of nodes.
    pub fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Starts a node again, at the same place and on the existing data, and waits until it accepts clients. `recipe` and `reach` are those of a
    /// server that is alone.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn start_again(
        &mut self,
        number: u32,
        reach: &Reach,
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
    ) -> Result<(), ServerError> {
        let Some(node) = self.nodes.get_mut(number.saturating_sub(1) as usize) else { return Ok(()) };
        let own = node.host.as_ref().map(NodeHost::reach);
        let reach = own.as_ref().unwrap_or(reach);
        node.server.start_again(reach, node.again.as_deref().unwrap_or(recipe), settings)
    }

    /// Notes that a node was ended on purpose and does not come back.
    pub fn leave(&mut self, number: u32) {
        self.nodes.iter_mut().skip(number.saturating_sub(1) as usize).take(1).for_each(|node| node.is_left = true);
    }

    /// Notes that a node has become the primary, as which it is started again from now on.
    pub fn take_over(&mut self, number: u32, clustered: &dyn Clustered) {
        if let Some(node) = self.nodes.get_mut(number.saturating_sub(1) as usize) {
            node.again = Some(clustered.node(number, &[], true));
        }
    }

    fn expected(&self) -> impl Iterator<Item = &Server> {
        self.nodes.iter().filter(|node| !node.is_left).map(|node| &node.server)
    }

    /// Returns the addresses of the nodes and the account that may log in, in the order of their numbers.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.nodes.iter().map(|node| node.server.endpoint().clone()).collect()
    }

    /// Returns a function for monitoring that appends the pids of all nodes as they are at each call.
    pub fn pid_source(&self) -> PidSource {
        let mut sources: Vec<PidSource> = self.nodes.iter().map(|node| node.server.pid_source()).collect();
        Box::new(move |pids| sources.iter_mut().for_each(|source| source(pids)))
    }

    /// Returns the messages of the nodes' logs about settings to which a node gave another value than asked for, each once.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.nodes.iter().flat_map(|node| node.server.warnings().iter().cloned()).collect();
        warnings.sort();
        warnings.dedup();
        warnings
    }

    /// Returns whether all nodes are running, except those that were ended on purpose and do not come back.
    pub fn is_running(&self) -> bool {
        self.expected().all(Server::is_running)
    }

    /// Waits for at most ten seconds until a node that does not answer has ended, and returns whether one has.
    pub fn ends_now(&self) -> bool {
        super::wait_until(super::ENDED_WITHIN, || !self.is_running())
    }

    /// Returns how many processes of the nodes the system has ended because they exceeded the memory limit.
    pub fn ended_for_memory(&self) -> u64 {
        self.nodes.iter().map(|node| node.server.ended_for_memory()).sum()
    }

    /// Returns whether the data of the first node is on a disk that can lose its power.
    pub fn can_lose_power(&self) -> bool {
        self.first().is_some_and(Server::can_lose_power)
    }

    /// Returns the last lines of the log that report errors, of the first node that ended by itself, or else of the first node.
    pub fn log_lines(&self) -> String {
        let ended = self.expected().find(|server| !server.is_running());
        ended.or(self.first()).map(Server::log_lines).unwrap_or_default()
    }

    /// Stops a server that is alone in order, and moves or copies its data; see [`Server::stop_and_keep`]. The data of a cluster are discarded.
    ///
    /// # Errors
    /// When the data cannot be moved or copied.
    pub fn stop_and_keep(mut self, to: &Path) -> io::Result<Option<String>> {
        match self.nodes.pop() {
            Some(node) if self.nodes.is_empty() => node.server.stop_and_keep(to),
            _ => Ok(None),
        }
    }
}

/// Returns an error with the number of the node; that of the first one is the cluster's.
fn of_node(error: ServerError, number: u32, count: u32) -> ServerError {
    match number {
        1 => error,
        _ => ServerError::Node { number, count, source: Box::new(error) },
    }
}

/// Returns a node that is not started yet, with its ports. On a host of its own, all ports are free.
fn member(ports: &[HeldPort], host: Option<&NodeHost>) -> Member {
    Member { ports: ports.iter().map(HeldPort::number).collect(), host: host.map(|host| host.address), endpoint: None }
}
