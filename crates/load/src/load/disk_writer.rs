//! Writes to the disk as fast as it can beside a load, to measure how fast that is and how the load suffers.
//!
//! Main type: [`DiskWriter`]. Invariant: it writes to its own files, of a bounded size, which are removed when it ends;
//! data that has not reached the disk when the measured phase ends is waited for and reported separately.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::histogram::Histogram;
use crate::measurement::DiskMeasurement;
use crate::random::Stream;
use crate::trial::{DiskSettings, DiskSync};
use crate::units::NS_PER_S;

/// Alignment that writes past the page cache need, in memory and in the file, in bytes.
const ALIGNMENT: usize = 4096;

/// Threads that write until they are stopped. Dropping it stops them and removes their files.
#[derive(Debug)]
pub struct DiskWriter {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<Written>>>,
    paths: Vec<PathBuf>,
    measured: Option<Instant>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    is_measuring: AtomicBool,
    bytes: AtomicU64,
}

/// The result of one thread in the measured phase.
#[derive(Debug)]
struct Written {
    bytes: u64,
    block_time: Histogram,
    /// Time that the disk took for data left in memory, in seconds.
    flush_s: f64,
}

impl DiskWriter {
    /// Starts writing to files in a directory.
    ///
    /// # Errors
    /// A sentence, if a file cannot be made there, or cannot be written past the page cache.
    pub fn start(settings: &DiskSettings, directory: &Path) -> Result<DiskWriter, String> {
        let shared = Arc::new(Shared::default());
        let mut writer = DiskWriter { shared, threads: Vec::new(), paths: Vec::new(), measured: None };
        for number in 0..settings.writers {
            let path = directory.join(format!("disk-writer-{number}"));
            let failed = |error| format!("[disk]: {} cannot be written: {error}", path.display());
            let file = open(&path, settings.sync).map_err(failed)?;
            writer.paths.push(path.clone());
            let (settings, shared) = (settings.clone(), Arc::clone(&writer.shared));
            let work = move || write(&file, &settings, u64::from(number), &shared);
            let name = format!("disk-writer-{number}");
            writer.threads.push(std::thread::Builder::new().name(name).spawn(work).map_err(failed)?);
        }
        Ok(writer)
    }

    /// Notes that the measured phase begins.
    pub fn measure(&mut self) {
        self.measured = Some(Instant::now());
        self.shared.is_measuring.store(true, Ordering::Release);
    }

    /// Ends the measured phase: stops writing, and waits until all data written is on the disk.
    ///
    /// # Errors
    /// A sentence, if writing failed.
    pub fn finish(mut self) -> Result<DiskMeasurement, String> {
        let writing_s = self.measured.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        self.shared.is_over.store(true, Ordering::Release);
        let mut all = DiskMeasurement::default();
        let mut bytes = 0;
        for thread in self.threads.drain(..) {
            let written = thread.join().map_err(|_| "[disk]: a thread that writes panicked".to_owned())?;
            let written = written
                .map_err(|error| format!("[disk]: writing failed: {error}; free some room, or set disk.file lower"))?;
            bytes += written.bytes;
            all.block_time.merge(&written.block_time);
            all.flush_s = all.flush_s.max(written.flush_s);
        }
        if writing_s > 0.0 {
            all.accepted_bytes_per_s = bytes as f64 / writing_s;
            all.written_bytes_per_s = bytes as f64 / (writing_s + all.flush_s);
        }
        Ok(all)
    }
}

impl Drop for DiskWriter {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // The threads' results are not needed any more.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        for path in &self.paths {
            // The run directory is not removed; a file that stays is visible there.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn open(path: &Path, sync: DiskSync) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if sync == DiskSync::Direct {
        options.custom_flags(libc::O_DIRECT);
    }
    options.open(path)
}

/// Runs in each thread: writes consecutive blocks, starting over when the file has its full length and is on the disk.
fn write(file: &File, settings: &DiskSettings, number: u64, shared: &Shared) -> io::Result<Written> {
    let mut block = Block::new(settings.block_bytes as usize);
    // Disks and file systems that compress or leave out zeros would otherwise write less than is measured.
    let mut random = Stream::seeded(number);
    block.bytes().chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.word().to_le_bytes()[..chunk.len()]));
    let blocks = (settings.file_bytes / u64::from(settings.writers) / settings.block_bytes).max(1);
    let mut written = Written { bytes: 0, block_time: Histogram::new(), flush_s: 0.0 };
    let mut place = 0;
    while !shared.is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        file.write_all_at(block.bytes(), place * settings.block_bytes)?;
        if settings.sync == DiskSync::Each {
            file.sync_data()?;
        }
        if shared.is_measuring.load(Ordering::Acquire) {
            written.bytes += settings.block_bytes;
            shared.bytes.fetch_add(settings.block_bytes, Ordering::Relaxed);
            written.block_time.record(begun.elapsed().as_nanos() as u64);
        }
        place = (place + 1) % blocks;
        if place == 0 && settings.sync == DiskSync::None {
            // Otherwise the same pages would be overwritten in memory again and again, and only the last version would reach the disk.
            file.sync_data()?;
        }
    }
    let flush = Instant::now();
    file.sync_data()?;
    written.flush_s = flush.elapsed().as_nanos() as f64 / NS_PER_S;
    Ok(written)
}

/// Memory with the alignment that writes past the page cache need.
struct Block {
    start: *mut u8,
    layout: Layout,
}

impl Block {
    fn new(bytes: usize) -> Block {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("a block is smaller than half the memory");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        assert!(!start.is_null(), "there is no memory for a block");
        Block { start, layout }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory is ours, initialised, as long as the layout says, and borrowed as the value is.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout and not given away.
        unsafe { dealloc(self.start, self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(sync: DiskSync) -> DiskSettings {
        DiskSettings { block_bytes: 8192, sync, file_bytes: 64 << 10, writers: 2 }
    }

    #[test]
    fn files_stay_within_their_bound_and_are_gone_afterwards() {
        let directory = std::env::temp_dir().join(format!("loadline-disk-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for sync in [DiskSync::None, DiskSync::Each] {
            let mut writer = DiskWriter::start(&settings(sync), &directory).unwrap();
            writer.measure();
            let patience = Instant::now();
            // Several times as much as the files may contain.
            while writer.shared.bytes.load(Ordering::Relaxed) < 256 << 10 && patience.elapsed().as_secs() < 60 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let sizes = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
            assert!(sizes.sum::<u64>() <= 64 << 10);
            let seen = writer.finish().unwrap();
            assert!(seen.accepted_bytes_per_s >= seen.written_bytes_per_s && seen.written_bytes_per_s > 0.0);
            assert!(seen.block_time.count() >= 32, "{sync:?}");
            assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        }
        std::fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let error = DiskWriter::start(&settings(DiskSync::None), Path::new("/nowhere")).unwrap_err();
        assert!(error.starts_with("[disk]: /nowhere/disk-writer-0 cannot be written"), "{error}");
    }

    #[test]
    fn a_block_is_aligned() {
        assert_eq!(Block::new(5000).start as usize % ALIGNMENT, 0);
    }
}
