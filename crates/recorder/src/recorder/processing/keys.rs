//! The keys that open blocks, read from files. Main type: [`Keys`]. The cameras' keys are read again when their file changes, so that a
//! camera can be added or removed while blocks are processed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::block::age::{Identity, read_identities};
use crate::block::{KeyError, Signers};
use crate::recorder::log;

/// The keys of the data centre and of the cameras.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) identities: Vec<Identity>,
    pub(super) signers: Signers,
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
}

impl Keys {
    /// Reads both files.
    pub(super) fn read(identity: &Path, signers: &Path) -> Result<Self, String> {
        let identities = read_key("processing.identity", identity, read_identities)?;
        let mut keys = Keys { identities, signers: Signers::default(), path: signers.to_owned(), seen: None };
        keys.seen = keys.stamp();
        keys.signers = keys.read_signers()?;
        Ok(keys)
    }

    /// Reads the cameras' keys again if their file has changed; a file with errors changes nothing and is logged once.
    pub(super) fn refresh(&mut self) {
        let stamp = self.stamp();
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        match self.read_signers() {
            Ok(signers) => {
                log::info("the cameras' keys were read again", &[("cameras", &signers.cameras().to_string())]);
                self.signers = signers;
            }
            Err(reason) => log::error("the cameras' keys stay as they were", &[("reason", &reason)]),
        }
    }

    fn stamp(&self) -> Option<(SystemTime, u64)> {
        let about = std::fs::metadata(&self.path).ok()?;
        Some((about.modified().ok()?, about.len()))
    }

    fn read_signers(&self) -> Result<Signers, String> {
        read_key("processing.signers", &self.path, Signers::parse)
    }
}

/// Reads and parses the file of keys that a setting names.
pub(in crate::recorder) fn read_key<T>(
    setting: &str,
    path: &Path,
    parse: impl Fn(&str) -> Result<T, KeyError>,
) -> Result<T, String> {
    let place = || format!("{setting}: {}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", place()))?;
    parse(&text).map_err(|error| format!("{}: {error}", place()))
}
