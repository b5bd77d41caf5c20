//! YCSB: turns its text or JSON output into repetitions; a `.hdr` log beside it gives the times that the output only summarises.
//!
//! Main function: [`read`]. YCSB's `READ` begins when an operation is sent: a residence time. Only `Intended-READ`, under a
//! `-target`, is a response time. Invariant: operations that returned anything but OK are failed, whatever YCSB's exit status.

mod command;
mod entries;
mod hdr;
mod section;
mod status;

use std::collections::BTreeMap;

use super::source::{ImportError, SourceFile};
use super::times::Counted;
use super::{Repetition, Tool};
use crate::imported::TimeKind::{ResidenceTime, ResponseTime};
use crate::measurement::OperationMeasurement;
use crate::trial::Arrivals;
use command::Command;
use entries::Output;
use section::{Section, Told};

/// Operations of YCSB's clients by their names; any other section describes the state of YCSB's process.
const OPERATIONS: [&str; 6] = ["READ", "UPDATE", "INSERT", "SCAN", "DELETE", "READ-MODIFY-WRITE"];
/// The section of the cleanup that clients do once at their end.
const CLEANUP: &str = "CLEANUP";
/// The operation that consists of a read and an update, which have sections of their own.
const COMPOSITE: &str = "READ-MODIFY-WRITE";
/// Share of the total operations that the sections may lack.
const MISSING_SHARE: f64 = 0.001;

/// Reads outputs, one repetition each, and the `.hdr` logs beside them.
pub fn read(files: &[SourceFile]) -> Result<Vec<Repetition>, ImportError> {
    let (mut logs, outputs): (Vec<&SourceFile>, Vec<&SourceFile>) =
        files.iter().partition(|file| file.base_name().ends_with(".hdr"));
    // YCSB writes a log for its clients' cleanup too, which is not an operation of the database.
    logs.retain(|log| !log.stem().ends_with(CLEANUP));
    let mut repetitions = Vec::new();
    let mut used = vec![false; logs.len()];
    for output in &outputs {
        let mut times = BTreeMap::new();
        for (place, log) in logs.iter().enumerate().filter(|(_, log)| hdr::belongs(log, output, &outputs)) {
            used[place] = true;
            let (section, counted) = hdr::read(log)?;
            times.insert(section, (log.name.clone(), counted));
        }
        repetitions.push(repetition(output, times)?);
    }
    if let Some(place) = used.iter().position(|used| !used) {
        let remedy = "give YCSB's output of the same run too, in the same directory, or leave the log out";
        return Err(logs[place].error(1, "this is an HdrHistogram log without an output", remedy));
    }
    Ok(repetitions)
}

type Logs = BTreeMap<String, (String, Counted)>;

