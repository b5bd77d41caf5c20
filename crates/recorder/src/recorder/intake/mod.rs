//! Intakes: how data come in. Each takes requests in its own protocol to the [`Door`], and says in its own terms what became of them.
//!
//! Main types: [`Entry`], a member of the registry, and [`Running`]. A new intake is a file and a line in [`REGISTRY`].
//!
//! Invariant: an intake acknowledges only what the door has answered for.

pub(in crate::recorder) mod anteroom;
mod checking;
mod door;
pub(in crate::recorder) mod exchange;
mod framing;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod http;
mod jetstream;
pub(in crate::recorder) mod listen;
mod live;
mod nats;
pub(in crate::recorder) mod request;
pub(in crate::recorder) mod response;
mod tcp;
pub(in crate::recorder) mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use super::config::IntakeConfig;
use super::meter::Meter;
use super::stop::Stop;

pub use door::{Begun, Door, DoorSettings, Incoming, Refused, Route, Taken};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::{HTTP, HTTP2, LINES, PACKED, TCP};
pub(in crate::recorder) use live::Renewable;
pub use live::{Live, Renewal};
pub use tls::Protection;

/// What all intakes are started with.
#[derive(Clone)]
pub struct Surroundings {
    /// `[intake]`
    pub config: IntakeConfig,
    /// Where requests go.
    pub door: Arc<Door>,
    /// Where requests go whose sender waits for the commit itself.
    pub direct_door: Arc<Door>,
    /// As `door`, for senders that cannot be told to send again: requests wait for the database as long as it takes.
    pub patient_door: Arc<Door>,
    /// What can be changed while they run.
    pub live: Arc<Live>,
    /// What is counted.
    pub meter: Arc<Meter>,
    /// When nothing more is taken in.
    pub stop: Arc<Stop>,
    /// The text of `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Why data cannot be taken in now, for `/ready`; none when they can.
    pub readiness: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// What is in quarantine, for `/ready`; none where nothing is.
    pub quarantine: Arc<dyn Fn() -> Option<serde_json::Value> + Send + Sync>,
}

/// An intake that takes data in.
#[derive(Debug)]
pub struct Running {
    /// Its name.
    pub name: &'static str,
    /// Where it listens.
    pub address: Option<SocketAddr>,
    /// Its connections, where it has any.
    pub(in crate::recorder) anteroom: Option<Arc<anteroom::Anteroom>>,
    /// The certificates that it shows.
    pub(in crate::recorder) certificates: Vec<live::Renewable>,
    /// Ends when it is stopped and everything that it took in is answered.
    pub task: tokio::task::JoinHandle<()>,
}

/// What `/metrics` says of the connections of intakes; `of` goes before the names of what is counted.
pub(in crate::recorder) fn connections_page(
    of: &'static str,
    intakes: &[Running],
) -> Box<dyn Fn() -> String + Send + Sync> {
    let rooms: Vec<_> = intakes.iter().filter_map(|running| running.anteroom.clone()).collect();
    Box::new(move || if rooms.is_empty() { String::new() } else { anteroom::page(of, &rooms) })
}

/// A kind of intake.
pub struct Entry {
    /// Name in `[intake.…]`.
    pub name: &'static str,
    /// Starts it where it is configured, within a runtime; a sentence where it cannot.
    pub start: fn(&Surroundings) -> Option<Result<Running, String>>,
}

/// All intakes.
pub static REGISTRY: &[&Entry] = &[&http::HTTP, &tcp::TCP, &nats::NATS];
