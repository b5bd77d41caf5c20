//! A run that is read from its directory: which lines are its trials, and notes on those that are not. Main type: [`Run`].

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::line::{BadLine, measurement_of};
use super::{RUN_FILE, RunFile, SampleReader, StoreError, TRIALS, io, samples_path};
use crate::file;
use crate::measurement::Measurement;
use crate::said::said;
use crate::trial::Case;

/// A run that was read from its directory.
#[derive(Debug)]
pub struct Run {
    /// The run directory.
    pub path: PathBuf,
    /// The content of `run.toml`: study, seed, machine.
    pub file: RunFile,
    /// All finished trials, in the order in which they were executed.
    pub measurements: Vec<Measurement>,
    /// Notes on the files for the reader.
    pub notes: Vec<RunNote>,
    /// Lines and files that were left out because they were damaged or do not belong here: the run is then not what was measured.
    pub left_out: Vec<RunNote>,
}

/// A note on the files of a run. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum RunNote {
    /// The process that wrote the run ended within a line.
    #[error("{path}: the last line is torn and was dropped: its trial did not end")]
    TornLine {
        /// The file.
        path: String,
    },
    /// The lines of the file have no checksums.
    #[error("{path}: an older loadline wrote it, without checksums: changes of it would not be seen")]
    FirstVersion {
        /// The file.
        path: String,
    },
    /// A line is not one of this run.
    #[error("{path}:{line}: the trial is left out: {why}")]
    LeftOut {
        /// The file.
        path: String,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The file of the trials does not exist.
    #[error("{path}: it is missing, and all trials with it")]
    Missing {
        /// The file.
        path: String,
    },
}

said!(RunNote);

impl Run {
    /// Opens the raw times of a trial; `None` if they were not recorded.
    ///
    /// # Errors
    /// When they are missing or damaged.
    pub fn samples(&self, measurement: &Measurement) -> Result<Option<SampleReader>, StoreError> {
        if measurement.samples.is_none() {
            return Ok(None);
        }
        SampleReader::open(&samples_path(&self.path, &measurement.trial)).map(Some)
    }

    /// Reads a run directory.
    ///
    /// # Errors
    /// When it is not a run directory, or a newer loadline wrote it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let not_a_run = |why: String| StoreError::NotARun(path.display().to_string(), why);
        let run_path = path.join(RUN_FILE);
        let text =
            file::read_text(&run_path, file::MADE_MOST).map_err(|error| not_a_run(format!("{RUN_FILE}: {error}")))?;
        let file = RunFile::from_toml(&text).map_err(|why| not_a_run(format!("{RUN_FILE}: {why}")))?;
        let mut run =
            Run { path: path.to_owned(), file, measurements: Vec::new(), notes: Vec::new(), left_out: Vec::new() };
        run.read_trials()?;
        Ok(run)
    }

    /// Reads the trials line by line: the text of a long run is many times larger than the data that is kept of it.
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

/// The state while trials are read.
struct Reading<'f> {
    run_began: &'f str,
    /// The ids of the study's cases; `None` for a search, which chooses its cases.
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

    /// Returns the measurement of a line if it is one of this run.
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

/// The cases of the trials read so far. A case is as large as all figures of a short trial; all trials of a case share one copy of it.
#[derive(Default)]
struct Cases(HashMap<String, Arc<Case>>);

impl Cases {
    /// Replaces the case by the known copy of an equal one.
    fn share(&mut self, case: &mut Arc<Case>) {
        match self.0.get(&case.id) {
            Some(known) if known == case => *case = known.clone(),
            _ => drop(self.0.insert(case.id.clone(), case.clone())),
        }
    }
}
