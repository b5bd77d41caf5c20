//! Carries out the kernel's file-system requests on the disk.
//!
//! Invariant: each request gets exactly one answer, at once or when it is released.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, IoctlFlags, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::Shared;
use crate::disk::{Attributes, Change, Disk, DiskError, Entry, Kind, LONGEST_NAME, New};

/// How long the kernel may cache an answer: nobody else changes anything, and a cut ends with a new mount.
const BELIEVED_FOR: Duration = Duration::from_secs(60);

/// Size in bytes that a disk without a bound reports.
const BOUNDLESS: u64 = 1 << 40;

/// Block size of `statfs` in bytes.
const BLOCK: u64 = 4096;

/// Requests that arrived while the power was gone.
#[derive(Default)]
pub struct Held {
    waiting: Vec<Box<dyn FnOnce() + Send>>,
    is_released: bool,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} requests wait", self.waiting.len())
    }
}

impl Held {
    /// Answers all held requests with EIO, and makes later ones fail at once.
    pub fn release(&mut self) {
        self.is_released = true;
        self.waiting.drain(..).for_each(|refuse| refuse());
    }
}

/// A reply that can carry an error.
trait Refuse: Send + 'static {
    fn refuse(self, error: Errno);
}

macro_rules! refuse {
    ($($reply:ty),*) => {
        $(impl Refuse for $reply {
            fn refuse(self, error: Errno) {
                self.error(error);
            }
        })*
    };
}

refuse!(ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite);

/// A file system that serves a disk.
#[derive(Debug)]
pub struct Handler {
    shared: Arc<Shared>,
    /// The entries of directories as they were when opened, so that names may change while a directory is read.
    listings: Mutex<Listings>,
}

#[derive(Debug, Default)]
struct Listings {
    last: u64,
    of: HashMap<u64, Arc<Vec<Entry>>>,
}

impl Handler {
    pub fn new(shared: Arc<Shared>) -> Self {
        Handler { shared, listings: Mutex::default() }
    }

    /// Carries out a request on the disk and answers it, or holds it if the power is gone.
    fn answer<R: Refuse, T>(
        &self,
        reply: R,
        act: impl FnOnce(&mut Disk) -> Result<T, DiskError>,
        done: impl FnOnce(R, T),
    ) {
        let result = act(&mut self.shared.disk());
        match result {
            Ok(value) => done(reply, value),
            Err(DiskError::Code(code)) => reply.refuse(Errno::from_i32(code)),
            Err(DiskError::Off) => {
                let mut held = self.shared.held.lock().unwrap_or_else(PoisonError::into_inner);
                if held.is_released {
                    reply.refuse(Errno::EIO);
                } else {
                    held.waiting.push(Box::new(move || reply.refuse(Errno::EIO)));
                }
                drop(held);
                self.shared.power.notify_all();
            }
        }
    }

    fn make(&self, request: &Request, parent: INodeNo, name: &OsStr, new: New, mode: u32, reply: ReplyEntry) {
        let owner = (request.uid(), request.gid());
        self.answer(reply, |disk| disk.make(parent.0, name, new, mode, owner), entry);
    }

    fn sync(&self, inode: INodeNo, is_data_only: bool, reply: ReplyEmpty) {
        let longer = self.shared.disk().sync_takes();
        self.answer(reply, |disk| disk.sync(inode.0, is_data_only), |reply, ()| later(longer, move || reply.ok()));
    }
}

/// Answers after some time. Other requests are answered meanwhile; there are as many of these threads as threads that sync.
fn later(longer: Duration, answer: impl FnOnce() + Send + 'static) {
    if longer.is_zero() {
        return answer();
    }
    let waiting = Arc::new(Mutex::new(Some(answer)));
    let wait = {
        let waiting = Arc::clone(&waiting);
        move || {
            thread::sleep(longer);
            give(&waiting);
        }
    };
    if thread::Builder::new().spawn(wait).is_err() {
        // Without another thread, the other requests wait too.
        thread::sleep(longer);
        give(&waiting);
    }
}

/// Gives an answer that was not given yet.
fn give(waiting: &Mutex<Option<impl FnOnce()>>) {
    let answer = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(answer) = answer {
        answer();
    }
}

fn entry(reply: ReplyEntry, attributes: Attributes) {
    reply.entry(&BELIEVED_FOR, &attr(&attributes), Generation(0));
}

fn known(reply: ReplyAttr, attributes: Attributes) {
    reply.attr(&BELIEVED_FOR, &attr(&attributes));
}

fn empty(reply: ReplyEmpty, (): ()) {
    reply.ok();
}