fn repetition(file: &SourceFile, mut logs: Logs) -> Result<Repetition, ImportError> {
    let Output { sections, raw, version, command, status } = entries::read(file)?;
    let overall = overall(file, &sections)?;
    let mut repetition = Repetition::of(Tool::Ycsb, file);
    repetition.from().version = version;
    repetition.measurement.measured_s = overall.runtime_s;
    repetition.measurement.total_s = overall.runtime_s;
    repetition.measurement.series = status::series(&status);
    tell(&mut repetition, command.as_ref());
    let target = command.as_ref().and_then(|command| command.target_per_s);
    let has_intended = sections.iter().any(|(name, _)| name.starts_with("Intended-"));
    if target.is_some() && has_intended {
        repetition.arrivals = Arrivals::Constant;
    }
    for operation in OPERATIONS {
        let sent = find(&sections, operation);
        let counts = Counts::of(operation, &sections, raw.get(operation).map(Vec::len));
        if counts.completed + counts.failed() == 0 {
            continue;
        }
        let kind = operation.to_lowercase();
        let mut measured = OperationMeasurement {
            scheduled: counts.completed + counts.failed(),
            completed: counts.completed,
            failed: counts.failed(),
            composite: operation == COMPOSITE,
            ..OperationMeasurement::default()
        };
        for (status, count) in &counts.returned {
            repetition.measurement.errors.insert(format!("{operation} returned {status}"), *count);
        }
        if sent.is_none() && counts.completed > 0 && !raw.contains_key(operation) {
            return Err(file.error(file.last_line(), format!("[{operation}] has no figures"), TORN));
        }
        let intended_name = format!("Intended-{operation}");
        for (kind, name) in [(ResidenceTime, operation), (ResponseTime, intended_name.as_str())] {
            if kind == ResponseTime && repetition.arrivals == Arrivals::Closed {
                continue;
            }
            let log = logs.remove(name);
            repetition.from().files.extend(log.iter().map(|(file, _)| file.clone()));
            let told = match (log, raw.get(name)) {
                (Some((_, counted)), _) => Told::Counted(counted),
                (None, Some(values)) => Told::Counted(section::of_raw(values)),
                (None, None) => match find(&sections, name) {
                    Some(section) => section.told(),
                    None => continue,
                },
            };
            keep(&mut repetition, &mut measured, kind, told);
        }
        measured.records = if matches!(operation, "SCAN" | COMPOSITE) { 0 } else { counts.completed };
        repetition.measurement.operations.insert(kind, Box::new(measured));
    }
    finish(&mut repetition, file, &overall, has_intended)?;
    Ok(repetition)
}

/// Fills in the figures of the repetition besides its operations.
fn finish(
    repetition: &mut Repetition,
    file: &SourceFile,
    overall: &Overall,
    has_intended: bool,
) -> Result<(), ImportError> {
    let measurement = &repetition.measurement;
    let composite =
        measurement.operations.values().filter(|operation| operation.composite).map(|operation| operation.scheduled);
    let composite: u64 = composite.sum();
    let counted = measurement.scheduled().saturating_sub(composite);
    let missing = overall.operations as f64 - counted as f64;
    if missing > MISSING_SHARE * overall.operations as f64 + 0.5 {
        let found = format!("[OVERALL] tells {} operations, the sections {counted}", overall.operations);
        return Err(file.error(file.last_line(), found, TORN));
    }
    let (is_open, scans) = (repetition.arrivals != Arrivals::Closed, measurement.operations.contains_key("scan"));
    repetition.measurement.carried = is_open.then_some(overall.operations);
    let from = repetition.from();
    (from.records_known, from.empty_known) = (!scans, true);
    from.operations = (composite > 0).then_some(overall.operations);
    if scans {
        repetition.note("it does not tell how many records scans read, so records per second are not known");
    }
    if is_open {
        return Ok(());
    }
    repetition.note(
        "clients wait for their answers and times begin at sending: what waits behind a slow answer is in no time (coordinated \
         omission), and response times are not known",
    );
    if has_intended {
        repetition.note("Intended- sections are left out: without a -target in the output, nothing was scheduled");
    }
    Ok(())
}

const TORN: &str = "the file is torn; copy it again, or leave it out";

/// Adds the times of one kind.
fn keep(repetition: &mut Repetition, measured: &mut OperationMeasurement, kind: crate::imported::TimeKind, told: Told) {
    let (histogram, stated) = match told {
        Told::Counted(counted) => (Some(counted.histogram()), None),
        Told::Stated(stated) => (None, Some(stated)),
        Told::Coarse(stated) => {
            repetition.note(
                "its histogram counts whole milliseconds: percentiles below 20 ms are left out, since they are mostly rounding",
            );
            (None, Some(stated))
        }
    };
    if let Some(histogram) = histogram {
        match kind {
            ResponseTime => measured.response_time = histogram,
            _ => measured.residence_time = histogram,
        }
    } else if let Some(stated) = stated.filter(|stated| !stated.is_empty()) {
        if !stated.quantiles.is_empty() {
            repetition.note(
                "it keeps percentiles and no histogram: those of several runs together are not known, so reports have the mean, and \
                 compare takes each run's own",
            );
        }
        measured.stated.insert(kind, stated);
    }
}

