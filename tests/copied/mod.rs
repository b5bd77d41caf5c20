//! The program where another user may run it.

use std::path::Path;
use std::process::Command;

/// Copies the program to this place. `cp` does it, because a test beside this one may start a program at any moment: what it
/// starts would hold a file that this process writes open until its own `exec`, and Linux starts no program that somebody has
/// open for writing ("Text file busy").
pub fn program_at(place: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_loadline")).arg(place).status();
    assert!(copied.as_ref().is_ok_and(std::process::ExitStatus::success), "cp to {}: {copied:?}", place.display());
}
