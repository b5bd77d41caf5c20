//! Directories of simulated databases. Main type: [`Scratch`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use loadline_segments::segments::simulated::Told;

/// A directory that is removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a directory, in memory if there is one.
    ///
    /// # Errors
    /// Returns why it cannot be made.
    pub fn new() -> Result<Self, Told> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(format!("loadline-simulated-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
