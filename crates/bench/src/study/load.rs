//! `[load]`: what clients do and when, and for how long.
//!
//! Main: [`LOAD`] and [`read_load`]. Invariant: a load that was read has exactly one length.

use serde_json::json;

use super::names::{ARRIVALS, Names};
use super::reading::{CPUS, LARGE, read_cpus, read_name};
use crate::fault::fault;
use crate::trial::{Arrivals, Length, LoadSettings};
use crate::written::place::Errors;
use crate::written::section::{Section, number_of};
use crate::written::tree::{Content, Node, Table};
use crate::written::{Absent, Form, Kind, Part, Setting, Span};

/// The settings that end the measured phase; at most one of them can be given.
pub const LENGTHS: [&str; 3] = ["load.operations", "load.operations_per_client", "load.duration"];

/// The value `each` of `connect` and `statements`.
const EACH: &str = "each";
const TEXT: &str = "text";

/// Maximum number of points of a profile.
const PROFILE_MOST: usize = 1_000;

/// The form of `profile`.
static PROFILE: Form = Form {
    says: "list of points `[time, weight]`",
    schema: || {
        let point = json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 });
        json!({ "type": "array", "items": point, "minItems": 2, "maxItems": PROFILE_MOST })
    },
    example: "[[0, 1], [8, 4], [24, 1]]",
};

