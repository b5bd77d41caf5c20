//! Locks that the kernel gives back however a process ends. Main type: [`Lock`].

use std::fs::{File, TryLockError};
use std::path::Path;

use super::{InboxError, unusable};

/// A file that is locked as long as this lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes a lock; none when another process has it.
    pub(super) fn try_take(path: &Path) -> Result<Option<Self>, InboxError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(unusable(path, &error)),
        }
    }

    /// Takes a lock that others hold for moments only.
    pub(super) fn wait(path: &Path) -> Result<Self, InboxError> {
        let file = open(path)?;
        file.lock().map_err(|error| unusable(path, &error))?;
        Ok(Lock { _file: file })
    }
}

fn open(path: &Path) -> Result<File, InboxError> {
    let open = File::options().create(true).truncate(false).write(true).open(path);
    open.map_err(|error| unusable(path, &error))
}
