//! One recorder at a time works on a spool.

use std::fs::File;
use std::path::Path;

use super::SpoolError;

/// Held as long as the process works on the spool; given back by the kernel however the process ends.
#[derive(Debug)]
pub(super) struct SpoolLock {
    _file: File,
}

impl SpoolLock {
    /// Takes the lock of a spool's directory.
    pub(super) fn take(directory: &Path) -> Result<Self, SpoolError> {
        let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
        let path = directory.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| unusable(format!("{} cannot be opened: {error}", path.display())))?;
        match file.try_lock() {
            Ok(()) => Ok(SpoolLock { _file: file }),
            Err(_) => {
                Err(unusable("another recorder works on it; stop that one, or name another directory".to_owned()))
            }
        }
    }
}
