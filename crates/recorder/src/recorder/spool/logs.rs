//! The spool's two logs, and the reserve of room for the second. Main type: [`Logs`].

use std::path::Path;
use std::sync::Arc;

use loadline_segments::segments::{Directory, Disk, FrameHeader, Log, LogError, Settings};

use super::SpoolError;
use super::place::LogName;

/// The directories of the logs within the spool's directory.
const ENTRIES: &str = "entries";
pub(super) const LASTING: &str = "lasting";
/// A file beside the lasting log's segments; on a full disk it is removed to make room for some of them.
const RESERVE: &str = "reserve";

/// The smallest and the largest size of a segment of each log, in bytes.
const ENTRIES_BYTES: (u64, u64) = (64 << 10, 16 << 20);
const LASTING_BYTES: (u64, u64) = (64 << 10, 1 << 20);
/// The number of segments that the reserve has room for. Each opening begins a segment of the lasting log, also on a full disk, as long as the reserve has room.
const RESERVED_SEGMENTS: u64 = 4;

/// Returns the size of a log's segments, in bytes, for a spool with this bound.
pub(super) fn segment_bytes(bound_bytes: u64, log: LogName) -> u64 {
    match log {
        LogName::Entries => (bound_bytes / 16).clamp(ENTRIES_BYTES.0, ENTRIES_BYTES.1),
        LogName::Lasting => (bound_bytes / 64).clamp(LASTING_BYTES.0, LASTING_BYTES.1),
    }
}

/// Returns the directory of a log.
pub(super) fn directory(spool: &Path, log: LogName) -> std::path::PathBuf {
    spool.join(if log == LogName::Entries { ENTRIES } else { LASTING })
}

/// Returns why segments cannot be created, if the system's limit on file sizes is too small for them.
pub(super) fn why_too_large(bound_bytes: u64) -> Option<String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a value of this function, which the call fills.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    let bytes = segment_bytes(bound_bytes, LogName::Entries).max(segment_bytes(bound_bytes, LogName::Lasting));
    let shown = |bytes: u64| crate::units::show_bytes(bytes as f64);
    (answer == 0 && limit.rlim_cur < bytes).then(|| {
        format!(
            "its files have {} each, and the system lets no file have more than {}; raise that limit (ulimit -f), or make spool.bound smaller",
            shown(bytes),
            shown(limit.rlim_cur)
        )
    })
}

/// Returns a random number that was never used.
pub(super) fn random_epoch() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes).max(1)
}

/// Returns a random name of 32 characters.
pub(super) fn random_name() -> String {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fill(bytes: &mut [u8]) {
    use ring::rand::SecureRandom;
    // The system's generator fails only before it has been seeded, right after a machine has started.
    while ring::rand::SystemRandom::new().fill(bytes).is_err() {
        std::thread::yield_now();
    }
}

/// Returns the spool's error for a log's error.
pub(super) fn error_of(error: LogError) -> SpoolError {
    match error {
        LogError::Broken(reason) => SpoolError::Broken(reason),
        error => SpoolError::Full(error.to_string()),
    }
}

/// Both logs, open.
pub(super) struct Logs {
    entries: Log,
    lasting: Log,
    reserve_bytes: u64,
}

impl Logs {
    pub(super) fn new(entries: Log, lasting: Log, bound_bytes: u64) -> Self {
        let mut logs =
            Logs { entries, lasting, reserve_bytes: RESERVED_SEGMENTS * segment_bytes(bound_bytes, LogName::Lasting) };
        logs.reserve();
        logs
    }

    pub(super) fn log(&mut self, log: LogName) -> &mut Log {
        match log {
            LogName::Entries => &mut self.entries,
            LogName::Lasting => &mut self.lasting,
        }
    }

    /// Returns the number of rows that were acknowledged by being appended to the entries.
    pub(super) fn rows(&self) -> u64 {
        self.entries.rows()
    }

    /// Returns whether both logs are where they were found.
    pub(super) fn are_in_place(&self) -> bool {
        self.entries.disk().is_in_place() && self.lasting.disk().is_in_place()
    }

    /// Makes room for frames; for those of the lasting log also on a full disk, as long as there is a reserve.
    pub(super) fn make_room(
        &mut self,
        log: LogName,
        lengths: impl Iterator<Item = u64> + Clone,
    ) -> Result<(), SpoolError> {
        let made = self.log(log).make_room(lengths.clone());
        let made = match made {
            Err(LogError::NoRoom(_)) if log == LogName::Lasting && self.lasting.disk().remove(RESERVE).is_ok() => {
                self.lasting.make_room(lengths)
            }
            made => made,
        };
        made.map_err(error_of)
    }

    /// Appends a frame for which there is room.
    pub(super) fn append(
        &mut self,
        log: LogName,
        frame: (u8, u32, u32),
        body: &[u8],
    ) -> Result<FrameHeader, SpoolError> {
        let (kind, tag, rows) = frame;
        self.log(log).append(kind, tag, rows, &[body]).map_err(error_of)
    }

    /// Creates the reserve for a disk that becomes full, if there is room now.
    pub(super) fn reserve(&mut self) {
        // If there is no room, or a reserve exists already, nothing needs to be done.
        let _ = self.lasting.disk().create(RESERVE, self.reserve_bytes);
    }

    /// Notes that the logs end here.
    pub(super) fn close(self, note: &[u8]) -> Result<(), LogError> {
        self.lasting.close(&[])?;
        self.entries.close(note)
    }
}

/// Opens the directory of a log, which is created if it does not exist.
pub(super) fn open_directory(spool: &Path, log: LogName) -> std::io::Result<Arc<dyn Disk>> {
    Ok(Arc::new(Directory::open(&directory(spool, log))?))
}

pub(super) fn settings(bound_bytes: u64, log: LogName) -> Settings {
    Settings { segment_bytes: segment_bytes(bound_bytes, log) }
}
