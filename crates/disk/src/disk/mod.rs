//! The disk itself, without a kernel: files, names, syncs, faults, and power cuts.
//!
//! Main type: [`Disk`]. Invariants: content that a sync reported as safe is there after every cut, and nothing is there that was never written; while the power is
//! gone, no operation is answered.

mod content;
mod files;
mod names;
mod naming;
mod node;
mod plan;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use loadline_base::random::{Stream, derive};

pub use content::{BLOCK, LONGEST, SECTOR};
pub use names::{Inode, ROOT};
pub use naming::{Entry, LONGEST_NAME, New};
pub use node::{Attributes, Change, Kind};
pub use plan::{Faults, Keeps, Names, Plan, When};

use content::{Content, Length};
use names::NameTable;
use node::{Body, Node};

/// Maximum number of nodes: files, directories and others.
const MOST_NODES: usize = 1_000_000;

/// Why an operation was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The `errno` code that the program receives.
    #[error("errno {0}")]
    Code(i32),
    /// The power is gone: no program receives an answer.
    #[error("the power is gone")]
    Off,
}

impl From<io::Error> for DiskError {
    fn from(error: io::Error) -> Self {
        DiskError::Code(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// Number of operations that a disk has carried out, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requested syncs of files and directories, and writes that sync themselves.
    pub syncs: u64,
    /// Writes, including allocations and changes of a length.
    pub writes: u64,
    /// Reads.
    pub reads: u64,
    /// Operations that were made to fail.
    pub failed: u64,
    /// Reads whose answer had a flipped bit.
    pub flipped: u64,
}

/// The losses of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Blocks that had been written and not synced; some of their sectors may be kept.
    pub unsynced_blocks: u64,
    /// Sectors of these blocks that are as they were before, except those already given up by a failed sync.
    pub sectors: u64,
    /// Changes to names that had been made and not synced; some of them may be kept.
    pub unsynced_names: u64,
    /// Changes to names that are lost.
    pub names: u64,
    /// Files, directories and others that no name refers to any more.
    pub files: u64,
}

impl Lost {
    /// Returns the number of blocks and changes to names that were not synced, kept or not: everything that the cut had to decide on.
    pub fn unsynced(&self) -> u64 {
        self.unsynced_blocks + self.unsynced_names
    }
}

/// A disk that keeps its content in a directory of its own.
#[derive(Debug)]
pub struct Disk {
    below: PathBuf,
    nodes: HashMap<Inode, Node>,
    names: NameTable,
    /// Nodes without a name that are open or that a cut could bring back.
    nameless: HashSet<Inode>,
    next: Inode,
    bytes: u64,
    plan: Plan,
    /// Operations since the plan was set.
    counts: Counts,
    /// Number of writes since the disk was created, which orders them.
    clock: u64,
    cuts: u64,
    is_off: bool,
}

impl Disk {
    /// Creates an empty disk that keeps its content in a directory, which is created if it is missing and must be empty.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, or is not empty.
    pub fn new(below: &Path) -> io::Result<Self> {
        fs::create_dir_all(below)?;
        if fs::read_dir(below)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::DirectoryNotEmpty,
                format!("{} holds something", below.display()),
            ));
        }
        let mut nodes = HashMap::new();
        nodes.insert(ROOT, Node::directory(0o755, 0, 0, SystemTime::now()));
        Ok(Disk {
            below: below.to_owned(),
            nodes,
            names: NameTable::default(),
            nameless: HashSet::new(),
            next: ROOT + 1,
            bytes: 0,
            plan: Plan::default(),
            counts: Counts::default(),
            clock: 0,
            cuts: 0,
            is_off: false,
        })
    }

    /// Sets what happens from now on; counting begins anew.
    pub fn plan(&mut self, plan: Plan) {
        self.plan = plan;
        self.counts = Counts::default();
    }

    /// Returns the number of operations since the plan was set.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns whether the power is gone.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// Cuts the power.
    pub fn cut_now(&mut self) {
        self.is_off = true;
    }

    /// Syncs everything that programs have written, as an operating system does on its own some time later. What a failed sync has given up stays lost.
    ///
    /// # Errors
    ///
    /// A file below that nothing needs any more cannot be removed.
    pub fn sync_all(&mut self) -> io::Result<()> {
        for node in self.nodes.values_mut() {
            node.is_new = false;
            if let Body::File(content) = &mut node.body {
                content.sync();
            }
        }
        self.names.sync_all();
        self.sweep()
    }

    /// Restores the power: unsynced changes are lost except those that the plan keeps, and no node is open any more. Returns the losses.
    ///
    /// # Errors
    ///
    /// A file below cannot be read or written: the machine's own disk is in trouble, and the state of this disk means nothing.
    pub fn restore(&mut self) -> io::Result<Lost> {
        self.cuts += 1;
        let seed = derive(self.plan.seed, self.cuts);
        let mut chance = Stream::new(seed, 0, 0);
        let mut lost = Lost::default();
        let changes = self.names.unsynced_changes() as u64;
        let kept_changes = match self.plan.keeps {
            Keeps::Nothing => 0,
            Keeps::Sectors | Keeps::Blocks | Keeps::Prefix => chance.below(changes + 1),
        };
        (lost.unsynced_names, lost.names) = (changes, changes - kept_changes);
        let last_kept = chance.below(self.clock + 1);
        let keeps = self.plan.keeps;
        for (inode, node) in &mut self.nodes {
            node.opened = 0;
            let Body::File(content) = &mut node.body else { continue };
            lost.unsynced_blocks += content.unsynced_blocks() as u64;
            let of_file = derive(seed, *inode);
            let length = match keeps {
                Keeps::Nothing => Length::Synced,
                Keeps::Prefix => Length::Kept,
                Keeps::Sectors | Keeps::Blocks if Stream::at(of_file, u64::MAX).word().is_multiple_of(2) => Length::Now,
                Keeps::Sectors | Keeps::Blocks => Length::Synced,
            };
            content.cut(length, |block, write, sector| {
                let number = if keeps == Keeps::Sectors { block * (BLOCK / SECTOR) + sector } else { block };
                let is_kept = match keeps {
                    Keeps::Nothing => false,
                    Keeps::Sectors | Keeps::Blocks => Stream::at(of_file, number).word().is_multiple_of(2),
                    Keeps::Prefix => write <= last_kept,
                };
                lost.sectors += u64::from(!is_kept);
                is_kept
            })?;
        }
        let links = self.names.cut(usize::try_from(kept_changes).unwrap_or(usize::MAX));
        let gone: Vec<Inode> = self.nodes.keys().filter(|inode| !links.contains_key(inode)).copied().collect();
        for inode in gone {
            lost.files += 1;
            self.remove(inode)?;
        }
        for (inode, node) in &mut self.nodes {
            node.links = links.get(inode).copied().unwrap_or(0);
        }
        self.nameless.clear();
        self.bytes = self.nodes.values().map(Node::length).sum();
        self.is_off = false;
        Ok(lost)
    }

    fn powered(&self) -> Result<(), DiskError> {
        if self.is_off { Err(DiskError::Off) } else { Ok(()) }
    }

    fn node(&self, inode: Inode) -> Result<&Node, DiskError> {
        self.powered()?;
        self.nodes.get(&inode).ok_or(DiskError::Code(libc::ENOENT))
    }

    fn node_mut(&mut self, inode: Inode) -> Result<&mut Node, DiskError> {
        self.powered()?;
        self.nodes.get_mut(&inode).ok_or(DiskError::Code(libc::ENOENT))
    }

    fn path_of(&self, inode: Inode) -> PathBuf {
        self.below.join(inode.to_string())
    }

    fn empty_content(&self, inode: Inode) -> io::Result<Content> {
        let path = self.path_of(inode);
        File::options().read(true).write(true).create_new(true).open(path).map(Content::new)
    }

    /// Removes a node that has no name, is not open, and cannot be brought back by a cut.
    fn remove_if_gone(&mut self, inode: Inode) -> io::Result<()> {
        let is_gone = self.nodes.get(&inode).is_some_and(|node| node.links == 0 && node.opened == 0);
        if is_gone && !self.names.could_return(inode) { self.remove(inode) } else { Ok(()) }
    }

    fn remove(&mut self, inode: Inode) -> io::Result<()> {
        self.nameless.remove(&inode);
        let Some(node) = self.nodes.remove(&inode) else { return Ok(()) };
        self.names.forget(inode);
        self.bytes = self.bytes.saturating_sub(node.length());
        if matches!(node.body, Body::File(_)) { fs::remove_file(self.path_of(inode)) } else { Ok(()) }
    }

    /// Removes all nodes that nothing can bring back any more; called after changes became safe.
    fn sweep(&mut self) -> io::Result<()> {
        let candidates: Vec<Inode> = self.nameless.iter().copied().collect();
        candidates.into_iter().try_for_each(|inode| self.remove_if_gone(inode))
    }
}
