//! Replaying and discarding the quarantine: by the recorder that works on the spool, or, if none does, by the command itself. Main
//! functions: [`replay_quarantine`] and [`discard_quarantine`].
//!
//! Invariant: one process at a time writes into a spool, the one that has its lock.

use std::time::{Duration, Instant};

use super::config::Config;
use super::control::{Answered, ask};
use super::spool::{Clearing, SpoolError, SpoolFile};

/// How long to wait for a recorder that is starting or ending.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// The result of replaying or discarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleared {
    /// Number of records.
    pub rows: u64,
    /// True if a running recorder has done it.
    pub is_running: bool,
}

/// Returns the quarantined records of a spool to its queue. A recorder that works on it writes them at once.
///
/// # Errors
/// The error of the spool, also if there is none.
pub fn replay_quarantine(config: &Config) -> Result<Cleared, SpoolError> {
    clear(config, Clearing::Replay)
}

/// Discards the quarantined records of a spool.
///
/// # Errors
/// The error of the spool, also if there is none.
pub fn discard_quarantine(config: &Config) -> Result<Cleared, SpoolError> {
    clear(config, Clearing::Discard)
}

fn clear(config: &Config, what: Clearing) -> Result<Cleared, SpoolError> {
    let path = &config.spool.path;
    let unusable = |reason: String| SpoolError::Unusable { path: path.display().to_string(), reason };
    if !SpoolFile::is_in(path) {
        let reason = "there is no spool in it; name the directory that the recorder was started with";
        return Err(unusable(reason.to_owned()));
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match ask(path, what).map_err(unusable)? {
            Some(Answered::Done(rows)) => return Ok(Cleared { rows, is_running: true }),
            Some(Answered::Failed(rows, reason)) => {
                let done = if what == Clearing::Replay { "replayed" } else { "discarded" };
                return Err(unusable(format!("{rows} records are {done}; {reason}")));
            }
            None => {}
        }
        match SpoolFile::open(path, config.spool.bound_bytes, config.spool.remember) {
            Ok(file) => return clear_alone(file.with_quarantine(config.quarantine_bound_bytes), config, what),
            // A recorder that is starting will answer in a moment, and one that is ending releases the lock.
            Err(SpoolError::Held { .. }) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
}

fn clear_alone(mut file: SpoolFile, config: &Config, what: Clearing) -> Result<Cleared, SpoolError> {
    if what == Clearing::Replay {
        file.set_lanes(config.writer.count)?;
    }
    Ok(Cleared { rows: file.clear(what)?, is_running: false })
}
