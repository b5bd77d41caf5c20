//! Reports schema changes during a load: how long they took, and the response times of the other operations meanwhile. Kinds of change are
//! kept apart: adding a column, writing it to records, making an index.
//!
//! Main functions: `evolution`, from the trials of a case to a finding; `verdicts`, its interpretation; [`changes`] and [`operations`], the
//! rows of tables. Invariant: histograms are merged, never averaged; without schema changes there is nothing
//! to show.

use std::collections::BTreeMap;

use crate::finding::{AsideFinding, ChangeFinding, DuringFinding, EvolutionFinding, Findings, Found, Verdict};
use crate::measurement::{AsideMeasurement, EvolutionMeasurement, Measurement};
use crate::report::case_trials::{CaseTrials, time_finding};
use crate::report::contest::{self, Scored};
use crate::report::factors::{show_level, show_levels};
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::statistics::RatioEstimate;
use crate::statistics::ratio::geometric_ratio;
use crate::trial::Levels;
use crate::units::{self, show_number, show_seconds};

/// The setting that determines whether and how often the schema changes.
pub const EVOLVE: &str = "workload.evolve";

/// The kinds of changes in the order in which they are made, with their names in a sentence.
const ORDER: Kinds = &[("add", "added"), ("write", "written to"), ("erase", "erased from"), ("remove", "removed")];

/// Kinds of changes in the order in which they are reported, with their names in a sentence.
pub type Kinds = &'static [(&'static str, &'static str)];

/// The part of a trial outside all changes.
const OUTSIDE: &str = "outside";

/// The response time in seconds above which an operation counts as held up.
const HELD_UP_S: f64 = 0.1;

/// Most statements that are told of one kind of change: those for partitions name one each.
const STATEMENTS_MOST: usize = 8;

/// Headings of [`changes`].
pub const CHANGES: [&str; 7] = ["Case", "change", "n", "mean", "longest", "failed", "change of the schema"];
/// Headings of [`operations`].
pub const OPERATIONS: [&str; 10] =
    ["Case", "operation", "during", "n", "failed", "mean", "p99", "longest", "over 100 ms", "nothing completed for"];

/// The report on schema changes.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.evolution = evolution(&group.valid().collect::<Vec<_>>(), &group.trials, OF_SCHEMA),
    verdicts: |said| verdicts(said.groups, said.scored),
    tables: |findings| {
        let (title, headings) = ("Operations intended during them, and outside", &OPERATIONS[..]);
        vec![
            TextTable { title: "Schema changes", headings: &CHANGES, rows: changes(findings), ..TextTable::default() },
            TextTable { title, headings, rows: operations(findings), ..TextTable::default() },
        ]
    },
    ..Instrument::SILENT
};

/// Returns whether there are schema changes to report.
pub fn is_told(groups: &[CaseTrials<'_>]) -> bool {
    let is_told = |group: &CaseTrials<'_>| {
        group.valid().next().is_some() && group.trials.iter().any(|trial| trial.evolution.is_some())
    };
    groups.iter().any(is_told)
}

/// Returns the changes of a trial, if there are any.
pub type Changes = fn(&Measurement) -> Option<&EvolutionMeasurement>;

const OF_SCHEMA: Changes = |trial| trial.evolution.as_ref();

/// Returns the finding on the changes of a case's valid trials; failures are those of all trials. `None` without changes.
pub fn evolution(valid: &[&Measurement], all: &[&Measurement], of: Changes) -> Option<EvolutionFinding> {
    all.iter().find_map(|trial| of(trial))?;
    let mut finding = EvolutionFinding::default();
    for change in all.iter().filter_map(|trial| of(trial)).flat_map(|evolution| &evolution.changes) {
        finding.changes.entry(change.what.clone()).or_default().failed += change.failed;
    }
    let mut parts: BTreeMap<&str, BTreeMap<&str, AsideMeasurement>> = BTreeMap::new();
    for evolution in valid.iter().filter_map(|trial| of(trial)) {
        for change in &evolution.changes {
            let entry: &mut ChangeFinding = finding.changes.entry(change.what.clone()).or_default();
            entry.count += 1;
            entry.mean_s += (change.took_s - entry.mean_s) / entry.count as f64;
            entry.max_s = entry.max_s.max(change.took_s);
            entry.records = change.records;
            let is_told = |new: &String| entry.statements.len() >= STATEMENTS_MOST || entry.statements.contains(new);
            let statement = change.statement.clone().filter(|new| !is_told(new));
            entry.statements.extend(statement);
        }
        for (part, kinds) in &evolution.intended {
            for (kind, aside) in kinds {
                parts.entry(kind).or_default().entry(part).or_default().merge(aside);
            }
        }
        for (part, silence_s) in &evolution.silences_s {
            let longest = finding.longest_silence_s.entry(part.clone()).or_default();
            *longest = longest.max(*silence_s);
        }
    }
    for (kind, mut parts) in parts {
        let outside = parts.remove(OUTSIDE).unwrap_or_default();
        let mut during = AsideMeasurement::default();
        parts.values().for_each(|part| during.merge(part));
        let each = parts.iter().map(|(part, measured)| ((*part).to_owned(), aside(measured))).collect();
        let (during, outside) = (aside(&during), aside(&outside));
        finding.operations.insert(kind.to_owned(), DuringFinding { during, outside, each });
    }
    Some(finding)
}

