//! The link that lies before a trial's server or recorder, and what it carried before anything else was on it. Main type: [`StagedLink`].

use crate::link::{Network, Wanted};
use crate::measurement::LinkMeasurement;
use crate::trial::{LinkHosts, LinkSettings};
use crate::units::{show_bit_rate, show_seconds};

/// A link, and what it carried before anything else was on it.
pub struct StagedLink {
    wanted: Wanted,
    /// The hosts.
    pub network: Network,
    /// What was measured.
    pub seen: LinkMeasurement,
}

impl StagedLink {
    /// Makes it, and measures what it carries.
    ///
    /// # Errors
    /// When it cannot be made, or nothing comes through.
    pub fn open(wanted: &Wanted) -> anyhow::Result<StagedLink> {
        let network = Network::open(wanted)?;
        let seen = network.measure()?;
        Ok(StagedLink { wanted: wanted.clone(), network, seen })
    }

    /// Whether it is the link that is wanted.
    pub fn is(&self, wanted: &Wanted) -> bool {
        self.wanted == *wanted
    }

    /// What tells it apart from the other links of a run.
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

/// The network of a link whose settings may ask for a host for each of so many connections.
pub fn wanted(link: &LinkSettings, connections: u32) -> Wanted {
    let clients = match link.hosts {
        LinkHosts::Count(count) => count,
        LinkHosts::Each => u16::try_from(connections).unwrap_or(u16::MAX),
    };
    Wanted { clients, server_rate_bits_per_s: link.server_rate_bits_per_s, link: link.clone() }
}
