//! The capacity of a link without other traffic.

use serde::{Deserialize, Serialize};

/// A link, measured by a transfer in each direction before the trials on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkMeasurement {
    /// From the load's side to the server's, on the link itself: frames with their Ethernet headers, bits per second.
    pub up_bits_per_s: f64,
    /// From the server's side to the load's.
    pub down_bits_per_s: f64,
    /// Application payload from the load's side to the server's, in bits per second.
    pub up_payload_bits_per_s: f64,
    /// Application payload from the server's side to the load's, in bits per second.
    pub down_payload_bits_per_s: f64,
    /// Median time of a byte there and one back over TCP, in seconds.
    pub round_trip_s: f64,
    /// The cipher suite that both ends of the tunnel agreed on; `None` without a tunnel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suite: Option<String>,
}
