//! How sources send to a recorder: its protocol, and what counts as an acknowledgement there.
//!
//! Main types: [`Way`] and [`Intake`]. Invariant: a recorder is asked whether it takes in by the protocol in which it is sent to.

use std::net::SocketAddr;

use super::connection::Connection;
use super::{http, lines, mqtt, stream};
use crate::database::recipe::Readiness;

/// Least number of bytes from which it is seen that a server speaks HTTP.
const HTTP_BYTES: usize = 12;

/// A way to a recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Requests of HTTP: any 2xx acknowledges one.
    Http {
        /// Path of the requests, with its parameters.
        path: String,
        /// Further header lines, as in `Authorization: Token x`.
        headers: Vec<String>,
    },
    /// Batches over TCP that end with an empty line, each answered with a line: `ok` and the number of its lines acknowledges one.
    Tcp,
    /// Messages of a stream of NATS: JetStream's answer acknowledges one.
    Nats,
    /// Messages of MQTT with quality of service 1: PUBACK acknowledges one.
    Mqtt {
        /// The topic below which each source has one of its own.
        topic: String,
    },
}

/// Where sources send, and how.
#[derive(Debug, Clone)]
pub struct Intake {
    /// The address.
    pub address: SocketAddr,
    /// The protocol.
    pub way: Way,
}

impl Way {
    /// The names of all protocols.
    pub const NAMES: [&'static str; 4] = ["http", "tcp", "nats", "mqtt"];

    /// Returns the protocol's name.
    pub fn name(&self) -> &'static str {
        match self {
            Way::Http { .. } => "http",
            Way::Tcp => "tcp",
            Way::Nats => "nats",
            Way::Mqtt { .. } => "mqtt",
        }
    }

    /// Returns what is said to a server to learn whether it takes in.
    pub fn hello(&self) -> Vec<u8> {
        match self {
            Way::Http { .. } => http::get("/ping"),
            // An empty batch, which is answered as any other.
            Way::Tcp => b"\n".to_vec(),
            // The server speaks first.
            Way::Nats => Vec::new(),
            Way::Mqtt { .. } => mqtt::hello(),
        }
    }

    /// Returns what the beginning of a server's answer means.
    pub fn readiness(&self, answer: &[u8]) -> Readiness {
        let is_whole = match self {
            Way::Http { .. } => answer.len() >= HTTP_BYTES,
            Way::Tcp => answer.contains(&b'\n'),
            Way::Nats => answer.starts_with(b"INFO ") && answer.contains(&b'\n'),
            Way::Mqtt { .. } => mqtt::is_accepted(answer),
        };
        if is_whole { Readiness::Ready } else { Readiness::Incomplete }
    }
}

impl Intake {
    /// Opens a connection for the source with this number.
    ///
    /// # Errors
    /// Fails if the recorder cannot be reached.
    pub fn connect(&self, source: u64) -> anyhow::Result<Box<dyn Connection>> {
        Ok(match &self.way {
            Way::Http { path, headers } => {
                Box::new(http::HttpConnection::open(self.address, path.clone(), headers.clone())?)
            }
            Way::Tcp => Box::new(lines::LinesConnection::open(self.address, source)?),
            Way::Nats => Box::new(stream::StreamConnection::open(self.address, source)?),
            Way::Mqtt { topic } => Box::new(mqtt::MqttConnection::open(self.address, topic, source)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_takes_in_when_it_answers_in_its_protocol() {
        let http = Way::Http { path: "/write".to_owned(), headers: Vec::new() };
        let mqtt = Way::Mqtt { topic: "t".to_owned() };
        for (way, whole) in [
            (&http, &b"HTTP/1.1 404"[..]),
            (&Way::Tcp, b"ok 0\n"),
            (&Way::Nats, b"INFO {}\r\n"),
            (&mqtt, &[0x20, 2, 0, 0]),
        ] {
            assert_eq!(way.readiness(whole), Readiness::Ready, "{}", way.name());
            for cut in 0..whole.len() {
                assert_eq!(way.readiness(&whole[..cut]), Readiness::Incomplete, "{} {cut}", way.name());
            }
            assert!(Way::NAMES.contains(&way.name()));
        }
        assert_eq!(mqtt.readiness(&[0x20, 2, 0, 5]), Readiness::Incomplete, "a refusal is none");
    }
}
