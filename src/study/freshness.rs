//! `[freshness]`: who reads the events that the workload `freshness` writes.
//!
//! Main functions: [`read_freshness`] and [`check_freshness`]. Invariant: the workload `freshness` always has readers, others never.

use super::place::Errors;
use super::section::Section;
use super::tree::Table;
use crate::trial::{Arrivals, EventPath, FreshnessSettings, Length, Poll, RunAs, Settings};

const KEYS: &[&str] =
    &["path", "tables", "groups", "readers", "run_as", "poll", "every", "look_back", "window", "results", "tolerated"];

/// The settings of the section; those of the workload `freshness` without one. What is missing or wrong has its default.
pub fn read_freshness(root: &Table, workload: &str, errors: &mut Errors) -> Option<FreshnessSettings> {
    if root.get("freshness").is_none() && workload != "freshness" {
        return None;
    }
    let plain = FreshnessSettings::default();
    let section = Section::open(root, "freshness", KEYS, errors);
    let path = match section.one_of("path", &["database", "notify", "subscribe", "both"], errors) {
        Some("notify") => EventPath::Notify,
        Some("subscribe") => EventPath::Subscribe,
        Some("both") => EventPath::Both,
        _ => EventPath::Database,
    };
    let run_as = match section.one_of("run_as", &["threads", "processes"], errors) {
        Some("processes") => RunAs::Processes,
        _ => RunAs::Threads,
    };
    let poll = match section.one_of("poll", &["key", "window", "notify"], errors) {
        Some("window") => Poll::Window,
        Some("notify") => Poll::Notify,
        // A way of its own, so that a study can set it beside the others; `poll` may say it too.
        None if path == EventPath::Notify => Poll::Notify,
        _ => Poll::Key,
    };
    Some(FreshnessSettings {
        path,
        tables: section.count("tables", 1, 1_000, errors),
        groups: section.count("groups", 1, 64, errors).unwrap_or(plain.groups),
        readers: section.count("readers", 1, 1_000, errors).unwrap_or(plain.readers),
        run_as,
        poll,
        every_s: section.seconds("every", errors).unwrap_or(plain.every_s),
        look_back_s: section.seconds("look_back", errors).unwrap_or(plain.look_back_s),
        window: section.count("window", 1, 1_000_000, errors).unwrap_or(plain.window),
        results: section.truth("results", errors).unwrap_or(plain.results),
        tolerated: section.number("tolerated", 0.0..=1.0, errors).unwrap_or(plain.tolerated),
    })
}

/// The value that a setting of the section has, as a study file would state it.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let freshness = settings.freshness.as_ref()?;
    match setting.strip_prefix("freshness.")? {
        "path" => serde_json::to_value(freshness.path).ok(),
        "tables" => freshness.tables.map(Into::into),
        "groups" => Some(freshness.groups.into()),
        "readers" => Some(freshness.readers.into()),
        "run_as" => serde_json::to_value(freshness.run_as).ok(),
        "poll" => serde_json::to_value(freshness.poll).ok(),
        "every" => Some(freshness.every_s.into()),
        "look_back" => Some(freshness.look_back_s.into()),
        "window" => Some(freshness.window.into()),
        "results" => Some(freshness.results.into()),
        "tolerated" => Some(freshness.tolerated.into()),
        _ => None,
    }
}

/// What does not go together with `[freshness]`: the settings concerned, and a sentence.
pub fn check_freshness(settings: &Settings, root: &Table) -> Vec<(&'static [&'static str], String)> {
    let Some(freshness) = &settings.freshness else { return Vec::new() };
    let name = settings.workload.name.as_str();
    if name != "freshness" {
        let remedy = "write name = \"freshness\", or leave the section out";
        let message = format!("[freshness] is for the workload freshness and workload.name is \"{name}\"; {remedy}");
        return vec![(&["freshness", "workload.name"], message)];
    }
    let mut found: Vec<(&'static [&'static str], String)> = Vec::new();
    if settings.load.arrivals == Arrivals::Closed {
        let remedy = "write arrivals = \"poisson\" or \"constant\" and a rate, so that no reader can hold a writer up";
        let message = format!("workload.name is \"freshness\" and load.arrivals is \"closed\"; {remedy}");
        found.push((&["workload.name", "load.arrivals"], message));
    }
    if !matches!(settings.load.length, Length::Seconds(_)) {
        let message =
            "workload.name is \"freshness\" and the trial ends by a number of operations; state load.duration";
        found.push((&["load.operations", "load.operations_per_client", "workload.name"], message.to_owned()));
    }
    if settings.record.rows > 0 || settings.record.existing {
        let remedy = "its tables begin empty; leave record.rows and record.existing out";
        let message = format!("workload.name is \"freshness\" and there are records already; {remedy}");
        found.push((&["record.rows", "record.existing", "workload.name"], message));
    }
    if settings.layout.name != "wide" || !settings.layout.indexes.is_empty() {
        let remedy = "an event is one row with a key of its own: write layout.name = \"wide\" and no layout.indexes";
        let message =
            format!("workload.name is \"freshness\" and layout.name is \"{}\"; {remedy}", settings.layout.name);
        found.push((&["layout.name", "layout.indexes", "workload.name"], message));
    }
    if settings.background.is_some() {
        let message = "[background] does not go with the workload freshness, which has readers beside it; leave it out";
        found.push((&["background.workload", "workload.name"], message.to_owned()));
    }
    if freshness.poll != Poll::Notify && freshness.every_s <= 0.0 {
        let message = "freshness.every is 0; write how often readers poll, as in every = \"2ms\"";
        found.push((&["freshness.every"], message.to_owned()));
    }
    if freshness.poll != Poll::Window && root.find("freshness.window").is_some() {
        let message = "freshness.window is for freshness.poll = \"window\"; leave one of them out";
        found.push((&["freshness.window", "freshness.poll"], message.to_owned()));
    }
    if freshness.path == EventPath::Notify && freshness.poll != Poll::Notify {
        let message = "freshness.path is \"notify\" and freshness.poll another; leave poll out";
        found.push((&["freshness.path", "freshness.poll"], message.to_owned()));
    }
    if freshness.path.publishes() && freshness.poll == Poll::Notify {
        let remedy = "the historian writes, and does not notify; write poll = \"key\" or \"window\"";
        let message = format!("freshness.poll is \"notify\" and events are published; {remedy}");
        found.push((&["freshness.poll", "freshness.path"], message));
    }
    found
}
