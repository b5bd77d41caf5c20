//! `[[events]]`: disturbances of the server during the measurement.
//!
//! Main: [`EVENT`] and [`read_events`]. Invariant: events that were read are in the order of their times, and none begins before the previous one is over.

use crate::fault::{Fault, fault};
use crate::trial::{CutKeeps, EventKind, EventSettings, Length, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};
use crate::written::{Absent, Kind, Part, Setting, Span};

/// An event of `[[events]]`.
pub(super) static EVENT: Part = Part {
    name: "events",
    help: "Something that happens to the private server while it is measured. The report says how long nothing was answered, what failed, and whether anything is gone that was acknowledged.",
    settings: &[
        Setting::new(
            "at",
            Kind::Duration(Span::AboveZero),
            Absent::Refused,
            "When it happens, from the start of the measured phase on.",
        ),
        Setting::new(
            "do",
            Kind::OneOf(&["kill", "stop", "pause", "cut-power"]),
            Absent::Refused,
            "What happens: `kill` ends all processes of the server at once, as a crash does, and starts it again on what is there; `stop` stops it in order and starts it again; `pause` makes all of its processes stand still, and go on; `cut-power` takes the power from the disk that its data are on, kills its processes, and starts it again on what the disk has kept: what was synced.",
        ),
        Setting::new(
            "lasts",
            Kind::Duration(Span::Any),
            Absent::Means("no time: it is started again at once; for `pause` it must be given"),
            "How long the server stays away before it is started again, or goes on.",
        ),
        Setting::new(
            "keeps",
            Kind::OneOf(&CutKeeps::NAMES),
            Absent::Means("nothing"),
            "What `cut-power` keeps of what was written and not synced: `nothing`; `sectors` of 512 bytes by chance, so that pages are torn; `blocks` of 4,096 bytes by chance; `in-order` what was written first, up to a moment by chance.",
        ),
    ],
};

/// Maximum number of events of a trial.
pub const EVENTS_MOST: usize = 16;

/// Reads the events of the study, in the order of their times.
pub(super) fn read_events(root: &Table, errors: &mut Errors) -> Vec<EventSettings> {
    let Some(entry) = root.get(EVENT.name) else { return Vec::new() };
    let Content::List(items) = &entry.node.content else {
        errors.push(entry.place, fault!("events is {}", entry.node; "write each event as [[events]]"));
        return Vec::new();
    };
    if items.len() > EVENTS_MOST {
        errors.push(entry.place, fault!("there are {} events", items.len(); "write at most {EVENTS_MOST}"));
    }
    let mut events: Vec<EventSettings> = Vec::new();
    for node in items {
        let Some(section) = Section::of_node(node, EVENT.name, &EVENT, errors) else { continue };
        for (key, example) in [("at", "at = \"3s\""), ("do", "do = \"kill\"")] {
            if section.get(key).is_none() {
                errors.push(section.place, fault!("an event of [[events]] has no {key}"; "write {example}"));
            }
        }
        let what = match section.text("do", errors) {
            Some("pause") => EventKind::Pause,
            Some("stop") => EventKind::Stop,
            Some("cut-power") => EventKind::CutPower,
            _ => EventKind::Kill,
        };
        let lasts: Option<f64> = section.find("lasts", errors);
        if what == EventKind::Pause && lasts.is_none_or(|seconds| seconds <= 0.0) {
            let remedy = "say how long the server stands still, as in lasts = \"2s\"";
            errors.push(section.place, fault!("an event of [[events]] pauses the server for no time"; "{remedy}"));
        }
        let at_s: f64 = section.find("at", errors).unwrap_or_default();
        if let Some(before) = events.last()
            && at_s < before.at_s + before.lasts_s
        {
            let remedy = "write them in the order of their times, each behind the end of the one before";
            errors.push(
                section.place,
                fault!("an event of [[events]] begins before the one above it is over"; "{remedy}"),
            );
        }
        let keeps = section.text("keeps", errors);
        if keeps.is_some() && what != EventKind::CutPower {
            let remedy = "leave keeps out, or write do = \"cut-power\"";
            errors.push(section.place, fault!("an event of [[events]] keeps something, and cuts no power"; "{remedy}"));
        }
        let keeps = keeps.and_then(CutKeeps::of_name).unwrap_or_default();
        events.push(EventSettings { at_s, what, lasts_s: lasts.unwrap_or_default(), keeps });
    }
    events
}