fn type_of(kind: Kind, mode: u32) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Link => FileType::Symlink,
        Kind::Special => match mode & libc::S_IFMT {
            libc::S_IFIFO => FileType::NamedPipe,
            libc::S_IFCHR => FileType::CharDevice,
            libc::S_IFBLK => FileType::BlockDevice,
            _ => FileType::Socket,
        },
    }
}

fn attr(attributes: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(attributes.inode),
        size: attributes.length,
        blocks: attributes.length.div_ceil(512),
        atime: attributes.read_at,
        mtime: attributes.written_at,
        ctime: attributes.changed_at,
        crtime: attributes.changed_at,
        kind: type_of(attributes.kind, attributes.mode),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: attributes.links,
        uid: attributes.user,
        gid: attributes.group,
        rdev: attributes.device,
        blksize: BLOCK as u32,
        flags: 0,
    }
}

fn time(time: Option<TimeOrNow>) -> Option<SystemTime> {
    time.map(|time| match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    })
}

impl Filesystem for Handler {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.answer(reply, |disk| disk.find(parent.0, name), entry);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.answer(reply, |disk| disk.attributes(inode.0), known);
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        length: Option<u64>,
        read_at: Option<TimeOrNow>,
        written_at: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change { mode, user, group, length, read_at: time(read_at), written_at: time(written_at) };
        self.answer(reply, |disk| disk.change(inode.0, change), known);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        self.answer(reply, |disk| disk.target(inode.0), |reply, target| reply.data(target.as_encoded_bytes()));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let is_file = matches!(mode & libc::S_IFMT, 0 | libc::S_IFREG);
        let new = if is_file { New::File } else { New::Special { device } };
        self.make(request, parent, name, new, mode & !umask, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.make(request, parent, name, New::Directory, mode & !umask, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        self.make(request, parent, name, New::Link(target.as_os_str().to_owned()), 0o777, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.answer(reply, |disk| disk.unlink(parent.0, name), empty);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.answer(reply, |disk| disk.remove_directory(parent.0, name), empty);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.answer(reply, |disk| disk.rename((parent.0, name), (new_parent.0, new_name), flags.bits()), empty);
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.answer(reply, |disk| disk.link(inode.0, parent.0, name), entry);
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let done = |reply: ReplyOpen, ()| reply.opened(FileHandle(0), FopenFlags::empty());
        self.answer(reply, |disk| disk.open(inode.0), done);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let owner = (request.uid(), request.gid());
        let act = |disk: &mut Disk| {
            let made = disk.make(parent.0, name, New::File, mode & !umask, owner)?;
            disk.open(made.inode)?;
            Ok(made)
        };
        self.answer(reply, act, |reply, made| {
            reply.created(&BELIEVED_FOR, &attr(&made), Generation(0), FileHandle(0), FopenFlags::empty());
        });
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.answer(reply, |disk| disk.read(inode.0, offset, size as usize), |reply, bytes| reply.data(&bytes));
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_synced = flags.0 & libc::O_DSYNC != 0;
        let longer = if is_synced { self.shared.disk().sync_takes() } else { Duration::ZERO };
        let written = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let act = |disk: &mut Disk| disk.write(inode.0, offset, bytes, is_synced);
        self.answer(reply, act, |reply, ()| later(longer, move || reply.written(written)));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.answer(reply, |disk| disk.close(inode.0), empty);
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, is_data_only: bool, reply: ReplyEmpty) {
        self.sync(inode, is_data_only, reply);
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.sync(inode, false, reply);
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.answer(
            reply,
            |disk| disk.list(inode.0),
            |reply, entries| {
                let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
                listings.last += 1;
                let handle = listings.last;
                listings.of.insert(handle, Arc::new(entries));
                reply.opened(FileHandle(handle), FopenFlags::empty());
            },
        );
    }

    fn readdir(&self, _: &Request, inode: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entries) = listings.of.get(&handle.0).cloned() else { return reply.error(Errno::EBADF) };
        drop(listings);
        // The two names that every directory has; the kernel itself knows where the upper one leads.
        let own = [".", ".."].map(|name| Entry { name: name.into(), inode: inode.0, kind: Kind::Directory });
        let all = own.iter().chain(entries.iter()).enumerate();
        for (number, entry) in all.skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let kind = type_of(entry.kind, 0);
            if reply.add(INodeNo(entry.inode), number as u64 + 1, kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).of.remove(&handle.0);
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.answer(reply, |disk| disk.allocate(inode.0, offset, length, mode), empty);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let (disk, room) = {
            let disk = self.shared.disk();
            (disk.usage(), disk.room().unwrap_or(BOUNDLESS))
        };
        let (bytes, nodes) = disk;
        let free = room.saturating_sub(bytes) / BLOCK;
        let block = BLOCK as u32;
        reply.statfs(room / BLOCK, free, free, nodes + 1_000_000, 1_000_000, block, LONGEST_NAME as u32, block);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }
}
