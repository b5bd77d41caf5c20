//! The inbox: a folder in which blocks wait between intake and processing. Intake and processing may be parts of one process, two
//! processes, or two machines that share the folder; nothing but the folder joins them.
//!
//! Main types: [`Inbox`], the folder; [`Receiving`], the intake's end, which gives [`Upload`]s; [`Taking`], the processing's end,
//! which gives [`Waiting`] blocks.
//!
//! The folder:
//!
//! ```text
//! intakes/<id>.lock                              held by an intake as long as it lives
//! cameras/<camera>/incoming/<id>-<n>.part        uploads of that intake; processing never looks here
//! cameras/<camera>/received/<name>               acknowledged, in order of their times of modification
//! quarantine/<camera>/<time>-<name>              acknowledged and refused, as they were received
//! quarantine/<camera>/reasons/<time>-<name>.json why
//! processing.lock                                held by the processing, or by what forwards to another inbox
//! station                                        what tells this inbox apart from others that forward to the same one
//! ```
//!
//! Invariant: a block is acknowledged after its file and the name of its file are synced, and from then on its file is there
//! until its records are committed. A name is never given to two contents.

mod error;
mod faults;
mod name;
mod quarantine;
mod receiving;
mod rename;
mod station;
mod taking;
#[cfg(test)]
mod tests;
mod upload;
mod usage;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::InboxError;
pub use faults::{Faults, Step};
pub use name::{check_camera, check_name};
pub use quarantine::{Quarantined, list, replay};
pub use receiving::Receiving;
pub use taking::{Taking, Waiting};
pub use upload::{Acknowledged, Upload};
pub use usage::Counts;

/// Bounds on sizes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The whole inbox: what arrives, waits, and is in quarantine.
    pub all: u64,
    /// The share of one camera, so that a broken one leaves room for the others.
    pub camera: u64,
    /// One block.
    pub block: u64,
}

/// The folder. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inbox {
    path: Arc<PathBuf>,
    bounds: Bounds,
    faults: Faults,
}

impl Inbox {
    /// Opens the folder, and creates it if it is missing.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] with path and reason.
    pub fn open(path: &Path, bounds: Bounds) -> Result<Self, InboxError> {
        Self::open_with(path, bounds, Faults::default())
    }

    /// As [`Inbox::open`], with steps that fail when a test demands it.
    ///
    /// # Errors
    /// As [`Inbox::open`].
    pub fn open_with(path: &Path, bounds: Bounds, faults: Faults) -> Result<Self, InboxError> {
        let inbox = Inbox { path: Arc::new(path.to_owned()), bounds, faults };
        for part in ["cameras", "intakes", "quarantine"] {
            inbox.make_directory(&inbox.path.join(part))?;
        }
        Ok(inbox)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bounds.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Counts what is in the inbox by reading the folder.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if it cannot be read.
    pub fn counts(&self) -> Result<Counts, InboxError> {
        usage::scan(self).map(|scan| scan.all)
    }

    fn cameras(&self) -> PathBuf {
        self.path.join("cameras")
    }

    fn camera(&self, camera: &str) -> PathBuf {
        self.cameras().join(camera)
    }

    fn incoming(&self, camera: &str) -> PathBuf {
        self.camera(camera).join("incoming")
    }

    fn received(&self, camera: &str) -> PathBuf {
        self.camera(camera).join("received")
    }

    /// Returns a camera's directory in quarantine.
    fn quarantine(&self, camera: &str) -> PathBuf {
        self.path.join("quarantine").join(camera)
    }

    /// Creates a directory and its parents, durably.
    fn make_directory(&self, path: &Path) -> Result<(), InboxError> {
        if path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.make_directory(parent)?;
        }
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(unusable(path, &error)),
            _ => {}
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.sync_directory(parent).map_err(|error| unusable(parent, &error))
    }

    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> std::io::Result<()> {
        self.faults.at(Step::SyncDirectory)?;
        File::open(path)?.sync_all()
    }
}

/// Returns the error message for an inbox whose folder was replaced.
fn misplaced(inbox: &Inbox) -> String {
    format!("its directory {} was moved, removed or replaced while it was worked on", inbox.path().display())
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> InboxError {
    InboxError::Unusable { path: path.display().to_string(), reason: error.to_string() }
}
