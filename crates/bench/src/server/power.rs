//! The power of a private server: its data are on a disk that can lose it.
//!
//! Main type: [`PowerDisk`]. Invariant: when it goes, its mount and its files go with it; those of a loadline that was killed go when the next disk is made.

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

/// What begins the name of a disk's directory in a directory of somebody's; a random part follows.
const PREFIX: &str = "loadline-disk-";

/// Bytes of the random part.
const RANDOM_BYTES: usize = 6;

/// A disk for the data of a server.
#[derive(Debug)]
pub struct PowerDisk {
    /// Holds where it is mounted, and what lies below.
    directory: PathBuf,
    mounted: Option<Mounted>,
    /// Goes behind all, where it is in a directory of loadline's own.
    _own: Option<OwnDirectory>,
}

impl PowerDisk {
    /// A new one, in a directory of its own in `parent`; without one, in a directory of loadline's own.
    ///
    /// # Errors
    /// [`ServerError::Disk`] where there is no FUSE for this user; [`ServerError::Path`].
    pub fn mount(parent: Option<&Path>) -> Result<Self, ServerError> {
        let own = parent.is_none().then(OwnDirectory::new).transpose()?;
        // What a killed loadline has left is nobody's any more.
        for left in remove_left_behind(Path::new("/")).unwrap_or_default() {
            let directory = left.parent().filter(|directory| is_ours(directory));
            directory.into_iter().for_each(|directory| drop(fs::remove_dir_all(directory)));
        }
        let parent = own.as_ref().map(OwnDirectory::path).or(parent).unwrap_or(Path::new("."));
        let directory = parent.join(format!("{PREFIX}{}", random_hex(RANDOM_BYTES)?));
        let below = directory.join("below");
        fs::create_dir_all(&below).map_err(at(&below, "make"))?;
        // From here on dropping the value removes what has been made.
        let mut disk = PowerDisk { directory, mounted: None, _own: own };
        // The server's user goes through the outer one; what lies below has no owners.
        for (path, mode) in [(&disk.directory, 0o755), (&below, 0o700)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(at(path, "open"))?;
        }
        let empty = Disk::new(&below).map_err(at(&below, "make"))?;
        disk.mounted = Some(Mounted::new(empty, &disk.path())?);
        Ok(disk)
    }

    /// Where the server may write.
    pub fn path(&self) -> PathBuf {
        self.directory.join("disk")
    }

    /// What is to happen to it from now on.
    pub fn plan(&self, plan: Plan) {
        self.mounted.iter().for_each(|mounted| mounted.disk().plan(plan));
    }

    /// Waits until the power is gone by its plan, so long at most; tells whether it is.
    pub fn wait_until_off(&self, most: Duration) -> bool {
        self.mounted.as_ref().is_some_and(|mounted| mounted.wait_until_off(most))
    }

    /// Bytes that its files take.
    pub fn used_bytes(&self) -> u64 {
        self.mounted.as_ref().map_or(0, |mounted| mounted.disk().usage().0)
    }

    /// Takes the power away. Whoever waits for the disk waits until [`PowerDisk::release`].
    pub fn cut(&self, plan: Plan) {
        self.plan(plan);
        self.mounted.iter().for_each(Mounted::cut_now);
    }

    /// Lets killed processes end.
    pub fn release(&self) {
        self.mounted.iter().for_each(Mounted::release);
    }

    /// Takes it out of the kernel and puts it back, with empty caches; nobody may have anything open there.
    ///
    /// # Errors
    /// When somebody has.
    pub fn remount(&mut self) -> Result<(), ServerError> {
        let Some(mounted) = self.mounted.take() else { return Ok(()) };
        self.mounted = Some(Mounted::new(mounted.unmount()?, &self.path())?);
        Ok(())
    }

    /// Gives the power back, with what the disk has kept. Whoever had something open there must be gone.
    ///
    /// # Errors
    /// When the disk does not come back.
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
        // What cannot be removed is in a directory of the run, whose owner sees it.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What the disk of a server keeps, as the study has it.
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
    /// Keeps the disk that its data are on.
    #[must_use]
    pub fn on(mut self, power: PowerDisk) -> Self {
        self.power = Some(power);
        self
    }

    /// Whether its data are on a disk that can lose its power.
    pub fn can_lose_power(&self) -> bool {
        self.power.is_some()
    }

    /// The disk that can lose its power, where its data are on one.
    pub fn disk(&self) -> Option<&PowerDisk> {
        self.power.as_ref()
    }

    /// The same, to be taken out of the kernel.
    pub fn disk_mut(&mut self) -> Option<&mut PowerDisk> {
        self.power.as_mut()
    }

    /// As [`Server::lose_power`], with what the disk keeps as a study says it.
    ///
    /// # Errors
    /// As [`Server::lose_power`].
    pub fn cut_power(&mut self, keeps: CutKeeps, seed: u64, away: impl FnOnce()) -> Result<Lost, ServerError> {
        self.lose_power(Plan { keeps: of_disk(keeps), seed, ..Plan::default() }, away)
    }

    /// Takes the power from its disk and ends all of its processes; after `away` the disk is back with what it has kept, which the plan's seed decides where it
    /// is chance. The server is to be started again then.
    ///
    /// # Errors
    /// When its data are on no such disk, or the disk does not come back.
    pub fn lose_power(&mut self, plan: Plan, away: impl FnOnce()) -> Result<Lost, ServerError> {
        let none = || ServerError::Disk("its data are on no disk that can lose its power".to_owned());
        self.power.as_ref().ok_or_else(none)?.cut(plan);
        // Processes that wait for the disk are killed first, and die when they are told that it failed: they say nothing in between.
        let identities = self.identities();
        identities.iter().for_each(|identity| identity.signal(libc::SIGKILL));
        self.power.iter().for_each(PowerDisk::release);
        self.kill();
        process::wait_until(GONE_WITHIN, || identities.iter().all(|identity| !identity.is_running()));
        away();
        self.power.as_mut().ok_or_else(none)?.restore()
    }
}

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);
