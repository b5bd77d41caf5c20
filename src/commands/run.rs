//! `loadline run`: executes a study's trials, round by round, until every case is settled, and then reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;

use super::budget::Budget;
use super::course::Course;
use super::known::least_s;
use super::output::{note, sentence};
use super::progress::Progress;
use super::report::publish;
use super::{Failure, Status};
use crate::database::DatabaseError;
use crate::link;
use crate::measurement::Measurement;
use crate::monitor;
use crate::runner::agents::Muster;
use crate::runner::driving::Executed;
use crate::runner::entry::entry_of;
use crate::runner::execute::{self, execute, now_utc};
use crate::runner::private_start::remove_leftovers;
use crate::runner::stage::{Current, Stage};
use crate::runner::stolen::stolen_permitted;
use crate::runner::took::Noted;
use crate::server::{self, CpuList, interrupted};
use crate::store::{Run, RunDirectory, StoreError};
use crate::study::plan;
use crate::study::{Passwords, Study, need_own_hosts};
use crate::trial::Trial;

/// Number of consecutive trials with a database that stands still after which no more are begun.
const LATE_MAX: u32 = 2;

/// The destination of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A new directory named after study and time.
    New,
    /// The given new directory.
    Out(PathBuf),
    /// The directory of an earlier run, which is continued.
    Resume(PathBuf),
}

/// Runs a study.
///
/// # Errors
/// [`Failure::Usage`] for errors found before anything was started; [`Failure::Broken`] if the run cannot go on.
pub fn run(
    study: &Study,
    (passwords, muster): (Passwords, Option<Arc<Muster>>),
    destination: &Destination,
    (words, mut budget): (Vec<String>, Budget),
    (is_json, is_strict): (bool, bool),
) -> Result<Status, Failure> {
    check(study).map_err(Failure::usage)?;
    stolen_permitted().map_err(Failure::usage)?;
    server::install_signal_handlers();
    remove_leftovers().map_err(Failure::usage)?;
    let (mut directory, finished) = open(study, destination, words).map_err(Failure::usage)?;
    // The study is stored as it was written.
    let study = &budget.planned(study);
    let mut course = Course::of(study, finished);
    let mut stage = Stage::new(directory.path(), passwords).patient(study.patience).mustering(muster);
    if course.is_resumed && course.left(study, 0) == 0 {
        note("note: nothing is missing in this run");
    }
    let mut progress = Progress::new(course.left(study, 0), is_json);
    progress.begin_run((!course.is_resumed && !is_json).then(|| least_s(study)));
    let (mut is_first, mut late) = (true, 0);
    let (mut rounds, mut noted) = (Rounds::begin(), Noted::default());
    'rounds: for round in (0..rounds_max(study)).take_while(|round| rounds.goes_on(study, *round)) {
        let Some(mut trials) = course.open_round(study, round) else { break };
        while let Some(trial) = trials.pop_front() {
            if !budget.begins() {
                break 'rounds;
            }
            progress.begin(&trial);
            noted.begin();
            let mut current = match stage.enter_for(&trial.case.settings) {
                Err(error) if is_first && !interrupted() => {
                    return Err(nothing_done(&sentence(&error), directory, stage, destination));
                }
                current => current,
            };
            if let Ok(current) = &mut current {
                note_database(&trial, current, &mut directory, &mut progress).map_err(Failure::broken)?;
            }
            let filling = |rows, of| progress.filling(&trial, rows, of);
            let mut executed = execute(&trial, directory.written(), current, &filling);
            if interrupted() {
                break 'rounds;
            }
            if let Some(why) = executed.refused.as_ref().filter(|_| is_first) {
                return Err(nothing_done(why, directory, stage, destination));
            }
            is_first = false;
            if course.is_lost(&mut executed.measurement) {
                trials.push_front(trial);
            }
            keep(&executed, &mut directory, &mut stage, &mut noted).map_err(Failure::broken)?;
            course.take_in(study, &executed.measurement);
            progress.end(&executed.measurement, course.left(study, round));
            late = if stage.stands_still() { late + 1 } else { 0 };
            if late == LATE_MAX {
                progress.say(&said_of_standing(&directory));
                break 'rounds;
            }
        }
    }
    let said = budget.said(study, &course.outcomes, &directory.path().display().to_string());
    said.filter(|_| !interrupted()).into_iter().for_each(|line| progress.say(&line));
    let is_clean = finish((stage, noted), progress, &directory);
    let status = publish(&[Run::open(directory.path()).map_err(Failure::broken)?], is_json, is_strict)?;
    Ok(if interrupted() || !is_clean { Status::Invalid } else { status })
}

/// Returns why no more trials are begun.
fn said_of_standing(directory: &RunDirectory) -> String {
    let remedy = format!("continue with the same command and --resume {}", directory.path().display());
    format!(
        "note: the database has stood still in {LATE_MAX} trials one behind the other, so that no more are begun; {remedy}"
    )
}

/// Notes the facts about a trial's database, in the run and for the user.
fn note_database(
    trial: &Trial,
    current: &mut Current,
    directory: &mut RunDirectory,
    progress: &mut Progress,
) -> Result<(), StoreError> {
    current.samples = Some(directory.samples_path(trial));
    current.notes.drain(..).for_each(|line| progress.say(&format!("note: {line}")));
    directory.note_database(&trial.case.settings.database, &current.facts)?;
    match &current.link {
        Some(link) => directory.note_link(&link.name(), &link.seen),
        None => Ok(()),
    }
}