fn aside(measured: &AsideMeasurement) -> AsideFinding {
    let times = &measured.response_time;
    let held_up =
        times.buckets().filter(|(low_ns, ..)| *low_ns as f64 >= HELD_UP_S * 1e9).map(|(.., count)| count).sum();
    AsideFinding {
        count: measured.completed,
        failed: measured.failed,
        over_100_ms: held_up,
        response_time_s: time_finding(times),
    }
}

/// Returns verdicts on each case with schema changes: their durations, their effect on other operations, failures, and the ratio of
/// throughput to that of the same case without changes, if the study has it.
fn verdicts(groups: &[CaseTrials<'_>], scored: &[Scored<'_>]) -> Vec<Verdict> {
    let of_group = |group: &CaseTrials<'_>| {
        let valid: Vec<&Measurement> = group.valid().collect();
        let finding = evolution(&valid, &group.trials, OF_SCHEMA).filter(|_| !valid.is_empty())?;
        let label = show_case(&group.case.levels);
        let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
        let meanwhile = show_meanwhile(&finding, &valid, OF_SCHEMA, ORDER);
        let mut parts: Vec<String> = meanwhile.map(|told| format!("while it was {told}")).into_iter().collect();
        let failed = finding.changes.values().map(|change| change.failed).sum::<u64>()
            + finding.operations.values().map(|parts| parts.during.failed).sum::<u64>();
        parts.push(match failed {
            0 => "nothing failed".to_owned(),
            _ => format!("{} changes and operations failed", show_number(failed as f64)),
        });
        let ratio = against_none(&group.case.levels, scored);
        parts.extend(ratio.as_ref().map(|ratio| {
            format!(
                "throughput is {} that without schema changes, n = {} + {}",
                show_ratio(ratio),
                ratio.n_of,
                ratio.n_to
            )
        }));
        let found = Found::SchemaChanges {
            levels: group.case.levels.clone(),
            failed,
            throughput_ratio: ratio.as_ref().map(|ratio| ratio.ratio),
            ratio_ci95: ratio.as_ref().map(|ratio| [ratio.interval.low, ratio.interval.high]),
        };
        Some(Verdict::new(found, format!("{label}{}", show_changes(&finding))).and(parts.join("; ")))
    };
    groups.iter().filter_map(of_group).collect()
}

/// Formats the levels that distinguish the case from others, except for how often the schema changes.
fn show_case(levels: &Levels) -> String {
    let shown = levels.iter().filter(|(setting, _)| *setting != EVOLVE);
    let level = |(setting, level): (&String, &serde_json::Value)| match level {
        serde_json::Value::String(text) => text.clone(),
        other => format!("{setting} = {}", show_level(other)),
    };
    shown.map(level).collect::<Vec<_>>().join(", ")
}

/// Formats `on average it is added in 31.7 ms (12 times), written to 10 records in 21.5 ms (12 times), removed in 28.3 ms (9 times)`.
fn show_changes(finding: &EvolutionFinding) -> String {
    let told = |(what, words): &(&str, &str)| {
        let change = finding.changes.get(*what)?;
        let of =
            if change.records > 0 { format!(" {} records", show_number(change.records as f64)) } else { String::new() };
        Some(format!("{words}{of} in {} ({} times)", show_seconds(change.mean_s), show_number(change.count as f64)))
    };
    let known: Vec<String> = ORDER.iter().filter_map(told).collect();
    let nothing = if finding.changes.contains_key("add") { "" } else { "no change of the schema is needed; " };
    format!("{nothing}on average it is {}", known.join(", "))
}

