//! Operations on names: find, list, make, link, rename and remove.
//!
//! Invariant: each operation is one change, which a cut keeps or loses as a whole.

use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use super::node::{Attributes, Body, Kind, Node};
use super::{Disk, DiskError, Inode, MOST_NODES};

/// Maximum length of a name in bytes.
pub const LONGEST_NAME: usize = 255;

/// The node to create.
#[derive(Debug, Clone)]
pub enum New {
    /// An empty file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link to a path.
    Link(OsString),
    /// A socket, pipe or device, of the kind given by the mode.
    Special {
        /// The device's number, for a device.
        device: u32,
    },
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, which may be any bytes.
    pub name: OsString,
    /// The inode that the name refers to.
    pub inode: Inode,
    /// The kind of that inode.
    pub kind: Kind,
}

impl Disk {
    /// Returns the attributes of the node that a name refers to.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, or no power.
    pub fn find(&self, directory: Inode, name: &OsStr) -> Result<Attributes, DiskError> {
        self.directory(directory)?;
        let inode = self.names.get(directory, name).ok_or(DiskError::Code(libc::ENOENT))?;
        self.attributes(inode)
    }

    /// Returns the entries of a directory, ordered by name.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, or no power.
    pub fn list(&self, directory: Inode) -> Result<Vec<Entry>, DiskError> {
        self.directory(directory)?;
        let kind = |inode| self.nodes.get(&inode).map_or(Kind::Special, Node::kind);
        let entries = self.names.list(directory);
        Ok(entries.map(|(name, inode)| Entry { name: name.to_owned(), inode, kind: kind(inode) }).collect())
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    ///
    /// ENOENT, EINVAL for anything but a link, or no power.
    pub fn target(&self, inode: Inode) -> Result<OsString, DiskError> {
        match &self.node(inode)?.body {
            Body::Link(target) => Ok(target.clone()),
            Body::File(_) | Body::Directory | Body::Special => Err(DiskError::Code(libc::EINVAL)),
        }
    }

    /// Creates a node and its name; `mode` holds the permissions and, for a special node, the kind.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, EEXIST, ENAMETOOLONG, ENOSPC, or no power.
    pub fn make(
        &mut self,
        directory: Inode,
        name: &OsStr,
        new: New,
        mode: u32,
        (user, group): (u32, u32),
    ) -> Result<Attributes, DiskError> {
        self.free_name(directory, name)?;
        if self.nodes.len() >= MOST_NODES {
            return Err(DiskError::Code(libc::ENOSPC));
        }
        let inode = self.next;
        let rights = mode & !libc::S_IFMT;
        let (body, mode, device) = match new {
            New::File => (Body::File(self.empty_content(inode)?), libc::S_IFREG | rights, 0),
            New::Directory => (Body::Directory, libc::S_IFDIR | rights, 0),
            New::Link(target) => (Body::Link(target), libc::S_IFLNK | 0o777, 0),
            New::Special { device } => (Body::Special, mode, device),
        };
        self.next += 1;
        let mut node = Node::new(body, mode, user, group, SystemTime::now());
        node.device = device;
        self.bytes += node.length();
        self.nodes.insert(inode, node);
        self.names.set(directory, name, Some(inode));
        self.touch(directory);
        self.attributes(inode)
    }

    /// Gives a node one more name.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, EEXIST, EPERM for a directory, ENAMETOOLONG, or no power.
    pub fn link(&mut self, inode: Inode, directory: Inode, name: &OsStr) -> Result<Attributes, DiskError> {
        self.free_name(directory, name)?;
        let node = self.node_mut(inode)?;
        if node.kind() == Kind::Directory {
            return Err(DiskError::Code(libc::EPERM));
        }
        node.links += 1;
        node.changed_at = SystemTime::now();
        self.names.set(directory, name, Some(inode));
        self.touch(directory);
        self.attributes(inode)
    }

    /// Removes the name of a node that is not a directory.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, EISDIR, or no power.
    pub fn unlink(&mut self, directory: Inode, name: &OsStr) -> Result<(), DiskError> {
        let found = self.find(directory, name)?;
        if found.kind == Kind::Directory {
            return Err(DiskError::Code(libc::EISDIR));
        }
        self.names.set(directory, name, None);
        self.touch(directory);
        self.lose_name(found.inode)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, ENOTEMPTY, or no power.
    pub fn remove_directory(&mut self, directory: Inode, name: &OsStr) -> Result<(), DiskError> {
        let found = self.find(directory, name)?;
        self.directory(found.inode)?;
        if !self.names.is_empty(found.inode) {
            return Err(DiskError::Code(libc::ENOTEMPTY));
        }
        self.names.set(directory, name, None);
        self.touch(directory);
        self.lose_name(found.inode)
    }

    /// Moves a name; `flags` are those of `renameat2`.
    ///
    /// # Errors
    ///
    /// ENOENT, ENOTDIR, EISDIR, EEXIST, ENOTEMPTY, EINVAL for a directory that would be below itself, ENAMETOOLONG, or no power.
    pub fn rename(&mut self, from: (Inode, &OsStr), to: (Inode, &OsStr), flags: u32) -> Result<(), DiskError> {
        let moved = self.find(from.0, from.1)?;
        self.directory(to.0)?;
        fits(to.1)?;
        let replaced = self.names.get(to.0, to.1).map(|inode| self.attributes(inode)).transpose()?;
        let is_exchange = flags & libc::RENAME_EXCHANGE != 0;
        if moved.kind == Kind::Directory && self.is_below(to.0, moved.inode) {
            return Err(DiskError::Code(libc::EINVAL));
        }
        match replaced {
            None if is_exchange => return Err(DiskError::Code(libc::ENOENT)),
            Some(_) if flags & libc::RENAME_NOREPLACE != 0 => return Err(DiskError::Code(libc::EEXIST)),
            // Both names refer to the same file: there is nothing to do.
            Some(replaced) if replaced.inode == moved.inode => return Ok(()),
            Some(replaced) if !is_exchange => self.can_replace(&moved, &replaced)?,
            None | Some(_) => {}
        }
        self.names.rename(from, to, is_exchange);
        self.touch(from.0);
        self.touch(to.0);
        match replaced {
            Some(replaced) if !is_exchange => self.lose_name(replaced.inode),
            None | Some(_) => Ok(()),
        }
    }

    /// Returns the bytes of all files, and the number of files, directories and others.
    pub fn usage(&self) -> (u64, u64) {
        (self.bytes, self.nodes.len() as u64)
    }

    /// Returns the maximum bytes of all files together; `None` if the plan sets no bound.
    pub fn room(&self) -> Option<u64> {
        self.plan.faults.room
    }

    /// Returns the time that a sync takes in addition to that of the disk below.
    pub fn sync_takes(&self) -> std::time::Duration {
        self.plan.faults.sync_takes
    }

    fn directory(&self, inode: Inode) -> Result<(), DiskError> {
        match self.node(inode)?.kind() {
            Kind::Directory => Ok(()),
            Kind::File | Kind::Link | Kind::Special => Err(DiskError::Code(libc::ENOTDIR)),
        }
    }

    fn free_name(&self, directory: Inode, name: &OsStr) -> Result<(), DiskError> {
        self.directory(directory)?;
        fits(name)?;
        match self.names.get(directory, name) {
            Some(_) => Err(DiskError::Code(libc::EEXIST)),
            None => Ok(()),
        }
    }

    fn can_replace(&self, moved: &Attributes, replaced: &Attributes) -> Result<(), DiskError> {
        match (moved.kind == Kind::Directory, replaced.kind == Kind::Directory) {
            (true, false) => Err(DiskError::Code(libc::ENOTDIR)),
            (false, true) => Err(DiskError::Code(libc::EISDIR)),
            (true, true) if !self.names.is_empty(replaced.inode) => Err(DiskError::Code(libc::ENOTEMPTY)),
            _ => Ok(()),
        }
    }

    /// Returns whether a directory is `top` or below it.
    fn is_below(&self, directory: Inode, top: Inode) -> bool {
        if directory == top {
            return true;
        }
        let mut waiting = vec![top];
        while let Some(next) = waiting.pop() {
            for (_, inode) in self.names.list(next) {
                if inode == directory {
                    return true;
                }
                if self.nodes.get(&inode).is_some_and(|node| node.kind() == Kind::Directory) {
                    waiting.push(inode);
                }
            }
        }
        false
    }

    fn lose_name(&mut self, inode: Inode) -> Result<(), DiskError> {
        let node = self.node_mut(inode)?;
        node.links = node.links.saturating_sub(1);
        node.changed_at = SystemTime::now();
        if node.links == 0 {
            self.nameless.insert(inode);
        }
        Ok(self.remove_if_gone(inode)?)
    }

    fn touch(&mut self, directory: Inode) {
        if let Some(node) = self.nodes.get_mut(&directory) {
            let now = SystemTime::now();
            (node.written_at, node.changed_at) = (now, now);
        }
    }
}

fn fits(name: &OsStr) -> Result<(), DiskError> {
    if name.len() > LONGEST_NAME { Err(DiskError::Code(libc::ENAMETOOLONG)) } else { Ok(()) }
}
