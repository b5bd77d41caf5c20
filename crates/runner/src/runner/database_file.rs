//! The file of an embedded database, with the files that the database puts next to it.

use std::path::Path;

use crate::database::duckdb::companions;

/// Returns whether the file of a closed embedded database holds all data without its companion files.
pub fn is_checkpointed(file: &Path) -> bool {
    let is_empty =
        |suffix| std::fs::metadata(format!("{}{suffix}", file.display())).map_or(true, |file| file.len() == 0);
    let [log, spilled] = companions(file);
    let is_absent = |path: &Path| std::fs::metadata(path).is_err();
    is_empty("-wal") && is_empty("-journal") && is_absent(&log) && is_absent(&spilled)
}

/// Removes the file of an embedded database and its companion files.
pub fn remove_database_file(file: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        // A file that does not exist need not be removed.
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    let [log, spilled] = companions(file);
    let _ = std::fs::remove_file(log);
    let _ = std::fs::remove_dir_all(spilled);
}
