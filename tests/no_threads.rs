//! A machine that gives no more threads: `run` and `record` say so, and end with a status of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "copied/mod.rs"]
mod copied;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Nobody, whose processes are counted where root's are not.
const NOBODY: u32 = 65_534;

/// A folder in which nobody may run the program.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("loadline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        // Where the program stands nobody else may be let in.
        copied::program_at(&folder.join("loadline"));
        Place(folder)
    }

    /// The program where its user can have so many threads.
    fn program(&self, threads: u64) -> Command {
        let mut command = Command::new(self.0.join("loadline"));
        command.current_dir(&self.0).env("TMPDIR", &self.0).env("HOME", &self.0).stdin(Stdio::null());
        // SAFETY: geteuid takes no pointer and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        // SAFETY: setrlimit is async-signal-safe, and the structure lives on the stack.
        unsafe {
            command.pre_exec(move || {
                let most = libc::rlimit { rlim_cur: threads, rlim_max: threads };
                match libc::setrlimit(libc::RLIMIT_NPROC, &most) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_without_threads_is_invalid_and_says_why() {
    let place = Place::new("no-threads");
    let study = "name = \"threads\"\n[record]\nrows = 100\n[workload]\nname = \"write\"\n[load]\nclients = 2\noperations = 20\nsamples = true\n\
                 [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
    std::fs::write(place.0.join("study.toml"), study).unwrap();
    let mut refused = 0;
    for threads in 1..=8 {
        let output = place.program(threads).args(["run", "study.toml", "--out", &format!("run-{threads}")]).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(matches!(output.status.code(), Some(0..=2)), "{threads} threads: {:?}, {said}", output.status);
        assert!(!said.contains("panicked"), "{threads} threads: {said}");
        refused += u32::from(said.contains("gave no thread"));
    }
    assert!(refused > 0, "with a single thread nothing can be driven");
}

#[test]
fn a_recorder_without_threads_does_not_start_and_says_why() {
    let place = Place::new("no-threads-recorder");
    let config = "[database]\npath = \"m.db\"\n[spool]\npath = \"spool\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
    std::fs::write(place.0.join("recorder.toml"), config).unwrap();
    for threads in 1..=4 {
        let output = place.program(threads).args(["record", "recorder.toml"]).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(2), "{threads} threads: {said}");
        assert!(!said.contains("panicked") && said.contains("temporarily unavailable"), "{threads} threads: {said}");
    }
}
