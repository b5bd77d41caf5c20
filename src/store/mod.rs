//! The store: run directories, append-only and readable by other tools.
//!
//! Main type: [`RunDirectory`]. A run directory holds `run.toml` (what was done, where), `trials.jsonl` (a versioned line per
//! finished trial, on disk before the next trial starts), `monitor/<trial>.jsonl` (resource samples) and, where the study asks for
//! them, `samples/<trial>.samples` (raw times of every operation).
//!
//! Invariant: a line that is complete is never changed again, and one that was changed is left out and named. A torn last line, left by a crash, is
//! dropped with a note.

mod line;
mod run_file;
mod samples;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use self::line::{BadLine, measurement_of, sealed};
use crate::measurement::{DiskSync, Environment, LinkMeasurement, Measurement, ResourceSample};
use crate::said::said;
use crate::study::Study;
use crate::trial::{Case, DatabaseSettings, Trial};

pub use run_file::RunFile;
pub use samples::{Sample, SampleBlock, SampleHeader, SampleOutcome, SampleReader, SampleWriter};

const TRIALS: &str = "trials.jsonl";
const RUN_FILE: &str = "run.toml";

/// What can go wrong with a run directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is there already.
    #[error("{0} exists already; name another with --out, or continue it with --resume {0}")]
    Exists(String),
    /// It is not there, or is not one.
    #[error("{0} is not a run directory: {1}; give a directory that `loadline run` made")]
    NotARun(String, String),
    /// Another process writes to it.
    #[error("{0} is being written by another loadline; wait for it to end")]
    Busy(String),
    /// A file could not be read or written.
    #[error("{path}: {error}{remedy}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
        /// What to do about it, if that is known.
        remedy: &'static str,
    },
    /// A line or file is not what it should be.
    #[error("{path}:{line}: {why}; the file was changed by hand or by another program")]
    Damaged {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A newer loadline wrote it.
    #[error("{path}:{line}: version {version} was written by a newer loadline; read the run with that one")]
    Newer {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// Its version.
        version: u32,
    },
    /// Resuming would mix what does not belong together.
    #[error("{0}")]
    Different(String),
}

impl StoreError {
    /// The error of something that was to write and ended by a panic.
    pub fn from_panic(what: &str) -> Self {
        StoreError::Io { path: what.to_owned(), error: std::io::Error::other("it ended by a panic"), remedy: "" }
    }

    /// The directory or file, with its line where that is known.
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

    /// What to do about it, where that is known.
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

    /// Whether there is no room on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::StorageFull)
    }
}

/// A run directory that is being written. Locked until dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    trials: File,
    file: RunFile,
    written: u64,
}

/// A run as it was read.
#[derive(Debug)]
pub struct Run {
    /// Its directory.
    pub path: PathBuf,
    /// Study, seed, machine.
    pub file: RunFile,
    /// All finished trials in the order in which they were executed.
    pub measurements: Vec<Measurement>,
    /// What a reader should know about the files.
    pub notes: Vec<RunNote>,
    /// What was left out because it was damaged or does not belong here: the run is not what was measured.
    pub left_out: Vec<RunNote>,
}

/// What a reader should know about the files of a run. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum RunNote {
    /// The process that wrote the run ended within a line.
    #[error("{path}: the last line is torn and was dropped: its trial did not end")]
    TornLine {
        /// The file.
        path: String,
    },
    /// Its lines have no checksums.
    #[error("{path}: an older loadline wrote it, without checksums: changes of it would not be seen")]
    FirstVersion {
        /// The file.
        path: String,
    },
    /// A line is none that this run has.
    #[error("{path}:{line}: the trial is left out: {why}")]
    LeftOut {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The file of the trials is not there.
    #[error("{path}: it is missing, and all trials with it")]
    Missing {
        /// The file.
        path: String,
    },
}

said!(RunNote);

impl RunDirectory {
    /// Makes a new run directory.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when there is something already.
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

    /// Opens a run directory to continue it. Gives what is there besides.
    ///
    /// # Errors
    /// [`StoreError::Different`] when the study or the machine is not the one that began it.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many trials are in it.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The file of a trial's raw times.
    pub fn samples_path(&self, trial: &Trial) -> PathBuf {
        samples_path(&self.path, trial)
    }

    /// Appends a finished trial; it is on disk when this returns. The samples come first, because the line makes the trial a
    /// finished one.
    ///
    /// # Errors
    /// When not everything could be written. There is no line then: the part of it that was written is cut off again.
    pub fn append(&mut self, measurement: &Measurement, samples: &[ResourceSample]) -> Result<(), StoreError> {
        self.write_samples(&measurement.trial, samples)?;
        let path = self.path.join(TRIALS);
        let line = sealed(&self.file.started, to_json(measurement, &path)?);
        let before = self.trials.seek(SeekFrom::End(0)).map_err(|error| io(&path, error))?;
        if let Err(error) = self.trials.write_all(&line).and_then(|()| self.trials.sync_data()) {
            // Nothing more can be done if cutting fails too: a torn line is dropped when read.
            let _ = self.trials.set_len(before);
            return Err(io(&path, error));
        }
        self.written += 1;
        Ok(())
    }

    /// Notes what was found out about a database after its start, and which cases have these settings of it.
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

    /// Notes the command that began the run.
    ///
    /// # Errors
    /// When `run.toml` cannot be replaced.
    pub fn note_command(&mut self, words: Vec<String>) -> Result<(), StoreError> {
        self.file.environment.command = words;
        self.write_run_file()
    }

