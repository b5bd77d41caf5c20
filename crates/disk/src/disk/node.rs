//! The nodes that names refer to: files, directories, symbolic links, and special files that only the kernel interprets.
//!
//! Invariant: owners, permissions and times are as last set, even after a cut; only content, lengths and names can be lost.

use std::ffi::OsString;
use std::time::SystemTime;

use super::content::Content;
use super::names::Inode;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a pipe or a device, which the kernel handles.
    Special,
}

/// The content of a node.
#[derive(Debug)]
pub enum Body {
    File(Content),
    Directory,
    Link(OsString),
    Special,
}

/// The attributes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// The inode number.
    pub inode: Inode,
    /// The kind of the node.
    pub kind: Kind,
    /// Kind and permissions, as in `st_mode`.
    pub mode: u32,
    /// Length of the content in bytes; for a link, that of its target path.
    pub length: u64,
    /// Number of names of the node; 2 for a directory.
    pub links: u32,
    /// The owner's user id.
    pub user: u32,
    /// The group id.
    pub group: u32,
    /// The device number, for a device.
    pub device: u32,
    /// Time of the last read, as far as it was set explicitly.
    pub read_at: SystemTime,
    /// Time of the last change of the content.
    pub written_at: SystemTime,
    /// Time of the last change of the content or the attributes.
    pub changed_at: SystemTime,
}

/// The attributes to set; `None` leaves an attribute as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Change {
    /// Permissions, without the kind.
    pub mode: Option<u32>,
    /// The owner's user id.
    pub user: Option<u32>,
    /// The group id.
    pub group: Option<u32>,
    /// Length of the content in bytes.
    pub length: Option<u64>,
    /// Time of the last read.
    pub read_at: Option<SystemTime>,
    /// Time of the last change of the content.
    pub written_at: Option<SystemTime>,
}

/// A file, directory, link or special file.
#[derive(Debug)]
pub struct Node {
    pub body: Body,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub device: u32,
    pub links: u32,
    pub opened: u64,
    /// True until a sync has written the node to the journal.
    pub is_new: bool,
    pub read_at: SystemTime,
    pub written_at: SystemTime,
    pub changed_at: SystemTime,
}

impl Node {
    /// Creates a node that has one name.
    pub fn new(body: Body, mode: u32, user: u32, group: u32, now: SystemTime) -> Self {
        Node {
            body,
            mode,
            user,
            group,
            device: 0,
            links: 1,
            opened: 0,
            is_new: true,
            read_at: now,
            written_at: now,
            changed_at: now,
        }
    }

    /// Creates a directory with these permissions.
    pub fn directory(rights: u32, user: u32, group: u32, now: SystemTime) -> Self {
        Node::new(Body::Directory, libc::S_IFDIR | rights, user, group, now)
    }

    /// Returns the length of the content in bytes.
    pub fn length(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.length(),
            Body::Link(target) => target.len() as u64,
            Body::Directory | Body::Special => 0,
        }
    }

    /// Returns the kind of the node.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::File(_) => Kind::File,
            Body::Directory => Kind::Directory,
            Body::Link(_) => Kind::Link,
            Body::Special => Kind::Special,
        }
    }

    /// Returns the attributes of the node.
    pub fn attributes(&self, inode: Inode) -> Attributes {
        Attributes {
            inode,
            kind: self.kind(),
            mode: self.mode,
            length: self.length(),
            links: if self.kind() == Kind::Directory { 2 } else { self.links },
            user: self.user,
            group: self.group,
            device: self.device,
            read_at: self.read_at,
            written_at: self.written_at,
            changed_at: self.changed_at,
        }
    }
}
