//! An upload: its bytes go into a private file, which is synced, named, and its name synced. Main type: [`Upload`].

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::rename::rename_new;
use super::{InboxError, Receiving, Step};

/// An acknowledged upload: its content is durable under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// The block is new.
    New,
    /// A block of this name and content waits already: the sender had not received the acknowledgement.
    Again,
}

/// A block that arrives. Dropping it discards what has arrived.
#[derive(Debug)]
pub struct Upload {
    receiving: Receiving,
    camera: String,
    name: String,
    part: PathBuf,
    file: Option<File>,
    bytes: u64,
    arrived_ns: Option<i64>,
    is_kept: bool,
}

impl Upload {
    pub(super) fn new(receiving: Receiving, camera: &str, name: &str, part: PathBuf) -> Result<Self, InboxError> {
        let file = File::options().create_new(true).write(true).read(true).open(&part);
        let file = file.map_err(|error| failed(&error, "the upload cannot be begun"))?;
        let (camera, name) = (camera.to_owned(), name.to_owned());
        Ok(Upload { receiving, camera, name, part, file: Some(file), bytes: 0, arrived_ns: None, is_kept: false })
    }

    /// Returns the bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`InboxError::TooLarge`], or [`InboxError::Full`] if the bound or the disk is reached.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), InboxError> {
        let inbox = &self.receiving.inbox;
        let more = bytes.len() as u64;
        if self.bytes + more > inbox.bounds().block {
            return Err(InboxError::TooLarge(inbox.bounds().block));
        }
        self.receiving.usage().reserve(inbox, &self.camera, more)?;
        self.bytes += more;
        let Some(file) = &mut self.file else { return Err(InboxError::Broken("the upload is over".to_owned())) };
        let written = inbox.faults.at(Step::Write).and_then(|()| file.write_all(bytes));
        written.map_err(|error| failed(&error, "the upload cannot be written"))
    }

    /// Sets when the block arrived at the inbox that it comes from, in nanoseconds since 1970: it stays the same upload, however often it arrives.
    pub fn set_arrived(&mut self, arrived_ns: i64) {
        self.arrived_ns = Some(arrived_ns);
    }

    /// Makes the block durable under its name; then it is acknowledged.
    ///
    /// # Errors
    /// [`InboxError::Exists`]; [`InboxError::Broken`] if a sync failed or the folder is not in its place: nothing is acknowledged from then on.
    pub fn finish(mut self) -> Result<Acknowledged, InboxError> {
        self.receiving.broken().map_or(Ok(()), Err)?;
        let inbox = self.receiving.inbox.clone();
        let Some(file) = self.file.take() else { return Err(InboxError::Broken("the upload is over".to_owned())) };
        if let Some(arrived_ns) = self.arrived_ns {
            let arrived = UNIX_EPOCH + Duration::from_nanos(arrived_ns.max(0).unsigned_abs());
            file.set_modified(arrived).map_err(|error| failed(&error, "the time of arrival cannot be set"))?;
        }
        let synced = inbox.faults.at(Step::SyncFile).and_then(|()| file.sync_all());
        synced
            .map_err(|error| self.receiving.set_broken(format!("{} cannot be synced: {error}", self.part.display())))?;
        drop(file);
        let directory = inbox.received(&self.camera);
        let received = directory.join(&self.name);
        let named = inbox.faults.at(Step::Name).and_then(|()| rename_new(&self.part, &received));
        let acknowledged = match named {
            Ok(()) => Acknowledged::New,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.is_same_as(&received) => Acknowledged::Again,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(InboxError::Exists(self.name.clone()));
            }
            Err(error) => return Err(failed(&error, "the upload cannot be given its name")),
        };
        inbox
            .sync_directory(&directory)
            .map_err(|error| self.receiving.set_broken(format!("{} cannot be synced: {error}", directory.display())))?;
        self.receiving.check_place()?;
        if acknowledged == Acknowledged::New {
            self.is_kept = true;
            self.receiving.count_acknowledged();
        }
        Ok(acknowledged)
    }

    /// Returns whether the content equals that of a file and, if both come from another inbox, whether they are one upload there.
    fn is_same_as(&self, path: &std::path::Path) -> bool {
        let time = |about: &std::fs::Metadata| (about.mtime(), about.mtime_nsec());
        let is_one_upload = |about: &std::fs::Metadata| {
            self.arrived_ns.is_none()
                || std::fs::symlink_metadata(&self.part).is_ok_and(|part| time(&part) == time(about))
        };
        let is_alike = std::fs::symlink_metadata(path)
            .is_ok_and(|about| about.is_file() && about.len() == self.bytes && is_one_upload(&about));
        is_alike && matches!((std::fs::read(path), std::fs::read(&self.part)), (Ok(a), Ok(b)) if a == b)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // A file that cannot be removed here is removed by the next intake.
        let _ = std::fs::remove_file(&self.part);
        if !self.is_kept {
            self.receiving.usage().release(&self.camera, self.bytes);
        }
    }
}

/// Returns the error of a failure that leaves the inbox as it was.
fn failed(error: &std::io::Error, what: &str) -> InboxError {
    InboxError::Full(format!("{what}: {error}; send again later"))
}
