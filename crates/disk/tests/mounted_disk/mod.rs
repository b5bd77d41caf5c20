//! The disk under a directory, used by programs that know nothing of it.

mod files;
mod sqlite;

use std::path::PathBuf;

/// A directory that is removed with what is in it.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadline-disk-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = loadline_disk::mount::remove_left_behind(&self.0);
        let removed = std::fs::remove_dir_all(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}
