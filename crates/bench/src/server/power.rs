//! Power failures of a private server: its data is on a disk that can lose its power.
//!
//! Main type: [`PowerDisk`]. Invariant: dropping it removes its mount and its files; those of a killed loadline are removed when the next disk is made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_disk::mount::remove_left_behind;
use loadline_disk::{Disk, MountError, Mounted};

pub use loadline_disk::{Faults, Keeps, Lost, Plan, When};

use super::directory::{OwnDirectory, at, random_hex};
use super::{Server, ServerError, process};
use crate::trial::CutKeeps;

/// Prefix of a disk's directory name inside a given parent directory; a random part follows.
const PREFIX: &str = "loadline-disk-";

/// Number of random bytes in the name.
const RANDOM_BYTES: usize = 6;

/// A disk that can lose its power, for the data of a server.
#[derive(Debug)]
pub struct PowerDisk {
    /// Contains the mount point and the directory with the files that the disk stores.
    directory: PathBuf,
    mounted: Option<Mounted>,
    /// The directory of loadline's own that contains `directory`, if there is one; dropped last.
    _own: Option<OwnDirectory>,
}

impl PowerDisk {
    /// Mounts a new disk in a directory of its own in `parent`; without a parent, in a directory of loadline's own.
    ///
    /// # Errors
    /// [`ServerError::Disk`] if this user cannot use FUSE; [`ServerError::Path`].
    pub fn mount(parent: Option<&Path>) -> Result<Self, ServerError> {
        let own = parent.is_none().then(OwnDirectory::new).transpose()?;
        // Disks left by a killed loadline have no owner any more.
        for left in remove_left_behind(Path::new("/")).unwrap_or_default() {
            let directory = left.parent().filter(|directory| is_ours(directory));
            directory.into_iter().for_each(|directory| drop(fs::remove_dir_all(directory)));
        }
        let parent = own.as_ref().map(OwnDirectory::path).or(parent).unwrap_or(Path::new("."));
        let directory = parent.join(format!("{PREFIX}{}", random_hex(RANDOM_BYTES)?));
        let below = directory.join("below");
        fs::create_dir_all(&below).map_err(at(&below, "make"))?;
        // From here on, dropping the value removes what has been made.
        let mut disk = PowerDisk { directory, mounted: None, _own: own };
        // The server's user passes through the outer directory; the files below have no owners.
        for (path, mode) in [(&disk.directory, 0o755), (&below, 0o700)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(at(path, "open"))?;
        }
        let empty = Disk::new(&below).map_err(at(&below, "make"))?;
        disk.mounted = Some(Mounted::new(empty, &disk.path())?);
        Ok(disk)
    }

    /// Returns the directory where the server may write.
    pub fn path(&self) -> PathBuf {
        self.directory.join("disk")
    }

    /// Sets what happens to the disk from now on.
    pub fn plan(&self, plan: Plan) {
        self.mounted.iter().for_each(|mounted| mounted.disk().plan(plan));
    }

    /// Waits until the plan has cut the power, for at most `most`. Returns whether it is cut.
    pub fn wait_until_off(&self, most: Duration) -> bool {
        self.mounted.as_ref().is_some_and(|mounted| mounted.wait_until_off(most))
    }

    /// Syncs all that programs have written so far, with what the kernel has not handed over yet.
    ///
    /// # Errors
    /// When the disk does not take what the kernel hands over.
    pub fn sync_all(&self) -> Result<(), ServerError> {
        self.mounted.iter().try_for_each(Mounted::sync_all).map_err(at(&self.directory, "sync"))
    }

    /// Returns how many bytes the disk's files take.
    pub fn used_bytes(&self) -> u64 {
        self.mounted.as_ref().map_or(0, |mounted| mounted.disk().usage().0)
    }

    /// Cuts the power. Processes that wait for the disk keep waiting until [`PowerDisk::release`].
    pub fn cut(&self, plan: Plan) {
        self.plan(plan);
        self.mounted.iter().for_each(Mounted::cut_now);
    }

    /// Makes waiting requests fail, so that killed processes can end.
    pub fn release(&self) {
        self.mounted.iter().for_each(Mounted::release);
    }

