//! Schema changes during a load: how long they took, and what the other operations' response times were meanwhile.
//!
//! Main functions: [`evolution`], from the trials of a case to a finding; [`sentences`], what they say together; [`changes`] and
//! [`operations`], the rows of tables. Invariant: histograms are merged, never averaged; without schema changes there is nothing
//! to show.

use crate::finding::{AsideFinding, ChangeFinding, DuringFinding, EvolutionFinding, Findings};
use crate::measurement::{AsideMeasurement, Measurement};
use crate::report::analyse::{CaseTrials, time_finding};
use crate::report::contest::{self, Scored};
use crate::report::factors::{show_level, show_levels};
use crate::statistics::RatioEstimate;
use crate::statistics::paired::geometric_ratio;
use crate::trial::Levels;
use crate::units::{show_number, show_seconds};

/// The setting that says whether the schema changes, and how often.
pub const EVOLVE: &str = "workload.evolve";

/// Kinds of changes in the order in which they are made, and what they are called in a sentence.
const ORDER: [(&str, &str); 4] =
    [("add", "added"), ("write", "written to"), ("erase", "erased from"), ("remove", "removed")];

/// Headings of [`changes`].
pub const CHANGES: [&str; 7] = ["Case", "change", "n", "mean", "longest", "failed", "change of the schema"];
/// Headings of [`operations`].
pub const OPERATIONS: [&str; 8] = ["Case", "operation", "", "n", "failed", "mean", "p99", "longest"];

/// What the valid trials of a case say of schema changes; failures are those of all trials. None where there were none.
pub fn evolution(valid: &[&Measurement], all: &[&Measurement]) -> Option<EvolutionFinding> {
    all.iter().find(|trial| trial.evolution.is_some())?;
    let mut finding = EvolutionFinding::default();
    for change in all.iter().filter_map(|trial| trial.evolution.as_ref()).flat_map(|evolution| &evolution.changes) {
        finding.changes.entry(change.what.clone()).or_default().failed += change.failed;
    }
    let mut parts: std::collections::BTreeMap<&str, [AsideMeasurement; 2]> = Default::default();
    for evolution in valid.iter().filter_map(|trial| trial.evolution.as_ref()) {
        for change in &evolution.changes {
            let entry: &mut ChangeFinding = finding.changes.entry(change.what.clone()).or_default();
            entry.count += 1;
            entry.mean_s += (change.took_s - entry.mean_s) / entry.count as f64;
            entry.max_s = entry.max_s.max(change.took_s);
            entry.records = change.records;
            entry.statements.extend(change.statement.clone().filter(|new| !entry.statements.contains(new)));
        }
        for (place, part) in [&evolution.during, &evolution.outside].into_iter().enumerate() {
            for (kind, aside) in part {
                parts.entry(kind).or_default()[place].merge(aside);
            }
        }
    }
    for (kind, [during, outside]) in parts {
        let (during, outside) = (aside(&during), aside(&outside));
        let means = during.response_time_s.mean.zip(outside.response_time_s.mean);
        let ratio_of_means = means.map(|(during, outside)| during / outside).filter(|ratio| ratio.is_finite());
        finding.operations.insert(kind.to_owned(), DuringFinding { during, outside, ratio_of_means });
    }
    Some(finding)
}

fn aside(measured: &AsideMeasurement) -> AsideFinding {
    let response_time_s = time_finding(&measured.response_time);
    AsideFinding { count: measured.completed, failed: measured.failed, response_time_s }
}

/// For each case with schema changes: how long they took, what the other operations noticed, what failed, and the throughput in
/// proportion to that of the same case without them, where the study has it.
pub fn sentences(groups: &[CaseTrials<'_>], scored: &[Scored<'_>], seed: u64) -> Vec<String> {
    let of_group = |group: &CaseTrials<'_>| {
        let valid: Vec<&Measurement> = group.valid().collect();
        let finding = evolution(&valid, &group.trials).filter(|_| !valid.is_empty())?;
        let label = show_case(&group.case.levels);
        let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
        let mut parts = vec![show_changes(&finding)];
        parts.extend(show_meanwhile(&finding, &valid));
        let failed = finding.changes.values().map(|change| change.failed).sum::<u64>()
            + finding.operations.values().map(|parts| parts.during.failed).sum::<u64>();
        parts.push(match failed {
            0 => "nothing failed".to_owned(),
            _ => format!("{} changes and operations failed", show_number(failed as f64)),
        });
        parts.extend(against_none(&group.case.levels, scored, seed).map(|ratio| {
            format!(
                "throughput is {} that without schema changes, n = {} + {}",
                show_ratio(&ratio),
                ratio.n_of,
                ratio.n_to
            )
        }));
        Some(format!("{label}{}", parts.join("; ")))
    };
    groups.iter().filter_map(of_group).collect()
}

/// The levels that tell the case from others, but for how often the schema changes.
fn show_case(levels: &Levels) -> String {
    let shown = levels.iter().filter(|(setting, _)| *setting != EVOLVE);
    let level = |(setting, level): (&String, &serde_json::Value)| match level {
        serde_json::Value::String(text) => text.clone(),
        other => format!("{setting} = {}", show_level(other)),
    };
    shown.map(level).collect::<Vec<_>>().join(", ")
}

/// `on average a new field is added in 31.7 ms (n = 12), written to 10 records in 21.5 ms (n = 12), removed in 28.3 ms (n = 9)`.
fn show_changes(finding: &EvolutionFinding) -> String {
    let told = |(what, words): &(&str, &str)| {
        let change = finding.changes.get(*what)?;
        let of =
            if change.records > 0 { format!(" {} records", show_number(change.records as f64)) } else { String::new() };
        Some(format!("{words}{of} in {} (n = {})", show_seconds(change.mean_s), show_number(change.count as f64)))
    };
    let known: Vec<String> = ORDER.iter().filter_map(told).collect();
    let nothing = if finding.changes.contains_key("add") { "" } else { "no change of the schema is needed; " };
    format!("{nothing}on average a new field is {}", known.join(", "))
}

