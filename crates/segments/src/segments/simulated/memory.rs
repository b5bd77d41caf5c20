//! A disk in memory that keeps durable and unsynced content apart. Main type: [`MemoryDisk`].

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::random::Stream;
use crate::segments::disk::{Disk, DiskFile};

/// Bytes of a sector, the unit of a disk's writes: each sector of an interrupted write is there or not.
const SECTOR: usize = 512;

/// What a power cut keeps of content that is not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Percentage of the written but unsynced sectors that reach the disk.
    pub sectors: u64,
    /// Percentage of the creations and removals of files that reach the disk although the directory was not synced.
    pub names: u64,
}

#[derive(Debug, Clone, Default)]
struct Content {
    /// The content after the last sync.
    durable: Vec<u8>,
    /// The content that readers see.
    seen: Vec<u8>,
    /// Writes since the last sync: offset and bytes.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// Whether the file was synced since it was created; before that, not even its length is certain.
    is_sized: bool,
}

impl Content {
    fn durable(bytes: Vec<u8>) -> File {
        Arc::new(Mutex::new(Content { durable: bytes.clone(), seen: bytes, unsynced: Vec::new(), is_sized: true }))
    }

    fn cut(&mut self, random: &mut Stream, percent: u64) {
        if !self.is_sized && random.below(100) < 50 {
            self.durable.clear();
        }
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            let mut place = offset;
            while place < offset + bytes.len() {
                let end = ((place / SECTOR + 1) * SECTOR).min(offset + bytes.len());
                if random.below(100) < percent && end <= self.durable.len() {
                    self.durable[place..end].copy_from_slice(&bytes[place - offset..end - offset]);
                }
                place = end;
            }
        }
        self.seen.clone_from(&self.durable);
    }
}

type File = Arc<Mutex<Content>>;

#[derive(Default)]
struct State {
    /// The files that readers see, by name.
    seen: BTreeMap<String, File>,
    /// The files that are on the disk, by name.
    durable: BTreeMap<String, File>,
    /// Number of bytes that files may still take.
    room: u64,
    /// Number of writes and syncs that succeed before all fail; `None` if they never fail.
    until_failure: Option<u64>,
    /// Number of bytes written since the disk was created.
    written_bytes: u64,
    /// Called after each sync of a file; `None` for no call.
    after_sync: Option<AfterSync>,
}

/// A function that examines a disk in the middle of another's work on it.
pub type AfterSync = Arc<dyn Fn() + Send + Sync>;

/// A directory in memory.
#[derive(Clone)]
pub struct MemoryDisk(Arc<Mutex<State>>);

struct MemoryFile {
    disk: MemoryDisk,
    content: File,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDisk {
    /// Creates an empty disk with room for `room` bytes.
    pub fn new(room: u64) -> Self {
        MemoryDisk(Arc::new(Mutex::new(State { room, ..State::default() })))
    }

    /// Returns a new disk with the same files, whose visible content is durable.
    pub fn copied(&self) -> Self {
        let state = lock(&self.0);
        let copy = |(name, file): (&String, &File)| {
            let seen = lock(file).seen.clone();
            (name.clone(), Content::durable(seen))
        };
        let seen: BTreeMap<_, _> = state.seen.iter().map(copy).collect();
        MemoryDisk(Arc::new(Mutex::new(State { durable: seen.clone(), seen, room: state.room, ..State::default() })))
    }

    /// Cuts the power and restores it: part of the unsynced content is lost.
    pub fn cut(&self, random: &mut Stream, cut: Cut) {
        let mut state = lock(&self.0);
        let State { seen, durable, .. } = &mut *state;
        let made: Vec<_> = seen
            .iter()
            .filter(|(name, _)| !durable.contains_key(*name))
            .map(|(name, file)| (name.clone(), Arc::clone(file)))
            .collect();
        for (name, file) in made {
            if random.below(100) < cut.names {
                durable.insert(name, file);
            }
        }
        let removed: Vec<_> = durable.keys().filter(|name| !seen.contains_key(*name)).cloned().collect();
        for name in removed {
            if random.below(100) < cut.names {
                durable.remove(&name);
            }
        }
        durable.values().for_each(|file| lock(file).cut(random, cut.sectors));
        *seen = durable.clone();
        state.until_failure = None;
    }

    /// Sets the room for more files, in bytes.
    pub fn set_room(&self, bytes: u64) {
        lock(&self.0).room = bytes;
    }

    /// Lets `operations` more writes and syncs succeed; all later ones fail until the power is cut.
    pub fn fail_after(&self, operations: u64) {
        lock(&self.0).until_failure = Some(operations);
    }

    /// Sets the function called after each successful sync of a file, in the middle of the syncing operation; `None` removes it.
    pub fn after_sync(&self, look: Option<AfterSync>) {
        lock(&self.0).after_sync = look;
    }

    /// Returns the number of bytes written since the disk was created.
    pub fn written_bytes(&self) -> u64 {
        lock(&self.0).written_bytes
    }

    /// Changes the bytes of a file, durably.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let file = lock(&self.0).seen.get(name).cloned();
        if let Some(file) = file {
            let mut content = lock(&file);
            let mut bytes = content.seen.clone();
            change(&mut bytes);
            *content = Content { durable: bytes.clone(), seen: bytes, unsynced: Vec::new(), is_sized: true };
        }
    }

