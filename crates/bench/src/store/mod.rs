//! The store: run directories, append-only and readable by other tools.
//!
//! Main type: [`RunDirectory`]. A run directory contains `run.toml` (what was done, and where), `trials.jsonl` (a
//! versioned line per finished trial, on disk before the next trial starts), `monitor/<trial>.jsonl` (resource samples)
//! and, if the study asks for them, `samples/<trial>.samples` (raw times of every operation).
//!
//! Invariant: a complete line is never changed again, and a line that was changed is left out and reported. A torn last
//! line, left by a crash, is dropped with a note.

mod line;
mod run;
mod run_file;
mod samples;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use self::line::sealed;
use crate::measurement::{DiskSync, Environment, LinkMeasurement, Measurement, ResourceSample};
use crate::study::Study;
use crate::trial::{DatabaseSettings, Trial};

pub use run::{Run, RunNote};
pub use run_file::RunFile;
pub use samples::{Sample, SampleBlock, SampleHeader, SampleOutcome, SampleReader, SampleWriter};

const TRIALS: &str = "trials.jsonl";
const RUN_FILE: &str = "run.toml";

/// An error about a run directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory exists already.
    #[error("{0} exists already; name another with --out, or continue it with --resume {0}")]
    Exists(String),
    /// The directory does not exist, or is not a run directory.
    #[error("{0} is not a run directory: {1}; give a directory that `loadline run` made")]
    NotARun(String, String),
    /// Another process writes to the run directory.
    #[error("{0} is being written by another loadline; wait for it to end")]
    Busy(String),
    /// A file could not be read or written.
    #[error("{path}: {error}{remedy}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
        /// How to correct it; empty if that is not known.
        remedy: &'static str,
    },
    /// A line or a file is damaged.
    #[error("{path}:{line}: {why}; the file was changed by hand or by another program")]
    Damaged {
        /// The file.
        path: String,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A newer loadline wrote the run.
    #[error("{path}:{line}: version {version} was written by a newer loadline; read the run with that one")]
    Newer {
        /// The file.
        path: String,
        /// The line's number, from 1.
        line: usize,
        /// The version that the line names.
        version: u32,
    },
    /// Resuming would mix trials of different studies or machines.
    #[error("{0}")]
    Different(String),
}

impl StoreError {
    /// Makes the error for a writer that panicked.
    pub fn from_panic(what: &str) -> Self {
        StoreError::Io { path: what.to_owned(), error: std::io::Error::other("it ended by a panic"), remedy: "" }
    }

    /// Returns the directory or file, with its line if that is known.
    pub fn place(&self) -> Option<String> {
        match self {
            StoreError::Exists(path) | StoreError::NotARun(path, _) | StoreError::Busy(path) => Some(path.clone()),
            StoreError::Io { path, .. } => Some(path.clone()),
            StoreError::Damaged { path, line, .. } | StoreError::Newer { path, line, .. } => {
                Some(format!("{path}:{line}"))
            }
            StoreError::Different(_) => None,
        }
    }

    /// Returns what to do about the error, if that is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            StoreError::Exists(path) => Some(format!("name another with --out, or continue it with --resume {path}")),
            StoreError::NotARun(..) => Some("give a directory that `loadline run` made".to_owned()),
            StoreError::Busy(_) => Some("wait for it to end".to_owned()),
            StoreError::Io { remedy, .. } => {
                Some(remedy.trim_start_matches("; ").to_owned()).filter(|remedy| !remedy.is_empty())
            }
            StoreError::Newer { .. } => Some("read the run with that one".to_owned()),
            StoreError::Damaged { .. } | StoreError::Different(_) => None,
        }
    }

    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::StorageFull)
    }
}

/// A run directory that is being written; locked until it is dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    trials: File,
    file: RunFile,
    written: u64,
}

impl RunDirectory {
    /// Creates a new run directory.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if something exists at the path already.
    pub fn create(path: &Path, study: &Study, environment: Environment, started: &str) -> Result<Self, StoreError> {
        if path.exists() {
            return Err(StoreError::Exists(path.display().to_string()));
        }
        fs::create_dir_all(path.join("monitor")).map_err(|error| unmade(path, error))?;
        let trials_path = path.join(TRIALS);
        let trials = OpenOptions::new().append(true).create_new(true).open(&trials_path);
        let trials = trials.map_err(|error| io(&trials_path, error))?;
        lock(&trials, path)?;
        let file = RunFile::new(study.clone(), environment, started);
        let directory = RunDirectory { path: path.to_owned(), trials, file, written: 0 };
        directory.write_run_file()?;
        Ok(directory)
    }

