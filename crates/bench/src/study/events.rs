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
    help: "Something that happens to the private server while it is measured. The report says for how long nothing was answered, what failed, and whether any acknowledged record is gone.",
    settings: &[
        Setting::new(
            "at",
            Kind::Duration(Span::AboveZero),
            Absent::Refused,
            "When it happens, from the start of the measured phase.",
        ),
        Setting::new(
            "do",
            Kind::OneOf(&EventKind::NAMES),
            Absent::Refused,
            "What happens: `kill` ends all processes of the server at once, as a crash does, and starts it again with the data that are there; `stop` stops it in order and starts it again; `pause` suspends all of its processes for a while; `cut-power` cuts the power of the disk with its data, kills its processes, and starts it again with the data that the disk has kept, which are those that were synced; `slow-disk` makes each sync of this disk take longer; `full-disk` leaves it no room for more data; `cut-link` lets nothing through between the load and the server, and needs a `[link]`; `cut-node` lets nothing through between a node and the other nodes (`node` says which), while its clients still reach it, and needs root; `promote` kills the primary of a cluster, which stays away, and makes its replica the primary.",
        ),
        Setting::new(
            "node",
            Kind::Whole(1, 9),
            Absent::Whole(1),
            "The number of the node that it happens to, where the server has several (`database.nodes`).",
        ),
        Setting::new(
            "lasts",
            Kind::Duration(Span::Any),
            Absent::Means(
                "no time: it is started again at once; for `pause`, `slow-disk`, `full-disk`, `cut-link` and `cut-node` it must be given",
            ),
            "How long the server stays away before it is started again or continues, or how long the disk is slow or full, or the link is cut, or the node is cut off; for `promote`, how long the primary is gone before its replica is told to take over.",
        ),
        Setting::new(
            "keeps",
            Kind::OneOf(&CutKeeps::NAMES),
            Absent::Means("nothing"),
            "What `cut-power` keeps of the data that were written and not synced: `nothing`; random `sectors` of 512 bytes, so that pages are torn; random `blocks` of 4,096 bytes; or, `in-order`, everything that was written before a random moment.",
        ),
        Setting::new(
            "sync",
            Kind::Duration(Span::Within(SYNC_S_LEAST, SYNC_S_MOST)),
            Absent::Means("100 ms for `slow-disk`"),
            "How much longer each sync takes while `slow-disk` lasts.",
        ),
    ],
};

/// Minimum time by which a sync of a slow disk takes longer, in seconds.
const SYNC_S_LEAST: f64 = 1e-3;

/// Maximum time by which a sync of a slow disk takes longer, in seconds: a server that is stopped waits for its last sync.
const SYNC_S_MOST: f64 = 10.0;

/// Time by which a sync of a slow disk takes longer where the study does not say, in seconds.
const SYNC_S: f64 = 0.1;

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
        let what = section.text("do", errors).and_then(EventKind::of_name).unwrap_or(EventKind::Kill);
        let lasts: Option<f64> = section.find("lasts", errors);
        if what.leaves_the_server() && lasts.is_none_or(|seconds| seconds <= 0.0) {
            let remedy = "say how long it lasts, as in lasts = \"2s\"";
            errors.push(section.place, fault!("the {} of [[events]] lasts no time", what.name(); "{remedy}"));
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
        let sync: Option<f64> = section.find("sync", errors);
        if sync.is_some() && what != EventKind::SlowDisk {
            let remedy = "leave sync out, or write do = \"slow-disk\"";
            errors.push(section.place, fault!("an event of [[events]] has a sync, and slows no disk"; "{remedy}"));
        }
        let sync_takes_s = if what == EventKind::SlowDisk { sync.unwrap_or(SYNC_S) } else { 0.0 };
        let node = section.read("node", errors);
        events.push(EventSettings { at_s, what, node, lasts_s: lasts.unwrap_or_default(), keeps, sync_takes_s });
    }
    events
}

/// Returns whether an event happens to the server's disk, so that its data must be on a disk of loadline's own.
pub fn need_own_disk(events: &[EventSettings]) -> bool {
    events.iter().any(|event| event.what.needs_own_disk())
}

