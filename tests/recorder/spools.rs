//! The files of spools: copied as a kill or a clone leaves them, and damaged.

use std::path::PathBuf;

/// Copies a spool as it is, whether a recorder works on it or not.
pub fn copy_spool(from: &str, to: &str) {
    let _ = std::fs::remove_dir_all(to);
    for log in ["entries", "lasting"] {
        let (from, to) = (PathBuf::from(from).join(log), PathBuf::from(to).join(log));
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            match std::fs::copy(file.path(), to.join(file.file_name())) {
                // What is given up meanwhile is not there any more.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
                _ => {}
            }
        }
    }
}

/// Changes a bit of a text in the entries of a spool; where it was not found, nothing.
pub fn damage_entry(spool: &str, text: &str) -> bool {
    let files = std::fs::read_dir(PathBuf::from(spool).join("entries")).unwrap().map(|file| file.unwrap().path());
    for path in files {
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            return true;
        }
    }
    false
}
