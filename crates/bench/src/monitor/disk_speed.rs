//! Measures how fast a disk accepts writes. Main function: [`disk_speed`].

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Number of bytes per write, and number of writes.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: u32 = 64;

/// Returns the bytes per second that the disk of a directory accepts: 64 MiB, written in sequence and then synced.
/// `None` if that fails. The file is removed afterwards.
pub fn disk_speed(directory: &Path) -> Option<f64> {
    let path = directory.join("disk-speed.tmp");
    let written = || -> std::io::Result<f64> {
        let mut file = File::create(&path)?;
        let block = vec![0x5a; BLOCK_BYTES];
        let begun = Instant::now();
        for _ in 0..BLOCKS {
            file.write_all(&block)?;
        }
        file.sync_data()?;
        Ok(f64::from(BLOCKS) * BLOCK_BYTES as f64 / begun.elapsed().as_secs_f64())
    };
    let speed = written().ok();
    // A file that cannot be removed stays in the run directory, which is the user's.
    let _ = std::fs::remove_file(&path);
    speed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_a_speed_and_nothing_is_left() {
        let directory = std::env::temp_dir().join(format!("loadline-disk-speed-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        assert!(disk_speed(&directory).unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(disk_speed(&directory), None);
    }
}