    /// Opens a run directory to continue it. Returns the existing run with it.
    ///
    /// # Errors
    /// [`StoreError::Different`] if the study or the machine is not the one that began the run.
    pub fn resume(path: &Path, study: &Study, environment: &Environment) -> Result<(Self, Run), StoreError> {
        let trials_path = path.join(TRIALS);
        let mut trials = OpenOptions::new().read(true).append(true).open(&trials_path);
        if trials.is_err() && path.join(RUN_FILE).exists() {
            trials = OpenOptions::new().read(true).append(true).create(true).open(&trials_path);
        }
        let mut trials =
            trials.map_err(|error| StoreError::NotARun(path.display().to_string(), format!("{TRIALS}: {error}")))?;
        lock(&trials, path)?;
        let run = Run::open(path)?;
        run.file.check_same(study, environment).map_err(StoreError::Different)?;
        cut_torn_line(&mut trials).map_err(|error| io(&trials_path, error))?;
        let written = run.measurements.len() as u64;
        Ok((RunDirectory { path: path.to_owned(), trials, file: run.file.clone(), written }, run))
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how many trials the run has.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the path of the file with a trial's raw times.
    pub fn samples_path(&self, trial: &Trial) -> PathBuf {
        samples_path(&self.path, trial)
    }

    /// Appends a finished trial; it is on disk when this returns. The samples are written first, because the line makes
    /// the trial a finished one.
    ///
    /// # Errors
    /// When not everything could be written. The line does not exist then: a part of it that was written is cut off again.
    pub fn append(&mut self, measurement: &Measurement, samples: &[ResourceSample]) -> Result<(), StoreError> {
        self.write_samples(&measurement.trial, samples)?;
        let path = self.path.join(TRIALS);
        let line = sealed(&self.file.started, to_json(measurement, &path)?);
        let before = self.trials.seek(SeekFrom::End(0)).map_err(|error| io(&path, error))?;
        if let Err(error) = self.trials.write_all(&line).and_then(|()| self.trials.sync_data()) {
            // Nothing more can be done if the truncation fails too: a torn line is dropped when it is read.
            let _ = self.trials.set_len(before);
            return Err(io(&path, error));
        }
        self.written += 1;
        Ok(())
    }

    /// Records facts about a database that were found out after its start, and which cases have these settings of it.
    ///
    /// # Errors
    /// When `run.toml` cannot be replaced.
    pub fn note_database(&mut self, settings: &DatabaseSettings, facts: &[(String, String)]) -> Result<(), StoreError> {
        let RunFile { environment, study, .. } = &mut self.file;
        let before = (environment.databases.clone(), environment.servers.clone());
        let cases = study.cases.iter().filter(|case| case.settings.database == *settings);
        let cases: Vec<String> = cases.map(|case| case.id.clone()).collect();
        environment.note_server(&settings.name, facts.iter().cloned().collect(), &cases);
        environment.databases.entry(settings.name.clone()).or_default().extend(facts.iter().cloned());
        let is_known = (&environment.databases, &environment.servers) == (&before.0, &before.1);
        if is_known { Ok(()) } else { self.write_run_file() }
    }

    /// Records the command that began the run.
    ///
    /// # Errors
    /// When `run.toml` cannot be replaced.
    pub fn note_command(&mut self, words: Vec<String>) -> Result<(), StoreError> {
        self.file.environment.command = words;
        self.write_run_file()
    }

    /// Records what a link carried, the first time that a link of this name is measured.
    ///
    /// # Errors
    /// When `run.toml` cannot be replaced.
    pub fn note_link(&mut self, name: &str, seen: &LinkMeasurement) -> Result<(), StoreError> {
        let links = &mut self.file.environment.links;
        if links.contains_key(name) {
            return Ok(());
        }
        links.insert(name.to_owned(), seen.clone());
        self.write_run_file()
    }

    /// Records how fast the disk of the run was.
    ///
    /// # Errors
    /// When `run.toml` cannot be replaced.
    pub fn note_disk_sync(&mut self, disk_sync: DiskSync) -> Result<(), StoreError> {
        self.file.environment.disk_sync = Some(disk_sync);
        self.write_run_file()
    }

    /// Writes a file beside the trials, such as the report; replaces an existing one as a whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, name: &str, content: &str) -> Result<PathBuf, StoreError> {
        write_whole(&self.path.join(name), content)
    }

    fn write_samples(&self, trial: &Trial, samples: &[ResourceSample]) -> Result<(), StoreError> {
        let path = self.path.join("monitor").join(format!("{}.jsonl", trial.id));
        let mut text = Vec::new();
        for sample in samples {
            text.extend(to_json(sample, &path)?);
            text.push(b'\n');
        }
        fs::write(&path, text).map_err(|error| io(&path, error))
    }

    fn write_run_file(&self) -> Result<(), StoreError> {
        let path = self.path.join(RUN_FILE);
        let text = self.file.to_toml().map_err(|why| StoreError::Damaged {
            path: path.display().to_string(),
            line: 0,
            why,
        })?;
        write_whole(&path, &text).map(|_| ())
    }
}

fn samples_path(run: &Path, trial: &Trial) -> PathBuf {
    run.join("samples").join(format!("{}.samples", trial.id))
}

fn to_json(value: &impl serde::Serialize, path: &Path) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| StoreError::Damaged {
        path: path.display().to_string(),
        line: 0,
        why: format!("a value has no JSON form: {error}"),
    })
}

/// Replaces a file as a whole: readers see the old file or the new one, never a part.
fn write_whole(path: &Path, content: &str) -> Result<PathBuf, StoreError> {
    let beside = path.with_extension("part");
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_data()
    });
    written.and_then(|()| fs::rename(&beside, path)).map_err(|error| io(path, error))?;
    Ok(path.to_owned())
}

fn cut_torn_line(trials: &mut File) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    trials.seek(SeekFrom::Start(0))?;
    trials.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() { trials.set_len(whole as u64) } else { Ok(()) }
}

fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    // SAFETY: flock takes no pointer; the descriptor is open.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if result < 0 { Err(StoreError::Busy(path.display().to_string())) } else { Ok(()) }
}

/// Returns the error for a directory that cannot be made: whatever the reason, another place is the remedy.
fn unmade(path: &Path, error: std::io::Error) -> StoreError {
    match io(path, error) {
        StoreError::Io { path, error, remedy: "" } => {
            StoreError::Io { path, error, remedy: "; choose another directory with --out" }
        }
        other => other,
    }
}

fn io(path: &Path, error: std::io::Error) -> StoreError {
    let remedy = match error.kind() {
        std::io::ErrorKind::StorageFull => "; free some room, then continue with --resume",
        std::io::ErrorKind::PermissionDenied => "; choose a directory that you may write to, with --out",
        _ => "",
    };
    StoreError::Io { path: path.display().to_string(), error, remedy }
}
