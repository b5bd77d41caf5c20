//! Mounts a disk on a directory with FUSE: the kernel's requests are carried out on the [`Disk`], and while the power is gone no request is answered.
//!
//! Main type: [`Mounted`]. Invariant: requests that wait when the power goes get no answer until [`Mounted::release`], so that a server acknowledges nothing in between
//! that only a disk with power would have let it acknowledge.

mod handler;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};

use crate::disk::Disk;
use handler::{Handler, Held};

/// Prefix of the source of our mounts in the kernel's mount table; the process id follows.
const SOURCE: &str = "loadline-disk-";

/// How long the kernel may take to close files that killed processes had open.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);

/// Why a disk could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel has no FUSE, or this user may not use it.
    #[error("{path}: cannot be mounted: {source}; it takes /dev/fuse, and root or fusermount3 (apt-get install fuse3)")]
    Mount {
        /// The directory to mount on.
        path: PathBuf,
        /// The error of the kernel or fusermount3.
        source: io::Error,
    },
    /// The disk stays mounted.
    #[error("{path}: cannot be unmounted: {source}")]
    Unmount {
        /// The directory that the disk is mounted on.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// State shared by the file system and its owner.
#[derive(Debug)]
struct Shared {
    disk: Mutex<Disk>,
    power: Condvar,
    held: Mutex<Held>,
}

impl Shared {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A disk that is mounted on a directory.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    shared: Arc<Shared>,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Mounts a disk on a directory, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// [`MountError::Mount`].
    pub fn new(disk: Disk, at: &Path) -> Result<Self, MountError> {
        let wrong = |source| MountError::Mount { path: at.to_owned(), source };
        fs::create_dir_all(at).map_err(wrong)?;
        let shared = Arc::new(Shared { disk: Mutex::new(disk), power: Condvar::new(), held: Mutex::default() });
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("{SOURCE}{}", std::process::id())),
            MountOption::Subtype("loadline".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoAtime,
        ];
        // Servers run as users of their own.
        config.acl = SessionACL::All;
        let session = Session::new(Handler::new(Arc::clone(&shared)), at, &config).and_then(Session::spawn);
        // The message of fusermount3 ends with a line break.
        let session = session.map_err(|error| io::Error::new(error.kind(), error.to_string().trim().to_owned()));
        Ok(Mounted { at: at.to_owned(), session: Some(session.map_err(wrong)?), shared })
    }

    /// Returns the directory that the disk is mounted on.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Locks the disk, which serves no requests meanwhile.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.shared.disk()
    }

    /// Syncs all that programs have written so far, with what the kernel has not handed over yet, as an operating system does on its own some time later.
    ///
    /// # Errors
    ///
    /// The disk has no power, or a file of it cannot be opened or synced.
    pub fn sync_all(&self) -> io::Result<()> {
        if self.disk().is_off() {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        sync_files(self.path())?;
        self.disk().sync_all()
    }

    /// Waits for at most `most` until the power is gone; returns whether it is.
    pub fn wait_until_off(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut disk = self.shared.disk();
        while !disk.is_off() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let (next, _) = self.shared.power.wait_timeout(disk, left).unwrap_or_else(PoisonError::into_inner);
            disk = next;
        }
        true
    }

    /// Cuts the power.
    pub fn cut_now(&self) {
        self.shared.disk().cut_now();
        self.shared.power.notify_all();
    }

    /// Answers all held requests with EIO, and all later ones while the power is gone, so that killed processes can end.
    pub fn release(&self) {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner).release();
    }

    /// Unmounts the disk, and returns it.
    ///
    /// # Errors
    ///
    /// [`MountError::Unmount`], for example because a process has a file open.
    pub fn unmount(mut self) -> Result<Disk, MountError> {
        self.end().map_err(|source| MountError::Unmount { path: self.at.clone(), source })?;
        let shared = Arc::clone(&self.shared);
        drop(self);
        let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "its file system still runs");
        let path = PathBuf::new();
        let shared = Arc::try_unwrap(shared).map_err(|_| MountError::Unmount { path, source: busy() })?;
        Ok(shared.disk.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) -> io::Result<()> {
        self.release();
        let Some(session) = self.session.take() else { return Ok(()) };
        // The kernel may still be closing files that the last process had open.
        let until = Instant::now() + CLOSED_WITHIN;
        loop {
            match unmount(&self.at, 0) {
                // The kernel has removed the mount: a thread that still reads requests learns that the other end is gone, from either of these codes.
                Ok(()) => {
                    return session.join().or_else(|error| match error.raw_os_error() {
                        Some(libc::ECONNABORTED | libc::ENODEV) => Ok(()),
                        _ => Err(error),
                    });
                }
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                // Without root, fusermount3 has to unmount.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => return session.umount_and_join(),
                Err(error) => {
                    // A process with an open file keeps the file system alive, out of everybody's sight.
                    unmount(&self.at, libc::MNT_DETACH)?;
                    return Err(error);
                }
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Callers that need the outcome call `unmount`.
        let _ = self.end();
    }
}

/// Syncs every file below a directory. `syncfs` does not do here: for a disk in user space it begins to hand over what was written through memory, and does not wait for it.
fn sync_files(directory: &Path) -> io::Result<()> {
    let mut directories = vec![directory.to_owned()];
    // Whatever programs remove meanwhile needs no sync.
    let is_there = |outcome: io::Result<()>| match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    };
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                is_there(File::open(entry.path()).and_then(|file| file.sync_all()))?;
            }
        }
    }
    Ok(())
}

