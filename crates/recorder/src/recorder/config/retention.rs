//! `[retention]`: how long readings are kept. Main type: [`RetentionConfig`].

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::fault::fault;
use crate::units::{parse_duration, parse_utc};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Entry, Node, Table};
use crate::written::{Absent, Form, Kind, Part, Setting, Span};

const DAY_S: f64 = 86_400.0;
/// The range of the time for which readings are kept, in seconds: a minute, and 10,000 days.
const KEEP_S: [f64; 2] = [60.0, 10_000.0 * DAY_S];
/// The shortest jump of the clock that is put down to the clock.
const JUMP_LEAST: Duration = Duration::from_secs(60);
/// The word for readings that are never deleted.
const FOREVER: &str = "forever";
/// The most measurements with a time of their own.
const MEASUREMENTS_MAX: usize = 10_000;

/// `[retention]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionConfig {
    /// How long readings are kept; `None` for ever.
    pub keep: Option<Duration>,
    /// The same for measurements with a time of their own, by name.
    pub measurements: BTreeMap<String, Option<Duration>>,
    /// The time between the ends of one look for old readings and the begin of the next.
    pub every: Duration,
    /// The most readings that a transaction deletes.
    pub rows: u32,
    /// The largest share of time in which deletions work, as a percentage.
    pub share_percent: u32,
    /// The most by which the machine's clock may be ahead of the last time that is known to be right.
    pub jump: Duration,
    /// The time up to which the machine's clock is right however far it jumped, in nanoseconds since 1970.
    pub clock_until_ns: Option<i64>,
}

impl RetentionConfig {
    /// Returns how long readings of a measurement are kept; `None` for ever.
    pub fn keep_of(&self, measurement: &str) -> Option<Duration> {
        self.measurements.get(measurement).copied().unwrap_or(self.keep)
    }
}

/// The form of the times of measurements.
pub static MEASUREMENTS: Form = Form {
    says: "table of measurements with a duration from 1 min to 10,000 days each, or `\"forever\"`",
    schema: || json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    example: "{ cpu = \"7d\" }",
};

/// The form of a time.
pub static TIME: Form = Form {
    says: "time in UTC, as in `\"2027-01-31T00:00:00Z\"`",
    schema: || json!({ "type": "string", "format": "date-time" }),
    example: "\"2027-01-31T00:00:00Z\"",
};

/// `[retention]`
pub static RETENTION: Part = Part {
    name: "retention",
    help: "How long readings are kept. Older ones are deleted in small steps, beside recording. A reading's age is that of its own time stamp.",
    settings: &[
        Setting::new(
            "keep",
            Kind::Duration(Span::Within(KEEP_S[0], KEEP_S[1])),
            Absent::Means("readings are kept for ever, except those of `measurements`"),
            "How long readings are kept.",
        ),
        Setting::new(
            "measurements",
            Kind::Own(&MEASUREMENTS),
            Absent::Means("all as `keep` says"),
            "How long the readings of single measurements are kept instead, by the measurement's name.",
        ),
        Setting::new(
            "every",
            Kind::Duration(Span::Within(1.0, DAY_S)),
            Absent::Text("1m"),
            "Time between two looks for old readings.",
        ),
        Setting::new(
            "rows",
            Kind::Whole(10, 10_000),
            Absent::Whole(1_000),
            "Maximum number of readings that a transaction deletes. If transactions take longer than 50 ms, they are made smaller.",
        ),
        Setting::new(
            "share",
            Kind::Whole(1, 90),
            Absent::Whole(20),
            "Maximum share of time in which deletions work, as a percentage; they rest in between.",
        ),
        Setting::new(
            "jump",
            Kind::Duration(Span::Within(60.0, KEEP_S[1])),
            Absent::Means("a tenth of the shortest time for which readings are kept, and at least 1 min"),
            "How far the machine's clock may be ahead of the last time that is known to be right. Beyond it nothing is deleted.",
        ),
        Setting::new(
            "clock_until",
            Kind::Own(&TIME),
            Absent::Means("only as far as `jump`"),
            "The time up to which the machine's clock is right, however far it was ahead.",
        ),
    ],
};

pub(super) fn read_retention(root: &Table, has_lines: bool, errors: &mut Errors) -> Option<RetentionConfig> {
    root.get("retention")?;
    let section = Section::open(root, &RETENTION, errors);
    if !has_lines {
        let remedy = "add an intake of lines, as [intake.http], or leave [retention] out";
        errors.push(section.place, fault!("[retention] is there and no readings are taken in"; "{remedy}"));
    }
    let keep: Option<Duration> = section.given("keep", errors);
    let mut wrong = Errors::default();
    let measurements = section.get("measurements").map(|entry| measurements(entry, &mut wrong)).unwrap_or_default();
    // Nothing would ever be deleted, as without the section.
    if section.get("keep").is_none() && wrong.is_empty() && measurements.values().all(Option::is_none) {
        let remedy = "say how long readings are kept, as in keep = \"30d\", or leave [retention] out";
        errors.push(section.place, fault!("retention.keep is missing"; "{remedy}"));
    }
    errors.extend(wrong);
    let shortest = measurements.values().flatten().chain(&keep).min().copied().unwrap_or_default();
    Some(RetentionConfig {
        keep,
        measurements,
        every: section.read("every", errors),
        rows: section.read("rows", errors),
        share_percent: section.read("share", errors),
        jump: section.given("jump", errors).unwrap_or((shortest / 10).max(JUMP_LEAST)),
        clock_until_ns: section.get("clock_until").and_then(|entry| clock_until(entry, errors)),
    })
}

