//! pgbench: its summary, and the logs of `-l` and `--aggregate-interval`, as repetitions.
//!
//! Main function: [`read`]. With `-R` a transaction's time begins when it was scheduled: a response time, with its schedule lag reported separately.
//! Without `-R`, it begins at sending. Invariant: a log and a summary belong to one run only if their counts agree.

mod aggregated;
mod log;
mod summary;

use super::source::{ImportError, SourceFile};
use super::times::stated;
use super::{Repetition, Tool};
use crate::imported::TimeKind;
use crate::measurement::OperationMeasurement;
use crate::reason::Reason;
use crate::trial::Arrivals;
use aggregated::Aggregated;
use log::Log;
use summary::Summary;

/// A log of either kind that was read.
enum Logged {
    Each(Log),
    Aggregated(Aggregated),
}

/// The log files of one run: pgbench writes one for each of its threads, `PREFIX.PID` and `PREFIX.PID.THREAD`.
struct LogRun<'a> {
    prefix: String,
    pid: String,
    files: Vec<&'a SourceFile>,
}

impl LogRun<'_> {
    /// Returns the name of the first missing log, if a thread numbered before the given ones must have written one.
    fn missing_thread(&self) -> Option<String> {
        let first = format!("{}.{}", self.prefix, self.pid);
        let names = (1..).map(|thread| format!("{first}.{thread}"));
        let names = std::iter::once(first.clone()).chain(names).take(self.files.len());
        names.into_iter().find(|name| !self.pid.is_empty() && !self.files.iter().any(|file| file.name == *name))
    }
}

/// Reads summaries and logs, one repetition for each run.
pub fn read(files: &[SourceFile]) -> Result<Vec<Repetition>, ImportError> {
    let mut summaries = Vec::new();
    let mut runs: Vec<LogRun<'_>> = Vec::new();
    for file in files {
        if summary::is_summary(file) {
            summaries.push((file, Summary::read(file)?));
        } else if log::is_log(file) {
            let (prefix, pid) = run_of(file);
            match runs.iter_mut().find(|run| run.prefix == prefix && run.pid == pid) {
                Some(run) => run.files.push(file),
                None => runs.push(LogRun { prefix, pid, files: vec![file] }),
            }
        } else {
            let remedy = "give what pgbench prints, or its logs (-l); is it another tool's output?";
            let first = super::source::shortened(file.text.lines().next().unwrap_or_default());
            return Err(file.error(1, format!("\"{first}\" begins neither a summary nor a log of pgbench"), remedy));
        }
    }
    let mut repetitions = Vec::new();
    for (file, summary) in &summaries {
        let run = take_run(&mut runs, file, summary)?;
        repetitions.push(repetition(file, Some(summary), run.as_ref())?);
    }
    for run in &runs {
        if !summaries.is_empty() {
            let remedy = "name logs like summaries (--log-prefix=run1 > run1.txt), or give logs or summaries alone";
            return Err(run.files[0].error(1, "no summary has as many transactions as this log", remedy));
        }
        repetitions.push(repetition(run.files[0], None, Some(run))?);
    }
    Ok(repetitions)
}

/// Returns the directory with the prefix, and the process, of `PREFIX.PID[.THREAD]`; a log of another name is a run of its own.
fn run_of(file: &SourceFile) -> (String, String) {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let parts: Vec<&str> = file.name.split('.').collect();
    match &parts[..] {
        [prefix @ .., pid, thread] if is_number(pid) && is_number(thread) && !prefix.is_empty() => {
            (prefix.join("."), (*pid).to_owned())
        }
        [prefix @ .., pid] if is_number(pid) && !prefix.is_empty() => (prefix.join("."), (*pid).to_owned()),
        _ => (file.name.clone(), String::new()),
    }
}

/// Removes and returns the log of a summary's run: of those with the summary's name, or else of all, the one that has as many transactions.
fn take_run<'a>(
    runs: &mut Vec<LogRun<'a>>,
    file: &SourceFile,
    summary: &Summary,
) -> Result<Option<LogRun<'a>>, ImportError> {
    let own_name = file.name.strip_suffix(file.base_name()).unwrap_or_default().to_owned() + file.stem();
    let named: Vec<usize> = (0..runs.len()).filter(|place| runs[*place].prefix == own_name).collect();
    let candidates = if named.is_empty() { (0..runs.len()).collect() } else { named.clone() };
    let mut fitting = Vec::new();
    for place in candidates {
        if logged(&runs[place], Some(summary))?.fits(summary) {
            fitting.push(place);
        }
    }
    match (&fitting[..], &named[..]) {
        ([only], _) => Ok(Some(runs.remove(*only))),
        ([], []) => Ok(None),
        ([], [named, ..]) => {
            let found = format!("its transactions are not the {} of {}", summary.processed, file.name);
            let remedy = "the log is torn, of another run, or a sample (--sampling-rate); leave it out";
            Err(runs[*named].files[0].error(1, found, remedy))
        }
        _ => {
            let remedy = "name logs like summaries (--log-prefix=run1 > run1.txt)";
            Err(file.error(1, "several logs have as many transactions as this summary", remedy))
        }
    }
}

