//! Replaying and discarding what is in quarantine: by the recorder that works on the spool, or, where none does, by the command itself. Main
//! functions: [`replay_quarantine`] and [`discard_quarantine`].
//!
//! Invariant: one process at a time writes into a spool, the one that has its lock.

use std::time::{Duration, Instant};

use super::config::Config;
use super::control::{Answered, ask};
use super::spool::{Clearing, SpoolError, SpoolFile};

/// How long a recorder that is starting or ending is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleared {
    /// With so many records.
    pub rows: u64,
    /// Whether a recorder runs, which has done it.
    pub is_running: bool,
}

/// Gives the quarantined records of a spool back to its queue. A recorder that works on it writes them at once.
///
/// # Errors
/// As the spool answers; when there is none.
pub fn replay_quarantine(config: &Config) -> Result<Cleared, SpoolError> {
    clear(config, Clearing::Replay)
}

/// Gives the quarantined records of a spool up.
///
/// # Errors
/// As the spool answers; when there is none.
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
            // One that is starting can be asked in a moment, and one that is ending gives the lock back.
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
