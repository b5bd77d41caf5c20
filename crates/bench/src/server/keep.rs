//! Data directories that outlive their server: taken out after a server has stopped in order, and put in place when another one starts.
//!
//! Main type: [`KeptData`]. Invariant: data is kept only if its server stopped in order, and is never in two places
//! that a server may write to.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The data that a stopped server has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptData {
    /// The data directory, or the file of an embedded database.
    pub path: PathBuf,
    /// Password of the account in the database; empty if it has none.
    pub password: String,
}

/// Moves a file or directory to `to`, where nothing may exist yet. If that is on another file system, copies it with
/// owners and permissions. Returns whether it is gone from `from`.
///
/// # Errors
/// When it can be neither moved nor copied; a partial copy is removed.
pub fn move_or_copy(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(from, to).inspect_err(|_| remove(to))?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Removes a file or a directory; a path that cannot be removed stays.
pub fn remove(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let _ = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Returns the total size in bytes of all files below a path; files that cannot be read count as zero.
pub fn size_bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.blocks() * 512;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_bytes(&entry.path())).sum()
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if metadata.is_file() {
        fs::copy(from, to)?;
    } else {
        // Links would lead out of the directory, and sockets are of no use to another server.
        return Ok(());
    }
    fs::set_permissions(to, fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
    let there = fs::symlink_metadata(to)?;
    if (there.uid(), there.gid()) != (metadata.uid(), metadata.gid()) {
        chown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_with_their_permissions() {
        let root = std::env::temp_dir().join(format!("loadline-keep-{}", std::process::id()));
        fs::create_dir_all(root.join("from/inner")).unwrap();
        fs::write(root.join("from/inner/file"), "content").unwrap();
        fs::set_permissions(root.join("from/inner/file"), fs::Permissions::from_mode(0o640)).unwrap();
        copy(&root.join("from"), &root.join("to")).unwrap();
        assert_eq!(fs::read(root.join("to/inner/file")).unwrap(), b"content");
        assert_eq!(fs::metadata(root.join("to/inner/file")).unwrap().mode() & 0o777, 0o640);
        assert!(size_bytes(&root.join("to")) > 0);
        assert!(move_or_copy(&root.join("to"), &root.join("moved")).unwrap());
        assert!(!root.join("to").exists() && root.join("moved/inner/file").exists());
        remove(&root);
        assert!(!root.exists());
    }
}
