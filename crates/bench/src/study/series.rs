//! The settings of `[record]` that give records sources and times, and the index on them in `[layout]`.
//!
//! Main function: [`read_series`].

use crate::fault::fault;
use crate::trial::{SeriesSettings, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::{Absent, Kind, Part, Setting, Span};

const OF_SOURCES: &str = "`sources`";

/// The largest share of records that are late, repeated or missing.
const SHARE_MOST: f64 = 0.5;

/// The number of sources.
pub const SOURCES: Setting = Setting::new(
    "sources",
    Kind::Whole(1, 10_000_000),
    Absent::Means("records have no sources and times"),
    "Number of sources that send in turn. Each record gets two more columns, `source_id` and `time_ns`, and the identity of its source.",
)
.only("the record types `qos`, `sensor` and `custom`")
.factor(|settings| Some(series(settings)?.sources.into()));

/// The time between the readings of a source.
pub const INTERVAL: Setting = Setting::new(
    "interval",
    Kind::Duration(Span::Within(1e-6, 1e8)),
    Absent::Means("1 s"),
    "The time from one reading of a source to its next.",
)
.only(OF_SOURCES)
.factor(|settings| Some((series(settings)?.interval_ns as f64 / 1e9).into()));

/// How irregular the times are.
pub const JITTER: Setting = Setting::new(
    "jitter",
    Kind::Number(0.0, SHARE_MOST),
    Absent::Means("`0.1`"),
    "By how much a reading is made late, at most, as a share of the interval.",
)
.only(OF_SOURCES)
.factor(|settings| Some(series(settings)?.jitter.into()));

/// The share of the readings that are missing.
pub const MISSING: Setting = Setting::new(
    "missing",
    Kind::Number(0.0, SHARE_MOST),
    Absent::Means("`0`"),
    "Share of the readings that were never made: each source is silent for a while, again and again.",
)
.only(OF_SOURCES)
.factor(|settings| Some(series(settings)?.missing.into()));

/// Late records.
pub const LATE: Setting = Setting::new(
    "late",
    Kind::Part(&LATE_PART),
    Absent::Means("none is late"),
    "The records that arrive behind newer ones of their source.",
)
.only(OF_SOURCES);

/// The share of the records that repeat others.
pub const REPEATED: Setting = Setting::new(
    "repeated",
    Kind::Number(0.0, SHARE_MOST),
    Absent::Means("`0`"),
    "Share of the records that repeat an earlier one of their source: the same time, the same values.",
)
.only(OF_SOURCES)
.factor(|settings| Some(series(settings)?.repeated.into()));

/// The table `record.late`.
pub static LATE_PART: Part = Part {
    name: "record.late",
    help: "The records that arrive behind newer ones of their source.",
    settings: &[
        Setting::new(
            "share",
            Kind::Number(0.0, SHARE_MOST),
            Absent::Means("`0.02`"),
            "Share of the records that are late.",
        )
        .factor(|settings| Some(series(settings)?.late_share.into())),
        Setting::new(
            "up_to",
            Kind::Duration(Span::AboveZero),
            Absent::Means("60 intervals"),
            "How late they are at most. All lengths of lateness up to it are equally frequent.",
        )
        .factor(|settings| Some((series(settings)?.late_up_to_ns as f64 / 1e9).into())),
    ],
};

fn series(settings: &Settings) -> Option<&SeriesSettings> {
    settings.record.series.as_ref()
}

/// Reads the sources and times of records; `None` where they have none.
pub(super) fn read_series(section: &Section, errors: &mut Errors) -> Option<SeriesSettings> {
    let sources: Option<u32> = section.find("sources", errors);
    let of_sources = ["interval", "jitter", "missing", "late", "repeated"];
    if let (None, Some(entry)) = (sources, of_sources.iter().find_map(|key| section.get(key))) {
        let message =
            fault!("record.{} is set and record.sources is not", entry.key; "write sources = 100, or leave it out");
        errors.push(entry.node.place, message);
    }
    let interval_ns = nanoseconds(section.find("interval", errors).unwrap_or(1.0)).max(1000);
    let late = section.part("late", errors);
    let (late_share, late_up_to_ns) = match &late {
        None => (0.0, 0),
        Some(late) => {
            let share = late.find("share", errors).unwrap_or(0.02);
            let up_to = late.find("up_to", errors).map_or(interval_ns.saturating_mul(60), nanoseconds);
            if let (true, Some(entry)) = (up_to < interval_ns, late.get("up_to")) {
                let message =
                    fault!("record.late.up_to is shorter than record.interval"; "write at least the interval");
                errors.push(entry.node.place, message);
            }
            (share, up_to)
        }
    };
    Some(SeriesSettings {
        sources: sources?,
        interval_ns,
        jitter: section.find("jitter", errors).unwrap_or(0.1),
        missing: section.find("missing", errors).unwrap_or(0.0),
        late_share,
        late_up_to_ns,
        repeated: section.find("repeated", errors).unwrap_or(0.0),
    })
}

/// Returns a duration in nanoseconds, at most 126 years.
pub(super) fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round().clamp(0.0, 4e18) as i64
}
