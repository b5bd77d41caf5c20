//! The network link in front of a trial's server or recorder, with its capacity as measured before any load. Main type: [`StagedLink`].

use crate::database::recipe::Reach;
use crate::link::{Network, Wanted};
use crate::measurement::LinkMeasurement;
use crate::trial::{LinkHosts, RECORDERS_MAX, Settings};
use crate::units::{show_bit_rate, show_seconds};

/// A link, and its capacity as measured before any load.
pub struct StagedLink {
    wanted: Wanted,
    /// The hosts of the link.
    pub network: Network,
    /// The measured capacity of the link.
    pub seen: LinkMeasurement,
}

impl StagedLink {
    /// Makes the link and measures its capacity.
    ///
    /// # Errors
    /// Fails if the link cannot be made or nothing comes through.
    pub fn open(wanted: &Wanted) -> anyhow::Result<StagedLink> {
        let network = Network::open(wanted)?;
        let seen = network.measure()?;
        Ok(StagedLink { wanted: wanted.clone(), network, seen })
    }

    /// Returns how a server on the host of the recorder with this number, from 1, is reached by clients on the first of the hosts; `None` if there is no such host.
    pub fn reach_of(&self, number: u32) -> Option<Reach> {
        // The clients' host is in front of the recorders'.
        let host = self.network.clients().get(usize::try_from(number).ok()?)?;
        let namespace = Some(host.namespace.clone());
        Some(Reach { namespace, address: host.address, ..self.network.reach() })
    }

    /// Returns whether this is the wanted link.
    pub fn is(&self, wanted: &Wanted) -> bool {
        self.wanted == *wanted
    }

    /// Returns a name that distinguishes the link from the other links of a run.
    pub fn name(&self) -> String {
        let Wanted { clients, link, server_rate_bits_per_s } = &self.wanted;
        let rate = |rate: Option<f64>| rate.map_or("unlimited".to_owned(), show_bit_rate);
        let delay = if link.delay_s > 0.0 { format!(", delay {}", show_seconds(link.delay_s)) } else { String::new() };
        let tunnel = link.tunnel.as_ref().map_or(String::new(), |tunnel| format!(", tunnel {tunnel}"));
        let hosts = if *clients > 1 { format!(", {clients} hosts") } else { String::new() };
        let server = server_rate_bits_per_s.map_or(String::new(), |own| format!(", server {}", rate(Some(own))));
        format!("{}{delay}{tunnel}{hosts}{server}", rate(link.rate_bits_per_s))
    }
}

/// Returns the wanted network of a case: the server's host, the clients' hosts, of which each connection may get its own, and behind the first of them those of
/// recorders with hosts of their own. `None` if everything is on this machine's own network.
pub fn wanted(settings: &Settings) -> Option<Wanted> {
    let link = settings.linked()?;
    let clients = match link.hosts {
        LinkHosts::Count(count) => count,
        LinkHosts::Each => u16::try_from(settings.load.clients).unwrap_or(u16::MAX),
    };
    // Cases with another number of recorders have the same network, and so the same server.
    let recorders = if settings.has_recorders_on_hosts() { RECORDERS_MAX } else { 0 };
    let server_rate_bits_per_s = link.server_rate_bits_per_s;
    Some(Wanted { clients: clients.saturating_add(recorders), server_rate_bits_per_s, link: link.into_owned() })
}