fn find<'s>(sections: &'s [(String, Section)], name: &str) -> Option<&'s Section> {
    sections.iter().find(|(known, _)| known == name).map(|(_, section)| section)
}

/// The content of `[OVERALL]`.
struct Overall {
    runtime_s: f64,
    operations: u64,
}

fn overall(file: &SourceFile, sections: &[(String, Section)]) -> Result<Overall, ImportError> {
    let section = find(sections, "OVERALL");
    let value = |name: &str| section.and_then(|section| section.figure(name));
    let (runtime_ms, throughput) = (value("RunTime(ms)"), value("Throughput(ops/sec)"));
    let (Some(runtime_ms), Some(throughput)) = (runtime_ms.filter(|ms| *ms > 0.0), throughput) else {
        let found = if sections.is_empty() {
            "no line of YCSB's output is in it".to_owned()
        } else {
            "[OVERALL] has no RunTime(ms) above 0 and Throughput(ops/sec)".to_owned()
        };
        let remedy = "give what YCSB prints to stdout, of a run that ended";
        return Err(file.error(file.last_line(), found, remedy));
    };
    let runtime_s = runtime_ms / 1e3;
    Ok(Overall { runtime_s, operations: (throughput * runtime_s).round() as u64 })
}

/// Counts of how the operations of a kind ended.
struct Counts {
    completed: u64,
    /// Counts of statuses other than OK.
    returned: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts by the `Return=` lines, or else by the sections of failed operations.
    fn of(operation: &str, sections: &[(String, Section)], raw: Option<usize>) -> Self {
        let section = find(sections, operation);
        let counted = section.and_then(Section::operations).or(raw.map(|count| count as u64)).unwrap_or(0);
        let statuses = section.map(|section| section.returned.clone()).unwrap_or_default();
        let is_good = |status: &str| matches!(status, "OK" | "0" | "BATCHED_OK");
        let good: u64 = statuses.iter().filter(|(status, _)| is_good(status)).map(|(_, count)| count).sum();
        let mut returned: BTreeMap<String, u64> = statuses
            .iter()
            .filter(|(status, count)| !is_good(status) && **count > 0)
            .map(|(s, c)| (s.clone(), *c))
            .collect();
        if returned.is_empty() {
            let prefix = format!("{operation}-");
            let failed = sections.iter().filter(|(name, _)| {
                // READ-MODIFY-WRITE is not a status of READ.
                name.starts_with(&prefix)
                    && !OPERATIONS.iter().any(|other| name.starts_with(other) && other.len() > operation.len())
            });
            let counts =
                failed.filter_map(|(name, section)| Some((name[prefix.len()..].to_owned(), section.operations()?)));
            returned = counts.filter(|(_, count)| *count > 0).collect();
        }
        // Before version 0.2, the times of failed operations were counted with the others.
        let completed = if statuses.is_empty() { counted } else { counted.min(good) };
        Counts { completed, returned }
    }

    fn failed(&self) -> u64 {
        self.returned.values().sum()
    }
}

/// Adds the settings of the command line; without one, only the user can give them.
fn tell(repetition: &mut Repetition, command: Option<&Command>) {
    let Some(command) = command else {
        repetition.note("its command line is not in the output (it goes to stderr): tell clients and workload with --level or --pattern");
        return;
    };
    repetition.tell("load.clients", command.threads);
    if let Some(workload) = &command.workload {
        repetition.tell("workload.name", workload.as_str());
    }
    if let Some(target) = command.target_per_s {
        repetition.tell("load.rate", number(target));
    }
    if let Some(records) = command.records {
        repetition.tell("record.rows", records);
    }
}

/// Returns whole numbers as integers.
fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 { (value as u64).into() } else { value.into() }
}
