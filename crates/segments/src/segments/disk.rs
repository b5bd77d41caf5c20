//! Where a log stands. Main types: [`Disk`], what a log asks of a directory, and [`Directory`], a real one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of files: all that a log asks of the world. Errors are those of the system; the log says what they mean.
pub trait Disk: Send + Sync {
    /// Names of the files, in any order.
    ///
    /// # Errors
    /// As the system answers.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Makes a file of so many bytes, all zero, with room for each of them.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where there is no room: nothing is left of the file then. Otherwise as the system answers, also where there is such a file.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// As the system answers.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system answers.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes what was created and removed durable.
    ///
    /// # Errors
    /// As the system answers.
    fn sync(&self) -> io::Result<()>;

    /// Whether the directory is still where it was found: not moved, not removed, not replaced.
    fn is_in_place(&self) -> bool;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// As the system answers.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads at an offset; how much was read, less than asked for at the end only.
    ///
    /// # Errors
    /// As the system answers.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of it at an offset.
    ///
    /// # Errors
    /// As the system answers; some of it may be written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// As the system answers. What was written since the last success may be lost then, also when a later sync succeeds.
    fn sync(&self) -> io::Result<()>;
}

/// A directory of the system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Open as long as this lives, so that its number is not given to another one.
    opened: File,
    identity: (u64, u64),
}

impl Directory {
    /// Opens a directory; it is made if there is none, and so are those that it is in, each durably.
    ///
    /// # Errors
    /// As the system answers.
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
        // Also of one that was there: whoever made it may have ended before it had synced what it is in. On another file system nothing was made.
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
        // A name that is no text is none of a log's.
        let name = |entry: io::Result<std::fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
        std::fs::read_dir(&self.path)?.map(name).filter_map(Result::transpose).collect()
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = File::options().read(true).write(true).create_new(true).open(self.place(name))?;
        if let Err(error) = allocate(&file, bytes) {
            // What is left of it must not look like a segment; where that fails too, opening the log removes it.
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

/// Gives a file its length and room on the disk for all of it.
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
