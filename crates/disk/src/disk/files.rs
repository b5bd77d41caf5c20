//! Operations on the content of files: reads, writes, syncs and changes of length, with the faults of the plan.
//!
//! Invariant: each operation is counted before it fails, so that a plan refers to the same operation every time.

use std::time::SystemTime;

use loadline_base::random::derive;

use super::content::Content;
use super::node::{Attributes, Body, Change};
use super::{Disk, DiskError, Inode, Names, When};

/// The scope of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    All,
    Data,
    Span { offset: u64, length: u64 },
}

impl Disk {
    /// Returns the attributes of a node.
    ///
    /// # Errors
    ///
    /// ENOENT, or no power.
    pub fn attributes(&self, inode: Inode) -> Result<Attributes, DiskError> {
        Ok(self.node(inode)?.attributes(inode))
    }

    /// Sets permissions, owner, times or the length, and returns the attributes.
    ///
    /// # Errors
    ///
    /// ENOENT, EISDIR, EFBIG, ENOSPC, a fault of the plan, or no power.
    pub fn change(&mut self, inode: Inode, change: Change) -> Result<Attributes, DiskError> {
        let now = SystemTime::now();
        self.node(inode)?;
        if let Some(length) = change.length {
            self.count_write()?;
            let was = self.content(inode)?.length();
            self.find_room(length.saturating_sub(was))?;
            let write = self.clock;
            self.content(inode)?.set_length(length, write)?;
            self.bytes = self.bytes + length - was;
        }
        let node = self.node_mut(inode)?;
        node.mode = change.mode.map_or(node.mode, |mode| node.mode & libc::S_IFMT | mode & !libc::S_IFMT);
        node.user = change.user.unwrap_or(node.user);
        node.group = change.group.unwrap_or(node.group);
        node.read_at = change.read_at.unwrap_or(node.read_at);
        node.written_at = change.written_at.or(change.length.map(|_| now)).unwrap_or(node.written_at);
        node.changed_at = now;
        self.attributes(inode)
    }

    /// Opens a node, which stays as long as it is open.
    ///
    /// # Errors
    ///
    /// ENOENT, or no power.
    pub fn open(&mut self, inode: Inode) -> Result<(), DiskError> {
        self.node_mut(inode)?.opened += 1;
        Ok(())
    }

    /// Closes a node; one without a name is removed with the last close.
    ///
    /// # Errors
    ///
    /// ENOENT, or no power.
    pub fn close(&mut self, inode: Inode) -> Result<(), DiskError> {
        let node = self.node_mut(inode)?;
        node.opened = node.opened.saturating_sub(1);
        Ok(self.remove_if_gone(inode)?)
    }

    /// Reads up to `most` bytes from an offset.
    ///
    /// # Errors
    ///
    /// ENOENT, EISDIR, a fault of the plan, or no power.
    pub fn read(&mut self, inode: Inode, offset: u64, most: usize) -> Result<Vec<u8>, DiskError> {
        self.powered()?;
        self.counts.reads += 1;
        self.fail_if(self.plan.faults.failing_read, self.counts.reads)?;
        let mut bytes = self.content(inode)?.read(offset, most)?;
        if let Some(every) = self.plan.faults.flips_one_in {
            let draw = derive(self.plan.seed, self.counts.reads);
            if !bytes.is_empty() && draw.is_multiple_of(every.max(1)) {
                let place = derive(draw, 1);
                let length = bytes.len() as u64;
                bytes[(place % length) as usize] ^= 1 << (place >> 60 & 7);
                self.counts.flipped += 1;
            }
        }
        Ok(bytes)
    }

    /// Writes at an offset, with `is_synced` durably (`O_DSYNC`).
    ///
    /// # Errors
    ///
    /// ENOENT, EISDIR, EFBIG, ENOSPC, a fault of the plan, or no power.
    pub fn write(&mut self, inode: Inode, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), DiskError> {
        self.node(inode)?;
        self.count_write()?;
        let was = self.content(inode)?.length();
        let grows = offset.saturating_add(bytes.len() as u64).saturating_sub(was);
        self.find_room(if bytes.is_empty() { 0 } else { grows })?;
        let write = self.clock;
        let content = self.content(inode)?;
        content.write(offset, bytes, write)?;
        let is = content.length();
        self.bytes += is - was;
        let now = SystemTime::now();
        let node = self.node_mut(inode)?;
        node.written_at = now;
        node.changed_at = now;
        if is_synced {
            self.synced(inode, Sync::Span { offset, length: bytes.len() as u64 })?;
        }
        Ok(())
    }

