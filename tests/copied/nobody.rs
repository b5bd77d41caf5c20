//! The program run by a user who may do nothing.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::copied;

/// The user and the group who own nothing.
const NOBODY: u32 = 65_534;

/// Returns the command that runs the program in this place as a user who may do nothing; as the own user where that is not root.
pub fn command(own: Command, place: &Path, arguments: &[&str]) -> Command {
    // SAFETY: has no conditions.
    if unsafe { libc::geteuid() } != 0 {
        return own;
    }
    // The program's own directory may be closed to others.
    let copy = place.join("loadline");
    copied::program_at(&copy);
    let mut command = Command::new(copy);
    command.current_dir(place).args(arguments).env("TMPDIR", place).env("LOADLINE_CACHE", "off");
    command.uid(NOBODY).gid(NOBODY);
    std::os::unix::fs::chown(place, Some(NOBODY), Some(NOBODY)).unwrap();
    command
}
