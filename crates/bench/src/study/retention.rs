//! `[retention]`: old readings are thrown away while others come in.
//!
//! Main: [`RETENTION`], [`read_retention`] and [`check_retention`]. Invariant: without the section, and with `by = "none"`, all readings stay and nothing else changes.

use super::clash::Clash;
use super::series::nanoseconds;
use crate::fault::fault;
use crate::trial::{Length, RetentionSettings, RetireBy, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// Steps that `keep` has unless a study sets another `step`.
const STEPS: i64 = 10;

/// The settings of the section.
pub static RETENTION: Part = Part {
    name: "retention",
    help: "Readings that are thrown away by their age while others come in. Ages are those of the data's own time: a load that writes an hour of readings in a second throws away an hour of readings in that second. Without the section all readings stay.",
    settings: &[
        Setting::new(
            "by",
            Kind::Listed(|| RetireBy::NAMES.map(|(name, _)| name).to_vec()),
            Absent::Text("delete"),
            "How: by `DELETE` of the rows (`delete`), or by dropping partitions (`drop`), which `layout.partition` makes. `none` throws nothing away, as a level to compare the others with.",
        )
        .factor(|settings| serde_json::to_value(retention(settings)?.by).ok()),
        Setting::new(
            "keep",
            Kind::Duration(Span::AboveZero),
            Absent::Means("none: it must be given, or be a factor"),
            "How old a reading may become, behind the newest one.",
        )
        .factor(|settings| Some(seconds(retention(settings)?.keep_ns).into())),
        Setting::new(
            "step",
            Kind::Duration(Span::AboveZero),
            Absent::Means("`layout.partition`, or a tenth of `keep`"),
            "How much of the data's time is thrown away at once.",
        )
        .factor(|settings| Some(seconds(retention(settings)?.step_ns).into())),
        Setting::new(
            "transaction",
            Kind::Duration(Span::AboveZero),
            Absent::Means("`step`"),
            "How much of the data's time one transaction deletes.",
        )
        .only("`by = \"delete\"`")
        .factor(|settings| Some(seconds(retention(settings)?.transaction_ns).into())),
    ],
};

fn retention(settings: &Settings) -> Option<&RetentionSettings> {
    settings.retention.as_ref()
}

fn seconds(time_ns: i64) -> f64 {
    time_ns as f64 / 1e9
}

/// Reads the section; `None` if it is not written.
pub fn read_retention(root: &Table, partition_ns: Option<i64>, errors: &mut Errors) -> Option<RetentionSettings> {
    root.get("retention")?;
    let section = Section::open(root, &RETENTION, errors);
    let name = section.text("by", errors);
    let by = RetireBy::NAMES.into_iter().find(|(known, _)| Some(*known) == name).map_or(RetireBy::Delete, |(_, by)| by);
    let mut span = |key| section.find(key, errors).map(nanoseconds);
    // A missing span is an error of its own; see `check_retention`.
    let keep_ns = span("keep").unwrap_or(0);
    let step_ns = span("step").or(partition_ns).unwrap_or(keep_ns / STEPS).max(1);
    let transaction_ns = span("transaction").unwrap_or(step_ns).clamp(1, step_ns);
    Some(RetentionSettings { by, keep_ns, step_ns, transaction_ns })
}

/// Returns the settings that cannot be combined.
pub fn check_retention(settings: &Settings, root: &Table) -> Vec<Clash> {
    let Some(retention) = &settings.retention else { return Vec::new() };
    let mut found: Vec<Clash> = Vec::new();
    let mut refuse = |keys: &'static [&'static str], message: crate::fault::Fault| found.push((keys, message));
    if root.find("retention.keep").is_none() {
        let remedy = "write how old a reading may become, as in keep = \"1h\"";
        refuse(&["retention.by"], fault!("retention.keep is missing"; "{remedy}"));
        return found;
    }
    if retention.step_ns > retention.keep_ns {
        refuse(
            &["retention.step", "retention.keep"],
            fault!("retention.step is longer than retention.keep"; "write a shorter step"),
        );
    }
    let longer = root.find("retention.transaction").is_some()
        && retention.by != RetireBy::Delete
        && retention.by != RetireBy::None;
    if longer {
        let remedy = "leave it out, or write by = \"delete\"";
        refuse(
            &["retention.transaction", "retention.by"],
            fault!("retention.transaction is for deletions, and retention.by is \"drop\""; "{remedy}"),
        );
    }
    if retention.by == RetireBy::None {
        return found;
    }
    if retention.by == RetireBy::Drop && settings.layout.partition_ns != Some(retention.step_ns) {
        let (keys, remedy): (&'static [&'static str], _) = match settings.layout.partition_ns {
            None => (&["retention.by"], "write layout.partition, as in partition = \"10m\""),
            Some(_) => (&["retention.step", "layout.partition"], "leave retention.step out"),
        };
        let message =
            fault!("retention.by is \"drop\", which drops whole partitions of the length retention.step"; "{remedy}");
        refuse(keys, message);
    }
    let clashes: [(bool, &'static [&'static str], &str); 6] = [
        (settings.workload.evolve_s.is_some(), &["workload.evolve"], "workload.evolve is given"),
        (!settings.events.is_empty(), &["events"], "[[events]] are given"),
        (
            settings.load.agents.is_some(),
            &["load.agents"],
            "load.agents is given, whose records are not followed by one process",
        ),
        (settings.recorder.is_some(), &["recorder.path"], "[recorder] is given, which has a [retention] of its own"),
        (settings.layout.tables_per_client, &["layout.tables"], "layout.tables is \"per-client\""),
        (settings.record.existing, &["record.existing"], "record.existing is true"),
    ];
    for (_, keys, what) in clashes.into_iter().filter(|(is_so, ..)| *is_so) {
        refuse(keys, fault!("[retention] is given and {what}"; "leave one of them out"));
    }
    if !matches!(settings.load.length, Length::Seconds(_)) {
        let remedy = "state how long the trial is, as in duration = \"10s\"";
        let counts = &["load.operations", "load.operations_per_client"];
        refuse(counts, fault!("[retention] goes with load.duration and not with a number of operations"; "{remedy}"));
    }
    found
}
