//! Links: hosts on one machine, each a network namespace, joined by a switch over links of a set rate and delay, with a real
//! IPsec tunnel if asked for. A server or the recorder runs on one host, who sends to it on the others.
//!
//! Main type: [`Network`]. Invariant: nothing of it has a name outside of loadline and nothing is changed in the machine's own
//! network, so that networks cannot collide and none is left behind: namespaces are held open by loadline and by the processes
//! in them only, delay lines are threads of loadline, and the tunnels' daemons end when loadline does.

mod delay;
mod device;
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

pub use needs::check;
pub use plan::CLIENTS_MAX;
pub use tunnel::SUITES;

/// Name of each host's interface to its link.
pub const WIRE: &str = "wire";

/// What is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Hosts besides the server, each with a link of its own: 1 to [`CLIENTS_MAX`].
    pub clients: u16,
    /// The link of each of them.
    pub link: LinkSettings,
    /// Rate of the server's own link to the switch, bits per second in each direction; none for as much as the machine gives.
    pub server_rate_bits_per_s: Option<f64>,
}

/// Hosts and their links. Dropping it removes them, once nobody else is in them.
#[derive(Debug)]
pub struct Network {
    /// Ended first: they use everything else.
    tunnels: Option<Tunnels>,
    /// Carry the frames of links with a delay.
    _delays: Vec<DelayLine>,
    server: Host,
    clients: Vec<Host>,
    /// The switch, which is a bridge in a namespace of its own.
    _switch: Namespace,
    wanted: Wanted,
}

/// A host of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its network.
    pub namespace: Namespace,
    /// The address that others reach it at: through the tunnel where there is one.
    pub address: Ipv4Addr,
    /// Its address on the link itself.
    pub wire_address: Ipv4Addr,
}

/// Why there is no link. Sentences name the place, the value and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Something that links need is missing on this machine.
    #[error("{setting}: {what}; {remedy}")]
    Missing {
        /// The setting that asks for it.
        setting: &'static str,
        /// What is missing.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The kernel refused something.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// A program failed.
    #[error("{} {arguments} failed: {output}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: String,
        /// What it printed.
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
        /// What the daemons say.
        what: String,
    },
}

impl LinkError {
    /// Puts what was tried to what the operating system says.
    fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> LinkError {
        let action = action.into();
        move |source| LinkError::System { action, source }
    }
}

impl Network {
    /// Makes the hosts and their links, and waits until the tunnels carry.
    ///
    /// # Errors
    /// See [`LinkError`]. Nothing is left behind.
    pub fn open(wanted: &Wanted) -> Result<Network, LinkError> {
        check(&wanted.link)?;
        let plan = NetworkPlan::new(wanted);
        let make = || Namespace::create().map_err(LinkError::system("make a network namespace"));
        let switch = make()?;
        device::quieten(&switch)?;
        // A switch that looks for multicast would join groups, which is traffic that nobody asked for.
        device::run(&switch, "ip", &["link", "add", plan::SWITCH, "type", "bridge", "mcast_snooping", "0"])?;
        device::run(&switch, "ip", &["link", "set", plan::SWITCH, "up"])?;
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
        Ok(Network { tunnels, _delays: delays, server, clients, _switch: switch, wanted: wanted.clone() })
    }

    /// The host that the server is to run on.
    pub fn server(&self) -> &Host {
        &self.server
    }

    /// The other hosts.
    pub fn clients(&self) -> &[Host] {
        &self.clients
    }

    /// Where a server on the server's host listens, with its clients on the first of the others.
    pub fn reach(&self) -> Reach {
        let clients = self.clients.first().map(|host| host.namespace.clone());
        Reach { namespace: Some(self.server.namespace.clone()), clients, address: self.server.address }
    }

    /// The networks of the other hosts, in their order.
    pub fn client_namespaces(&self) -> Vec<Namespace> {
        self.clients.iter().map(|host| host.namespace.clone()).collect()
    }

    /// The processes that encrypt, for monitoring; empty without a tunnel.
    pub fn pids(&self) -> Vec<u32> {
        self.tunnels.as_ref().map_or_else(Vec::new, Tunnels::pids)
    }

    /// Whether the tunnels' daemons run still.
    pub fn is_up(&self) -> bool {
        self.tunnels.as_ref().is_none_or(Tunnels::is_running)
    }

    /// Measures what the link of the first client carries, in both directions, and its round trip. Takes a second or two on slow
    /// links, and less on fast ones.
    ///
    /// # Errors
    /// When nothing comes through.
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
