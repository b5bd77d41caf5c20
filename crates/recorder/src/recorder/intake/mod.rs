//! Intakes: the ways in which data come in. Each passes requests in its own protocol to the [`Door`], and reports the outcome in its own terms.
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
mod incoming;
mod jetstream;
pub(in crate::recorder) mod listen;
mod live;
mod nats;
mod publisher;
pub(in crate::recorder) mod request;
pub(in crate::recorder) mod response;
mod shared;
mod tcp;
pub(in crate::recorder) mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use super::config::IntakeConfig;
use super::meter::Meter;
use super::part_lanes::PartLanes;
use super::stop::Stop;

pub use door::{Begun, Door, DoorSettings, PartMessage, Route, Taken};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::{HTTP, HTTP2, LINES, PACKED, PUBLISHED, TCP};
pub use incoming::{Incoming, Refused};
pub(in crate::recorder) use live::Renewable;
pub use live::{Live, Renewal};
pub use publisher::Publisher;
pub use tls::Protection;

/// What every intake is started with.
#[derive(Clone)]
pub struct Surroundings {
    /// `[intake]`
    pub config: IntakeConfig,
    /// The door for requests.
    pub door: Arc<Door>,
    /// The door for requests whose sender waits for the commit itself.
    pub direct_door: Arc<Door>,
    /// As `door`, for senders that cannot be told to send again: their requests wait for the database as long as it takes.
    pub patient_door: Arc<Door>,
    /// What opens a lane for each part of a shared stream; `None` if the recorder shares none.
    pub parts: Option<Arc<PartLanes>>,
    /// What brings requests into the shared stream; `None` if they go another way.
    pub publisher: Option<Arc<Publisher>>,
    /// The settings that can change at run time.
    pub live: Arc<Live>,
    /// The counters.
    pub meter: Arc<Meter>,
    /// The signal after which nothing more is accepted.
    pub stop: Arc<Stop>,
    /// Returns the text of `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Returns why data cannot be accepted now, for `/ready`; `None` if they can.
    pub readiness: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// Returns the content of the quarantine in numbers, for `/ready`; `None` if it is empty.
    pub quarantine: Arc<dyn Fn() -> Option<serde_json::Value> + Send + Sync>,
}

/// A running intake.
#[derive(Debug)]
pub struct Running {
    /// The name of the intake.
    pub name: &'static str,
    /// The address on which it listens; `None` if it does not listen.
    pub address: Option<SocketAddr>,
    /// Its connections, if it has any.
    pub(in crate::recorder) anteroom: Option<Arc<anteroom::Anteroom>>,
    /// The certificates that it presents.
    pub(in crate::recorder) certificates: Vec<live::Renewable>,
    /// The task of the intake, which ends when it is stopped and has answered everything that it accepted.
    pub task: tokio::task::JoinHandle<()>,
}

/// Returns the part of `/metrics` about the connections of intakes; `of` prefixes the names of the counters.
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
    /// Starts the intake if it is configured, within a runtime; a sentence if it cannot be started.
    pub start: fn(&Surroundings) -> Option<Result<Running, String>>,
}

/// All intakes.
pub static REGISTRY: &[&Entry] = &[&http::HTTP, &tcp::TCP, &nats::NATS, &shared::SHARED];
