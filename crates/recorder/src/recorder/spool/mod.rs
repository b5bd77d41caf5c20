//! The spool: a durable, bounded queue between intake and database. What is in it survives any crash, and what is damaged of it is counted.
//!
//! Main types: [`Committer`], the one thread that writes, many requests with one sync; [`Reader`], which the writers read
//! with; [`SpoolFile`], the spool itself. In its directory are two logs of segments:
//!
//! - `entries/`: what was acknowledged, each request a frame of its own, as it came. A segment is given up when everything in it is settled.
//! - `lasting/`: what stays for longer: records in quarantine, ids of messages, records that wait apart, entries that wait longer than those around them, and the state: the random
//!   name that the ledger knows this spool by, its lanes and their openings, and how far they are settled. Its frames are lists of facts that hold together or not at all.
//!
//! What is wanted is found by reading both when the spool is opened, and then stands in memory (`index.rs`), without bodies. `lock` is held by the recorder that works on it. The
//! database `spool.db` of versions 1 to 4 is read once (`older/`).
//!
//! Invariant: a sync that failed ends the spool ([`SpoolError::Broken`]); only a new process, which reads what is really on the
//! disk, goes on from there.

mod apart;
mod changing;
mod clock;
mod committer;
mod counts;
mod damage;
mod deferred;
mod entry;
mod fact;
mod file;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod greedy;
mod group;
mod holders;
mod ids;
mod index;
mod known;
mod lane;
mod lanes;
mod logs;
mod older;
mod opening;
mod packing;
mod place;
mod quarantine;
mod reader;
mod refusal;
mod replay;
mod request;
mod retire;
mod scrub;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod state;
mod worker;

pub use apart::{Apart, ApartLanes, ApartPart};
pub use clock::{IdClock, unspooled_number};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use committer::Caught;
pub use committer::{Committer, CommitterHandle};
pub use counts::Counts;
pub use damage::Damage;
pub use deferred::Deferred;
pub use entry::{APART_LANES, Entry, Offer, lane_of};
pub use file::{SpoolFile, Stored};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::SPOOL;
pub use greedy::GREEDY_LANES;
pub use holders::{Held, QuarantineView, holder_of};
pub use known::{Asked, MESSAGE_NUMBERS, WasKept};
pub use older::Salvaged;
pub use opening::{LaneNews, LaneOpening, Opening};
pub use quarantine::{Clearing, Portion, Span, list};
pub use reader::Reader;
pub use refusal::{Quarantined, Refusal};
pub use request::{Placed, Refused};

/// Why the spool did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpoolError {
    /// It is full; nothing was stored, and it can be tried again.
    #[error("the spool is full: {0}")]
    Full(String),
    /// The disk, or what holds it, failed: nothing more is acknowledged by this process.
    #[error("the spool is broken: {0}")]
    Broken(String),
    /// The disk failed while this was being made durable: it may be stored, and nothing more is acknowledged by this process.
    #[error("the spool is broken: {0}")]
    Unknown(String),
    /// Another recorder works on it.
    #[error("spool.path \"{path}\": another recorder works on it; stop that one, or name another directory")]
    Held {
        /// The directory.
        path: String,
    },
    /// It cannot be opened.
    #[error("spool.path \"{path}\": {reason}")]
    Unusable {
        /// The directory.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}
