//! The spool: a durable, bounded queue between intake and database. Its contents survive any crash, and damaged records are counted.
//!
//! Main types: [`Committer`], the one thread that writes, with one sync for many requests; [`Reader`], through which the
//! writers read; [`SpoolFile`], the spool itself. Its directory holds two logs of segments:
//!
//! - `entries/`: acknowledged requests in order of arrival, each in a frame of its own. A segment is released when everything in it is settled.
//! - `lasting/`: data that stays longer: records in quarantine, message ids, records that wait apart, entries that wait longer than their neighbours, and the state: the random
//!   name by which the ledger knows this spool, its lanes and their openings, and how far each lane is settled. A frame here is a list of facts that hold together or not at all.
//!
//! Opening the spool reads both logs into an index in memory (`index.rs`), without bodies. The recorder that works on the spool holds `lock`. The
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
pub use entry::{APART_LANES, Entry, FIRST_DIRECT_LANE, Offer, lane_of};
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
    /// The spool is full; nothing was stored, and the caller can try again.
    #[error("the spool is full: {0}")]
    Full(String),
    /// The disk, the spool's directory or the writing thread failed: this process acknowledges nothing more.
    #[error("the spool is broken: {0}")]
    Broken(String),
    /// The disk failed while the change was being made durable: it may be stored, and this process acknowledges nothing more.
    #[error("the spool is broken: {0}")]
    Unknown(String),
    /// Another recorder works on the spool.
    #[error("spool.path \"{path}\": another recorder works on it; stop that one, or name another directory")]
    Held {
        /// The directory.
        path: String,
    },
    /// The spool cannot be opened.
    #[error("spool.path \"{path}\": {reason}")]
    Unusable {
        /// The directory.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}
