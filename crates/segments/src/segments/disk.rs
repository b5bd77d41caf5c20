//! The directory that holds a log. Main types: [`Disk`], the operations that a log needs, and [`Directory`], a real directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of files: everything that a log needs from its environment. Errors are those of the system; the log interprets them.
pub trait Disk: Send + Sync {
    /// Returns the names of the files, in any order.
    ///
    /// # Errors
    /// Any error of the system.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Creates a file of `bytes` zero bytes, with room reserved for each of them.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] if there is no room: nothing is left of the file then. Otherwise any error of the system, including one for a file that exists.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// Any error of the system.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// Any error of the system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all creations and removals durable.
    ///
    /// # Errors
    /// Any error of the system.
    fn sync(&self) -> io::Result<()>;

    /// Returns whether the directory is still where it was found: not moved, removed or replaced.
    fn is_in_place(&self) -> bool;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Any error of the system.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads at an offset, and returns the number of bytes read: fewer than requested only at the end of the file.
    ///
    /// # Errors
    /// Any error of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at an offset.
    ///
    /// # Errors
    /// Any error of the system; some of the bytes may be written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes all written bytes durable.
    ///
    /// # Errors
    /// Any error of the system. Bytes written since the last successful sync may be lost then, even if a later sync succeeds.
    fn sync(&self) -> io::Result<()>;
}

/// A directory in the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Stays open as long as this value lives, so that its inode number is not given to another directory.
    opened: File,
    identity: (u64, u64),
}

impl Directory {
    /// Opens a directory; it and its missing parents are created, each durably.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|place| !place.as_os_str().is_empty() && !place.exists()).collect();
        for place in missing.into_iter().rev() {
            match std::fs::create_dir(place) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let opened = File::open(path)?;
        let metadata = opened.metadata()?;
        if !metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no directory"));
        }
        // This applies to an existing directory, too: its creator may have ended before syncing the parent. On another file system nothing was created.
        for parent in path.ancestors().skip(1) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            match File::open(parent) {
                Ok(parent) if parent.metadata()?.dev() == metadata.dev() => parent.sync_all()?,
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Directory { path: path.to_owned(), opened, identity: (metadata.dev(), metadata.ino()) })
    }

    fn place(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Disk for Directory {
    fn names(&self) -> io::Result<Vec<String>> {
        // A name that is not valid text does not belong to a log.
        let name = |entry: io::Result<std::fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
        std::fs::read_dir(&self.path)?.map(name).filter_map(Result::transpose).collect()
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = File::options().read(true).write(true).create_new(true).open(self.place(name))?;
        if let Err(error) = allocate(&file, bytes) {
            // The remains must not look like a segment; if this removal fails, too, opening the log removes them.
            let _ = std::fs::remove_file(self.place(name));
            return Err(error);
        }
        Ok(Arc::new(OpenFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenFile(File::options().read(true).write(true).open(self.place(name))?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.place(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.opened.sync_all()
    }

    fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }
}

/// Gives a file its length, and reserves room on the disk for all of it.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    loop {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and the call takes no pointer.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

#[derive(Debug)]
struct OpenFile(File);

impl DiskFile for OpenFile {
    fn bytes(&self) -> io::Result<u64> {
        self.0.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
