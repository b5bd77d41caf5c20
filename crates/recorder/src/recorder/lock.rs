//! Locks on files, which the kernel releases however a process ends. Main type: [`Lock`].

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for the lock of another process: a child between fork and exec holds all locks of its parent, which may be a recorder that
/// has only now ended.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// A file that is locked as long as this lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes a lock; `None` if another process holds it.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes a lock, and waits a second for another process to release it; `None` if it does not.
    ///
    /// # Errors
    /// As [`Lock::try_take`].
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let taken = Self::try_take(path)?;
            if taken.is_some() || Instant::now() >= given_up {
                return Ok(taken);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a lock that others hold for moments only.
    ///
    /// # Errors
    /// As [`Lock::try_take`].
    pub fn wait(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(Lock { file, path: path.to_owned() })
    }

    /// Returns whether this is still the file that another process would lock.
    pub fn is_in_place(&self) -> bool {
        let identity = |about: std::fs::Metadata| (about.dev(), about.ino());
        let (own, found) = (self.file.metadata().map(identity), std::fs::metadata(&self.path).map(identity));
        own.is_ok_and(|own| found.is_ok_and(|found| own == found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_for_a_moment_is_waited_for_and_one_that_was_removed_is_not_in_place() {
        let path = std::env::temp_dir().join(format!("loadline-lock-{}", std::process::id()));
        let held = Lock::take(&path).unwrap().unwrap();
        let release = std::thread::spawn(move || {
            std::thread::sleep(PAUSE * 5);
            drop(held);
        });
        let taken = Lock::take(&path).unwrap().unwrap();
        release.join().unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none() && taken.is_in_place());
        std::fs::remove_file(&path).unwrap();
        assert!(!taken.is_in_place());
        // A new file of the same name is another one.
        let other = Lock::try_take(&path).unwrap().unwrap();
        assert!(!taken.is_in_place() && other.is_in_place());
        std::fs::remove_file(&path).unwrap();
    }
}
