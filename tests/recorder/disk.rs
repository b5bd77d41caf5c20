//! A disk that a test looks at and makes fail (`disk.c`), and what is left of it when the power goes.
//!
//! Main types: [`Disk`], which a process is started with, and [`History`], every change that it made, in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::harness::Directory;

/// The pieces that a disk writes whole.
const SECTOR_BYTES: usize = 512;

/// A disk below a directory.
pub struct Disk {
    library: String,
    control: File,
    control_path: String,
    log: PathBuf,
    below: String,
}

/// Fields of `struct control`, by their place.
const WRITES: u64 = 0;
const SYNCS: u64 = 8;
const CLOCK: u64 = 16;

impl Disk {
    /// Compiles the library, and looks at what is below this path.
    pub fn new(directory: &Directory, below: &str) -> Self {
        let library = directory.path("disk.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorder/disk.c");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o", &library, source, "-ldl"]).status();
        assert!(built.unwrap().success(), "cc is installed; ./check does that");
        let control_path = directory.path("control");
        std::fs::write(&control_path, [0; 24]).unwrap();
        let control = OpenOptions::new().write(true).open(&control_path).unwrap();
        Disk { library, control, control_path, log: directory.0.join("disk.log"), below: below.to_owned() }
    }

    /// What a shell says before it starts a process on this disk.
    pub fn shell(&self) -> String {
        let (library, log, below) = (&self.library, self.log.display(), &self.below);
        format!("export LD_PRELOAD={library} DISK_CONTROL={} DISK_LOG={log} DISK_BELOW={below};", self.control_path)
    }

    /// As [`Disk::shell`], where nobody wants to know what was written.
    pub fn shell_without_log(&self) -> String {
        let (library, below) = (&self.library, &self.below);
        format!("export LD_PRELOAD={library} DISK_CONTROL={} DISK_BELOW={below};", self.control_path)
    }

    /// The next writes fail so often; -1 for all of them, until it is told 0.
    pub fn fail_writes(&self, errno: i32, times: i32) {
        self.fail(WRITES, errno, times);
    }

    /// The same for syncs.
    pub fn fail_syncs(&self, errno: i32, times: i32) {
        self.fail(SYNCS, errno, times);
    }

    fn fail(&self, place: u64, errno: i32, times: i32) {
        self.control.write_all_at(&times.to_ne_bytes(), place + 4).unwrap();
        self.control.write_all_at(&errno.to_ne_bytes(), place).unwrap();
    }

    /// The clock of the day goes so far ahead, or behind.
    pub fn set_clock(&self, ahead_ns: i64) {
        self.control.write_all_at(&ahead_ns.to_ne_bytes(), CLOCK).unwrap();
    }

    /// Notes in the log that something was acknowledged.
    pub fn mark(&self, number: u64) {
        let mut record = [0; 24];
        record[0] = MARK as u8;
        record[8..16].copy_from_slice(&number.to_ne_bytes());
        OpenOptions::new().append(true).create(true).open(&self.log).unwrap().write_all(&record).unwrap();
    }

    /// What has happened so far.
    pub fn history(&self) -> History {
        History { events: read(&std::fs::read(&self.log).unwrap()) }
    }
}

const MARK: u32 = 9;

/// Something that happened to the disk.
enum Event {
    Opened { file: u32, path: PathBuf },
    Written { file: u32, offset: usize, bytes: Vec<u8> },
    Cut { file: u32, length: usize },
    SyncBegun { file: u32 },
    Synced { file: u32 },
    Removed { path: PathBuf },
    Renamed { from: PathBuf, to: PathBuf },
    Made { path: PathBuf },
    Mark(u64),
}

/// Every change in order, marks of the test between them.
pub struct History {
    events: Vec<Event>,
}

fn read(mut log: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some((head, rest)) = log.split_at_checked(24) {
        let word = |place: usize| u32::from_ne_bytes(head[place..place + 4].try_into().unwrap());
        let long = |place: usize| u64::from_ne_bytes(head[place..place + 8].try_into().unwrap());
        let (kind, file, offset, length) = (word(0), word(4), long(8), long(16) as usize);
        let Some((bytes, rest)) = rest.split_at_checked(length) else { break };
        let path = |bytes: &[u8]| PathBuf::from(String::from_utf8(bytes.to_vec()).unwrap());
        events.push(match kind {
            1 => Event::Opened { file, path: path(bytes) },
            2 => Event::Written { file, offset: offset as usize, bytes: bytes.to_vec() },
            3 => Event::Cut { file, length: offset as usize },
            4 => Event::SyncBegun { file },
            5 => Event::Synced { file },
            6 => Event::Removed { path: path(bytes) },
            7 => {
                let end = bytes.iter().position(|byte| *byte == 0).unwrap();
                Event::Renamed { from: path(&bytes[..end]), to: path(&bytes[end + 1..]) }
            }
            8 => Event::Made { path: path(bytes) },
            MARK => Event::Mark(offset),
            _ => panic!("kind {kind}"),
        });
        log = rest;
    }
    events
}

/// What the disk does with changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// Nothing of them is there.
    Lost,
    /// Some sectors are there, and some are not.
    Torn(u64),
}

/// A change to a file.
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

/// A file as the disk and the kernel have it.
#[derive(Default)]
struct Content {
    durable: Vec<u8>,
    /// Changes since, and how many of them there were when the sync began that is under way.
    pending: Vec<Change>,
    syncing: usize,
}

