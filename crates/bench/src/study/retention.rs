//! `[retention]`: old readings are thrown away while others come in.
//!
//! Main: [`RETENTION`], [`read_retention`] and [`check_retention`]. Invariant: without the section, and with `by = "none"`, all readings stay and nothing else changes.

use super::clash::Clash;
use super::series::nanoseconds;
use crate::fault::{Fault, fault};
use crate::trial::{Length, RetentionSettings, RetireBy, Settings};
use crate::units::show_seconds;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// Most transactions that a step takes.
const TRANSACTIONS_MOST: i64 = 1000;

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
            "How: by `DELETE` of the rows (`delete`), or by dropping partitions (`drop`): the table is then made in partitions of `step`. `none` throws nothing away, as a level to compare the others with.",
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
    let mut found =
        settings.retention.as_ref().map_or_else(Vec::new, |retention| check_spans(retention, settings, root));
    let retires = settings.retention.as_ref().is_some_and(|retention| retention.by != RetireBy::None);
    let what = match (retires, settings.layout.partition_ns) {
        (true, _) => "[retention]",
        // Somebody must make partitions for readings to come.
        (false, Some(_)) => "layout.partition",
        (false, None) => return found,
    };
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
    for (_, keys, other) in clashes.into_iter().filter(|(is_so, ..)| *is_so) {
        found.push((keys, fault!("{what} is given and {other}"; "leave one of them out")));
    }
    if retires && !matches!(settings.load.length, Length::Seconds(_)) {
        let remedy = "state how long the trial is, as in duration = \"10s\"";
        let counts = &["load.operations", "load.operations_per_client"];
        found.push((
            counts,
            fault!("[retention] goes with load.duration and not with a number of operations"; "{remedy}"),
        ));
    }
    found
}

/// Returns which spans of the section do not go together.
fn check_spans(retention: &RetentionSettings, settings: &Settings, root: &Table) -> Vec<Clash> {
    let mut found: Vec<Clash> = Vec::new();
    let mut refuse = |keys: &'static [&'static str], message: Fault| found.push((keys, message));
    if root.find("retention.keep").is_none() {
        let remedy = "write how old a reading may become, as in keep = \"1h\"";
        refuse(&["retention.by"], fault!("retention.keep is missing"; "{remedy}"));
        return found;
    }
    if retention.step_ns > retention.keep_ns {
        let message = fault!("retention.step is longer than retention.keep"; "write a shorter step");
        refuse(&["retention.step", "retention.keep"], message);
    }
    let transactions = retention.step_ns / retention.transaction_ns.max(1);
    if transactions > TRANSACTIONS_MOST {
        let least = show_seconds(seconds(retention.step_ns / TRANSACTIONS_MOST));
        refuse(
            &["retention.transaction", "retention.step"],
            fault!("by retention.transaction a step takes {transactions} transactions"; "write at least {least}"),
        );
    }
    if retention.by != RetireBy::Drop {
        return found;
    }
    if root.find("retention.transaction").is_some() {
        let remedy = "leave it out, or write by = \"delete\"";
        let message = fault!("retention.transaction is for deletions, and retention.by is \"drop\""; "{remedy}");
        refuse(&["retention.transaction", "retention.by"], message);
    }
    if settings.layout.partition_ns != Some(retention.step_ns) {
        let message = fault!(
            "retention.by is \"drop\", which drops whole partitions, and layout.partition is not retention.step";
            "leave one of them out"
        );
        refuse(&["retention.step", "layout.partition"], message);
    }
    found
}