fn logged(run: &LogRun<'_>, summary: Option<&Summary>) -> Result<Logged, ImportError> {
    if aggregated::is_aggregated(run.files[0]) {
        Ok(Logged::Aggregated(Aggregated::read(&run.files)?))
    } else {
        Ok(Logged::Each(Log::read(&run.files, summary)?))
    }
}

impl Logged {
    fn fits(&self, summary: &Summary) -> bool {
        match self {
            Logged::Each(log) => log.completed() == summary.processed && log.failed() == summary.failed(),
            // The last interval is not written if a run ends within it.
            Logged::Aggregated(log) => {
                log.total().completed <= summary.processed && log.scheduled == summary.is_scheduled()
            }
        }
    }
}

fn repetition(
    file: &SourceFile,
    summary: Option<&Summary>,
    run: Option<&LogRun<'_>>,
) -> Result<Repetition, ImportError> {
    let mut repetition = Repetition::of(Tool::Pgbench, file);
    if let Some(run) = run.filter(|_| summary.is_some()) {
        repetition.from().files.extend(run.files.iter().map(|file| file.name.clone()));
    }
    let log = run.map(|run| logged(run, summary)).transpose()?;
    let missing = run.and_then(LogRun::missing_thread).filter(|_| summary.is_none());
    let missing = missing.map(|log| Reason::LogMissing { log });
    repetition.measurement.invalid_because.extend(missing);
    if let Some(summary) = summary {
        summary.tell(&mut repetition);
    }
    match (&log, summary) {
        (Some(Logged::Each(log)), _) => log.fill(&mut repetition, summary),
        (aggregated, Some(summary)) => {
            let aggregated =
                if let Some(Logged::Aggregated(aggregated)) = aggregated { Some(aggregated) } else { None };
            fill_summary(&mut repetition, summary, aggregated);
        }
        (Some(Logged::Aggregated(aggregated)), None) => aggregated.fill(&mut repetition),
        (None, None) => {}
    }
    let is_open = repetition.arrivals != Arrivals::Closed;
    let completed = repetition.measurement.completed();
    repetition.measurement.carried = is_open.then_some(completed);
    repetition.note("it does not tell whether reads found anything, or how many records were carried");
    if is_open {
        repetition.note("it does not tell its -R: the rate offered is that of the transactions that arrived");
    } else {
        repetition.note(
            "clients wait for their answers and times begin at sending: what waits behind a slow answer is in no time (coordinated \
             omission), and response times are not known; -R would tell them",
        );
    }
    Ok(repetition)
}

/// Fills in the counts and stated times of a summary, with the series of an aggregated log.
fn fill_summary(repetition: &mut Repetition, summary: &Summary, aggregated: Option<&Aggregated>) {
    let kind = if summary.is_scheduled() { TimeKind::ResponseTime } else { TimeKind::ResidenceTime };
    if summary.is_scheduled() {
        repetition.arrivals = Arrivals::Poisson;
    }
    let mut operation = OperationMeasurement {
        scheduled: summary.processed.saturating_add(summary.failed()),
        completed: summary.processed,
        failed: summary.failed(),
        ..OperationMeasurement::default()
    };
    let whole = aggregated.map(Aggregated::total).filter(|sums| sums.completed == summary.processed);
    let (min_s, max_s) = (whole.and_then(|log| log.min_s), whole.and_then(|log| log.max_s));
    operation.stated.insert(kind, stated(summary.mean_s, min_s, max_s, Vec::new()));
    if let Some((mean_s, max_s)) = summary.lag_s {
        operation.stated.insert(TimeKind::ScheduleLag, stated(Some(mean_s), None, Some(max_s), Vec::new()));
        let residence_s = summary.mean_s.map(|response_s| (response_s - mean_s).max(0.0));
        operation.stated.insert(TimeKind::ResidenceTime, stated(residence_s, None, None, Vec::new()));
    }
    repetition.note("without a log of transactions (-l) there are means and no percentiles");
    let measurement = &mut repetition.measurement;
    (measurement.measured_s, measurement.total_s) = (summary.measured_s(), summary.measured_s());
    measurement.operations.insert("transaction".to_owned(), Box::new(operation));
    measurement.errors = summary.errors();
    measurement.series = aggregated.map_or_else(|| summary.series.clone(), |log| log.series());
    measurement.started = aggregated.map(Aggregated::started).unwrap_or_default();
}