/// How much longer each kind of operation took meanwhile, each trial giving one ratio.
fn show_meanwhile(finding: &EvolutionFinding, valid: &[&Measurement]) -> Option<String> {
    let of_kind = |(kind, parts): (&String, &DuringFinding)| {
        let ratios: Vec<f64> = valid.iter().filter_map(|trial| ratio_meanwhile(trial, kind)).collect();
        let ratio = geometric_ratio(&ratios).map_or("?".to_owned(), |ratio| show_ratio(&ratio));
        let p99 = |part: &AsideFinding| part.response_time_s.p99.map_or("-".to_owned(), show_seconds);
        let (during, outside) = (p99(&parts.during), p99(&parts.outside));
        format!("{kind} took {ratio} as long (p99 {during}, outside {outside})")
    };
    let kinds: Vec<String> = finding.operations.iter().map(of_kind).collect();
    (!kinds.is_empty()).then(|| format!("meanwhile {}", kinds.join(", ")))
}

/// A trial's mean response time of a kind of operation during schema changes in proportion to that outside of them.
fn ratio_meanwhile(trial: &Measurement, kind: &str) -> Option<f64> {
    let evolution = trial.evolution.as_ref()?;
    let mean_ns = |parts: &std::collections::BTreeMap<String, AsideMeasurement>| {
        let times = &parts.get(kind)?.response_time;
        (times.count() > 0).then(|| times.mean_ns()).filter(|mean_ns| *mean_ns > 0.0)
    };
    Some(mean_ns(&evolution.during)? / mean_ns(&evolution.outside)?)
}

fn show_ratio(ratio: &RatioEstimate) -> String {
    format!("{:.2} × [{:.2}, {:.2}]", ratio.ratio, ratio.interval.low, ratio.interval.high)
}

/// Throughput in proportion to that of the case that differs in nothing but having no schema changes.
fn against_none(levels: &Levels, scored: &[Scored<'_>], seed: u64) -> Option<RatioEstimate> {
    let is_none = |level: &serde_json::Value| {
        level.as_str().is_some_and(|text| crate::units::parse_duration(text).is_ok_and(|duration| duration.is_zero()))
    };
    let own = scored.iter().find(|case| case.levels == levels)?;
    let without = scored.iter().find(|case| {
        case.levels.get(EVOLVE).is_some_and(is_none)
            && case.levels.iter().all(|(setting, level)| setting == EVOLVE || levels.get(setting) == Some(level))
    })?;
    contest::estimate(&[(own, without)], seed)
}

fn of_cases(findings: &Findings) -> impl Iterator<Item = (String, &EvolutionFinding)> {
    findings.cases.iter().filter_map(|case| Some((show_levels(&case.levels), case.evolution.as_ref()?)))
}

/// A row for each kind of change of each case.
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

/// Two rows for each kind of operation of each case: during changes, and outside of them.
pub fn operations(findings: &Findings) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (case, evolution) in of_cases(findings) {
        for (kind, parts) in &evolution.operations {
            for (name, part) in [("during", &parts.during), ("outside", &parts.outside)] {
                let times = &part.response_time_s;
                let [mean, p99, longest] =
                    [times.mean, times.p99, times.max].map(|time_s| time_s.map_or("-".to_owned(), show_seconds));
                let [count, failed] = [part.count, part.failed].map(|count| show_number(count as f64));
                rows.push(vec![case.clone(), kind.clone(), name.to_owned(), count, failed, mean, p99, longest]);
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
        let (during, outside) = (part(during_ns), part(outside_ns));
        measurement.evolution = Some(EvolutionMeasurement { changes: vec![change], during, outside });
        measurement
    }

    #[test]
    fn changes_are_averaged_and_operations_during_them_compared_with_the_others() {
        let (first, second) = (trial(1.0, 4_000_000, 1_000_000), trial(3.0, 4_000_000, 1_000_000));
        let mut invalid = trial(100.0, 1, 1);
        invalid.evolution.as_mut().unwrap().changes[0].failed = 1;
        let finding = evolution(&[&first, &second], &[&first, &second, &invalid]).unwrap();
        let add = &finding.changes["add"];
        assert_eq!((add.count, add.mean_s, add.max_s, add.failed), (2, 2.0, 3.0, 1));
        let read = &finding.operations["read"];
        assert_eq!((read.during.count, read.outside.count), (2, 2));
        assert!((read.ratio_of_means.unwrap() - 4.0).abs() < 0.1);
    }

    #[test]
    fn what_changes_cost_is_told_in_a_sentence_with_intervals() {
        let trials = [trial(1.0, 4_000_000, 1_000_000), trial(3.0, 2_000_000, 1_000_000)];
        let group = CaseTrials { case: &trials[0].trial.case, discarded: None, trials: trials.iter().collect() };
        let sentences = sentences(&[group], &[], 1);
        assert_eq!(sentences.len(), 1);
        assert!(
            sentences[0].starts_with("on average a new field is added in 2 s (n = 2); meanwhile read took 2.8"),
            "{sentences:?}"
        );
        assert!(sentences[0].contains("] as long (p99 ") && sentences[0].ends_with("nothing failed"), "{sentences:?}");
    }

    #[test]
    fn without_schema_changes_there_is_nothing() {
        let mut without = trial(1.0, 1, 1);
        without.evolution = None;
        assert_eq!(evolution(&[&without], &[&without]), None);
    }
}
