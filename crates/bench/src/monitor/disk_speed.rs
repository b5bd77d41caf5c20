//! How fast a disk takes what is written to it. Main function: [`disk_speed`].

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Bytes that are written at a time, and how often.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: u32 = 64;

/// Bytes per second that the disk under a directory takes: 64 MiB, written one after another and then synced. None where it cannot be
/// tried. The file is gone afterwards.
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
    // What cannot be removed is in the run directory, which is the user's.
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
