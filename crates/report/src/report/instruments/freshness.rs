//! Reports freshness: how long events took until readers saw them, per group of readers.
//!
//! Main functions: `freshness` and `stored`, from the trials of a case to findings; [`rows`], the table of them; `verdicts`, their
//! interpretation. Invariant: histograms are merged, never averaged; lost and double sightings are counted in invalid trials too.

use std::collections::BTreeMap;

use crate::finding::{CaseFinding, Estimate, Findings, Found, Note, SightingFinding, Verdict};
use crate::measurement::{FreshnessMeasurement, GroupMeasurement, Measurement};
use crate::metric::{self, Metric};
use crate::report::case_trials::{CaseTrials, estimate, time_finding};
use crate::report::factors::{setting_word, show_level, show_levels};
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::statistics::noise::{Series, intervals};
use crate::statistics::summary::{self, Interval};
use crate::study::Study;
use crate::study::repeat::stopping;
use crate::trial::Levels;
use crate::units::{show_number, show_seconds};

/// Headings of [`rows`].
pub const HEADINGS: [&str; 12] = [
    "Case",
    "MB/s",
    "answered p90",
    "readers",
    "when seen",
    "p50",
    "p90",
    "p99",
    "largest",
    "lost",
    "double",
    "rows read",
];

/// The ending of the name of a group whose readers subscribe.
const SUBSCRIBING: &str = "subscribing";

/// The limitation of the figures for published events.
const PUBLISHED: &str = "what is published is answered, and seen by who subscribes, while it is on no disk";
const NOT_STORED: &str = "a broker that ends loses it; its times stand for less than those of a commit, and \"stored\" is when the \
                          historian had committed it";

/// Settings that change only the number of bytes of events written.
pub const THROUGHPUT: [&str; 3] = ["load.rate", "workload.batch", "record.length"];

/// The report on freshness.
pub const INSTRUMENT: Instrument = Instrument {
    find,
    later_verdicts: |said| verdicts(said.study, said.groups),
    notes: elsewhere,
    tables: |findings| {
        vec![TextTable {
            title: "Freshness: from the start of a write until a reader had the event",
            headings: &HEADINGS,
            rows: rows(findings),
            keeps_lines: true,
            below: busy(findings).into_iter().map(|line| ("CPUs  ", line)).collect(),
        }]
    },
    ..Instrument::SILENT
};

fn find(group: &CaseTrials<'_>, finding: &mut CaseFinding) {
    let valid: Vec<&Measurement> = group.valid().collect();
    finding.freshness_s = freshness(&valid, &group.trials);
    finding.stored_s = stored(&valid);
    finding.event_bytes_per_s = event_bytes(&valid);
    finding.cpus = cpus(&valid);
}

/// Returns the CPUs that each part of a case kept busy, a line for each case.
fn busy(findings: &Findings) -> Vec<String> {
    let line = |case: &CaseFinding| {
        let parts: Vec<String> = case.cpus.iter().map(|(name, cpus)| format!("{name} {cpus:.2}")).collect();
        format!("{}: {}", show_levels(&case.levels), parts.join(", "))
    };
    findings.cases.iter().filter(|case| !case.cpus.is_empty()).map(line).collect()
}

/// Returns the sightings of a case's groups of readers; `None` without readers.
fn freshness(valid: &[&Measurement], all: &[&Measurement]) -> Option<BTreeMap<String, SightingFinding>> {
    all.iter().find(|trial| trial.freshness.is_some())?;
    let mut merged = groups(valid);
    let found = all.iter().filter_map(|trial| trial.freshness.as_ref());
    let mut findings: BTreeMap<String, SightingFinding> = BTreeMap::new();
    for (name, group) in found.flat_map(|found| &found.groups) {
        let finding = findings
            .entry(name.clone())
            .or_insert_with(|| merged.remove(name).map_or_else(SightingFinding::default, |group| sighting(&group)));
        finding.lost += group.lost;
        finding.duplicates += group.duplicates;
    }
    Some(findings)
}

