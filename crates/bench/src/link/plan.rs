//! The plan of a network: names, addresses and shaping. Pure.
//!
//! Main type: [`NetworkPlan`]. Addresses are from the ranges reserved for documentation (RFC 5737), which no host uses:
//! 192.0.2.0/24 for the links themselves, 198.51.100.0/24 inside tunnels. They are used only inside the namespaces.

use std::net::Ipv4Addr;

use super::Wanted;

/// Maximum number of client hosts, limited by the range of addresses.
pub const CLIENTS_MAX: u16 = 250;
/// Name of the bridge in the switch's namespace.
pub const SWITCH: &str = "switch";

/// Largest frame on a link, Ethernet header included.
const FRAME_BYTES: f64 = 1514.0;
/// Time in seconds in which a bucket is emptied; long enough that the shaper need not wake up for each frame.
const BURST_S: f64 = 0.001;
/// Time in seconds in which the sending buffers at the ends of a link are emptied.
const QUEUE_S: f64 = 0.05;
/// Minimum number of frames that a sending buffer holds.
const QUEUE_FRAMES: f64 = 20.0;
/// Maximum number of bytes that a delay line without a rate holds.
const DELAYED_BYTES_MAX: f64 = 64.0 * 1024.0 * 1024.0;

/// The plan of all hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPlan {
    pub server: HostPlan,
    pub clients: Vec<HostPlan>,
}

/// A host with its link to the switch.
#[derive(Debug, Clone, PartialEq)]
pub struct HostPlan {
    /// Name of the link's end at the switch.
    pub port: String,
    pub wire_address: Ipv4Addr,
    /// The host's address in the tunnel, if there is one.
    pub tunnel_address: Option<Ipv4Addr>,
    /// How the link is limited; `None` if it is as fast as the machine.
    pub shape: Option<Shape>,
    /// Delay of a frame in each direction, in seconds; 0 for none.
    pub delay_s: f64,
}

/// A token bucket at each end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub rate_bits_per_s: u64,
    /// Bytes that may be sent at once.
    pub burst_bytes: u64,
    /// Maximum number of bytes that wait; more are dropped, as by any switch.
    pub queue_bytes: u64,
}

impl NetworkPlan {
    pub fn new(wanted: &Wanted) -> Self {
        let has_tunnel = wanted.link.tunnel.is_some();
        let host = |number: u16, rate: Option<f64>, delay_s| {
            let last = number as u8 + 1;
            HostPlan {
                port: format!("port{number}"),
                wire_address: Ipv4Addr::new(192, 0, 2, last),
                tunnel_address: has_tunnel.then(|| Ipv4Addr::new(198, 51, 100, last)),
                shape: rate.map(Shape::new),
                delay_s,
            }
        };
        let clients = wanted.clients.clamp(1, CLIENTS_MAX);
        let link = &wanted.link;
        NetworkPlan {
            server: host(0, wanted.server_rate_bits_per_s, 0.0),
            clients: (1..=clients).map(|number| host(number, link.rate_bits_per_s, link.delay_s)).collect(),
        }
    }
}

impl HostPlan {
    /// Returns the plan of a node's host, whose link has no limits. Numbers begin at 1.
    pub fn of_node(number: u32) -> Self {
        let wire_address = Ipv4Addr::new(192, 0, 2, number.min(254) as u8);
        HostPlan { port: format!("port{number}"), wire_address, tunnel_address: None, shape: None, delay_s: 0.0 }
    }

    /// Returns the address at which other hosts reach this one.
    pub fn address(&self) -> Ipv4Addr {
        self.tunnel_address.unwrap_or(self.wire_address)
    }

    /// Returns the maximum number of bytes that the delay line holds in each direction.
    pub fn delayed_bytes_max(&self) -> usize {
        let in_flight = self.shape.map_or(DELAYED_BYTES_MAX, |shape| shape.rate_bits_per_s as f64 / 8.0 * self.delay_s);
        (2.0 * in_flight + 64.0 * FRAME_BYTES).min(DELAYED_BYTES_MAX) as usize
    }
}

impl Shape {
    pub fn new(rate_bits_per_s: f64) -> Self {
        let bytes_per_s = rate_bits_per_s / 8.0;
        Shape {
            rate_bits_per_s: rate_bits_per_s as u64,
            burst_bytes: (bytes_per_s * BURST_S).max(2.0 * FRAME_BYTES) as u64,
            queue_bytes: (bytes_per_s * QUEUE_S).max(QUEUE_FRAMES * FRAME_BYTES) as u64,
        }
    }

    /// Returns the arguments after `tc qdisc replace dev DEVICE root`.
    pub fn words(&self) -> Vec<String> {
        let Shape { rate_bits_per_s, burst_bytes, queue_bytes } = self;
        let rate = format!("{rate_bits_per_s}bit");
        ["tbf", "rate", &rate, "burst", &burst_bytes.to_string(), "limit", &queue_bytes.to_string()]
            .map(str::to_owned)
            .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::LinkSettings;

    fn wanted(clients: u16, tunnel: Option<&str>) -> Wanted {
        let link = LinkSettings {
            rate_bits_per_s: Some(384e3),
            delay_s: 0.05,
            tunnel: tunnel.map(str::to_owned),
            ..LinkSettings::default()
        };
        Wanted { clients, link, server_rate_bits_per_s: Some(1e9) }
    }

    #[test]
    fn every_host_has_an_address_of_its_own() {
        let plan = NetworkPlan::new(&wanted(CLIENTS_MAX, Some("aes128-sha1")));
        let mut seen: Vec<Ipv4Addr> = plan.clients.iter().chain([&plan.server]).map(HostPlan::address).collect();
        assert!(seen.iter().all(|address| address.octets()[..3] == [198, 51, 100]));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 251);
        assert_eq!(NetworkPlan::new(&wanted(1, None)).server.address(), Ipv4Addr::new(192, 0, 2, 1));
    }

    #[test]
    fn a_slow_link_lets_whole_frames_through_and_a_fast_one_is_not_woken_for_each() {
        let slow = Shape::new(384e3);
        assert_eq!((slow.rate_bits_per_s, slow.burst_bytes, slow.queue_bytes), (384_000, 3028, 30_280));
        let fast = Shape::new(1e9);
        assert_eq!((fast.burst_bytes, fast.queue_bytes), (125_000, 6_250_000));
        assert_eq!(slow.words().join(" "), "tbf rate 384000bit burst 3028 limit 30280");
    }

    #[test]
    fn a_delay_line_has_room_for_what_is_on_its_way() {
        let plan = NetworkPlan::new(&wanted(1, None));
        let in_flight = 384e3 / 8.0 * 0.05;
        assert!(plan.clients[0].delayed_bytes_max() as f64 > in_flight);
        let unlimited = HostPlan { shape: None, ..plan.clients[0].clone() };
        assert_eq!(unlimited.delayed_bytes_max() as f64, DELAYED_BYTES_MAX);
        assert_eq!(plan.server.delay_s, 0.0, "the delay is that of the clients' links");
    }
}
