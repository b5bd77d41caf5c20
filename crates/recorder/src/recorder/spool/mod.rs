//! The spool: a durable, bounded queue between intake and database. What is in it survives any crash.
//!
//! Main types: [`Committer`], the one thread that writes, many requests with one sync; [`Reader`], which the writers read
//! with; [`SpoolFile`], the file itself. `spool.db` in the spool's directory is a SQLite database (write-ahead log,
//! `synchronous = FULL`), with these tables, version 4:
//!
//! - `entry`: what was acknowledged and is not known to be committed. `sequence` only grows, and is never used twice. `checksum` is
//!   the CRC-32 of all the other columns. `body` is line protocol in the entry's `precision`; `rows` is its number of points. `sender` is the name
//!   in `[[access]]` of who sent it, which versions up to 3 did not keep. Those of lane 600 are refused records that wait for room in quarantine.
//! - `message`: the ids of messages that were taken in, for a while, so that one that is sent again is not stored again. `message_id` is the owner,
//!   a line break, and the id that was sent; without an owner it is of a version that kept none. `received_ns` is the time of [`IdClock`].
//! - `quarantine`: records that the database refused, each with its reason, and entries that were found damaged.
//! - `fact`: `version`, `recorder` (a random name that the ledger knows this spool by), `lanes`, `acknowledged`,
//!   `committed` and `id_clock_ns`.
//! - `lane`: the name that the ledger knows a lane by; `opening`: for each time that the file was opened a random token of each lane, and
//!   the newest entry then. Version 1 did not have these two.
//! - `apart`: measurements whose records wait in lanes of their own, because the database refuses them. Version 2 did not have it.
//!
//! Invariant: a sync that failed ends the spool ([`SpoolError::Broken`]); only a new process, which reads what is really on the
//! disk, goes on from there.

mod apart;
mod clock;
mod committer;
mod counts;
mod deferred;
mod entry;
mod file;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod greedy;
mod holders;
mod lock;
mod opening;
mod quarantine;
mod reader;
mod request;
mod salvage;
mod schema;
mod worker;

pub use apart::{APART_LANES, Apart, ApartLanes, ApartPart};
pub use clock::{IdClock, now_ns, unspooled_number};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use committer::Caught;
pub use committer::{Committer, CommitterHandle};
pub use counts::Counts;
pub use deferred::Deferred;
pub use entry::{Entry, Offer, body_checksum, lane_of};
pub use file::{SpoolFile, Stored};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::SPOOL;
pub use greedy::GREEDY_LANES;
pub use holders::{Held, QuarantineView, holder_of};
pub use opening::{LaneNews, LaneOpening, Opening};
pub use quarantine::{Clearing, Portion, Quarantined, Refusal, Span, list};
pub use reader::Reader;
pub use request::{Placed, Refused};
pub use salvage::Salvaged;

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

impl SpoolError {
    /// What a refusal by SQLite means: a full disk can be emptied, anything else ends the spool.
    fn of(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => SpoolError::Full(error.to_string()),
            _ => SpoolError::Broken(error.to_string()),
        }
    }
}