    /// Removes a file, durably.
    pub fn lose(&self, name: &str) {
        let mut state = lock(&self.0);
        state.seen.remove(name);
        state.durable.remove(name);
    }

    /// Returns the bytes of a file that readers see.
    pub fn bytes_of(&self, name: &str) -> Vec<u8> {
        let file = lock(&self.0).seen.get(name).cloned();
        file.map(|file| lock(&file).seen.clone()).unwrap_or_default()
    }

    /// Counts a write or sync, and fails once no more may succeed.
    fn operation(&self) -> io::Result<()> {
        match &mut lock(&self.0).until_failure {
            Some(0) => Err(io::Error::from_raw_os_error(libc::EIO)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Disk for MemoryDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).seen.keys().cloned().collect())
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.operation()?;
        let mut state = lock(&self.0);
        if state.seen.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if state.room < bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.room -= bytes;
        let zeros = vec![0; bytes as usize];
        let content = Content::durable(zeros);
        lock(&content).is_sized = false;
        state.seen.insert(name.to_owned(), Arc::clone(&content));
        drop(state);
        Ok(Arc::new(MemoryFile { disk: self.clone(), content }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let content = lock(&self.0).seen.get(name).cloned().ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Arc::new(MemoryFile { disk: self.clone(), content }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        let removed = state.seen.remove(name).ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        state.room += lock(&removed).seen.len() as u64;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.operation()?;
        let mut state = lock(&self.0);
        state.durable = state.seen.clone();
        Ok(())
    }

    fn is_in_place(&self) -> bool {
        true
    }
}

impl DiskFile for MemoryFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.content).seen.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = lock(&self.content);
        let rest = content.seen.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let outcome = self.disk.operation();
        lock(&self.disk.0).written_bytes += bytes.len() as u64;
        let mut content = lock(&self.content);
        let (offset, end) = (offset as usize, offset as usize + bytes.len());
        let length = content.seen.len();
        content.seen.resize(length.max(end), 0);
        // A failed write may have written some of the bytes all the same.
        content.seen[offset..end].copy_from_slice(bytes);
        content.unsynced.push((offset, bytes.to_vec()));
        outcome
    }

    fn sync(&self) -> io::Result<()> {
        let outcome = self.disk.operation();
        let mut content = lock(&self.content);
        let Content { durable, unsynced, is_sized, .. } = &mut *content;
        // After a failed sync Linux treats pages as clean that never reached the disk: every reader sees them, and no later sync writes them.
        for (offset, bytes) in unsynced.drain(..).filter(|_| outcome.is_ok()) {
            durable.resize(durable.len().max(offset + bytes.len()), 0);
            durable[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        *is_sized |= outcome.is_ok();
        drop(content);
        let look = lock(&self.disk.0).after_sync.clone();
        if let (Ok(()), Some(look)) = (&outcome, look) {
            look();
        }
        outcome
    }
}