/// Durations of rounds of trials, which decide when a rehearsal ends.
struct Rounds {
    begun: Instant,
    round_begun: Instant,
    longest_s: f64,
}

impl Rounds {
    fn begin() -> Self {
        let now = Instant::now();
        Rounds { begun: now, round_begun: now, longest_s: 0.0 }
    }

    /// Ends the previous round and returns whether the next one begins.
    fn goes_on(&mut self, study: &Study, round: u32) -> bool {
        self.longest_s = self.longest_s.max(self.round_begun.elapsed().as_secs_f64());
        self.round_begun = Instant::now();
        !plan::is_rehearsed(study, round, self.begun.elapsed().as_secs_f64(), self.longest_s)
    }
}

/// Stops the database, and reports what was kept of it and how to continue an interrupted run. Returns whether all tables that the run made on a
/// foreign server are gone.
fn finish((mut stage, noted): (Stage, Noted), progress: Progress, directory: &RunDirectory) -> bool {
    noted.keep();
    let (kept, staying) = stage.end();
    drop(progress);
    kept.iter().for_each(|line| note(&format!("note: {line}")));
    staying.iter().for_each(|line| note(line));
    if interrupted() {
        note(&format!("interrupted; continue with the same command and --resume {}", directory.path().display()));
    }
    staying.is_empty()
}

/// Checks everything that can be found wrong before anything is started; `loadline plan` makes the same checks.
///
/// # Errors
/// Fails with the first problem of a case or of this machine.
pub fn check(study: &Study) -> anyhow::Result<()> {
    for case in &study.cases {
        let settings = &case.settings;
        execute::check(settings)?;
        crate::runner::freshness::check(settings)?;
        crate::runner::connections::check(settings)?;
        let entry = entry_of(&settings.database)?;
        crate::runner::check_front(settings)?;
        settings.linked().map(|link| link::check(&link)).transpose()?;
        if need_own_hosts(&settings.events) {
            link::check_hosts()?;
        }
        match (entry.recipe, &settings.database.url) {
            (Some(recipe), None) => server::check(recipe, &settings.database)?,
            (None, None) if settings.database.path.is_none() => {
                entry.open(&settings.database, None).map(|_| ()).or_else(needs_a_file)?;
            }
            _ => {}
        }
        if let Some(cpus) = &settings.load.cpus {
            CpuList::parse(cpus).and_then(|cpus| cpus.check()).context("load.cpus")?;
        }
    }
    Ok(())
}

/// Ignores the error that an embedded database has no file: it gets one later.
fn needs_a_file(error: DatabaseError) -> anyhow::Result<()> {
    if error == DatabaseError::NoFile { Ok(()) } else { Err(error.into()) }
}

/// Returns the directory of a run for which none is given.
pub(super) fn new_directory(study: &Study) -> PathBuf {
    Path::new("runs").join(format!("{}-{}", study.name, now_utc().replace(':', "")))
}

fn open(
    study: &Study,
    destination: &Destination,
    words: Vec<String>,
) -> anyhow::Result<(RunDirectory, Vec<Measurement>)> {
    let path = match destination {
        Destination::New => new_directory(study),
        Destination::Out(path) | Destination::Resume(path) => path.clone(),
    };
    if let Destination::Resume(_) = destination {
        let (directory, run) = RunDirectory::resume(&path, study, &monitor::environment(&path))?;
        super::stored::told(&run);
        return Ok((directory, run.measurements));
    }
    let beside = path.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new("."));
    let mut directory = RunDirectory::create(&path, study, monitor::environment(beside), &now_utc())?;
    directory.note_command(words)?;
    if let Some(disk_sync) = monitor::disk_sync(&path) {
        directory.note_disk_sync(disk_sync)?;
    }
    Ok((directory, Vec::new()))
}

/// Ends a run whose database could not be set up at all or refused tables or statements: the request is wrong, and a directory made
/// for the run is removed.
fn nothing_done(why: &str, directory: RunDirectory, stage: Stage, destination: &Destination) -> Failure {
    let path = directory.path().to_owned();
    drop(stage);
    drop(directory);
    if !matches!(destination, Destination::Resume(_)) {
        // The directory holds no measurements; it does no harm if it cannot be removed.
        let _ = std::fs::remove_dir_all(path);
    }
    Failure::refused(why.to_owned())
}

/// Writes a finished trial to the run directory, and notes its duration.
fn keep(
    executed: &Executed,
    directory: &mut RunDirectory,
    stage: &mut Stage,
    noted: &mut Noted,
) -> Result<(), StoreError> {
    noted.take_in(&executed.measurement, stage.current_mut().map(|current| &mut current.took));
    match directory.append(&executed.measurement, &executed.samples) {
        Err(error) if error.is_full() => {
            // The database has filled the disk. Without it there is room for the evidence, and the next trial makes a new one.
            stage.leave();
            directory.append(&executed.measurement, &executed.samples)
        }
        appended => appended,
    }
}

/// Returns the largest number of rounds.
fn rounds_max(study: &Study) -> u32 {
    // A search ends by itself.
    if study.goal.is_some() { u32::MAX } else { plan::rounds_max(study) }
}
