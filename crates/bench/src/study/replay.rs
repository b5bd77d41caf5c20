//! The workload `replay`: which trace is sent, how fast, and which settings it can be combined with.
//!
//! Main functions: [`read_replay`] and [`check_replay`]. Invariant: a trace is read once, however many cases send it.

use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::load::LENGTHS;
use crate::fault::{Fault, fault};
use crate::trace::{Replay, Trace};
use crate::trial::{Arrivals, Length, LoadSettings, ReplayLoad, ReplaySettings, Replayed, Settings, WorkloadSettings};
use crate::units::show_seconds;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};

/// The name of the workload.
const NAME: &str = "replay";
/// Maximum number of connections, the same as of `load.clients`.
const CLIENTS_MOST: usize = 100_000;
/// Maximum size of a trace file, in bytes.
const FILE_BYTES_MOST: u64 = 8 << 30;

/// Reads what is sent, and derives the load from it: the connections are those that the sessions of the trace need, the
/// length is that of the trace, and the rate follows from the speed or `load.rate`.
pub fn read_replay(root: &Table, workload: &mut WorkloadSettings, load: &mut LoadSettings, errors: &mut Errors) {
    let section = Section::open(root, &super::workload::WORKLOAD, errors);
    let speed: Option<f64> = section.read("speed", errors);
    let until_s: Option<f64> = section.read("until", errors);
    let path: Option<String> = section.read("trace", errors);
    let Some((path, entry)) = path.filter(|_| workload.name == NAME).zip(section.get("trace")) else { return };
    let is_foreign = ["database.url", "database.path"].iter().any(|key| root.find(key).is_some());
    let replay = match shared(&path, until_s, workload.writes || !is_foreign) {
        Ok(replay) => replay,
        Err(why) => return errors.push(entry.node.place, why.about(format!("workload.trace: {path}"))),
    };
    if replay.connections.len() > CLIENTS_MOST {
        let what = format!("workload.trace: {path}: it has {} sessions at once", replay.connections.len());
        let remedy = format!("at most {CLIENTS_MOST} connections are opened; write workload.until to send a part");
        return errors.push(entry.node.place, Fault::new(what, remedy));
    }
    let least_s = match load.length {
        Length::Seconds(seconds) if root.get("goal").is_some() && !replay.changes => Some(seconds),
        _ => None,
    };
    let seconds = replay.span_us as f64 / 1e6;
    let of_trace = ReplayLoad { statements: replay.statements, seconds, least_s, passes: None };
    let speed = speed.or((load.rate_per_s.is_none() && root.get("goal").is_none()).then_some(1.0));
    load.arrivals = Arrivals::Replay;
    load.clients = u32::try_from(replay.connections.len()).unwrap_or(u32::MAX);
    load.length = Length::Operations(replay.statements);
    load.rate_per_s = load.rate_per_s.or(Some(speed.unwrap_or(1.0) * of_trace.own_rate_per_s()));
    load.replay = Some(of_trace);
    workload.replay = Some(ReplaySettings {
        trace: path,
        sum: replay.trace.sum.clone(),
        until_s,
        speed,
        left_out: replay.left_out,
        kinds: replay.names.clone(),
    });
    workload.replayed = Replayed(Some(replay));
}

/// Identifies the content of a file at the time when it was read.
#[derive(Debug, Clone, PartialEq)]
struct Version {
    path: String,
    bytes: u64,
    changed: Option<SystemTime>,
}

/// The part of a file that is sent: up to a time in seconds (`None` for all), and whether with statements that write.
type Part = (Option<f64>, bool);

/// The trace that was read last, and the parts of it that are sent: all cases of a study have the same one, or few.
struct Last {
    version: Version,
    trace: Arc<Trace>,
    parts: Vec<(Part, Arc<Replay>)>,
}

static LAST: Mutex<Option<Last>> = Mutex::new(None);

