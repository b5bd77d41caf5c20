//! `[load]`: what clients do when, and for how long.
//!
//! Main function: [`read_load`]. Invariant: a load that was read has exactly one length.

use super::names::Names;
use super::place::Errors;
use super::section::Section;
use super::settings::{LARGE, read_cpus, read_name};
use super::tree::Table;
use crate::trial::{Arrivals, Length, LoadSettings};

const LOAD_KEYS: &[&str] = &[
    "arrivals",
    "clients",
    "rate",
    "source_rate",
    "trace",
    "operations",
    "operations_per_client",
    "duration",
    "at_most",
    "warmup",
    "think",
    "drain",
    "samples",
    "cpus",
    "loops",
    "statements",
    "pipeline",
    "connect",
    "count_connecting",
    "tolerated_failures",
];

/// The settings of the section; what is missing or wrong has its default.
pub fn read_load(root: &Table, names: &Names, errors: &mut Errors) -> LoadSettings {
    let section = Section::open(root, "load", LOAD_KEYS, errors);
    let unwritten = if root.get("goal").is_some() { "poisson" } else { "closed" };
    let arrivals = match read_name(&section, "arrivals", unwritten, &names.arrivals, errors).as_str() {
        "poisson" => Arrivals::Poisson,
        "constant" => Arrivals::Constant,
        "trace" => Arrivals::Trace,
        "sources" => Arrivals::Sources,
        _ => Arrivals::Closed,
    };
    let clients = section.count("clients", 1, 100_000, errors).unwrap_or(1);
    let source_rate_per_s = section.number("source_rate", 1e-3..=1e6, errors);
    let of_sources = source_rate_per_s.filter(|_| arrivals == Arrivals::Sources).map(|rate| rate * f64::from(clients));
    let samples = section.truth("samples", errors).unwrap_or(false);
    LoadSettings {
        arrivals,
        clients,
        rate_per_s: section.number("rate", 1e-3..=1e9, errors).or(of_sources),
        source_rate_per_s,
        trace: section.text("trace", errors).map(str::to_owned),
        length: read_length(&section, errors),
        at_most_s: read_time(&section, "at_most", errors),
        warmup_s: section.seconds("warmup", errors).unwrap_or(0.5),
        think_s: section.seconds("think", errors).unwrap_or(0.0),
        drain_s: section.seconds("drain", errors).unwrap_or(30.0),
        samples,
        cpus: read_cpus(&section, errors),
        loops: section.count("loops", 1, 1024, errors),
        statements_as_text: section.one_of("statements", &["prepared", "text"], errors) == Some("text"),
        pipeline: section.truth("pipeline", errors).unwrap_or(false),
        connects_each_time: section.one_of("connect", &["once", "each"], errors) == Some("each"),
        count_connecting: section.truth("count_connecting", errors).unwrap_or(false),
        tolerated_failures: section.number("tolerated_failures", 0.0..=1.0, errors).unwrap_or(0.0),
    }
}

/// A duration above zero, in seconds.
fn read_time(section: &Section, key: &str, errors: &mut Errors) -> Option<f64> {
    let seconds = section.seconds(key, errors);
    if let (Some(0.0), Some(entry)) = (seconds, section.get(key)) {
        errors.push(entry.node.place, format!("{} is {}; it must be more than zero", section.path(key), entry.node));
    }
    seconds
}

fn read_length(section: &Section, errors: &mut Errors) -> Length {
    let operations = section.whole("operations", 1..=LARGE, errors);
    let per_client = section.whole("operations_per_client", 1..=LARGE, errors);
    let seconds = read_time(section, "duration", errors);
    match (operations, per_client, seconds) {
        (Some(operations), _, _) => Length::Operations(operations.unsigned_abs()),
        (_, Some(operations), _) => Length::OperationsPerClient(operations.unsigned_abs()),
        (_, _, seconds) => Length::Seconds(seconds.unwrap_or(5.0)),
    }
}