/// Formats how much longer each kind of operation took during the first kind of change that occurred, with one ratio per trial, and the
/// longest time without a completed operation: `added insert took 1.30 × [1.20, 1.40] as long (...)`.
pub fn show_meanwhile(finding: &EvolutionFinding, valid: &[&Measurement], of: Changes, order: Kinds) -> Option<String> {
    let is_told = |what: &str| finding.operations.values().any(|parts| parts.each.contains_key(what));
    let (what, words) = *order.iter().find(|(what, _)| is_told(what))?;
    let of_kind = |(kind, parts): (&String, &DuringFinding)| {
        let ratios: Vec<f64> = valid.iter().filter_map(|trial| ratio_meanwhile(of(trial)?, kind, what)).collect();
        let during = parts.each.get(what)?;
        let p99 = |part: &AsideFinding| part.response_time_s.p99.map_or("-".to_owned(), show_seconds);
        let (during, outside, n) = (p99(during), p99(&parts.outside), ratios.len());
        let figures = format!("n = {n}; p99 {during}, outside of changes {outside}");
        Some(match geometric_ratio(&ratios) {
            Some(ratio) => format!("{kind} took {} as long ({figures})", show_ratio(&ratio)),
            // One trial gives no interval, and a ratio without one says nothing.
            None => format!("{kind} went on ({figures})"),
        })
    };
    let mut told: Vec<String> = finding.operations.iter().filter_map(of_kind).collect();
    let silence =
        |part: &str| finding.longest_silence_s.get(part).map_or("-".to_owned(), |time_s| show_seconds(*time_s));
    told.push(format!("at the longest nothing was completed for {} (outside {})", silence(what), silence(OUTSIDE)));
    Some(format!("{words} {}", told.join(", ")))
}

/// Returns a trial's mean response time of a kind of operation during a kind of change, divided by that outside all changes.
fn ratio_meanwhile(evolution: &EvolutionMeasurement, kind: &str, what: &str) -> Option<f64> {
    let mean_ns = |part: &str| {
        let times = &evolution.intended.get(part)?.get(kind)?.response_time;
        (times.count() > 0).then(|| times.mean_ns()).filter(|mean_ns| *mean_ns > 0.0)
    };
    Some(mean_ns(what)? / mean_ns(OUTSIDE)?)
}

fn show_ratio(ratio: &RatioEstimate) -> String {
    let (shown, ends) = units::show_ratio(ratio.ratio, Some([ratio.interval.low, ratio.interval.high]), 2);
    format!("{shown} × {ends}")
}

/// Returns the ratio of throughput to that of the case that differs only in having no schema changes.
fn against_none(levels: &Levels, scored: &[Scored<'_>]) -> Option<RatioEstimate> {
    let is_none = |level: &serde_json::Value| {
        level.as_str().is_some_and(|text| crate::units::parse_duration(text).is_ok_and(|duration| duration.is_zero()))
    };
    let own = scored.iter().find(|case| case.levels == levels)?;
    let without = scored.iter().find(|case| {
        case.levels.get(EVOLVE).is_some_and(is_none)
            && case.levels.iter().all(|(setting, level)| setting == EVOLVE || levels.get(setting) == Some(level))
    })?;
    contest::estimate(&[(own, without)])
}

fn of_cases(findings: &Findings) -> impl Iterator<Item = (String, &EvolutionFinding)> {
    findings.cases.iter().filter_map(|case| Some((show_levels(&case.levels), case.evolution.as_ref()?)))
}

/// Returns a row for each kind of change of each case.
pub fn changes(findings: &Findings) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (case, evolution) in of_cases(findings) {
        for (what, change) in &evolution.changes {
            let what = if change.records > 0 { format!("{what} {} records", change.records) } else { what.clone() };
            let statement = match change.statements.as_slice() {
                [] => "none needed".to_owned(),
                statements => statements.join("; "),
            };
            let times = [change.mean_s, change.max_s].map(show_seconds);
            let [mean, longest] = times;
            let (count, failed) = (show_number(change.count as f64), show_number(change.failed as f64));
            rows.push(vec![case.clone(), what, count, mean, longest, failed, statement]);
        }
    }
    rows
}

/// Returns rows for each kind of operation of each case: during each kind of change, and outside all changes.
pub fn operations(findings: &Findings) -> Vec<Vec<String>> {
    operations_of(of_cases(findings), ORDER)
}

