//! The recorder: takes measurement data in, loses nothing that it has acknowledged, and feeds the database no faster than it
//! answers in time. Data flows one way: intake → admission → spool → writer → database.
//!
//! Invariant: at every moment, acknowledged = committed + spooled + quarantined + retired.

pub mod access;
pub mod admission;
pub mod bucket;
pub mod clock;
mod condition;
pub mod config;
mod control;
mod durability;
pub mod forward;
mod guarded;
pub mod hold;
pub mod inbox;
pub mod intake;
pub mod line;
mod lock;
pub mod log;
mod log_queue;
pub mod memory;
pub mod meter;
pub mod metrics;
pub mod metrics_listener;
mod nats;
pub mod office;
mod outcome;
pub mod pace;
pub mod part_lanes;
pub mod processing;
mod program;
pub mod progress;
pub mod prometheus;
pub mod pulse;
mod quarantine;
mod quote;
pub mod retention;
mod running;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod sources;
pub mod spool;
pub mod stop;
pub mod supervisor;
mod threads;
pub mod upload;
pub mod writer;

pub use outcome::{End, StartError};
pub use quarantine::{Cleared, discard_quarantine, replay_quarantine};
pub use running::Recorder;

/// The fuzzing targets of the recorder.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use {
    access::NAMES as FUZZED_NAMES,
    intake::{
        HTTP as FUZZED_HTTP, HTTP2 as FUZZED_HTTP2, LINES as FUZZED_LINES, PACKED as FUZZED_PACKED,
        PUBLISHED as FUZZED_PUBLISHED, TCP as FUZZED_TCP,
    },
    prometheus::QUESTIONS as FUZZED_QUESTIONS,
    spool::SPOOL as FUZZED_SPOOL,
    upload::FTP as FUZZED_FTP,
};
