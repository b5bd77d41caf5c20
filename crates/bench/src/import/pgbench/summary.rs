//! The summary that pgbench prints at the end of a run, and its progress lines (`-P`).
//!
//! Main type: [`Summary`]. Invariant: transactions that failed or were skipped are counted as failed.

use std::collections::BTreeMap;

use crate::import::Repetition;
use crate::import::source::{ImportError, SourceFile, after, figure, leading_figure, shortened};
use crate::measurement::IntervalMeasurement;
use crate::reason::Reason;

/// Rows of pgbench_accounts at scale 1.
const ROWS_PER_SCALE: u64 = 100_000;
const TORN: &str = "give all that pgbench prints, of a run that ended; leave this file out if it did not";

/// A summary of pgbench.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Version of pgbench; `None` if it is not printed.
    pub version: Option<String>,
    /// Transaction type, as in `<builtin: select only>`; `multiple scripts` if there are several.
    pub transaction_type: String,
    /// Names of the scripts, if there are several.
    pub scripts: Vec<String>,
    scale: Option<u64>,
    clients: Option<u64>,
    threads: Option<u64>,
    /// The value of `--max-tries`.
    pub tries: u64,
    /// Number of transactions that succeeded.
    pub processed: u64,
    failures: u64,
    by_reason: BTreeMap<String, u64>,
    skipped: u64,
    /// The printed `latency average`, in seconds.
    pub mean_s: Option<f64>,
    /// Mean and largest schedule lag, in seconds; `None` without `-R`.
    pub lag_s: Option<(f64, f64)>,
    tps: Option<f64>,
    /// The intervals of the progress lines.
    pub series: Vec<IntervalMeasurement>,
    /// The run's own messages that say why it is not to be trusted.
    complaints: Vec<String>,
}

/// Returns whether a file is printed by pgbench.
pub fn is_summary(file: &SourceFile) -> bool {
    let begins = ["pgbench (", "transaction type:", "starting vacuum...", "pgbench: ", "progress: "];
    file.text.lines().take(40).any(|line| begins.iter().any(|begin| line.starts_with(begin)))
}

impl Summary {
    /// Parses a summary.
    ///
    /// # Errors
    /// When the run did not end, or the file is torn.
    pub fn read(file: &SourceFile) -> Result<Self, ImportError> {
        let mut summary = Summary { tries: 1, ..Summary::default() };
        let mut processed = None;
        let mut last_end_s = 0.0;
        for (number, line) in file.lines() {
            if !is_free_text(line) {
                file.check_numbers(number, line)?;
            }
            if line.starts_with("progress:") {
                let Some(interval) = progress(line, last_end_s) else {
                    return Err(file.error(number, format!("\"{}\" is no progress line", shortened(line)), TORN));
                };
                last_end_s = interval.end_s;
                summary.series.push(interval);
            } else if let Some(count) = after(line, "number of transactions actually processed:") {
                processed = processed.or(leading_figure(count));
            } else if line.starts_with("SQL script ") {
                summary.scripts.extend(line.split_once(": ").map(|(_, name)| name.trim().to_owned()));
            } else if summary.scripts.is_empty() {
                // Lines after the name of a script are about that script alone.
                summary.take(line);
            }
        }
        let Some(processed) = processed else {
            let died = summary
                .complaints
                .first()
                .map_or(String::new(), |complaint| format!(" (pgbench said \"{complaint}\")"));
            let found = format!("the number of transactions actually processed is missing{died}");
            return Err(file.error(file.last_line(), found, TORN));
        };
        summary.processed = processed as u64;
        if summary.processed > 0 && (summary.tps.is_none() || summary.mean_s.is_none()) {
            return Err(file.error(file.last_line(), "\"latency average\" or \"tps\" is missing", TORN));
        }
        file.check_ended()?;
        Ok(summary)
    }

    fn take(&mut self, line: &str) {
        let number = |label: &str| after(line, label).and_then(leading_figure).map(|value| value as u64);
        if let Some(version) = line.strip_prefix("pgbench (") {
            self.version = version.split([' ', ')']).next().map(str::to_owned);
        } else if let Some(kind) = after(line, "transaction type:") {
            self.transaction_type = kind.to_owned();
        } else if let Some(average) = after(line, "latency average") {
            self.mean_s = average.strip_prefix('=').and_then(leading_figure).map(|mean_ms| mean_ms / 1e3);
        } else if let Some(lag) = after(line, "rate limit schedule lag: avg") {
            let largest = lag.split_once("(max").and_then(|(_, largest)| leading_figure(largest));
            self.lag_s = leading_figure(lag).zip(largest).map(|(mean, max)| (mean / 1e3, max / 1e3));
        } else if let Some(tps) = after(line, "tps =") {
            // Up to version 13 there are two such lines; the second one excludes connecting.
            if !line.contains("including connections establishing") || self.tps.is_none() {
                self.tps = leading_figure(tps);
            }
        } else if is_complaint(line) && self.complaints.len() < 3 {
            self.complaints.push(line.trim_start_matches("pgbench:").trim().to_owned());
        }
        self.scale = self.scale.or(number("scaling factor:"));
        self.clients = self.clients.or(number("number of clients:"));
        self.threads = self.threads.or(number("number of threads:"));
        self.tries = number("maximum number of tries:").unwrap_or(self.tries);
        self.failures += number("number of failed transactions:").unwrap_or(0);
        self.skipped += number("number of transactions skipped:").unwrap_or(0);
        for reason in ["serialization", "deadlock"] {
            let count = number(&format!("number of {reason} failures:")).unwrap_or(0);
            if count > 0 {
                *self.by_reason.entry(format!("{reason} failure")).or_default() += count;
            }
        }
    }

