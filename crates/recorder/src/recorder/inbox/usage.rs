//! The amount of data in the inbox, found by reading it. Main types: [`Counts`], and [`Usage`], which an intake asks for room.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Inbox, InboxError, unusable};
use crate::recorder::admission::gate::{CLOSES_AT, OPENS_AT};

/// How old a scan may be when an upload begins; between two scans, an intake counts what it writes itself.
const SCAN_EVERY: Duration = Duration::from_secs(1);
/// Scanning takes at most one part in this many of the time.
const SCAN_SHARE: u32 = 20;

/// The content of the inbox in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Uploads that are not acknowledged, including leftovers.
    pub incoming: u64,
    /// Blocks that wait for processing.
    pub waiting: u64,
    /// Bytes of the waiting blocks.
    pub waiting_bytes: u64,
    /// Blocks in quarantine.
    pub quarantined: u64,
    /// Bytes of everything in the inbox.
    pub bytes: u64,
}

/// The counts of the whole inbox and of each camera.
#[derive(Debug, Clone, Default)]
pub(super) struct Scan {
    pub(super) all: Counts,
    pub(super) bytes_of: BTreeMap<String, u64>,
}

/// Scans the whole inbox. Files that are removed meanwhile are not counted.
pub(super) fn scan(inbox: &Inbox) -> Result<Scan, InboxError> {
    let mut scan = Scan::default();
    for camera in names(&inbox.cameras())? {
        let mut bytes = 0;
        each_file(&inbox.incoming(&camera), |_, size| {
            scan.all.incoming += 1;
            bytes += size;
        })?;
        each_file(&inbox.received(&camera), |_, size| {
            scan.all.waiting += 1;
            scan.all.waiting_bytes += size;
            bytes += size;
        })?;
        *scan.bytes_of.entry(camera).or_default() += bytes;
        scan.all.bytes += bytes;
    }
    for camera in names(&inbox.path().join("quarantine"))? {
        let mut bytes = 0;
        each_file(&inbox.quarantine(&camera), |_, size| {
            bytes += size;
            scan.all.quarantined += 1;
        })?;
        *scan.bytes_of.entry(camera).or_default() += bytes;
        scan.all.bytes += bytes;
    }
    Ok(scan)
}

/// Returns the names in a directory that are valid text, sorted; none if there is no such directory.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, InboxError> {
    let mut names = Vec::new();
    each(directory, |entry| names.extend(entry.file_name().into_string()))?;
    names.sort();
    Ok(names)
}

/// Calls `look` with every plain file of a directory and its size in bytes.
pub(super) fn each_file(directory: &Path, mut look: impl FnMut(&DirEntry, u64)) -> Result<(), InboxError> {
    each(directory, |entry| match entry.metadata() {
        Ok(about) if about.is_file() => look(entry, about.len()),
        _ => {}
    })
}

fn each(directory: &Path, mut look: impl FnMut(&DirEntry)) -> Result<(), InboxError> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| unusable(directory, &error))?,
    };
    for entry in entries {
        look(&entry.map_err(|error| unusable(directory, &error))?);
    }
    Ok(())
}

/// The room as an intake knows it: the last scan, and what it has written since.
#[derive(Debug, Default)]
pub(super) struct Usage {
    scan: Scan,
    /// When the last scan ended, and how long it took.
    scanned: Option<(Instant, Duration)>,
    is_closed: bool,
}

impl Usage {
    /// Checks whether an upload may begin. Closes at 90 % and opens at 75 %, as the gate of the spool.
    pub(super) fn ask(&mut self, inbox: &Inbox, camera: &str) -> Result<(), InboxError> {
        let is_due = |(at, took): (Instant, Duration)| at.elapsed() >= SCAN_EVERY.max(SCAN_SHARE * took);
        if self.scanned.is_none_or(is_due) {
            let begun = Instant::now();
            self.scan = scan(inbox)?;
            self.scanned = Some((Instant::now(), begun.elapsed()));
        }
        let bounds = inbox.bounds();
        let filled = self.scan.all.bytes as f64 / bounds.all as f64;
        self.is_closed = if self.is_closed { filled > OPENS_AT } else { filled >= CLOSES_AT };
        if self.is_closed {
            let (filled, opens) = (100.0 * filled, 100.0 * OPENS_AT);
            return Err(InboxError::Full(format!(
                "the inbox is {filled:.0} % full and takes in again at {opens:.0} %"
            )));
        }
        if self.of(camera) >= bounds.camera {
            return Err(Self::camera_full(camera, bounds.camera));
        }
        Ok(())
    }

    /// Reserves room for bytes that an upload is about to write.
    pub(super) fn reserve(&mut self, inbox: &Inbox, camera: &str, bytes: u64) -> Result<(), InboxError> {
        let bounds = inbox.bounds();
        if self.scan.all.bytes + bytes > bounds.all {
            return Err(InboxError::Full("the inbox is full; send again later".to_owned()));
        }
        if self.of(camera) + bytes > bounds.camera {
            return Err(Self::camera_full(camera, bounds.camera));
        }
        self.scan.all.bytes += bytes;
        *self.scan.bytes_of.entry(camera.to_owned()).or_default() += bytes;
        Ok(())
    }

    /// Releases the room of an upload that is gone.
    pub(super) fn release(&mut self, camera: &str, bytes: u64) {
        self.scan.all.bytes = self.scan.all.bytes.saturating_sub(bytes);
        if let Some(known) = self.scan.bytes_of.get_mut(camera) {
            *known = known.saturating_sub(bytes);
        }
    }

    fn of(&self, camera: &str) -> u64 {
        self.scan.bytes_of.get(camera).copied().unwrap_or(0)
    }

    fn camera_full(camera: &str, bound: u64) -> InboxError {
        let shown = crate::units::show_bytes(bound as f64);
        InboxError::Full(format!("camera {camera} has {shown} in the inbox, which is its bound; send again later"))
    }
}
