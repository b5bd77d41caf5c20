//! What a link carried when nothing else was on it.

use serde::{Deserialize, Serialize};

/// A link, measured by a transfer in each direction before the trials on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkMeasurement {
    /// From the load's side to the server's, on the link itself: frames with their Ethernet headers, bits per second.
    pub up_bits_per_s: f64,
    /// From the server's side to the load's.
    pub down_bits_per_s: f64,
    /// What an application got through of that, from the load's side to the server's, in bits per second.
    pub up_payload_bits_per_s: f64,
    /// The same from the server's side to the load's.
    pub down_payload_bits_per_s: f64,
    /// A byte there and one back over TCP, median, in seconds.
    pub round_trip_s: f64,
    /// What both ends of the tunnel agreed on; none without a tunnel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suite: Option<String>,
}