/// The settings of the section.
pub static LOAD: Part = Part {
    name: "load",
    help: "When clients do it, and for how long.",
    settings: &[
        Setting::new(
            "arrivals",
            Kind::Named(|| ARRIVALS.to_vec()),
            Absent::Means("`\"closed\"`; `\"poisson\"` with `[goal]`"),
            "When operations are due: when the client's last one is done (`closed`), at random and independent of each other (`poisson`), at equal intervals (`constant`), at the times in a file (`trace`), or at equal intervals of each client, which starts and ends at its own time (`sources`).",
        )
        .factor(|settings| serde_json::to_value(settings.load.arrivals).ok()),
        Setting::new(
            "clients",
            Kind::Whole(1, 100_000),
            Absent::Whole(1),
            "Number of connections. In an open loop they serve the operations that arrive; with `arrivals = \"sources\"` each is a source.",
        )
        .factor(|settings| Some(settings.load.clients.into())),
        Setting::new(
            "rate",
            Kind::Number(1e-3, 1e9),
            Absent::Means("none: it must be given, be a factor, or be searched for by `[goal]`"),
            "Operations that arrive per second.",
        )
        .only("`arrivals = \"poisson\"` and `\"constant\"`")
        .factor(|settings| settings.load.rate_per_s.map(Into::into)),
        Setting::new(
            "profile",
            Kind::Own(&PROFILE),
            Absent::Means("the rate stays the same"),
            "How the rate changes within the measured phase: points of time and weight, connected by straight lines; two points at one time are a step. The times, in any unit, are scaled to `duration`, and `rate` is the mean: `[[0, 1], [8, 4], [12, 6], [24, 1]]` is a day.",
        )
        .only("`arrivals = \"poisson\"` and `\"constant\"`"),
        Setting::new(
            "source_rate",
            Kind::Number(1e-3, 1e6),
            Absent::Means("none: it must be given, or be a factor"),
            "Operations of each source per second.",
        )
        .only("`arrivals = \"sources\"`")
        .factor(|settings| settings.load.source_rate_per_s.map(Into::into)),
        Setting::new(
            "trace",
            Kind::Text,
            Absent::Means("none: it must be given"),
            "The file with the times at which operations are due, in seconds.",
        )
        .only("`arrivals = \"trace\"`"),
        Setting::new(
            "operations",
            Kind::Whole(1, LARGE),
            Absent::Means("`duration` ends a trial"),
            "Number of operations, of all clients together, after which a trial ends.",
        )
        .factor(|settings| count(settings.load.length, Length::Operations)),
        Setting::new(
            "operations_per_client",
            Kind::Whole(1, LARGE),
            Absent::Means("`duration` ends a trial"),
            "Number of operations of each client after which a trial ends.",
        )
        .factor(|settings| count(settings.load.length, Length::OperationsPerClient)),
        Setting::new(
            "duration",
            Kind::Duration(Span::AboveZero),
            Absent::Means("5 s, if no number of operations is given"),
            "Length of the measured phase.",
        )
        .factor(|settings| if let Length::Seconds(seconds) = settings.load.length { Some(seconds.into()) } else { None }),
        Setting::new(
            "at_most",
            Kind::Duration(Span::AboveZero),
            Absent::Means("no limit"),
            "Maximum length of the measured phase if a trial ends by its number of operations.",
        )
        .factor(|settings| settings.load.at_most_s.map(Into::into)),
        Setting::new(
            "warmup",
            Kind::Duration(Span::Any),
            Absent::Text("500ms"),
            "Length of the load before the measured phase.",
        )
        .factor(|settings| Some(settings.load.warmup_s.into())),
        Setting::new(
            "think",
            Kind::Duration(Span::Any),
            Absent::Text("0s"),
            "A client's pause between the end of an operation and the time at which its next one is due.",
        )
        .only("`arrivals = \"closed\"`")
        .factor(|settings| Some(settings.load.think_s.into())),
        Setting::new(
            "drain",
            Kind::Duration(Span::Any),
            Absent::Text("30s"),
            "Maximum wait, at the end of a trial, for operations that are not answered yet.",
        )
        .factor(|settings| Some(settings.load.drain_s.into())),
        Setting::new(
            "samples",
            Kind::Truth,
            Absent::Truth(false),
            "Whether the three times of every operation are kept, for `loadline export` and `loadline fit`.",
        )
        .factor(|settings| Some(settings.load.samples.into())),
        Setting::new("cpus", Kind::Own(&CPUS), Absent::Means("all"), "The CPUs to which loadline itself is pinned.")
            .factor(|settings| settings.load.cpus.as_deref().map(Into::into)),
        Setting::new(
            "loops",
            Kind::Whole(1, 1024),
            Absent::Means("one for every 64 clients"),
            "Number of threads that drive the connections.",
        )
        .factor(|settings| settings.load.loops.map(Into::into)),
        Setting::new(
            "retries",
            Kind::Whole(0, 100),
            Absent::Whole(0),
            "How often an operation is sent again whose transaction lost against another one that changed the same rows: after a deadlock, a serialization failure, or a conflict between nodes of a cluster. It counts as one operation, whose response time includes all attempts; the report says how often it happened.",
        )
        .factor(|settings| Some(settings.load.retries.into())),
        Setting::new(
            "agents",
            Kind::Whole(1, 1_000),
            Absent::Means("none: loadline drives the load itself"),
            "Number of processes that drive the load together, each with its share of the clients and of the rate. For a database that one process cannot load to its limit.",
        )
        .factor(|settings| settings.load.agents.map(Into::into)),
        Setting::new(
            "statements",
            Kind::OneOf(&["prepared", TEXT]),
            Absent::Text("prepared"),
            "Whether statements are prepared once, or sent as text that contains their values.",
        )
        .factor(|settings| Some(if settings.load.statements_as_text { TEXT } else { "prepared" }.into())),
        Setting::new(
            "pipeline",
            Kind::Truth,
            Absent::Truth(false),
            "Whether all statements of a transaction are sent in one round trip.",
        )
        .factor(|settings| Some(settings.load.pipeline.into())),
        Setting::new(
            "connect",
            Kind::OneOf(&["once", EACH]),
            Absent::Means("`\"once\"`; `\"each\"` for the workload `connect`"),
            "Whether a client keeps its connection (`once`), or opens one for each operation (`each`).",
        )
        .factor(|settings| Some(if settings.load.connects_each_time { EACH } else { "once" }.into())),
        Setting::new(
            "count_connecting",
            Kind::Truth,
            Absent::Truth(false),
            "Whether the time to open the connections counts in the throughput.",
        )
        .only("`arrivals = \"closed\"`")
        .factor(|settings| Some(settings.load.count_connecting.into())),
        Setting::new(
            "tolerated_failures",
            Kind::Number(0.0, 1.0),
            Absent::Number(0.0),
            "The share of operations that may fail before a trial is invalid.",
        )
        .factor(|settings| Some(settings.load.tolerated_failures.into())),
    ],
};