/// Names and files while a history is gone through.
#[derive(Default)]
struct State {
    contents: Vec<Content>,
    /// Names as the kernel has them, and as they are on the disk.
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Directories that were made, and those whose own names are on the disk: the directory that they are in was synced behind their beginning.
    directories: BTreeSet<PathBuf>,
    durable_directories: BTreeSet<PathBuf>,
    /// What an open descriptor stands for: a file's content, or a directory.
    opened: HashMap<u32, Result<usize, PathBuf>>,
}

impl History {
    /// Places at which the power is cut: before each sync, and behind it.
    pub fn cuts(&self) -> Vec<usize> {
        let is_cut = |event: &Event| matches!(event, Event::SyncBegun { .. } | Event::Synced { .. });
        (0..self.events.len()).filter(|place| is_cut(&self.events[*place])).map(|place| place + 1).collect()
    }

    /// What had been acknowledged there.
    pub fn marks_before(&self, cut: usize) -> Vec<u64> {
        let mark = |event: &Event| if let Event::Mark(number) = event { Some(*number) } else { None };
        self.events[..cut].iter().filter_map(mark).collect()
    }

    /// Makes the files below `from` as they are after the cut, below `to`.
    pub fn restore(&self, cut: usize, unsynced: Unsynced, from: &Path, to: &Path) {
        let mut state = State::default();
        self.events[..cut].iter().for_each(|event| state.apply(event));
        state.restore(unsynced, from, to);
    }
}

impl State {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Opened { file, path } if path.is_dir() => drop(self.opened.insert(*file, Err(path.clone()))),
            Event::Opened { file, path } => {
                let known = self.names.get(path).copied();
                let content = known.unwrap_or_else(|| {
                    self.contents.push(Content::default());
                    self.names.insert(path.clone(), self.contents.len() - 1);
                    self.contents.len() - 1
                });
                self.opened.insert(*file, Ok(content));
            }
            Event::Written { file, offset, bytes } => {
                self.content(*file).pending.push(Change::Write(*offset, bytes.clone()));
            }
            Event::Cut { file, length } => self.content(*file).pending.push(Change::Cut(*length)),
            Event::SyncBegun { file } => {
                if let Ok(content) = self.opened[file] {
                    self.contents[content].syncing = self.contents[content].pending.len();
                }
            }
            Event::Synced { file } => match self.opened[file].clone() {
                Ok(content) => {
                    let content = &mut self.contents[content];
                    let synced: Vec<_> = content.pending.drain(..content.syncing).collect();
                    synced.iter().for_each(|change| change.apply(&mut content.durable));
                    content.syncing = 0;
                }
                Err(directory) => {
                    let is_in = |path: &Path| path.parent() == Some(&directory);
                    self.durable_names.retain(|path, _| !is_in(path));
                    let names = self.names.iter().filter(|(path, _)| is_in(path));
                    self.durable_names.extend(names.map(|(path, content)| (path.clone(), *content)));
                    self.durable_directories.extend(self.directories.iter().filter(|path| is_in(path)).cloned());
                }
            },
            Event::Removed { path } => drop(self.names.remove(path)),
            Event::Renamed { from, to } => {
                if let Some(content) = self.names.remove(from) {
                    self.names.insert(to.clone(), content);
                }
            }
            Event::Made { path } => drop(self.directories.insert(path.clone())),
            Event::Mark(_) => {}
        }
    }

    fn content(&mut self, file: u32) -> &mut Content {
        let content = self.opened[&file].clone().unwrap();
        &mut self.contents[content]
    }

    fn restore(&self, unsynced: Unsynced, from: &Path, to: &Path) {
        let mut random = match unsynced {
            Unsynced::Lost => Random(0),
            Unsynced::Torn(seed) => Random(seed | 1),
        };
        let mut names = self.durable_names.clone();
        if unsynced != Unsynced::Lost {
            // Names that are new or gone may have come to the disk or not, each for itself.
            for (path, content) in &self.names {
                if random.coin() {
                    names.insert(path.clone(), *content);
                }
            }
            names.retain(|path, _| self.names.contains_key(path) || random.coin());
        }
        // A file is gone with a directory above it whose name never came to the disk.
        let gone: Vec<_> = self
            .directories
            .iter()
            .filter(|path| !self.durable_directories.contains(*path) && (unsynced == Unsynced::Lost || random.coin()))
            .collect();
        names.retain(|path, _| !gone.iter().any(|gone| path.starts_with(gone)));
        for (path, content) in names {
            let content = &self.contents[content];
            let mut bytes = content.durable.clone();
            if unsynced != Unsynced::Lost {
                content.pending.iter().for_each(|change| change.apply_torn(&mut bytes, &mut random));
            }
            let target = to.join(path.strip_prefix(from).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::write(target, bytes).unwrap();
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, written) => put(bytes, *offset, written),
            Change::Cut(length) => bytes.resize(*length, 0),
        }
    }

    fn apply_torn(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        match self {
            Change::Write(offset, written) => {
                for (place, sector) in written.chunks(SECTOR_BYTES).enumerate() {
                    if random.coin() {
                        put(bytes, offset + place * SECTOR_BYTES, sector);
                    }
                }
            }
            Change::Cut(length) if random.coin() => bytes.resize(*length, 0),
            Change::Cut(_) => {}
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    if bytes.len() < offset + written.len() {
        bytes.resize(offset + written.len(), 0);
    }
    bytes[offset..offset + written.len()].copy_from_slice(written);
}

/// Xorshift: any spread will do.
struct Random(u64);

impl Random {
    fn coin(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 63 == 1
    }
}
