//! Links: hosts on one machine, each a network namespace, joined by a switch over links of a set rate and delay, with a
//! real IPsec tunnel if asked for. A server or the recorder runs on one host, and its clients on the others. The nodes of a cluster have hosts of their own if one of them is to be
//! cut off.
//!
//! Main type: [`Network`]. Invariant: nothing of it has a name outside of loadline and nothing is changed in the machine's own network, so that
//! networks cannot collide and none is left behind: namespaces are held open only by loadline and by the processes in them, delay lines are threads
//! of loadline, and the tunnels' daemons end when loadline does.

mod delay;
mod device;
mod hosts;
mod needs;
mod plan;
mod probe;
mod tunnel;

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::database::Namespace;
use crate::database::recipe::Reach;
use crate::measurement::LinkMeasurement;
use crate::server::ServerError;
use crate::trial::LinkSettings;
use delay::DelayLine;
use plan::{HostPlan, NetworkPlan};
use tunnel::Tunnels;

pub use hosts::{check_hosts, open_hosts};
pub use needs::check;
pub use plan::CLIENTS_MAX;
pub use tunnel::SUITES;

/// Name of each host's interface to its link.
pub const WIRE: &str = "wire";

/// The network to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Number of hosts besides the server, each with a link of its own: 1 to [`CLIENTS_MAX`].
    pub clients: u16,
    /// The link of each of these hosts.
    pub link: LinkSettings,
    /// Rate of the server's own link to the switch, in bits per second in each direction; `None` is unlimited.
    pub server_rate_bits_per_s: Option<f64>,
}

/// Hosts and their links. Dropping it removes them once no process is in them any more.
#[derive(Debug)]
pub struct Network {
    /// Ended first, because the daemons use everything else.
    tunnels: Option<Tunnels>,
    /// The threads that carry the frames of links with a delay.
    _delays: Vec<DelayLine>,
    server: Host,
    clients: Vec<Host>,
    /// The switch, which is a bridge in a namespace of its own.
    switch: Namespace,
    /// The port of the switch that the server's link ends at.
    server_port: String,
    wanted: Wanted,
}

/// A host of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The host's network namespace.
    pub namespace: Namespace,
    /// The address at which other hosts reach it: through the tunnel if there is one.
    pub address: Ipv4Addr,
    /// The address on the link itself.
    pub wire_address: Ipv4Addr,
}

/// The end of a host's link at the switch.
#[derive(Debug, Clone)]
pub struct Plug {
    switch: Namespace,
    port: String,
}

impl Plug {
    /// Takes the link from the switch: no frame passes between its host and the other hosts any more. Both ends keep their interfaces, and
    /// learn of it only because nothing arrives, as with a failure somewhere on the way.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn pull(&self) -> Result<(), LinkError> {
        device::run(&self.switch, "ip", &["link", "set", &self.port, "nomaster"])
    }

    /// Gives the link back to the switch.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn put_back(&self) -> Result<(), LinkError> {
        device::run(&self.switch, "ip", &["link", "set", &self.port, "master", plan::SWITCH])
    }
}

/// The reason why there is no link. Messages name the place, the value and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Something that links need is missing on this machine.
    #[error("{setting}: {what}; {remedy}")]
    Missing {
        /// The setting that asks for it.
        setting: &'static str,
        /// What is missing.
        what: String,
        /// How to correct it.
        remedy: String,
    },
    /// The kernel refused an operation.
    #[error("cannot {action}: {source}")]
    System {
        /// The action that was attempted.
        action: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A program failed.
    #[error("{} {arguments} failed: {output}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: String,
        /// The program's output.
        output: String,
    },
    /// The daemon of a tunnel could not be started.
    #[error(transparent)]
    Daemon(#[from] ServerError),
    /// The tunnel did not come up.
    #[error("link.tunnel = \"{tunnel}\": no tunnel came about; {what}")]
    NoTunnel {
        /// The suite that was asked for.
        tunnel: String,
        /// The daemons' messages.
        what: String,
    },
}

impl LinkError {
    /// Adds the action that was attempted to the operating system's error.
    fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> LinkError {
        let action = action.into();
        move |source| LinkError::System { action, source }
    }
}

impl Network {
    /// Makes the hosts and their links, and waits until the tunnels carry packets.
    ///
    /// # Errors
    /// See [`LinkError`]. Nothing is left behind.
    pub fn open(wanted: &Wanted) -> Result<Network, LinkError> {
        check(&wanted.link)?;
        let plan = NetworkPlan::new(wanted);
        let make = || Namespace::create().map_err(LinkError::system("make a network namespace"));
        let switch = device::open_switch()?;
        let mut delays = Vec::new();
        let mut join = |plan: &HostPlan| -> Result<Host, LinkError> {
            let namespace = make()?;
            delays.extend(device::connect(&namespace, &switch, plan)?);
            let (address, wire_address) = (plan.address(), plan.wire_address);
            Ok(Host { namespace, address, wire_address })
        };
        let server = join(&plan.server)?;
        let clients: Vec<Host> = plan.clients.iter().map(&mut join).collect::<Result<_, _>>()?;
        let tunnels = match &wanted.link.tunnel {
            Some(suite) => Some(Tunnels::open(suite, &server, &clients)?),
            None => None,
        };
        let server_port = plan.server.port;
        Ok(Network { tunnels, _delays: delays, server, clients, switch, server_port, wanted: wanted.clone() })
    }

    /// Returns the host for the server.
    pub fn server(&self) -> &Host {
        &self.server
    }

    /// Returns the other hosts.
    pub fn clients(&self) -> &[Host] {
        &self.clients
    }

    /// Returns the plug of the server's link, by which it can be cut from the switch for a while.
    pub fn plug(&self) -> Plug {
        Plug { switch: self.switch.clone(), port: self.server_port.clone() }
    }

    /// Returns how a server on the server's host is reached by clients on the first of the other hosts.
    pub fn reach(&self) -> Reach {
        let clients = self.clients.first().map(|host| host.namespace.clone());
        Reach { namespace: Some(self.server.namespace.clone()), clients, address: self.server.address }
    }

    /// Returns the namespaces of the other hosts, in their order.
    pub fn client_namespaces(&self) -> Vec<Namespace> {
        self.clients.iter().map(|host| host.namespace.clone()).collect()
    }

    /// Returns the pids of the processes that encrypt, for monitoring; empty without a tunnel.
    pub fn pids(&self) -> Vec<u32> {
        self.tunnels.as_ref().map_or_else(Vec::new, Tunnels::pids)
    }

    /// Returns whether the tunnels' daemons are still running.
    pub fn is_up(&self) -> bool {
        self.tunnels.as_ref().is_none_or(Tunnels::is_running)
    }

    /// Measures the rate of the first client's link in both directions, and its round trip. Takes a second or two on
    /// slow links, and less on fast ones.
    ///
    /// # Errors
    /// When no data comes through.
    pub fn measure(&self) -> Result<LinkMeasurement, LinkError> {
        let client = self.clients.first().expect("a network has at least one client");
        let mut seen = probe::measure(client, &self.server, &self.wanted.link)?;
        seen.suite = self.tunnels.as_ref().map(|tunnels| tunnels.negotiated().to_owned());
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_place_value_and_remedy() {
        let error = LinkError::NoTunnel { tunnel: "aes128-sha1".to_owned(), what: "the daemon ended".to_owned() };
        assert_eq!(error.to_string(), "link.tunnel = \"aes128-sha1\": no tunnel came about; the daemon ended");
    }
}