    /// Unmounts the disk and mounts it again, with empty caches; no process may have a file open on it.
    ///
    /// # Errors
    /// When a process has a file open on it.
    pub fn remount(&mut self) -> Result<(), ServerError> {
        let Some(mounted) = self.mounted.take() else { return Ok(()) };
        self.mounted = Some(Mounted::new(mounted.unmount()?, &self.path())?);
        Ok(())
    }

    /// Restores the power, with the data that the disk has kept. Processes that had files open on the disk must be gone.
    ///
    /// # Errors
    /// When the disk cannot be mounted again.
    pub fn restore(&mut self) -> Result<Lost, ServerError> {
        let Some(mounted) = self.mounted.take() else { return Ok(Lost::default()) };
        let mut disk = mounted.unmount()?;
        let lost = disk.restore().map_err(at(&self.directory, "read"))?;
        disk.plan(Plan::default());
        self.mounted = Some(Mounted::new(disk, &self.path())?);
        Ok(lost)
    }
}

impl Drop for PowerDisk {
    fn drop(&mut self) {
        drop(self.mounted.take());
        // A directory that cannot be removed lies in the run's directory, where its owner sees it.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Converts what the disk of a server keeps from the study's form.
fn of_disk(keeps: CutKeeps) -> Keeps {
    match keeps {
        CutKeeps::Nothing => Keeps::Nothing,
        CutKeeps::Sectors => Keeps::Sectors,
        CutKeeps::Blocks => Keeps::Blocks,
        CutKeeps::InOrder => Keeps::Prefix,
    }
}

fn is_ours(directory: &Path) -> bool {
    directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
}

impl From<MountError> for ServerError {
    fn from(error: MountError) -> Self {
        ServerError::Disk(error.to_string())
    }
}

impl Server {
    /// Attaches the disk that the server's data is on.
    #[must_use]
    pub fn on(mut self, power: PowerDisk) -> Self {
        self.power = Some(power);
        self
    }

    /// Returns whether the server's data is on a disk that can lose its power.
    pub fn can_lose_power(&self) -> bool {
        self.power.is_some()
    }

    /// Returns the disk that can lose its power, if the data is on one.
    pub fn disk(&self) -> Option<&PowerDisk> {
        self.power.as_ref()
    }

    /// Returns the disk mutably, so that it can be unmounted.
    pub fn disk_mut(&mut self) -> Option<&mut PowerDisk> {
        self.power.as_mut()
    }

    /// Sets the faults of the server's disk from now on; the default has none.
    ///
    /// # Errors
    /// When the server's data is not on such a disk.
    pub fn set_disk_faults(&self, faults: Faults) -> Result<(), ServerError> {
        let none = || ServerError::Disk("its data are on no disk that can have faults".to_owned());
        self.power.as_ref().ok_or_else(none)?.plan(Plan { faults, ..Plan::default() });
        Ok(())
    }

    /// Does the same as [`Server::lose_power`], with the study's description of what the disk keeps.
    ///
    /// # Errors
    /// See [`Server::lose_power`].
    pub fn cut_power(&mut self, keeps: CutKeeps, seed: u64, away: impl FnOnce()) -> Result<Lost, ServerError> {
        self.lose_power(Plan { keeps: of_disk(keeps), seed, ..Plan::default() }, away)
    }

    /// Cuts the power of the server's disk and ends all of its processes. After `away`, the disk is back with the data
    /// that it has kept; where that is random, the plan's seed decides. The server must then be started again.
    ///
    /// # Errors
    /// When the server's data is not on such a disk, or the disk does not come back.
    pub fn lose_power(&mut self, plan: Plan, away: impl FnOnce()) -> Result<Lost, ServerError> {
        let none = || ServerError::Disk("its data are on no disk that can lose its power".to_owned());
        self.power.as_ref().ok_or_else(none)?.cut(plan);
        // Processes that wait for the disk are killed first, and die when they learn that it failed: they report nothing in between.
        let identities = self.identities();
        identities.iter().for_each(|identity| identity.signal(libc::SIGKILL));
        self.power.iter().for_each(PowerDisk::release);
        self.kill();
        process::wait_until(GONE_WITHIN, || identities.iter().all(|identity| !identity.is_running()));
        away();
        self.power.as_mut().ok_or_else(none)?.restore()
    }
}

/// How long killed processes may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(10);