/// Returns whether an event cuts the power, so that the server's data must be on a disk of loadline's own.
pub fn cuts_power(events: &[EventSettings]) -> bool {
    events.iter().any(|event| event.what == EventKind::CutPower)
}

/// Returns what cannot be combined with events; `None` if nothing is wrong.
pub(super) fn clash_of_events(settings: &Settings, has_private_server: bool) -> Option<Fault> {
    let last = settings.events.last()?;
    let with = |what: &str, remedy: &str| Some(fault!("there are [[events]] and {what}"; "{remedy}"));
    if settings.database.url.is_some() || !has_private_server {
        let name = &settings.database.name;
        let remedy = "leave database.url out, and name a database whose server loadline starts";
        return Some(fault!("there are [[events]] and {name} has no server that loadline has started"; "{remedy}"));
    }
    if settings.recorder.is_some() {
        return with("a [recorder], which hides the server from the load", "leave one of them out");
    }
    if settings.freshness.is_some() {
        return with("a [freshness]", "leave one of them out");
    }
    if settings.background.is_some() {
        return with("a [background]", "leave one of them out");
    }
    if settings.workload.evolve_s.is_some() {
        return with("workload.evolve", "leave one of them out");
    }
    match settings.load.length {
        Length::Seconds(seconds) if last.at_s + last.lasts_s >= seconds => {
            Some(fault!("the last of [[events]] is not over before load.duration, {seconds} s"; "raise it"))
        }
        Length::Seconds(_) => None,
        _ => with("load.operations", "write load.duration, which is longer than the last event"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::place::Source;
    use crate::written::tree;

    fn read(text: &str) -> Result<Vec<EventSettings>, String> {
        let mut errors = Errors::default();
        let root = tree::Table::parse(text, &mut errors);
        let events = read_events(&root, &mut errors);
        let source = Source { file: "s.toml".to_owned(), arguments: Vec::new() };
        errors.into_result(&source).map(|()| events).map_err(|errors| errors.to_string())
    }

    #[test]
    fn events_are_read_with_their_times() {
        let events = read(
            "[[events]]\nat = \"1s\"\ndo = \"pause\"\nlasts = \"500ms\"\n[[events]]\nat = \"3s\"\ndo = \"kill\"\n",
        );
        let pause = EventSettings { at_s: 1.0, what: EventKind::Pause, lasts_s: 0.5, keeps: CutKeeps::Nothing };
        let kill = EventSettings { at_s: 3.0, what: EventKind::Kill, lasts_s: 0.0, keeps: CutKeeps::Nothing };
        assert_eq!(events, Ok(vec![pause, kill]));
        assert_eq!(read("name = \"a\""), Ok(Vec::new()));
        let cut = read("[[events]]\nat = \"1s\"\ndo = \"cut-power\"\nkeeps = \"in-order\"\n").unwrap();
        assert_eq!((cut[0].what, cut[0].keeps), (EventKind::CutPower, CutKeeps::InOrder));
    }

    #[test]
    fn what_is_wrong_is_told_with_the_remedy() {
        for (text, part) in [
            ("events = 3", "[[events]]"),
            ("[[events]]\ndo = \"kill\"", "at = \"3s\""),
            ("[[events]]\nat = \"3s\"", "do = \"kill\""),
            ("[[events]]\nat = \"3s\"\ndo = \"melt\"", "melt"),
            ("[[events]]\nat = \"3s\"\ndo = \"pause\"", "lasts = \"2s\""),
            ("[[events]]\nat = \"3s\"\ndo = \"kill\"\nkeeps = \"nothing\"", "cuts no power"),
            ("[[events]]\nat = \"3s\"\ndo = \"cut-power\"\nkeeps = \"all\"", "in-order"),
            ("[[events]]\nat = \"3s\"\ndo = \"kill\"\n[[events]]\nat = \"1s\"\ndo = \"kill\"", "order of their times"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
