//! The recorder: takes measurement data in, loses nothing that it has acknowledged, and feeds the database no faster than it
//! answers in time. Data flows one way: intake → admission → spool → writer → database.
//!
//! Invariant: at every moment, acknowledged = committed + spooled + quarantined.

pub mod access;
pub mod admission;
pub mod bucket;
pub mod config;
mod durability;
pub mod forward;
pub mod inbox;
pub mod intake;
pub mod line;
pub mod log;
mod log_queue;
pub mod meter;
pub mod metrics;
mod nats;
pub mod office;
pub mod pace;
pub mod processing;
mod program;
pub mod progress;
mod quote;
mod running;
pub mod spool;
pub mod stop;
pub mod upload;
pub mod writer;

pub use running::{End, Recorder, StartError, discard_quarantine, replay_quarantine};
