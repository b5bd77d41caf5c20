//! The file of an embedded database, with the files that the database puts beside it.

use std::path::Path;

/// Whether the file of an embedded database that nobody has open holds all by itself.
pub fn is_checkpointed(file: &Path) -> bool {
    let is_empty =
        |suffix| std::fs::metadata(format!("{}{suffix}", file.display())).map_or(true, |file| file.len() == 0);
    is_empty("-wal") && is_empty("-journal")
}

/// Removes the file of an embedded database, with what belongs to it.
pub fn remove_database_file(file: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        // What is not there need not be removed.
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
}
