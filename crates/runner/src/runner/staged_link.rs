//! The network link in front of a trial's server or recorder, with its capacity as measured before any load. Main type: [`StagedLink`].

use crate::link::{Network, Wanted};
use crate::measurement::LinkMeasurement;
use crate::trial::{LinkHosts, LinkSettings};
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

/// Returns the wanted network of a link with `connections` connections, each of which may get its own host.
pub fn wanted(link: &LinkSettings, connections: u32) -> Wanted {
    let clients = match link.hosts {
        LinkHosts::Count(count) => count,
        LinkHosts::Each => u16::try_from(connections).unwrap_or(u16::MAX),
    };
    Wanted { clients, server_rate_bits_per_s: link.server_rate_bits_per_s, link: link.clone() }
}
