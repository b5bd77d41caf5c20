//! Measures how long the disk takes to make a page durable. Runs before the first trial, so that a reader can tell a
//! database that waits for its disk from one that is busy.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::measurement::DiskSync;

/// Maximum number of syncs.
const SYNCS: u32 = 64;
/// Time after which no further sync is tried.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes that are overwritten before each sync: a page of most databases, or a part of one.
const PAGE: usize = 4096;

/// Overwrites single pages of a small file in a directory and syncs after each; the file is removed afterwards. `None`
/// if that fails: a full or read-only disk is noticed elsewhere.
pub fn disk_sync(directory: &Path) -> Option<DiskSync> {
    let path = directory.join("disk-sync.tmp");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).ok()?;
    let times = times(&file);
    drop(file);
    std::fs::remove_file(&path).ok()?;
    summary(times?)
}

/// Measures the syncs. The file is first written as a whole, so that a sync has only the page to write, and no sizes or extents.
fn times(file: &File) -> Option<Vec<Duration>> {
    file.write_all_at(&[0; SYNCS as usize * PAGE], 0).ok()?;
    file.sync_all().ok()?;
    let begun = Instant::now();
    let mut times = Vec::with_capacity(SYNCS as usize);
    for number in 0..SYNCS {
        if begun.elapsed() > PATIENCE {
            break;
        }
        let before = Instant::now();
        file.write_all_at(&[number as u8 + 1; PAGE], u64::from(number) * PAGE as u64).ok()?;
        file.sync_data().ok()?;
        times.push(before.elapsed());
    }
    Some(times)
}

fn summary(mut times: Vec<Duration>) -> Option<DiskSync> {
    times.sort_unstable();
    let at = |share: f64| times.get(((times.len() as f64 * share).ceil() as usize).max(1) - 1);
    Some(DiskSync { p50_s: at(0.5)?.as_secs_f64(), p90_s: at(0.9)?.as_secs_f64(), count: times.len() as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_tried_and_nothing_is_left() {
        let directory = std::env::temp_dir().join(format!("loadline-disk-sync-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let found = disk_sync(&directory).unwrap();
        assert!(found.count >= 1 && found.p50_s > 0.0 && found.p90_s >= found.p50_s, "{found:?}");
        std::fs::remove_dir(&directory).unwrap();
        assert_eq!(disk_sync(&directory), None);
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let times = (1..=10).rev().map(Duration::from_secs).collect();
        assert_eq!(summary(times), Some(DiskSync { p50_s: 5.0, p90_s: 9.0, count: 10 }));
        assert_eq!(summary(Vec::new()), None);
    }
}
