//! Runs the program in directories that go away.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadline::measurement::Measurement;
use loadline::store::Run;
use serde_json::Value;

/// A directory of a test's own, removed at its end. In memory where that is possible: trials here are short, and a disk that
/// does not answer for as long as one lasts would make it invalid, rightly.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("loadline-cli-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let memory = Path::new("/dev/shm").join(&name);
        let path = if std::fs::create_dir(&memory).is_ok() { memory } else { std::env::temp_dir().join(&name) };
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program in this directory, nothing of its user's environment changing what it does.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command
            .args(arguments)
            .current_dir(&self.0)
            .env_remove("LOADLINE_PASSWORD")
            .env_remove("LOADLINE_WATCH_TOKEN")
            .env("LOADLINE_CACHE", "off")
            .stdin(Stdio::null());
        command
    }

    /// What the program did.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(&mut self.command(arguments))
    }

    /// Runs a study into a directory. Whether the client had a CPU all the time is not the question there.
    pub fn run_study(&self, study: &str, out: &str) -> Outcome {
        outcome(self.command(&["run", study, "--out", out]).env("LOADLINE_STOLEN", "1"))
    }

    /// What is stored in a run directory.
    pub fn stored(&self, run: &str) -> Vec<Measurement> {
        Run::open(&self.path(run)).unwrap().measurements
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the program ended and what it printed.
#[derive(Debug)]
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command to its end. Whatever happens, the program never panics.
#[track_caller]
pub fn outcome(command: &mut Command) -> Outcome {
    Outcome::of(command.output().unwrap())
}

impl Outcome {
    /// What a process that has ended did, without a panic.
    #[track_caller]
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        // Tests run beside each other, and some kill a run: the next one that starts removes its server, whoever that is.
        let is_own = |line: &&str| !line.starts_with("note: removed what ");
        let stderr = text(output.stderr).split_inclusive('\n').filter(is_own).collect();
        let outcome = Outcome { status: output.status.code(), stdout: text(output.stdout), stderr };
        for trace in ["panicked at", "stack backtrace", "RUST_BACKTRACE"] {
            assert!(!outcome.stderr.contains(trace) && !outcome.stdout.contains(trace), "{outcome:?}");
        }
        outcome
    }

    /// Asserts the exit status; shows everything when it is another.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert!(self.status == Some(status), "expected {status}: {:?}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Asserts that the request was refused with these words, and that nothing was printed as a result.
    #[track_caller]
    pub fn refused(self, words: &[&str]) {
        let outcome = self.expect(2);
        if !outcome.stdout.is_empty() {
            // With --json, why is all that is printed.
            let document = outcome.json();
            let says = document["error"]["says"].as_str().unwrap();
            assert!(outcome.stderr.contains(says) && document["version"] == 1, "{document:#}: {}", outcome.stderr);
        }
        for word in words {
            assert!(outcome.stderr.contains(word), "{word:?} is missing: {}", outcome.stderr);
        }
    }
}

/// Waits for something that takes as long as it takes, at most four minutes.
#[track_caller]
pub fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(240);
    while !is_true() {
        assert!(Instant::now() < end, "{what} did not come true within four minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Pids of all processes whose command line has these words.
pub fn processes_with(words: &str) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_words = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(words)
    };
    pids.filter(has_words).collect()
}

/// Whether the tests run as root, as they do in containers.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, changes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A study that ends after a moment, with sections on top.
pub fn small_study(sections: &str) -> String {
    format!("name = \"small\"\n{sections}\n[repeat]\nrule = \"fixed\"\nleast = 2\n")
}
