//! The power of a private server: its data are on a disk that can lose it.
//!
//! Main type: [`PowerDisk`]. Invariant: when it goes, its mount and its files go with it; those of a loadline that was killed go when the next disk is made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_disk::mount::remove_left_behind;
use loadline_disk::{Disk, Keeps, Lost, MountError, Mounted, Plan};

use super::directory::{at, random_hex};
use super::{Server, ServerError, process};
use crate::trial::CutKeeps;

/// What begins the name of a disk's directory; a random part follows.
const PREFIX: &str = "loadline-disk-";

/// Bytes of the random part.
const RANDOM_BYTES: usize = 6;

/// A disk for the data of a server.
#[derive(Debug)]
pub struct PowerDisk {
    /// Holds where it is mounted, and what lies below.
    directory: PathBuf,
    mounted: Option<Mounted>,
}

impl PowerDisk {
    /// A new one, in a directory of its own in `parent`.
    ///
    /// # Errors
    /// [`ServerError::Disk`] where there is no FUSE for this user; [`ServerError::Path`].
    pub fn mount(parent: &Path) -> Result<Self, ServerError> {
        // What a killed loadline has left is nobody's any more.
        for left in remove_left_behind(Path::new("/")).unwrap_or_default() {
            let directory = left.parent().filter(|directory| is_ours(directory));
            directory.into_iter().for_each(|directory| drop(fs::remove_dir_all(directory)));
        }
        let directory = parent.join(format!("{PREFIX}{}", random_hex(RANDOM_BYTES)?));
        let below = directory.join("below");
        fs::create_dir_all(&below).map_err(at(&below, "make"))?;
        // From here on dropping the value removes what has been made.
        let mut disk = PowerDisk { directory, mounted: None };
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

    /// Takes the power away. Whoever waits for the disk waits until [`PowerDisk::release`].
    fn cut(&self, plan: Plan) {
        if let Some(mounted) = &self.mounted {
            mounted.disk().plan(plan);
            mounted.cut_now();
        }
    }

    /// Lets killed processes end.
    fn release(&self) {
        self.mounted.iter().for_each(Mounted::release);
    }

    /// Gives the power back, with what the disk has kept.
    fn restore(&mut self) -> Result<Lost, ServerError> {
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

    /// Takes the power from its disk and ends all of its processes; after `away` the disk is back with what it has kept, which a seed decides where it is chance.
    /// The server is to be started again then.
    ///
    /// # Errors
    /// When its data are on no such disk, or the disk does not come back.
    pub fn cut_power(&mut self, keeps: CutKeeps, seed: u64, away: impl FnOnce()) -> Result<Lost, ServerError> {
        let plan = Plan { keeps: of_disk(keeps), seed, ..Plan::default() };
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