/// Returns the number of operations that ends a trial, if this kind of number ends it.
fn count(length: Length, kind: fn(u64) -> Length) -> Option<serde_json::Value> {
    match length {
        Length::Operations(count) | Length::OperationsPerClient(count) => (kind(count) == length).then(|| count.into()),
        Length::Seconds(_) => None,
    }
}

/// Reads the section; a setting that is missing or wrong has its default.
pub fn read_load(root: &Table, names: &Names, errors: &mut Errors) -> LoadSettings {
    let section = Section::open(root, &LOAD, errors);
    let is_named = !read_name(&section, "arrivals", &names.arrivals, errors).is_empty();
    let unwritten = if root.get("goal").is_some() && !is_named { Arrivals::Poisson } else { Arrivals::Closed };
    let arrivals = section.find("arrivals", errors).unwrap_or(unwritten);
    let clients = section.read("clients", errors);
    let source_rate_per_s: Option<f64> = section.read("source_rate", errors);
    let of_sources = source_rate_per_s.filter(|_| arrivals == Arrivals::Sources).map(|rate| rate * f64::from(clients));
    LoadSettings {
        arrivals,
        clients,
        rate_per_s: section.find("rate", errors).or(of_sources),
        profile: read_profile(&section, errors),
        source_rate_per_s,
        trace: section.read("trace", errors),
        replay: None,
        length: read_length(&section, errors),
        at_most_s: section.read("at_most", errors),
        warmup_s: section.read("warmup", errors),
        think_s: section.read("think", errors),
        drain_s: section.read("drain", errors),
        samples: section.read("samples", errors),
        cpus: read_cpus(&section, errors),
        loops: section.read("loops", errors),
        statements_as_text: section.find("statements", errors) == Some(TEXT),
        pipeline: section.read("pipeline", errors),
        connects_each_time: section.find("connect", errors) == Some(EACH),
        count_connecting: section.read("count_connecting", errors),
        retries: section.read("retries", errors),
        tolerated_failures: section.read("tolerated_failures", errors),
        agents: section.read("agents", errors),
    }
}

/// Reads the points of `load.profile`; empty if they are missing or wrong.
fn read_profile(section: &Section, errors: &mut Errors) -> Vec<[f64; 2]> {
    let Some(entry) = section.get("profile") else { return Vec::new() };
    let point = |node: &Node| match &node.content {
        Content::List(items) => match items.as_slice() {
            [time, weight] => Some([number_of(time)?, number_of(weight)?]),
            _ => None,
        },
        _ => None,
    };
    let points: Option<Vec<[f64; 2]>> = section.list("profile", errors).iter().map(point).collect();
    let is_right = |points: &Vec<[f64; 2]>| {
        let are_numbers = points.iter().flatten().all(|number| number.is_finite() && number.abs() <= 1e9);
        let has_span = points.last().zip(points.first()).is_some_and(|(last, first)| last[0] > first[0]);
        let is_ordered = points.windows(2).all(|pair| pair[0][0] <= pair[1][0]);
        // Two points at one time are a step, which has no area.
        let has_load = points.windows(2).any(|pair| pair[1][0] > pair[0][0] && pair[0][1] + pair[1][1] > 0.0);
        let is_short = points.len() <= PROFILE_MOST;
        are_numbers && has_span && is_ordered && has_load && is_short && points.iter().all(|point| point[1] >= 0.0)
    };
    let found = points.filter(is_right);
    if found.is_none() {
        let must = "it must be points of time and weight, 1,000 at most, the times in order, the weights zero or more and not all zero, as in [[0, 1], [8, 4], [24, 1]]";
        errors.push(entry.node.place, fault!("load.profile is {}", entry.node; "{must}"));
    }
    found.unwrap_or_default()
}

fn read_length(section: &Section, errors: &mut Errors) -> Length {
    let operations = section.given("operations", errors).map(Length::Operations);
    let per_client = section.given("operations_per_client", errors).map(Length::OperationsPerClient);
    let seconds = Length::Seconds(section.given("duration", errors).unwrap_or(5.0));
    operations.or(per_client).unwrap_or(seconds)
}
