//! The program, a place of its own for its runs, and the samples.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use loadline::measurement::Measurement;
use loadline::store::Run;
use serde_json::Value;

static PLACES: AtomicU32 = AtomicU32::new(0);

/// A directory of one test, removed at its end.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new() -> Self {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("loadline-imports-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    /// A path in it, as text.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    /// Imports samples into `run` and reads it.
    #[track_caller]
    pub fn import(&self, tool: &str, samples: &[&str], options: &[&str], status: i32) -> Run {
        let out = self.path("run");
        let files: Vec<String> = samples.iter().map(|name| sample(tool, name)).collect();
        let mut arguments = vec!["import", tool, "--out", &out];
        arguments.extend(files.iter().map(String::as_str));
        arguments.extend(options);
        let output = loadline(&arguments);
        assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
        Run::open(&self.0.join("run")).unwrap()
    }

    /// Imports one sample and gives its trial.
    #[track_caller]
    pub fn trial(&self, tool: &str, samples: &[&str], status: i32) -> Measurement {
        let run = self.import(tool, samples, &[], status);
        assert_eq!(run.measurements.len(), 1);
        run.measurements.into_iter().next().unwrap()
    }

    /// The findings of the imported run.
    pub fn report(&self) -> Value {
        let output = loadline(&["report", &self.path("run"), "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of a sample.
pub fn sample(tool: &str, name: &str) -> String {
    format!("{}/tests/import/{tool}/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub fn loadline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments).output().unwrap()
}

/// Whether two times in seconds are within a share of each other.
#[track_caller]
pub fn assert_near(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() <= within, "{found} instead of {expected}");
}
