//! Refused blocks, kept as they were received, each with a file that gives the reason. Main functions: [`list`] and [`replay`].

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::rename::rename_new;
use super::usage;
use super::{Inbox, InboxError, Taking, Waiting, unusable};
use crate::recorder::clock::now_ns;

/// The version of the files with reasons.
const VERSION: u32 = 1;
/// The directory of the reasons, beside the blocks.
const REASONS: &str = "reasons";

/// A block in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantined {
    /// The version of this format.
    pub version: u32,
    /// The camera that uploaded it.
    pub camera: String,
    /// The name under which it was uploaded.
    pub name: String,
    /// When its last byte arrived, in nanoseconds since 1970.
    pub arrived_ns: i64,
    /// When it was refused, in nanoseconds since 1970.
    pub quarantined_ns: i64,
    /// Why it was refused.
    pub reason: String,
}

/// Returns the path of the reason of a quarantined block.
pub(super) fn reason_of(directory: &Path, kept: &str) -> PathBuf {
    directory.join(REASONS).join(format!("{kept}.json"))
}

impl Taking {
    /// Moves a block to quarantine, where it replaces no other; on return, it and its reason are durable.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if it cannot be moved; it still waits then.
    pub fn quarantine(&self, waiting: &Waiting, reason: &str) -> Result<(), InboxError> {
        let directory = self.inbox.quarantine(&waiting.camera);
        self.inbox.make_directory(&directory.join(REASONS))?;
        let (kept, arrived_ns) = free_place(&directory, waiting);
        let note = Quarantined {
            version: VERSION,
            camera: waiting.camera.clone(),
            name: waiting.name.clone(),
            arrived_ns,
            quarantined_ns: now_ns(),
            reason: reason.to_owned(),
        };
        let path = reason_of(&directory, &kept);
        let text = serde_json::to_vec(&note).map_err(|error| unusable(&path, &error))?;
        let written = std::fs::File::create(&path).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        let written = written.and_then(|()| self.inbox.sync_directory(&directory.join(REASONS)));
        written.map_err(|error| unusable(&path, &error))?;
        let to = directory.join(&kept);
        std::fs::rename(&waiting.path, &to).map_err(|error| unusable(&to, &error))?;
        self.inbox.sync_directory(&directory).map_err(|error| unusable(&directory, &error))
    }
}

/// Returns a free file name for a block, and the time in that name: that of its arrival, or a little later if another block of this name and time is
/// kept already. Times of arrival come from other machines as well.
fn free_place(directory: &Path, waiting: &Waiting) -> (String, i64) {
    let mut arrived_ns = waiting.arrived_ns;
    loop {
        let kept = format!("{arrived_ns:020}-{}", waiting.name);
        let is_free = match std::fs::read(directory.join(&kept)) {
            Ok(other) => std::fs::read(&waiting.path).is_ok_and(|own| own == other),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if is_free || arrived_ns == i64::MAX {
            return (kept, arrived_ns);
        }
        arrived_ns += 1;
    }
}

/// Returns all blocks in quarantine, by camera and in order of arrival.
///
/// # Errors
/// [`InboxError::Unusable`] if the folder cannot be read.
pub fn list(inbox: &Inbox) -> Result<Vec<Quarantined>, InboxError> {
    let mut listed = Vec::new();
    for camera in usage::names(&inbox.path().join("quarantine"))? {
        let directory = inbox.quarantine(&camera);
        for file in kept(&directory)? {
            listed.push(read(&directory, &camera, &file));
        }
    }
    Ok(listed)
}

/// Reads the reason of a block; without a readable one, returns what the file name tells.
fn read(directory: &Path, camera: &str, file: &str) -> Quarantined {
    let text = std::fs::read(reason_of(directory, file));
    let note = text.ok().and_then(|text| serde_json::from_slice::<Quarantined>(&text).ok());
    let (arrived, name) = file.split_once('-').unwrap_or(("0", file));
    note.unwrap_or_else(|| Quarantined {
        version: VERSION,
        camera: camera.to_owned(),
        name: name.to_owned(),
        arrived_ns: arrived.parse().unwrap_or(0),
        quarantined_ns: 0,
        reason: "not known: the file with the reason cannot be read".to_owned(),
    })
}

/// Gives blocks back to the processing, all or those of one camera, and returns their number. A block stays if its name waits already.
///
/// # Errors
/// [`InboxError::Unusable`] if one cannot be moved.
pub fn replay(inbox: &Inbox, only: Option<&str>) -> Result<u64, InboxError> {
    let mut moved = 0;
    for camera in usage::names(&inbox.path().join("quarantine"))? {
        if only.is_some_and(|only| only != camera) {
            continue;
        }
        let (directory, received) = (inbox.quarantine(&camera), inbox.received(&camera));
        inbox.make_directory(&received)?;
        for file in kept(&directory)? {
            let (from, name) = (directory.join(&file), file.split_once('-').map_or(file.as_str(), |(_, name)| name));
            let to = received.join(name);
            match rename_new(&from, &to) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                renamed => renamed.map_err(|error| unusable(&to, &error))?,
            }
            inbox.sync_directory(&received).map_err(|error| unusable(&received, &error))?;
            // A reason without its block has no meaning, so a failure to remove it does not matter.
            let _ = std::fs::remove_file(reason_of(&directory, &file));
            moved += 1;
        }
    }
    Ok(moved)
}

/// Returns the names of the blocks in a camera's directory.
fn kept(directory: &Path) -> Result<Vec<String>, InboxError> {
    let mut kept = Vec::new();
    usage::each_file(directory, |entry, _| kept.extend(entry.file_name().into_string()))?;
    kept.sort();
    Ok(kept)
}
