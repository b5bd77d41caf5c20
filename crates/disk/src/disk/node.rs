//! What a name stands for: a file, a directory, a link or something that only the kernel looks into.
//!
//! Invariant: owners, rights and times are as they were set last, also after a cut; only content, lengths and names can be lost.

use std::ffi::OsString;
use std::time::SystemTime;

use super::content::Content;
use super::names::Inode;

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a pipe or a device: the kernel does the rest.
    Special,
}

/// What it holds.
#[derive(Debug)]
pub enum Body {
    File(Content),
    Directory,
    Link(OsString),
    Special,
}

/// What is known of a file, directory or other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: Inode,
    /// What kind of thing it is.
    pub kind: Kind,
    /// Kind and rights, as `st_mode` has them.
    pub mode: u32,
    /// Bytes of content, of a link those of its path.
    pub length: u64,
    /// How many names it has.
    pub links: u32,
    /// The owner's id.
    pub user: u32,
    /// The group's id.
    pub group: u32,
    /// A device's number.
    pub device: u32,
    /// When it was read last, as far as anybody set it.
    pub read_at: SystemTime,
    /// When its content changed last.
    pub written_at: SystemTime,
    /// When anything of it changed last.
    pub changed_at: SystemTime,
}

/// What is to be set; `None` leaves it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Change {
    /// Rights, without the kind.
    pub mode: Option<u32>,
    /// The owner's id.
    pub user: Option<u32>,
    /// The group's id.
    pub group: Option<u32>,
    /// Bytes of content.
    pub length: Option<u64>,
    /// When it was read last.
    pub read_at: Option<SystemTime>,
    /// When its content changed last.
    pub written_at: Option<SystemTime>,
}

/// A file, directory or other.
#[derive(Debug)]
pub struct Node {
    pub body: Body,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub device: u32,
    pub links: u32,
    pub opened: u64,
    /// No sync has written it to the journal yet.
    pub is_new: bool,
    pub read_at: SystemTime,
    pub written_at: SystemTime,
    pub changed_at: SystemTime,
}

impl Node {
    /// Something new that one name stands for.
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

    /// A directory with these rights.
    pub fn directory(rights: u32, user: u32, group: u32, now: SystemTime) -> Self {
        Node::new(Body::Directory, libc::S_IFDIR | rights, user, group, now)
    }

    /// Bytes of content.
    pub fn length(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.length(),
            Body::Link(target) => target.len() as u64,
            Body::Directory | Body::Special => 0,
        }
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::File(_) => Kind::File,
            Body::Directory => Kind::Directory,
            Body::Link(_) => Kind::Link,
            Body::Special => Kind::Special,
        }
    }

    /// What is known of it.
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