/// Removes the mounts below a directory that a killed run left behind, and returns their directories.
///
/// # Errors
///
/// The mount table cannot be read, or a mount cannot be removed.
pub fn remove_left_behind(below: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let left: Vec<PathBuf> = table.lines().filter_map(left_behind).filter(|at| at.starts_with(below)).collect();
    // Pending requests are aborted, too: a killed process that served the mount may be waiting for its own answer to close files it had open there.
    left.iter().try_for_each(|at| unmount(at, libc::MNT_FORCE | libc::MNT_DETACH))?;
    Ok(left)
}

/// Returns the directory of the mount in a line of `mountinfo`, if the mount belongs to this user and its process has ended.
fn left_behind(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ').skip(1);
    let process: u32 = after.next()?.strip_prefix(SOURCE)?.parse().ok()?;
    // SAFETY: the call only returns the id of this user.
    let own = format!("user_id={}", unsafe { libc::geteuid() });
    // Anybody who may mount can give a mount the same source as ours.
    after.next()?.split(',').find(|option| *option == own)?;
    let at = before.split(' ').nth(4)?;
    // A killed process that cannot end no longer has an executable.
    let program = Path::new("/proc").join(process.to_string()).join("exe").read_link();
    let is_alive = program.map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true);
    (!is_alive).then(|| PathBuf::from(unescaped(at)))
}

/// Decodes space, tab, newline and backslash, which the table writes as three octal digits.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (written, meant)| text.replace(written, meant))
}

fn unmount(at: &Path, flags: i32) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(at.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero byte and outlives the call.
    match unsafe { libc::umount2(path.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_ours_whose_process_has_ended_are_left_behind() {
        // SAFETY: the call only returns the id of this user.
        let own = unsafe { libc::geteuid() };
        let of = |user: u32, process: u32| {
            format!(
                "36 35 0:52 / /tmp/a\\040b rw,nosuid - fuse.loadline {SOURCE}{process} rw,user_id={user},group_id=0"
            )
        };
        let line = |process| of(own, process);
        assert_eq!(left_behind(&of(own + 1, u32::MAX)), None, "somebody else's");
        assert_eq!(left_behind(&line(std::process::id())), None);
        assert_eq!(left_behind(&line(u32::MAX)), Some(PathBuf::from("/tmp/a b")));
        assert_eq!(left_behind("36 35 0:52 / /tmp/a rw - fuse.sshfs somebody rw"), None);
        assert_eq!(left_behind("nonsense"), None);
    }
}