    /// Makes room for a span, or makes it read as zeros, as `fallocate` does.
    ///
    /// # Errors
    ///
    /// ENOENT, EISDIR, EFBIG, ENOSPC, EOPNOTSUPP, a fault of the plan, or no power.
    pub fn allocate(&mut self, inode: Inode, offset: u64, length: u64, mode: i32) -> Result<(), DiskError> {
        self.node(inode)?;
        self.count_write()?;
        let keeps_length = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let clears = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        let known = libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return Err(DiskError::Code(libc::EOPNOTSUPP));
        }
        let was = self.content(inode)?.length();
        let end = offset.saturating_add(length);
        let write = self.clock;
        if clears {
            self.content(inode)?.clear(offset, length, write)?;
        }
        if !keeps_length && end > was {
            self.find_room(end - was)?;
            self.content(inode)?.set_length(end, write)?;
            self.bytes += end - was;
        }
        Ok(())
    }

    /// Syncs all of a file (`fsync`) or its content and length (`fdatasync`); for a directory, its names.
    ///
    /// # Errors
    ///
    /// ENOENT, a fault of the plan, or no power.
    pub fn sync(&mut self, inode: Inode, is_data_only: bool) -> Result<(), DiskError> {
        self.node(inode)?;
        self.synced(inode, if is_data_only { Sync::Data } else { Sync::All })
    }

    /// Returns the content of a file.
    pub(super) fn content(&mut self, inode: Inode) -> Result<&mut Content, DiskError> {
        match &mut self.node_mut(inode)?.body {
            Body::File(content) => Ok(content),
            Body::Directory => Err(DiskError::Code(libc::EISDIR)),
            Body::Link(_) | Body::Special => Err(DiskError::Code(libc::EINVAL)),
        }
    }

    /// Counts a sync and carries it out.
    fn synced(&mut self, inode: Inode, what: Sync) -> Result<(), DiskError> {
        self.counts.syncs += 1;
        let number = self.counts.syncs;
        if self.plan.when == When::BeforeSync(number) {
            self.is_off = true;
            return Err(DiskError::Off);
        }
        if let Err(error) = self.fail_if(self.plan.faults.failing_sync, number) {
            if let Body::File(content) = &mut self.node_mut(inode)?.body {
                content.give_up();
            }
            return Err(error);
        }
        let names = self.plan.names;
        let node = self.node_mut(inode)?;
        let mut needs_journal = node.is_new || what == Sync::All;
        if let Body::File(content) = &mut node.body {
            needs_journal |= !content.has_synced_length();
            match what {
                Sync::Span { offset, length } => content.sync_span(offset, length),
                Sync::All | Sync::Data => content.sync(),
            }
        }
        match names {
            Names::Strict => self.names.sync(inode),
            Names::Journal if needs_journal => {
                node.is_new = false;
                self.names.sync_all();
            }
            Names::Journal => {}
        }
        self.sweep()?;
        if self.plan.when == When::AfterSync(number) {
            self.is_off = true;
            return Err(DiskError::Off);
        }
        Ok(())
    }

    fn count_write(&mut self) -> Result<(), DiskError> {
        self.powered()?;
        if self.plan.when == When::BeforeWrite(self.counts.writes + 1) {
            self.is_off = true;
            return Err(DiskError::Off);
        }
        self.counts.writes += 1;
        self.clock += 1;
        self.fail_if(self.plan.faults.failing_write, self.counts.writes)
    }

    fn find_room(&mut self, grows: u64) -> Result<(), DiskError> {
        if self.plan.faults.room.is_some_and(|room| self.bytes.saturating_add(grows) > room) {
            self.counts.failed += 1;
            return Err(DiskError::Code(libc::ENOSPC));
        }
        Ok(())
    }

    fn fail_if(&mut self, first: Option<u64>, number: u64) -> Result<(), DiskError> {
        let fails = first.is_some_and(|first| number == first || self.plan.faults.is_for_ever && number > first);
        if fails {
            self.counts.failed += 1;
            return Err(DiskError::Code(libc::EIO));
        }
        Ok(())
    }
}