    /// Returns whether transactions were scheduled (`-R`).
    pub fn is_scheduled(&self) -> bool {
        self.lag_s.is_some()
    }

    /// Returns the number of transactions that failed or were skipped.
    pub fn failed(&self) -> u64 {
        self.failures.saturating_add(self.skipped)
    }

    /// Returns the length of the run without connecting, in seconds; 0 if nothing was processed.
    pub fn measured_s(&self) -> f64 {
        self.tps.filter(|tps| *tps > 0.0).map_or(0.0, |tps| self.processed as f64 / tps)
    }

    /// Returns the number of failures by reason.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        let mut errors = self.by_reason.clone();
        let unnamed = self.failures.saturating_sub(errors.values().sum());
        errors
            .extend([("a failure that pgbench does not name".to_owned(), unnamed), (SKIPPED.to_owned(), self.skipped)]);
        errors.retain(|_, count| *count > 0);
        errors
    }

    /// Returns the name of a script by its number, as in `select-only`.
    pub fn script(&self, number: usize) -> String {
        let name = self.scripts.get(number).unwrap_or(&self.transaction_type);
        match name.as_str() {
            "<builtin: TPC-B (sort of)>" => "tpcb-like".to_owned(),
            "<builtin: select only>" => "select-only".to_owned(),
            "<builtin: simple update>" => "simple-update".to_owned(),
            "" => format!("script-{number}"),
            other => other.to_owned(),
        }
    }

    /// Passes the settings and complaints to the repetition.
    pub fn tell(&self, repetition: &mut Repetition) {
        repetition.from().version.clone_from(&self.version);
        if let Some(clients) = self.clients {
            repetition.tell("load.clients", clients);
        }
        if let Some(threads) = self.threads {
            repetition.tell("load.loops", threads);
        }
        if !self.transaction_type.is_empty() {
            let name = if self.scripts.len() > 1 { "several scripts".to_owned() } else { self.script(0) };
            repetition.tell("workload.name", name);
        }
        if let Some(scale) = self.scale.filter(|scale| *scale > 0 && self.transaction_type.starts_with("<builtin")) {
            repetition.tell("record.rows", scale.saturating_mul(ROWS_PER_SCALE));
        }
        let said = |complaint: &String| Reason::ToolSaid { tool: "pgbench".to_owned(), message: complaint.clone() };
        let complaints = self.complaints.iter().map(said);
        repetition.measurement.invalid_because.extend(complaints);
    }
}

/// Returns whether a line of pgbench reports that something went wrong.
fn is_complaint(line: &str) -> bool {
    let is_error = line.starts_with("pgbench:") && !line.contains("detail:") && !line.contains("hint:");
    is_error || line.starts_with("Run was aborted") || line.contains(" aborted in ")
}

/// Returns whether a line contains free text: names of files, and messages of servers.
fn is_free_text(line: &str) -> bool {
    is_complaint(line) || ["SQL script ", "transaction type:", "pgbench"].iter().any(|begin| line.starts_with(begin))
}

/// The reason of a skipped transaction.
pub const SKIPPED: &str = "skipped, because it could not have ended within --latency-limit";

/// Parses `progress: 1.0 s, 8586.3 tps, lat 0.229 ms stddev 0.090, 0 failed`; the times in it are not used.
fn progress(line: &str, before_s: f64) -> Option<IntervalMeasurement> {
    let mut parts = line.strip_prefix("progress:")?.split(',');
    let end_s = figure(parts.next()?.trim().strip_suffix('s')?)?;
    let tps = figure(parts.next()?.trim().strip_suffix("tps")?)?;
    // A torn line has no stddev.
    line.contains("stddev").then_some(())?;
    let count = |label: &str| line.split(',').find_map(|part| part.trim().strip_suffix(label).and_then(leading_figure));
    let completed = (tps * (end_s - before_s).max(0.0)).round() as u64;
    let failed = (count("failed").unwrap_or(0.0) + count("skipped").unwrap_or(0.0)) as u64;
    Some(IntervalMeasurement {
        end_s,
        scheduled: completed.saturating_add(failed),
        completed,
        failed,
        ..IntervalMeasurement::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_lines_are_intervals() {
        let interval = progress("progress: 3.0 s, 100.5 tps, lat 0.229 ms stddev 0.090, 2 failed", 1.0).unwrap();
        assert_eq!((interval.end_s, interval.completed, interval.failed), (3.0, 201, 2));
        assert_eq!(progress("progress: 3.0 s, 10", 1.0), None);
    }

    #[test]
    fn a_run_that_did_not_end_is_an_error_with_its_reason() {
        let text = "pgbench (15.18)\npgbench: error: connection to server failed\n".to_owned();
        let error = Summary::read(&SourceFile { name: "p.txt".to_owned(), text }).unwrap_err().to_string();
        assert!(error.starts_with("p.txt:2: ") && error.contains("connection to server failed"), "{error}");
    }
}
