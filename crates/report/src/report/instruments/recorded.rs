//! Reports records on their way through a recorder: whether all arrived, how many per second, and how much was left to be written at the end.
//!
//! Main functions: `recorded`, from the trials of a case to a finding; [`rows`], of its table; `verdicts`, on the number of sources carried.
//! Invariant: without `[recorder]` there is nothing to show, and errors of any trial are shown.

use crate::finding::{Estimate, Findings, Found, RecordedFinding, Verdict};
use crate::measurement::{Measurement, RecordedMeasurement};
use crate::report::case_trials::{CaseTrials, estimate};
use crate::report::factors::{show_levels, show_levels_short};
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::report::instruments::recorders;
use crate::trial::{Arrivals, Levels};
use crate::units::{show_bytes, show_number, show_seconds};

/// The setting with the number of sources.
const SOURCES: &str = "load.clients";
/// The least share of what sources send that must certainly be stored while they send it for them to count as carried; with certainly less,
/// they overload a recorder.
const CARRIED: f64 = 0.98;

/// Headings of [`rows`].
pub const HEADINGS: [&str; 7] =
    ["Case", "acknowledged", "stored once, in order", "stored/s", "buffer at the end", "CPUs", "memory at most"];

/// The report on a recorder between clients and database.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.recorded = recorded(&group.valid().collect::<Vec<_>>(), &group.trials),
    later_verdicts: |said| verdicts(said.groups),
    tables: |findings| {
        let title = "Through the recorder";
        vec![TextTable { title, headings: &HEADINGS, rows: rows(findings), ..TextTable::default() }]
    },
    ..Instrument::SILENT
};

/// Returns the finding on the trials of a case; `None` if no data on a recorder were kept.
fn recorded(valid: &[&Measurement], all: &[&Measurement]) -> Option<RecordedFinding> {
    let kept: Vec<&RecordedMeasurement> = all.iter().filter_map(|trial| trial.recorded.as_ref()).collect();
    if kept.is_empty() {
        return None;
    }
    let sum = |pick: fn(&RecordedMeasurement) -> u64| kept.iter().map(|one| pick(one)).sum();
    let most = |pick: fn(&RecordedMeasurement) -> u64| kept.iter().map(|one| pick(one)).max().unwrap_or(0);
    let each = |pick: fn(&RecordedMeasurement) -> f64| {
        // Data that are meant to wait do not become records: there is no rate of storing, which is not a rate of 0.
        let stored = valid.iter().filter_map(|trial| trial.recorded.as_ref()).filter(|one| !one.is_kept_waiting);
        stored.map(pick).collect::<Vec<f64>>()
    };
    let cpus: Vec<f64> =
        valid.iter().filter_map(|trial| trial.resources.as_ref()).map(|used| used.mean.recorder_cpu).collect();
    Some(RecordedFinding {
        acknowledged: sum(|one| one.acknowledged),
        missing: sum(|one| one.missing),
        surplus: sum(|one| one.surplus),
        out_of_order: sum(|one| one.out_of_order),
        quarantined: sum(|one| one.quarantined),
        stored_per_s: estimate(&each(|one| one.stored_per_s)),
        buffer_s: estimate(&each(|one| one.buffer_s)),
        spooled_max: most(|one| one.spooled_max),
        recorder_cpu: estimate(&cpus).mean.unwrap_or(0.0),
        memory_max_bytes: most(|one| one.memory_max_bytes),
        recorders: recorders::each(valid),
    })
}

/// Returns a row for each case.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let of_cases = findings.cases.iter().filter_map(|case| Some((case, case.recorded.as_ref()?)));
    let row = |(case, recorded): (&crate::finding::CaseFinding, &RecordedFinding)| {
        let has_recorder = recorded.memory_max_bytes > 0;
        let or_none = |text: String| if has_recorder { text } else { "-".to_owned() };
        vec![
            show_levels_short(&case.levels),
            show_number(recorded.acknowledged as f64),
            kept(recorded),
            recorded.stored_per_s.show(show_number),
            recorded.buffer_s.show(show_seconds),
            or_none(format!("{:.2}", recorded.recorder_cpu)),
            or_none(show_bytes(recorded.memory_max_bytes as f64)),
        ]
    };
    of_cases.map(row).collect()
}