/// Returns how long events took until a historian had stored them.
fn stored(valid: &[&Measurement]) -> Option<SightingFinding> {
    let mut all = GroupMeasurement::default();
    let found: Vec<_> = valid.iter().filter_map(|trial| trial.freshness.as_ref()?.stored.as_ref()).collect();
    found.iter().for_each(|group| all.merge(group));
    (!found.is_empty()).then(|| SightingFinding { lost: all.lost, duplicates: all.duplicates, ..sighting(&all) })
}

/// Returns the content bytes of the events written per second.
fn event_bytes(valid: &[&Measurement]) -> Option<Estimate> {
    let values: Vec<f64> = valid.iter().filter_map(|trial| metric::event_bytes(trial)).collect();
    (!values.is_empty()).then(|| estimate(&values))
}

/// Returns the CPUs that each part kept busy.
fn cpus(valid: &[&Measurement]) -> BTreeMap<String, f64> {
    let found: Vec<&FreshnessMeasurement> = valid.iter().filter_map(|trial| trial.freshness.as_ref()).collect();
    let mut sums = BTreeMap::new();
    for (name, cpus) in found.iter().flat_map(|found| &found.cpus) {
        *sums.entry(name.clone()).or_insert(0.0) += cpus / found.len() as f64;
    }
    sums
}

/// Returns the sightings of each group over all trials together.
pub fn groups(trials: &[&Measurement]) -> BTreeMap<String, GroupMeasurement> {
    let mut merged: BTreeMap<String, GroupMeasurement> = BTreeMap::new();
    for (name, group) in trials.iter().filter_map(|trial| trial.freshness.as_ref()).flat_map(|found| &found.groups) {
        merged.entry(name.clone()).or_default().merge(group);
    }
    merged
}

fn sighting(group: &GroupMeasurement) -> SightingFinding {
    let count = group.freshness.count();
    let rows_per_sighting = (count > 0).then(|| group.rows as f64 / count as f64);
    let readers = group.readers;
    SightingFinding {
        times: time_finding(&group.freshness),
        count,
        lost: 0,
        duplicates: 0,
        readers,
        rows_per_sighting,
        cut_off: group.cut_off,
        clock_error: group.host.as_ref().map(|_| group.clock_error_s),
    }
}

/// Notes each group on another host, with the largest error of its times over all cases.
fn elsewhere(groups_of_cases: &[CaseTrials<'_>]) -> Vec<Note> {
    let trials: Vec<&Measurement> = groups_of_cases.iter().flat_map(CaseTrials::valid).collect();
    let of_group = |(group, merged): (String, GroupMeasurement)| {
        Some(Note::SeenElsewhere { group, host: merged.host?, error_s: merged.clock_error_s })
    };
    groups(&trials).into_iter().filter_map(of_group).collect()
}

/// Returns a row for each group of each case.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for case in &findings.cases {
        let Some(groups) = &case.freshness_s else { continue };
        let stored = case.stored_s.map(|stored| ("stored".to_owned(), stored));
        let bytes = case.event_bytes_per_s.unwrap_or_default();
        let commit = case.operations.values().find_map(|operation| operation.response_time_s.p90);
        let all = groups.iter().map(|(name, group)| (name.clone(), *group)).chain(stored);
        for (place, (name, group)) in all.enumerate() {
            let show = |time: Option<f64>| time.map_or("-".to_owned(), show_seconds);
            let first = |text: String| if place == 0 { text } else { String::new() };
            rows.push(vec![
                first(short_levels(&case.levels)),
                first(bytes.show_megabytes()),
                first(show(commit)),
                match group.clock_error {
                    Some(error_s) => format!("{name} ± {}", show_seconds(error_s)),
                    None => name.clone(),
                },
                where_when_seen(&name).to_owned(),
                show(group.times.p50),
                show(group.times.p90),
                show(group.times.p99),
                show(group.times.max),
                show_number(group.lost as f64),
                show_number(group.duplicates as f64),
                group
                    .rows_per_sighting
                    .map_or("-".to_owned(), |rows| format!("{} ×", show_number((rows * 10.0).round() / 10.0))),
            ]);
        }
    }
    rows
}

/// Returns the state of an event when a group sees it: subscribers see what the broker has in its memory, all others what the database has
/// committed, as durably as its settings provide.
fn where_when_seen(group: &str) -> &'static str {
    if group.ends_with(SUBSCRIBING) { "on no disk" } else { "committed" }
}