    /// Notes what a link carried, the first time that there is one so named.
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

    /// Notes how fast the disk of the run was.
    ///
    /// # Errors
    /// When `run.toml` cannot be replaced.
    pub fn note_disk_sync(&mut self, disk_sync: DiskSync) -> Result<(), StoreError> {
        self.file.environment.disk_sync = Some(disk_sync);
        self.write_run_file()
    }

    /// Writes a file beside the trials, such as the report; replaces it as a whole.
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

impl Run {
    /// The raw times of a trial; none where they were not asked for.
    ///
    /// # Errors
    /// When they are missing or are not what they should be.
    pub fn samples(&self, measurement: &Measurement) -> Result<Option<SampleReader>, StoreError> {
        if measurement.samples.is_none() {
            return Ok(None);
        }
        SampleReader::open(&samples_path(&self.path, &measurement.trial)).map(Some)
    }

    /// Reads a run directory.
    ///
    /// # Errors
    /// When it is not one, or when a newer loadline wrote it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let not_a_run = |why: String| StoreError::NotARun(path.display().to_string(), why);
        let run_path = path.join(RUN_FILE);
        let text = fs::read_to_string(&run_path).map_err(|error| not_a_run(format!("{RUN_FILE}: {error}")))?;
        let file = RunFile::from_toml(&text).map_err(|why| not_a_run(format!("{RUN_FILE}: {why}")))?;
        let mut run =
            Run { path: path.to_owned(), file, measurements: Vec::new(), notes: Vec::new(), left_out: Vec::new() };
        run.read_trials()?;
        Ok(run)
    }

    /// Reads the trials line by line: the text of a long run is many times larger than what is kept of it.
    fn read_trials(&mut self) -> Result<(), StoreError> {
        let path = self.path.join(TRIALS);
        let mut lines = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.left_out.push(RunNote::Missing { path: path.display().to_string() });
                return Ok(());
            }
            other => BufReader::new(other.map_err(|error| io(&path, error))?),
        };
        let (mut line, mut reading) = (Vec::new(), Reading::of(&self.file));
        for number in 1.. {
            line.clear();
            if lines.read_until(b'\n', &mut line).map_err(|error| io(&path, error))? == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                self.notes.push(RunNote::TornLine { path: path.display().to_string() });
                break;
            }
            if line.len() <= 1 {
                continue;
            }
            match reading.measurement(&line) {
                Ok(measurement) => self.measurements.push(measurement),
                Err(BadLine::Damaged(why)) => {
                    self.left_out.push(RunNote::LeftOut { path: path.display().to_string(), line: number, why });
                }
                Err(BadLine::Newer(version)) => {
                    return Err(StoreError::Newer { path: path.display().to_string(), line: number, version });
                }
            }
        }
        if reading.has_first_version {
            self.notes.push(RunNote::FirstVersion { path: path.display().to_string() });
        }
        Ok(())
    }
}

/// What is known while trials are read.
struct Reading<'f> {
    run_began: &'f str,
    /// The cases that the study has; none for a search, which chooses them.
    planned: Option<HashSet<&'f str>>,
    cases: Cases,
    trials: HashSet<String>,
    has_first_version: bool,
}

impl<'f> Reading<'f> {
    fn of(file: &'f RunFile) -> Self {
        let cases = || file.study.cases.iter().map(|case| case.id.as_str()).collect();
        Reading {
            run_began: &file.started,
            planned: file.study.goal.is_none().then(cases),
            cases: Cases::default(),
            trials: HashSet::new(),
            has_first_version: false,
        }
    }

    /// The measurement of a line, if it is one of this run.
    fn measurement(&mut self, line: &[u8]) -> Result<Measurement, BadLine> {
        let mut measurement = measurement_of(self.run_began, line)?;
        let trial = &mut measurement.trial;
        if self.planned.as_ref().is_some_and(|planned| !planned.contains(trial.case.id.as_str())) {
            return Err(BadLine::Damaged(format!("case {} is none of this study", trial.case.id)));
        }
        if !self.trials.insert(trial.id.clone()) {
            return Err(BadLine::Damaged(format!("trial {} is there already", trial.id)));
        }
        self.cases.share(&mut trial.case);
        self.has_first_version |= measurement.version == 1;
        measurement.series.shrink_to_fit();
        measurement.clients_left_out = measurement.client_count();
        measurement.clients = Vec::new();
        Ok(measurement)
    }
}

/// The cases of the trials read so far. A case is as large as all figures of a short trial, and its trials have one copy of it.
#[derive(Default)]
struct Cases(HashMap<String, Arc<Case>>);

impl Cases {
    /// Puts the copy that is known in the place of an equal case.
    fn share(&mut self, case: &mut Arc<Case>) {
        match self.0.get(&case.id) {
            Some(known) if known == case => *case = known.clone(),
            _ => drop(self.0.insert(case.id.clone(), case.clone())),
        }
    }
}

fn to_json(value: &impl serde::Serialize, path: &Path) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| StoreError::Damaged {
        path: path.display().to_string(),
        line: 0,
        why: format!("a value has no JSON form: {error}"),
    })
}

/// Replaces a file as a whole: readers see the old or the new one, never a part.
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

/// A directory that cannot be made: whatever the reason, another place is what helps.
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
