//! Limits the memory that a private server and its page cache may take, by a control group of the server's own.
//!
//! Main type: [`MemoryGroup`]. Invariants: only groups that loadline made are removed, and a limit that cannot be set is an error, never left out.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::process::{Conditions, wait_until};
use crate::fault::{Fault, fault};

/// The directory where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Prefix of the names of groups that loadline made; the pid of the loadline follows.
const PREFIX: &str = "loadline-memory-";
/// How long to wait for a group to become empty: it can be removed once the kernel has taken the last process out of it.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);

/// The two versions of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Version 1: a tree of its own below `memory`.
    One,
    /// Version 2: one tree for all controllers, in which a group passes controllers down to the groups below it.
    Two,
}

/// A control group with a memory limit. Dropping it removes it.
#[derive(Debug)]
pub(super) struct MemoryGroup {
    path: PathBuf,
    processes: Arc<File>,
}

impl MemoryGroup {
    /// Makes a group below loadline's own whose processes may take at most `bytes` together.
    pub fn create(bytes: u64) -> Result<Self, Fault> {
        let found = own_group(Path::new(MOUNT), &fs::read_to_string("/proc/self/cgroup").unwrap_or_default());
        let (version, own) = found.ok_or_else(|| refused("this system has no control groups for memory"))?;
        let told = |what: &str, path: &Path, error: &io::Error| refused(&format!("{what} {}: {error}", path.display()));
        remove_leftovers(&own);
        if version == Version::Two {
            hand_down(&own).map_err(|error| told("handing the limit down in", &own, &error))?;
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("{PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = own.join(name);
        fs::create_dir(&path).map_err(|error| told("making the group", &path, &error))?;
        let limit = match version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        let processes = File::options().write(true).open(path.join("cgroup.procs"));
        let group = processes.map(|processes| MemoryGroup { path: path.clone(), processes: Arc::new(processes) });
        let group = group.map_err(|error| {
            // The group is empty, and nobody else knows of it.
            let _ = fs::remove_dir(&path);
            told("opening the group", &path, &error)
        })?;
        let limit = path.join(limit);
        fs::write(&limit, bytes.to_string()).map_err(|error| told("writing", &limit, &error))?;
        group.keep_from_swap(version, bytes);
        Ok(group)
    }

    /// Prevents the group's memory from being written to a swap device, where there is one: swapping would slow the server down in another way.
    fn keep_from_swap(&self, version: Version, bytes: u64) {
        // Kernels without swap accounting do not have these files.
        let _ = match version {
            Version::One => fs::write(self.path.join("memory.memsw.limit_in_bytes"), bytes.to_string()),
            Version::Two => fs::write(self.path.join("memory.swap.max"), "0"),
        };
    }

    /// Returns the same conditions, with the process placed in this group.
    pub fn around(&self, conditions: &Conditions) -> Conditions {
        Conditions { memory: Some(Arc::clone(&self.processes)), ..conditions.clone() }
    }
}

impl MemoryGroup {
    /// Returns how many of the group's processes the system has ended because they exceeded the limit.
    pub fn ended(&self) -> u64 {
        let count = |name: &str| {
            let text = fs::read_to_string(self.path.join(name)).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        };
        count("memory.events").or_else(|| count("memory.oom_control")).unwrap_or(0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group that cannot be removed now is removed by the next run.
        wait_until(EMPTY_WITHIN, || fs::remove_dir(&self.path).is_ok());
    }
}

fn refused(what: &str) -> Fault {
    let remedy = "run as root, or in a scope of its own, as in: systemd-run --user --scope -p Delegate=yes loadline run STUDY; or limit what the server takes with \
                  database.config";
    fault!("database.memory: {what}"; "{remedy}")
}

/// Returns the group that loadline is in, according to `/proc/self/cgroup`; `None` if there is none for memory.
fn own_group(mount: &Path, of_self: &str) -> Option<(Version, PathBuf)> {
    let below = |root: PathBuf, path: &str| {
        // In a container, the path may be the host's, which does not exist here.
        let own = root.join(path.trim_start_matches('/'));
        if own.is_dir() { own } else { root }
    };
    for line in of_self.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some((Version::One, below(mount.join("memory"), path)));
        }
    }
    let path = of_self.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = below(mount.to_owned(), path);
    let has_memory =
        fs::read_to_string(own.join("cgroup.controllers")).ok()?.split_whitespace().any(|one| one == "memory");
    has_memory.then_some((Version::Two, own))
}

/// Makes a group pass the memory controller down. A group with processes of its own cannot; if loadline is alone in it, loadline first moves into a group below it.
fn hand_down(own: &Path) -> io::Result<()> {
    let control = own.join("cgroup.subtree_control");
    let is_handed = fs::read_to_string(&control)?.split_whitespace().any(|one| one == "memory");
    if is_handed || fs::write(&control, "+memory").is_ok() {
        return Ok(());
    }
    let inner = own.join(format!("{PREFIX}{}-self", std::process::id()));
    fs::create_dir_all(&inner)?;
    fs::write(inner.join("cgroup.procs"), std::process::id().to_string())?;
    fs::write(&control, "+memory")
}

/// Removes the groups of killed runs: those that are empty and whose maker has ended.
fn remove_leftovers(own: &Path) {
    let Ok(entries) = fs::read_dir(own) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new(&format!("/proc/{maker}")).exists()) {
            // A group that still has processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_found_in_both_ways() {
        let mount = std::env::temp_dir().join(format!("loadline-cgroup-{}", std::process::id()));
        for path in ["memory/app", "unified.slice/one.scope"] {
            fs::create_dir_all(mount.join(path)).unwrap();
        }
        let first = "5:devices:/\n4:cpu,memory:/app\n0::/\n";
        assert_eq!(own_group(&mount, first), Some((Version::One, mount.join("memory/app"))));
        let elsewhere = "4:memory:/on/the/host\n";
        assert_eq!(own_group(&mount, elsewhere), Some((Version::One, mount.join("memory"))));
        let second = "0::/unified.slice/one.scope\n";
        assert_eq!(own_group(&mount, second), None, "it has no controllers");
        fs::write(mount.join("unified.slice/one.scope/cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert_eq!(own_group(&mount, second), Some((Version::Two, mount.join("unified.slice/one.scope"))));
        assert_eq!(own_group(&mount, ""), None);
        fs::remove_dir_all(&mount).unwrap();
    }
}
