//! Uploads: the ways by which blocks reach the inbox, over FTP, FTPS, HTTP PUT, and from another inbox through a NATS object store.
//!
//! Main types: [`Station`], the running uploads; [`Blocks`], what all ways share: who may send, how fast, and how bytes become a durable
//! block. A new way is a file and a line in [`REGISTRY`].
//!
//! Invariant: an upload is acknowledged only after [`Blocks::deposit`] has returned, and that is after the inbox has made the block
//! durable under its name.

mod cameras;
mod deposit;
mod ftp;
mod guesses;
mod meter;
mod page;
mod password;
mod put;
mod rate;
mod session;
mod station;
mod store;

use std::sync::Arc;

pub use cameras::{CameraList, Cameras, Login};
pub use deposit::{Body, Expected, NotTaken};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use ftp::FUZZED as FTP;
pub use meter::{OpenConnection, UploadMeter, Why};
pub use password::{Hashed, random_password};
pub use rate::Rates;
pub use session::{Blocks, Session};
pub use station::Station;

use super::config::IntakeConfig;
use super::intake::Running;
use super::stop::Stop;

/// What every way to upload is started with.
#[derive(Clone)]
pub struct Surroundings {
    /// `[intake]`
    pub config: IntakeConfig,
    /// The intake of blocks.
    pub blocks: Arc<Blocks>,
    /// The signal after which nothing more is accepted.
    pub stop: Arc<Stop>,
}

/// A way to upload.
pub struct Entry {
    /// The name in `[intake.…]`.
    pub name: &'static str,
    /// Starts the way if it is configured, within a runtime; a sentence if it cannot be started.
    pub start: fn(&Surroundings) -> Option<Result<Running, String>>,
}

/// All ways to upload.
pub static REGISTRY: &[&Entry] = &[&ftp::FTP, &ftp::FTPS, &put::PUT, &store::STORE];
