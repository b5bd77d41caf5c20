//! One recorder at a time works on a spool.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::SpoolError;

/// How long another's lock is waited for: a child between fork and exec has all locks of its parent, a recorder that has just ended
/// among them.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// Held as long as the process works on the spool; given back by the kernel however the process ends.
#[derive(Debug)]
pub(super) struct SpoolLock {
    file: File,
    path: PathBuf,
}

impl SpoolLock {
    /// Takes the lock of a spool's directory.
    pub(super) fn take(directory: &Path) -> Result<Self, SpoolError> {
        let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
        let path = directory.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| unusable(format!("{} cannot be opened: {error}", path.display())))?;
        let given_up = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(SpoolLock { file, path }),
                Err(TryLockError::WouldBlock) if Instant::now() < given_up => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(SpoolError::Held { path: directory.display().to_string() });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(unusable(format!("{} cannot be locked: {error}", path.display())));
                }
            }
        }
    }

    /// Whether it is still the file that another recorder would ask.
    pub(super) fn is_in_place(&self) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let (own, found) = (self.file.metadata().map(identity), std::fs::metadata(&self.path).map(identity));
        own.is_ok_and(|own| found.is_ok_and(|found| own == found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_for_a_moment_is_waited_for() {
        let directory = std::env::temp_dir().join(format!("loadline-spool-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let held = SpoolLock::take(&directory).unwrap();
        let release = std::thread::spawn(move || {
            std::thread::sleep(PAUSE * 5);
            drop(held);
        });
        let taken = SpoolLock::take(&directory).unwrap();
        release.join().unwrap();
        assert!(SpoolLock::take(&directory).unwrap_err().to_string().contains("another recorder works on it"));
        drop(taken);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
