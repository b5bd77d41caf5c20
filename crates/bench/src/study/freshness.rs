//! `[freshness]`: the readers of the events that the workload `freshness` writes.
//!
//! Main: [`FRESHNESS`], [`read_freshness`] and [`check_freshness`]. Invariant: the workload `freshness` always has readers, other workloads never.

use super::clash::Clash;
use crate::fault::fault;
use crate::trial::{Arrivals, EventPath, FreshnessSettings, Length, Poll, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// The settings of the section.
pub static FRESHNESS: Part = Part {
    name: "freshness",
    help: "Who reads the events that the workload `freshness` writes, and how. The section is for this workload only.",
    settings: &[
        Setting::new(
            "path",
            Kind::OneOf(&["database", "notify", "subscribe", "both"]),
            Absent::Text("database"),
            "How events reach readers: readers poll the database (`database`), the database notifies them (`notify`), they subscribe to events published over NATS (`subscribe`), or some subscribe and some poll (`both`).",
        )
        .factor(|settings| serde_json::to_value(freshness(settings)?.path).ok()),
        Setting::new(
            "tables",
            Kind::Whole(1, 1_000),
            Absent::Means("one for each writer"),
            "Number of tables into which events are written.",
        )
        .factor(|settings| freshness(settings)?.tables.map(Into::into)),
        Setting::new("groups", Kind::Whole(1, 64), Absent::Whole(2), "Number of groups of readers, which are reported separately.")
            .factor(|settings| Some(freshness(settings)?.groups.into())),
        Setting::new(
            "readers",
            Kind::Whole(1, 1_000),
            Absent::Whole(1),
            "Number of readers in a group, each with its own connection.",
        )
        .factor(|settings| Some(freshness(settings)?.readers.into())),
        Setting::new(
            "run_as",
            Kind::OneOf(&["threads", "processes", "agents"]),
            Absent::Text("threads"),
            "Whether the readers of a group are threads of the writing process, of a separate process, or of a process on another machine, where `loadline agent` waits for work (`loadline run --nats URL`).",
        )
        .factor(|settings| serde_json::to_value(freshness(settings)?.run_as).ok()),
        Setting::new(
            "poll",
            Kind::OneOf(&["key", "window", "notify"]),
            Absent::Means("`\"key\"`; `\"notify\"` with `path = \"notify\"`"),
            "What readers ask for: rows with a higher key than they have seen (`key`), the latest rows (`window`), or rows with a higher key whenever the database notifies them (`notify`).",
        )
        .factor(|settings| serde_json::to_value(freshness(settings)?.poll).ok()),
        Setting::new(
            "every",
            Kind::Duration(Span::Any),
            Absent::Text("2ms"),
            "The time from one poll of a reader to its next.",
        )
        .factor(|settings| Some(freshness(settings)?.every_s.into())),
        Setting::new(
            "look_back",
            Kind::Duration(Span::Any),
            Absent::Text("100ms"),
            "How long readers ask again for keys that they passed over.",
        )
        .factor(|settings| Some(freshness(settings)?.look_back_s.into())),
        Setting::new("window", Kind::Whole(1, 1_000_000), Absent::Whole(1_000), "Number of latest rows to read.")
            .only("`poll = \"window\"`")
            .factor(|settings| Some(freshness(settings)?.window.into())),
        Setting::new(
            "results",
            Kind::Truth,
            Absent::Truth(false),
            "Whether readers write what they found into result tables.",
        )
        .factor(|settings| Some(freshness(settings)?.results.into())),
        Setting::new(
            "tolerated",
            Kind::Number(0.0, 1.0),
            Absent::Number(0.0),
            "The share of sightings that may be lost or double before a trial is invalid.",
        )
        .factor(|settings| Some(freshness(settings)?.tolerated.into())),
        Setting::new(
            "tls",
            Kind::OneOf(&["none", "verify"]),
            Absent::Text("none"),
            "How the connections of writers, readers and historian to the NATS server are protected: `verify` is TLS with a certificate that is made for the trial and verified.",
        )
        .only("`path = \"subscribe\"` and `path = \"both\"`")
        .factor(|settings| Some(freshness(settings)?.tls.as_deref().unwrap_or("none").into())),
    ],
};

fn freshness(settings: &Settings) -> Option<&FreshnessSettings> {
    settings.freshness.as_ref()
}

/// Reads the section; without one, returns the defaults for the workload `freshness` and `None` for others.
pub fn read_freshness(root: &Table, workload: &str, errors: &mut Errors) -> Option<FreshnessSettings> {
    if root.get("freshness").is_none() && workload != "freshness" {
        return None;
    }
    let section = Section::open(root, &FRESHNESS, errors);
    let path = section.read("path", errors);
    // `notify` is also a path, so that a study can compare it with the other paths; `poll` may say it too.
    let usual = if path == EventPath::Notify { Poll::Notify } else { Poll::Key };
    Some(FreshnessSettings {
        path,
        tables: section.read("tables", errors),
        groups: section.read("groups", errors),
        readers: section.read("readers", errors),
        run_as: section.read("run_as", errors),
        poll: section.find("poll", errors).unwrap_or(usual),
        every_s: section.read("every", errors),
        look_back_s: section.read("look_back", errors),
        window: section.read("window", errors),
        results: section.read("results", errors),
        tolerated: section.read("tolerated", errors),
        // Leaving it out and writing `none` are the same case.
        tls: section.find("tls", errors).filter(|name: &String| name != "none"),
    })
}

/// Returns the settings that cannot be combined with `[freshness]`, each with a sentence.
pub fn check_freshness(settings: &Settings, root: &Table) -> Vec<Clash> {
    let Some(freshness) = &settings.freshness else { return Vec::new() };
    let name = settings.workload.name.as_str();
    if name != "freshness" {
        let remedy = "write name = \"freshness\", or leave the section out";
        let message = fault!("[freshness] is for the workload freshness and workload.name is \"{name}\""; "{remedy}");
        return vec![(&["freshness", "workload.name"], message)];
    }
    let mut found: Vec<Clash> = Vec::new();
    if settings.load.arrivals == Arrivals::Closed {
        let remedy = "write arrivals = \"poisson\" or \"constant\" and a rate, so that no reader can hold a writer up";
        let message = fault!("workload.name is \"freshness\" and load.arrivals is \"closed\""; "{remedy}");
        found.push((&["workload.name", "load.arrivals"], message));
    }
    if !matches!(settings.load.length, Length::Seconds(_)) {
        let message = fault!("workload.name is \"freshness\" and the trial ends by a number of operations"; "state load.duration");
        found.push((&["load.operations", "load.operations_per_client", "workload.name"], message.to_owned()));
    }
    if settings.record.rows > 0 || settings.record.existing {
        let remedy = "its tables begin empty; leave record.rows and record.existing out";
        let message = fault!("workload.name is \"freshness\" and there are records already"; "{remedy}");
        found.push((&["record.rows", "record.existing", "workload.name"], message));
    }
    if settings.layout.name != "wide" || !settings.layout.indexes.is_empty() {
        let remedy = "an event is one row with a key of its own: write layout.name = \"wide\" and no layout.indexes";
        let message =
            fault!("workload.name is \"freshness\" and layout.name is \"{}\"", settings.layout.name; "{remedy}");
        found.push((&["layout.name", "layout.indexes", "workload.name"], message));
    }
    if settings.background.is_some() {
        let message = fault!(
            "[background] does not go with the workload freshness, which has readers beside it"; "leave it out"
        );
        found.push((&["background.workload", "workload.name"], message.to_owned()));
    }
    if freshness.poll != Poll::Notify && freshness.every_s <= 0.0 {
        let message = fault!("freshness.every is 0"; "write how often readers poll, as in every = \"2ms\"");
        found.push((&["freshness.every"], message.to_owned()));
    }
    if freshness.poll != Poll::Window && root.find("freshness.window").is_some() {
        let message = fault!("freshness.window is for freshness.poll = \"window\""; "leave one of them out");
        found.push((&["freshness.window", "freshness.poll"], message.to_owned()));
    }
    if freshness.path == EventPath::Notify && freshness.poll != Poll::Notify {
        let message = fault!("freshness.path is \"notify\" and freshness.poll another"; "leave poll out");
        found.push((&["freshness.path", "freshness.poll"], message.to_owned()));
    }
    if freshness.tls.is_some() && !freshness.path.publishes() {
        let remedy = "leave it out: no event is published, and database.tls protects connections to the database";
        let message = fault!("freshness.tls is for the paths subscribe and both"; "{remedy}");
        found.push((&["freshness.tls", "freshness.path"], message.to_owned()));
    }
    if freshness.path.publishes() && freshness.poll == Poll::Notify {
        let remedy = "the historian writes, and does not notify; write poll = \"key\" or \"window\"";
        let message = fault!("freshness.poll is \"notify\" and events are published"; "{remedy}");
        found.push((&["freshness.poll", "freshness.path"], message));
    }
    found
}
