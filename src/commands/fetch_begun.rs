//! What `loadline fetch` does whatever it fetches: a directory in which it is begun, and programs that it runs.
//!
//! Main type: [`Begun`]. Invariant: nothing that was begun and did not come to its end stays for longer than until the next such command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The prefix of directories of packages that are being fetched; the id of the process follows.
const BEGUN: &str = "begun-";

/// Makes the directory in which a directory is to be, and removes from it what has been left behind.
pub(super) fn place_above(own: &Path) -> anyhow::Result<&Path> {
    let above = own.parent().context("the place has no directory")?;
    let unmade = || format!("{} cannot be made", above.display());
    fs::create_dir_all(above).with_context(unmade)?;
    remove_left_behind(above);
    Ok(above)
}

/// Runs a program and waits for its end; returns what it printed.
pub(super) fn carry_out(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let missing = || format!("{name} cannot be run; install it");
    let ended = command.stdin(Stdio::null()).output().with_context(missing)?;
    if !ended.status.success() {
        let said: String = String::from_utf8_lossy(&ended.stderr).chars().take(1_000).collect();
        bail!("{name} failed ({}): {}", ended.status, said.trim());
    }
    Ok(ended.stdout)
}

/// A directory of a package that is being fetched; it is removed in the end.
pub(super) struct Begun(pub PathBuf);

impl Begun {
    pub(super) fn new(above: &Path) -> anyhow::Result<Self> {
        let path = above.join(format!("{BEGUN}{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Begun(path))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // What stays is removed by the next such command.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes directories of processes that are gone.
fn remove_left_behind(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(BEGUN).and_then(|owner| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| owner == std::process::id() || !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