/// Returns rows for each kind of operation of each case, during changes of these kinds and outside all changes.
pub fn operations_of<'f>(
    cases: impl Iterator<Item = (String, &'f EvolutionFinding)>,
    order: Kinds,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (case, evolution) in cases {
        for (kind, parts) in &evolution.operations {
            let each = order.iter().filter_map(|(what, _)| Some((*what, parts.each.get(*what)?)));
            for (name, part) in each.chain([(OUTSIDE, &parts.outside)]) {
                let times = &part.response_time_s;
                let show = |time_s: Option<f64>| time_s.map_or("-".to_owned(), show_seconds);
                let [mean, p99, longest] = [times.mean, times.p99, times.max].map(show);
                let [count, failed, over] =
                    [part.count, part.failed, part.over_100_ms].map(|count| show_number(count as f64));
                let silence = show(evolution.longest_silence_s.get(name).copied());
                let name = name.to_owned();
                rows.push(vec![case.clone(), kind.clone(), name, count, failed, mean, p99, longest, over, silence]);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{ChangeMeasurement, EvolutionMeasurement};
    use crate::trial::{Case, Levels, Settings, Trial};

    fn trial(took_s: f64, during_ns: u64, outside_ns: u64) -> Measurement {
        let trial = Trial::new(Case::new(Levels::new(), Settings::default()), 0, 1);
        let mut measurement = Measurement::unmeasured(&trial);
        let change = ChangeMeasurement { what: "add".to_owned(), took_s, ..ChangeMeasurement::default() };
        let part = |response_ns| {
            let mut aside = AsideMeasurement { completed: 1, ..AsideMeasurement::default() };
            aside.response_time.record(response_ns);
            [("read".to_owned(), aside)].into()
        };
        let intended = [("add".to_owned(), part(during_ns)), (OUTSIDE.to_owned(), part(outside_ns))].into();
        let silences_s = [("add".to_owned(), took_s), (OUTSIDE.to_owned(), 0.001)].into();
        measurement.evolution = Some(EvolutionMeasurement { changes: vec![change], intended, silences_s });
        measurement
    }

    #[test]
    fn changes_are_averaged_and_operations_during_them_compared_with_the_others() {
        let (first, second) = (trial(1.0, 4_000_000, 1_000_000), trial(3.0, 4_000_000, 1_000_000));
        let mut invalid = trial(100.0, 1, 1);
        invalid.evolution.as_mut().unwrap().changes[0].failed = 1;
        let finding = evolution(&[&first, &second], &[&first, &second, &invalid], OF_SCHEMA).unwrap();
        let add = &finding.changes["add"];
        assert_eq!((add.count, add.mean_s, add.max_s, add.failed), (2, 2.0, 3.0, 1));
        let read = &finding.operations["read"];
        assert_eq!((read.during.count, read.outside.count), (2, 2));
        assert_eq!((read.each["add"].count, read.each["add"].over_100_ms, read.each.len()), (2, 0, 1));
        assert_eq!(finding.longest_silence_s["add"], 3.0);
        let blocked = trial(1.0, 150_000_000, 1);
        assert_eq!(
            evolution(&[&blocked], &[&blocked], OF_SCHEMA).unwrap().operations["read"].each["add"].over_100_ms,
            1
        );
    }

    #[test]
    fn what_changes_cost_is_told_in_a_sentence_with_intervals() {
        let trials = [trial(1.0, 4_000_000, 1_000_000), trial(3.0, 2_000_000, 1_000_000)];
        let group = CaseTrials { case: &trials[0].trial.case, discarded: None, trials: trials.iter().collect() };
        let sentences: Vec<String> = verdicts(&[group], &[]).iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), 1);
        assert!(
            sentences[0].starts_with("on average it is added in 2 s (2 times); while it was added read took 2.8"),
            "{sentences:?}"
        );
        assert!(
            sentences[0].contains("] as long (n = 2; p99 ")
                && sentences[0].contains("completed for 3 s (outside 1 ms)")
        );
        assert!(sentences[0].ends_with("nothing failed"), "{sentences:?}");
    }

    #[test]
    fn without_schema_changes_there_is_nothing() {
        let mut without = trial(1.0, 1, 1);
        without.evolution = None;
        assert_eq!(evolution(&[&without], &[&without], OF_SCHEMA), None);
    }
}
