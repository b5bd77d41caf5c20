//! Runs the program, and looks at how it ends. Main function: [`run`].

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a run may take: the limits of one whose server stands still come to less than half of that.
const LONGEST: Duration = Duration::from_secs(120);
/// Most memory of a run, in KiB.
const MEMORY_KIB_MAX: i64 = 256 << 10;

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub out: String,
    pub said: String,
    pub most_kib: i64,
    pub took: Duration,
}

impl Ended {
    /// It has ended by itself, as commands do, and took no more memory than it may.
    pub fn check(&self, told: &str) {
        assert!(matches!(self.status, Some(0..=2)), "it did not end well: {told}: {self:?}");
        assert!(!self.said.contains("panicked") && !self.out.contains("panicked"), "{told}: {self:?}");
        assert!(self.took <= LONGEST, "{told}: {self:?}");
        assert!(self.most_kib <= MEMORY_KIB_MAX, "{told}: {self:?}");
    }
}

/// Runs the program, and waits no longer than it may take.
pub fn run(folder: &Path, arguments: &[&str]) -> Ended {
    let file = |name: &str| std::fs::File::create(folder.join(name)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(file("out")).stderr(file("said"));
    let begun = Instant::now();
    #[expect(clippy::zombie_processes, reason = "it is waited for below, where its memory is told")]
    let child = command.spawn().unwrap();
    let pid = child.id() as libc::pid_t;
    let (mut status, mut is_ended) = (0, false);
    // SAFETY: all zeros are a value of it, which the call fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: the pointers are to values of this function, and the child is its own and nobody else waits for it.
        let answer = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
        if answer == pid {
            break;
        }
        if begun.elapsed() > LONGEST && !is_ended {
            // SAFETY: kill takes no pointer; the child has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            is_ended = true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let read = |name: &str| String::from_utf8_lossy(&std::fs::read(folder.join(name)).unwrap()).into_owned();
    Ended {
        status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        out: read("out"),
        said: read("said"),
        most_kib: usage.ru_maxrss,
        took: begun.elapsed(),
    }
}

/// A number that the environment gives.
pub fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