/// Returns whether an event happens to the network between nodes, so that each must be on a host of its own.
pub fn need_own_hosts(events: &[EventSettings]) -> bool {
    events.iter().any(|event| event.what.needs_own_hosts())
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
    let cuts_link = settings.events.iter().any(|event| event.what == EventKind::CutLink);
    if cuts_link && settings.link.is_none() {
        let remedy = "write a [link] section, as in [link] rate = \"1Gbit/s\"";
        return Some(fault!("one of [[events]] cuts the link and there is none"; "{remedy}"));
    }
    if settings.recorder.is_some() {
        return with("a [recorder], which hides the server from the load", "leave one of them out");
    }
    let leaves_readers = |event: &EventSettings| event.what == EventKind::CutNode;
    if settings.freshness.is_some() && !settings.events.iter().all(leaves_readers) {
        let remedy = "leave one of them out, or write do = \"cut-node\"";
        return with("a [freshness], whose readers would lose their connections", remedy);
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
        let pause = EventSettings { lasts_s: 0.5, ..EventSettings::new(1.0, EventKind::Pause) };
        let kill = EventSettings::new(3.0, EventKind::Kill);
        assert_eq!(events, Ok(vec![pause, kill]));
        assert_eq!(read("name = \"a\""), Ok(Vec::new()));
        let second = read("[[events]]\nat = \"1s\"\ndo = \"kill\"\nnode = 2\n").unwrap();
        assert_eq!((second[0].what, second[0].node), (EventKind::Kill, 2));
        let cut = read("[[events]]\nat = \"1s\"\ndo = \"cut-power\"\nkeeps = \"in-order\"\n").unwrap();
        assert_eq!((cut[0].what, cut[0].keeps), (EventKind::CutPower, CutKeeps::InOrder));
        let slow = "[[events]]\nat = \"1s\"\ndo = \"slow-disk\"\nlasts = \"2s\"\n";
        assert_eq!(read(slow).unwrap()[0].sync_takes_s, 0.1);
        assert_eq!(read(&format!("{slow}sync = \"1s\"\n")).unwrap()[0].sync_takes_s, 1.0);
    }

    #[test]
    fn readers_of_freshness_keep_their_connections_when_a_node_is_cut_off_and_not_when_it_is_killed() {
        let clash = |what| {
            let mut settings = Settings { freshness: Some(Default::default()), ..Settings::default() };
            settings.events = vec![EventSettings { lasts_s: 0.5, ..EventSettings::new(0.1, what) }];
            settings.load.length = Length::Seconds(5.0);
            clash_of_events(&settings, true).map(|fault| fault.to_string())
        };
        assert_eq!(clash(EventKind::CutNode), None);
        let told = clash(EventKind::Kill).unwrap();
        assert!(told.contains("[freshness], whose readers would lose their connections"), "{told}");
        assert!(told.contains("write do = \"cut-node\""), "{told}");
    }

    #[test]
    fn what_is_wrong_is_told_with_the_remedy() {
        for (text, part) in [
            ("events = 3", "[[events]]"),
            ("[[events]]\ndo = \"kill\"", "at = \"3s\""),
            ("[[events]]\nat = \"3s\"", "do = \"kill\""),
            ("[[events]]\nat = \"3s\"\ndo = \"melt\"", "melt"),
            ("[[events]]\nat = \"3s\"\ndo = \"pause\"", "lasts = \"2s\""),
            ("[[events]]\nat = \"3s\"\ndo = \"slow-disk\"", "the slow-disk of [[events]] lasts no time"),
            ("[[events]]\nat = \"3s\"\ndo = \"cut-link\"\nlasts = \"0s\"", "the cut-link of [[events]] lasts no time"),
            ("[[events]]\nat = \"3s\"\ndo = \"cut-node\"", "the cut-node of [[events]] lasts no time"),
            ("[[events]]\nat = \"3s\"\ndo = \"kill\"\nsync = \"1s\"", "slows no disk"),
            ("[[events]]\nat = \"3s\"\ndo = \"slow-disk\"\nlasts = \"1s\"\nsync = \"1h\"", "10 s"),
            ("[[events]]\nat = \"3s\"\ndo = \"slow-disk\"\nlasts = \"1s\"\nsync = \"0s\"", "1 ms"),
            ("[[events]]\nat = \"3s\"\ndo = \"kill\"\nkeeps = \"nothing\"", "cuts no power"),
            ("[[events]]\nat = \"3s\"\ndo = \"cut-power\"\nkeeps = \"all\"", "in-order"),
            ("[[events]]\nat = \"3s\"\ndo = \"kill\"\n[[events]]\nat = \"1s\"\ndo = \"kill\"", "order of their times"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