/// The results for one number of sources.
struct Sources {
    count: f64,
    sent_per_s: f64,
    stored: Estimate,
    buffer: Estimate,
}

/// Returns verdicts on the number of sources carried, for each combination of the other levels: the greatest number up to which, by the interval,
/// nearly everything that the sources send is stored while they send it. Empty if no sources send.
fn verdicts(groups: &[CaseTrials<'_>]) -> Vec<Verdict> {
    let mut alternatives: Vec<(Levels, Vec<Sources>)> = Vec::new();
    for group in groups.iter().filter(|group| group.case.settings.load.arrivals == Arrivals::Sources) {
        let valid: Vec<&Measurement> = group.valid().collect();
        let Some(finding) = recorded(&valid, &valid) else { continue };
        let batch = f64::from(group.case.settings.workload.batch);
        let offered: Vec<f64> = valid.iter().map(|trial| trial.offered_per_s() * batch).collect();
        let count = f64::from(group.case.settings.load.clients);
        let sent_per_s = estimate(&offered).mean.unwrap_or(0.0);
        let sources = Sources { count, sent_per_s, stored: finding.stored_per_s, buffer: finding.buffer_s };
        let others: Levels = group
            .case
            .levels
            .iter()
            .filter(|(setting, _)| *setting != SOURCES)
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect();
        match alternatives.iter_mut().find(|(known, _)| *known == others) {
            Some((_, all)) => all.push(sources),
            None => alternatives.push((others, vec![sources])),
        }
    }
    alternatives.iter_mut().filter_map(|(levels, sources)| verdict(levels, sources)).collect()
}

fn verdict(levels: &Levels, sources: &mut [Sources]) -> Option<Verdict> {
    sources.sort_by(|a, b| a.count.total_cmp(&b.count));
    let count = |one: &Sources| format!("{} sources", show_number(one.count));
    let is_carried = |one: &&Sources| one.stored.ci95.is_some_and(|[low, _]| low >= CARRIED * one.sent_per_s);
    let is_too_many = |one: &Sources| one.stored.ci95.is_some_and(|[_, high]| high < CARRIED * one.sent_per_s);
    let carried = sources.iter().take_while(is_carried).last();
    let next = sources.iter().find(|one| !is_carried(one));
    // Between carried and overloaded the trials are not decisive.
    let undecided = next.filter(|one| !is_too_many(one)).map(|one| {
        let remedy = if one.stored.ci95.is_none() { ", because one trial has no interval" } else { "" };
        format!("; whether {} are is undecided{remedy}", count(one))
    });
    let most = sources.last()?;
    let of = if levels.is_empty() { String::new() } else { format!("{}: ", show_levels(levels)) };
    let stored = |one: &Sources| one.stored.show(show_number);
    let found = Found::SourcesCarried {
        levels: levels.clone(),
        carried: carried.map(|carried| carried.count),
        sources: most.count,
        sent_records_per_s: most.sent_per_s,
        stored_records_per_s: most.stored,
        buffer_s: most.buffer,
    };
    let emptied = format!("the buffer is empty {} after the last one ended", most.buffer.show(show_seconds));
    let (sources, stored, n) = (count(most), stored(most), most.stored.n);
    Some(match carried {
        Some(carried) if carried.count == most.count => {
            let answer = format!("{of}all that {sources} send is stored as it comes ({stored} records/s, n = {n})");
            Verdict::new(found, answer).and(emptied)
        }
        carried => {
            let carried = carried.map_or("no number of sources is carried".to_owned(), |carried| {
                format!("{} are carried", count(carried))
            });
            let sent = show_number(most.sent_per_s);
            Verdict::new(found, format!("{of}{carried}{}", undecided.unwrap_or_default())).and(format!(
                "of the {sent} records/s that {sources} send, {stored} are stored at once (n = {n}), and {emptied}"
            ))
        }
    })
}

/// Formats whether the promise was kept.
fn kept(recorded: &RecordedFinding) -> String {
    let wrong = [
        (recorded.missing, "missing"),
        (recorded.surplus, "too many"),
        (recorded.out_of_order, "out of order"),
        (recorded.quarantined, "quarantined"),
    ];
    let wrong: Vec<String> =
        wrong.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if wrong.is_empty() { "all".to_owned() } else { wrong.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::OperationMeasurement;
    use crate::trial::{Case, Settings, Trial};

    fn trial(stored_per_s: f64, missing: u64) -> Measurement {
        let trial = Trial::new(Case::new(Levels::new(), Settings::default()), 0, 1);
        let recorded = RecordedMeasurement { acknowledged: 10, stored_per_s, missing, ..Default::default() };
        Measurement { recorded: Some(recorded), ..Measurement::unmeasured(&trial) }
    }

    fn sources(count: u32, stored_per_s: f64, buffer_s: f64) -> Vec<Measurement> {
        let mut settings = Settings::default();
        settings.load.arrivals = Arrivals::Sources;
        (settings.load.clients, settings.workload.batch) = (count, 1);
        let levels = Levels::from([(SOURCES.to_owned(), count.into()), ("recorder.writers".to_owned(), 1.into())]);
        let trial = Trial::new(Case::new(levels, settings), 0, 1);
        let recorded = RecordedMeasurement { stored_per_s, buffer_s, ..Default::default() };
        let unmeasured = Measurement::unmeasured(&trial);
        let operations = [(
            "insert".to_owned(),
            Box::new(OperationMeasurement { scheduled: u64::from(count) * 20, ..Default::default() }),
        )];
        let one =
            Measurement { recorded: Some(recorded), measured_s: 1.0, operations: operations.into(), ..unmeasured };
        vec![one; 3]
    }

    #[test]
    fn sources_are_carried_up_to_the_first_number_of_which_not_all_is_stored_at_once() {
        let told = |all: &[Vec<Measurement>]| {
            let of = |trials: &'static [Measurement]| CaseTrials {
                case: &trials[0].trial.case,
                discarded: None,
                trials: trials.iter().collect(),
            };
            let told = verdicts(&all.iter().map(|trials| of(trials.clone().leak())).collect::<Vec<_>>());
            told.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (few, some) = (sources(10, 200.0, 0.0), sources(100, 1_990.0, 0.02));
        let told_of_both = told(&[some.clone(), few.clone()]);
        let says = "recorder.writers = 1: all that 100 sources send is stored as it comes (1,990 [1,990, 1,990] records/s, n = 3); the buffer is empty \
                    20 ms [20 ms, 20 ms] after the last one ended";
        assert_eq!(told_of_both, [says]);
        let told_of_all = told(&[few, some, sources(350, 5_000.0, 2.5)]);
        let says = "recorder.writers = 1: 100 sources are carried; of the 7,000 records/s that 350 sources send, 5,000 [5,000, 5,000] are \
                    stored at once (n = 3), and the buffer is empty 2.50 s [2.50 s, 2.50 s] after the last one ended";
        assert_eq!(told_of_all, [says]);
        assert!(told(&[sources(10, 20.0, 9.0)])[0].contains("no number of sources is carried"));
    }

    #[test]
    fn what_is_missing_in_an_invalid_trial_is_told_and_its_figures_are_not() {
        let (good, bad) = (trial(100.0, 0), trial(900.0, 2));
        let finding = recorded(&[&good], &[&good, &bad]).unwrap();
        assert_eq!((finding.acknowledged, finding.missing, finding.stored_per_s.mean), (20, 2, Some(100.0)));
        assert_eq!(kept(&finding), "2 missing");
        assert_eq!(kept(&recorded(&[&good], &[&good]).unwrap()), "all");
        let mut without = trial(1.0, 0);
        without.recorded = None;
        assert_eq!(recorded(&[&without], &[&without]), None);
    }
}