/// Formats levels with the last words of their settings, so that a row fits: `path = both, rate = 400`.
pub fn short_levels(levels: &Levels) -> String {
    if levels.is_empty() {
        return show_levels(levels);
    }
    let short =
        |(setting, level): (&String, &serde_json::Value)| format!("{} = {}", setting_word(setting), show_level(level));
    levels.iter().map(short).collect::<Vec<_>>().join(", ")
}

/// Returns verdicts on freshness: the highest throughput whose events are seen, and comparisons of the ways of looking.
fn verdicts(study: &Study, groups: &[CaseTrials<'_>]) -> Vec<Verdict> {
    let named = |name: &str| Metric::named(name);
    let (Some(p90), Some(bytes)) = (named("freshness_p90"), named("event_bytes")) else { return Vec::new() };
    let mut verdicts = Vec::new();
    let mut most: Option<(f64, Verdict)> = None;
    // As in verdicts, the noise of all cases gives the interval of each mean.
    let together = |metric: &Metric| -> (Vec<Series>, Vec<Option<Interval>>) {
        let of_trial = |trial: &Measurement| Some((trial.trial.round, metric.of(trial)?));
        let series: Vec<Series> = groups.iter().map(|group| group.valid().filter_map(of_trial).collect()).collect();
        let found = intervals(&series, stopping(study));
        (series, found)
    };
    let (all_fresh, all_written) = (together(p90), together(bytes));
    for (place, group) in groups.iter().enumerate() {
        let trials: Vec<&Measurement> = group.valid().filter(|trial| trial.freshness.is_some()).collect();
        let values = |all: &[Series]| all[place].iter().map(|(_, value)| *value).collect::<Vec<f64>>();
        let (fresh, written) = (values(&all_fresh.0), values(&all_written.0));
        if fresh.is_empty() {
            continue;
        }
        let lost: u64 = trials.iter().filter_map(|trial| Some(trial.freshness.as_ref()?.all().lost)).sum();
        let shown =
            if lost > 0 { format!(", {} sightings lost", show_number(lost as f64)) } else { ", none lost".to_owned() };
        let of = if study.factors.is_empty() { String::new() } else { format!("{}: ", levels(study, group)) };
        let ends = all_written.1[place].map(|Interval { low, high }| [low, high]);
        let (estimated, seen) = (Estimate { ci95: ends, ..estimate(&written) }, all_fresh.1[place]);
        let (mean, rate) = (estimated.mean.unwrap_or(0.0), format!("{} MB/s", estimated.show_megabytes()));
        let seen = format!("{}{shown}", p90.show_case(&trials, &fresh, seen));
        let found = |is_most| Found::Seen {
            levels: group.case.levels.clone(),
            seen_p90_s: summary::mean(&fresh).unwrap_or(f64::NAN),
            event_bytes_per_s: estimated,
            lost,
            is_most,
        };
        if most.as_ref().is_none_or(|(known, _)| *known < mean) {
            let what = format!("at the most that was written, {rate}, 90 % of the events were seen within {seen}");
            most = Some((mean, Verdict::new(found(true), what)));
        }
        let what = format!("{of}90 % of the events of {rate} were seen within {seen}");
        verdicts.push(Verdict::new(found(false), what));
    }
    let publishes = |group: &&CaseTrials<'_>| {
        group.case.settings.freshness.as_ref().is_some_and(|freshness| freshness.path.publishes())
    };
    if groups.iter().any(|group| publishes(&group)) {
        verdicts.push(Verdict::new(Found::Published {}, PUBLISHED).because(NOT_STORED));
    }
    // If only the throughput differs, the highest throughput is the subject of the study.
    let differ_by_throughput = study.factors.iter().all(|factor| THROUGHPUT.contains(&factor.setting.as_str()));
    if let (true, true, Some((_, what))) = (verdicts.len() > 1, differ_by_throughput, most) {
        verdicts.insert(0, what);
    }
    verdicts
}

fn levels(study: &Study, group: &CaseTrials<'_>) -> String {
    let of = |factor: &crate::study::Factor| {
        let level = group.case.levels.get(&factor.setting)?;
        Some(format!("{} = {}", factor.setting, show_level(level)))
    };
    study.factors.iter().filter_map(of).collect::<Vec<_>>().join(", ")
}