/// Returns the part of a trace that is sent; cases share it.
fn shared(path: &str, until_s: Option<f64>, writes: bool) -> Result<Arc<Replay>, Fault> {
    let version = version_of(path)?;
    // A holder that panicked has left a complete value, or none.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|last| last.version != version) {
        let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
        let trace = Arc::new(Trace::read(&mut BufReader::with_capacity(1 << 20, file))?);
        *last = Some(Last { version, trace, parts: Vec::new() });
    }
    let Some(last) = last.as_mut() else { return Err(Fault::from("it is gone")) };
    let part = (until_s, writes);
    if let Some((_, replay)) = last.parts.iter().find(|(known, _)| *known == part) {
        return Ok(Arc::clone(replay));
    }
    let until_us = until_s.map(|seconds| (seconds * 1e6) as u64);
    let replay = Replay::of(Arc::clone(&last.trace), until_us, writes).ok_or_else(|| match (writes, until_s) {
        (false, None) => {
            fault!("all that its statements do is to change something"; "write writes = true in [workload] if this database may be changed")
        }
        (_, until_s) => {
            let end = show_seconds(until_s.unwrap_or_default());
            fault!("nothing of it can be sent up to {end}"; "write a longer workload.until, or leave it out")
        }
    })?;
    let replay = Arc::new(replay);
    last.parts.push((part, Arc::clone(&replay)));
    Ok(replay)
}

fn version_of(path: &str) -> Result<Version, Fault> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(fault!("it is no file"; "name one that loadline capture made"));
    }
    if metadata.len() > FILE_BYTES_MOST {
        let gib = FILE_BYTES_MOST >> 30;
        return Err(fault!("it has more than {gib} GiB"; "capture less at once"));
    }
    Ok(Version { path: path.to_owned(), bytes: metadata.len(), changed: metadata.modified().ok() })
}

fn unreadable(error: &std::io::Error) -> Fault {
    fault!("it cannot be read: {error}"; "name a file that loadline capture made")
}

/// Returns the settings that a replay cannot be combined with, each with the reason.
pub fn check_replay(settings: &Settings, root: &Table) -> Vec<(Vec<&'static str>, Fault)> {
    let mut found = Vec::new();
    let is_given = |key: &str| root.find(key).is_some();
    let name = &settings.workload.name;
    const OWN: [&str; 3] = ["workload.trace", "workload.speed", "workload.until"];
    if name != NAME {
        let given = OWN.into_iter().filter(|key| is_given(key));
        found.extend(given.map(|key| {
            let what = format!("{key} is for the workload replay and workload.name is \"{name}\"");
            (vec![key, "workload.name"], Fault::new(what, "leave it out"))
        }));
        return found;
    }
    if !is_given("workload.trace") {
        let remedy = "make one with loadline capture LOG --out FILE, and write trace = \"FILE\"";
        found.push((
            vec!["workload.name"],
            fault!("workload.name is \"replay\" and workload.trace is missing"; "{remedy}"),
        ));
    }
    let decided = ["load.arrivals", "load.clients", "load.think", "load.trace", "load.at_most", "load.source_rate"];
    let is_repeated = settings.load.replay.is_some_and(|replay| replay.least_s.is_some());
    let given = decided.into_iter().chain(LENGTHS).filter(|key| is_given(key));
    for key in given.filter(|key| !is_repeated || *key != "load.duration") {
        let remedy = match LENGTHS.contains(&key) {
            true => "leave it out, or write workload.until to send a part",
            false => "leave it out",
        };
        found.push((vec![key], fault!("{key} is given, and of a replay the trace decides that"; "{remedy}")));
    }
    if is_given("workload.speed") && is_given("load.rate") {
        let what = "workload.speed and load.rate both say how fast the trace is sent";
        found.push((vec!["workload.speed", "load.rate"], Fault::new(what, "leave one of them out")));
    }
    if is_given("workload.speed") && root.get("goal").is_some() {
        let what = "workload.speed is given, and the search of [goal] chooses it";
        found.push((vec!["workload.speed"], Fault::new(what, "leave it out")));
    }
    if settings.load.retries > 0 {
        let what = "load.retries is given, and a statement sent again alone would not repeat the transaction that it was part of";
        found.push((vec!["load.retries"], Fault::new(what, "leave it out")));
    }
    if settings.load.connects_each_time {
        let what = "load.connect is \"each\", and the statements of a session belong on one connection";
        found.push((vec!["load.connect"], Fault::new(what, "leave it out")));
    }
    found
}

/// Length of a trace in a rehearsal, in seconds of the trace's time.
pub const REHEARSED_S: f64 = 5.0;

/// Returns whether a study that is not checked yet replays a trace.
pub fn is_replay(root: &Table) -> bool {
    root.find("workload.name").is_some_and(|entry| matches!(&entry.node.content, Content::Text(name) if name == NAME))
}