fn measurements(entry: &Entry, errors: &mut Errors) -> BTreeMap<String, Option<Duration>> {
    let Content::Table(table) = &entry.node.content else {
        let must = format!("it must be a table, as in {}", MEASUREMENTS.example);
        errors.push(entry.place, fault!("retention.measurements is {}", entry.node; "{must}"));
        return BTreeMap::new();
    };
    if table.entries.len() > MEASUREMENTS_MAX {
        let must = format!("it must be at most {MEASUREMENTS_MAX} measurements");
        errors.push(entry.place, fault!("retention.measurements is a table of {}", table.entries.len(); "{must}"));
        return BTreeMap::new();
    }
    let mut kept = BTreeMap::new();
    for own in &table.entries {
        match keep_of(&own.node) {
            Some(keep) => drop(kept.insert(own.key.clone(), keep)),
            None => {
                let must = "it must be a duration from 1 min to 10,000 days, as in \"7d\", or \"forever\"";
                errors.push(own.node.place, fault!("retention.measurements.{} is {}", own.key, own.node; "{must}"));
            }
        }
    }
    kept
}

/// Returns the time for which readings are kept, `Some(None)` for ever; `None` if the value is none.
fn keep_of(node: &Node) -> Option<Option<Duration>> {
    let Content::Text(text) = &node.content else { return None };
    if text == FOREVER {
        return Some(None);
    }
    let keep = parse_duration(text).ok()?;
    (KEEP_S[0]..=KEEP_S[1]).contains(&keep.as_secs_f64()).then_some(Some(keep))
}

fn clock_until(entry: &Entry, errors: &mut Errors) -> Option<i64> {
    let time_ns = match &entry.node.content {
        Content::Text(text) => parse_utc(text),
        _ => None,
    };
    if time_ns.is_none() {
        let must = format!("it must be a time in UTC, as in {}", TIME.example);
        errors.push(entry.place, fault!("retention.clock_until is {}", entry.node; "{must}"));
    }
    time_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::config::read;

    fn said(more: &str) -> Result<Option<RetentionConfig>, String> {
        let intake = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
        read(&format!("{intake}{more}"), "c.toml").map(|config| config.retention).map_err(|errors| errors.to_string())
    }

    #[test]
    fn readings_are_kept_for_ever_unless_the_file_says_how_long() {
        assert_eq!(said(""), Ok(None));
        let days = |days: u64| Some(Duration::from_secs(86_400 * days));
        let text = "[retention]\nkeep = \"30d\"\nmeasurements = { cpu = \"7d\", \"tapahtuma ä\" = \"forever\" }\n\
                    clock_until = \"2027-01-31T00:00:00Z\"\n";
        let retention = said(text).unwrap().unwrap();
        assert_eq!((retention.keep_of("qos"), retention.keep_of("cpu")), (days(30), days(7)));
        assert_eq!(retention.keep_of("tapahtuma ä"), None);
        assert_eq!((retention.every, retention.rows, retention.share_percent), (Duration::from_secs(60), 1_000, 20));
        assert_eq!(
            (10 * retention.jump, retention.clock_until_ns),
            (Duration::from_secs(7 * 86_400), Some(1_801_353_600_000_000_000))
        );
        let only = said("[retention.measurements]\ncpu = \"7d\"\n").unwrap().unwrap();
        assert_eq!((only.keep_of("qos"), only.keep_of("cpu")), (None, days(7)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (more, says) in [
            ("[retention]\n", "c.toml:5: retention.keep is missing"),
            ("[retention]\nmeasurements = {}\n", "c.toml:5: retention.keep is missing"),
            ("[retention]\nmeasurements = { cpu = \"forever\" }\n", "c.toml:5: retention.keep is missing"),
            ("[retention]\nkeep = \"59s\"\n", "c.toml:6: retention.keep is \"59s\"; it must be"),
            ("[retention]\nkeep = \"30d\"\nrows = 9\n", "c.toml:7: retention.rows is 9; it must be"),
            ("[retention]\nkeep = \"30d\"\nshare = 91\n", "c.toml:7: retention.share is 91; it must be"),
            ("[retention]\nkeep = \"30d\"\nevery = \"2d\"\n", "c.toml:7: retention.every is \"2d\"; it must be"),
            ("[retention]\nmeasurements = \"7d\"\n", "c.toml:6: retention.measurements is \"7d\"; it must be a table"),
            ("[retention.measurements]\ncpu = 7\n", "c.toml:6: retention.measurements.cpu is 7; it must be a duration"),
            ("[retention]\nkeep = \"1h\"\nclock_until = \"soon\"\n", "c.toml:7: retention.clock_until is \"soon\"; it"),
        ] {
            let sentence = said(more).unwrap_err();
            assert!(sentence.contains(says), "{more}: {sentence}");
        }
        let no_lines = "[database]\npath = \"m.db\"\n[query]\nlisten = \"127.0.0.1:0\"\n[retention]\nkeep = \"1h\"\n";
        let sentence = read(no_lines, "c.toml").unwrap_err().to_string();
        assert!(sentence.contains("no readings are taken in"), "{sentence}");
    }
}
