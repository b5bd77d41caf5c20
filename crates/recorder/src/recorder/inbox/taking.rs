//! The processing's end of the inbox. Main types: [`Taking`] and [`Waiting`].

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::usage;
use super::{Inbox, InboxError, Step, check_camera, check_name, misplaced, unusable};
use crate::recorder::lock::Lock;

/// Bytes of a block that are read at a time.
const PART_BYTES: usize = 128 << 10;

/// Takes blocks out of an inbox. Each inbox has at most one at a time.
#[derive(Debug)]
pub struct Taking {
    pub(super) inbox: Inbox,
    lock: Lock,
}

/// A waiting block: acknowledged, and not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The camera that uploaded it.
    pub camera: String,
    /// The name under which it was uploaded.
    pub name: String,
    /// The path of its file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When its last byte arrived, in nanoseconds since 1970.
    pub arrived_ns: i64,
}

impl Waiting {
    /// Returns an id that distinguishes this upload from all others, even of the same name; it stays the same until the block is settled.
    pub fn id(&self) -> String {
        format!("{}/{}@{}", self.camera, self.name, self.arrived_ns)
    }

    /// Reads the whole block into a buffer, which is emptied first.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if it cannot be read, or is not a plain file.
    pub fn read(&self, into: &mut Vec<u8>) -> Result<(), InboxError> {
        into.clear();
        let mut file = self.open()?;
        into.reserve(usize::try_from(self.bytes).unwrap_or(0) + 1);
        let read = file.by_ref().take(self.bytes).read_to_end(into);
        read.map(drop).map_err(|error| unusable(&self.path, &error))
    }

    /// Reads the block part by part, however large it is.
    ///
    /// # Errors
    /// As [`Waiting::read`].
    pub fn each_part(&self, mut look: impl FnMut(&[u8])) -> Result<(), InboxError> {
        let (mut file, mut part) = (self.open()?, vec![0; PART_BYTES]);
        loop {
            match file.read(&mut part).map_err(|error| unusable(&self.path, &error))? {
                0 => return Ok(()),
                read => look(&part[..read]),
            }
        }
    }

    /// Opens the file of the block.
    ///
    /// # Errors
    /// As [`Waiting::read`].
    pub fn open(&self) -> Result<File, InboxError> {
        let open = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(&self.path);
        open.map_err(|error| unusable(&self.path, &error))
    }
}

impl Taking {
    /// Starts to take blocks out of an inbox.
    ///
    /// # Errors
    /// [`InboxError::Unusable`], also if another process takes blocks out of it.
    pub fn start(inbox: &Inbox) -> Result<Self, InboxError> {
        let path = inbox.path().join("processing.lock");
        let lock = Lock::try_take(&path).map_err(|error| unusable(&path, &error))?;
        let busy = "another process processes it; stop that one, or name another inbox";
        let lock = lock.ok_or_else(|| unusable(inbox.path(), &busy))?;
        Ok(Taking { inbox: inbox.clone(), lock })
    }

    /// Returns the inbox.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Returns why no block may be taken out any more: the folder is not in its place, and another process may work on it. `None` if blocks may be.
    pub fn broken(&self) -> Option<InboxError> {
        (!self.lock.is_in_place()).then(|| InboxError::Broken(misplaced(&self.inbox)))
    }

    /// Returns the waiting blocks in order of their arrival, at most `most`. They stay until each is settled or quarantined.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if the folder cannot be read; [`InboxError::Broken`] if it is not in its place.
    pub fn next(&self, most: usize) -> Result<Vec<Waiting>, InboxError> {
        self.broken().map_or(Ok(()), Err)?;
        let mut waiting = Vec::new();
        for camera in usage::names(&self.inbox.cameras())? {
            if check_camera(&camera).is_err() {
                continue;
            }
            usage::each_file(&self.inbox.received(&camera), |entry, bytes| {
                let Ok(name) = entry.file_name().into_string() else { return };
                let Ok(about) = entry.metadata() else { return };
                if check_name(&name).is_ok() {
                    let arrived_ns = arrived(&about);
                    waiting.push(Waiting { camera: camera.clone(), name, path: entry.path(), bytes, arrived_ns });
                }
            })?;
        }
        waiting.sort_by(|a, b| (a.arrived_ns, &a.camera, &a.name).cmp(&(b.arrived_ns, &b.camera, &b.name)));
        waiting.truncate(most);
        Ok(waiting)
    }

    /// Returns whether a block waits that arrived at this time.
    pub fn has(&self, camera: &str, name: &str, arrived_ns: i64) -> bool {
        let about = std::fs::symlink_metadata(self.inbox.received(camera).join(name));
        about.is_ok_and(|about| arrived(&about) == arrived_ns)
    }

    /// Removes a block whose records are committed. If the removal is lost in a crash, the block waits again and is recognised.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if it cannot be removed.
    pub fn settle(&self, waiting: &Waiting) -> Result<(), InboxError> {
        let removed = self.inbox.faults.at(Step::Remove).and_then(|()| remove(&waiting.path));
        removed.map_err(|error| unusable(&waiting.path, &error))
    }
}

/// Returns when the last byte of a block arrived, in nanoseconds since 1970.
fn arrived(about: &Metadata) -> i64 {
    about.mtime() * 1_000_000_000 + about.mtime_nsec()
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
