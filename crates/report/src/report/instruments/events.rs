//! Reports events that happened to the server during a load: how long it was away, for how long nothing was answered, and whether
//! acknowledged records are gone.
//!
//! Main functions: `events`, from the trials of a case to a finding; `verdicts`, their interpretation; [`rows`], the rows of a table.
//! Invariant: records that were not counted are not reported as present.

use crate::finding::{EventFinding, EventsFinding, Findings, Found, Verdict};
use crate::histogram::Histogram;
use crate::measurement::{EventMeasurement, Measurement};
use crate::report::case_trials::{CaseTrials, time_finding};
use crate::report::factors::show_levels;
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::study::cluster::{clustered_of, nodes_of};
use crate::trial::{EventKind, EventSettings, Settings};
use crate::units::{show_count, show_number, show_seconds};

/// Headings of [`rows`].
pub const HEADINGS: [&str; 9] = [
    "Case",
    "event",
    "at",
    "n",
    "away",
    "nothing completed for",
    "due meanwhile, failed",
    "p99 of the others",
    "acknowledged and gone",
];

/// The report on events.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.events = events(group),
    verdicts: |said| verdicts(said.groups),
    tables: |findings| {
        vec![TextTable { title: "Events", headings: &HEADINGS, rows: rows(findings), ..TextTable::default() }]
    },
    ..Instrument::SILENT
};

/// Returns whether something happens to the servers on purpose, so that throughput and response times are those of the events.
pub fn happen(groups: &[CaseTrials<'_>]) -> bool {
    groups.iter().any(|group| !group.case.settings.events.is_empty())
}

/// Returns whether the servers' data were on a disk of loadline's own, so that their figures are those of that disk.
pub fn is_on_own_disk(groups: &[CaseTrials<'_>]) -> bool {
    groups.iter().any(|group| group.case.settings.events.iter().any(|event| event.what.needs_own_disk()))
}

/// Returns the finding on the events of a case; `None` without events. Times and losses are those of valid trials.
fn events(group: &CaseTrials<'_>) -> Option<EventsFinding> {
    let valid: Vec<&Measurement> = group.valid().collect();
    let is_gone = |trial: &&&Measurement| {
        trial.events.as_ref().is_some_and(|seen| seen.events.iter().any(|event| event.error.is_some()))
    };
    let not_back = group.trials.iter().filter(is_gone).count() as u64;
    let mut finding = EventsFinding { not_back, ..EventsFinding::default() };
    for (trial, whole) in valid.iter().filter_map(|trial| Some((trial.events.as_ref()?, trial))) {
        finding.failed += whole.failed();
        finding.scheduled += whole.operations.values().map(|seen| seen.scheduled).sum::<u64>();
        for (place, event) in trial.events.iter().enumerate() {
            if finding.events.len() <= place {
                finding.events.push(EventFinding {
                    what: event.what.clone(),
                    node: event.node,
                    ..EventFinding::default()
                });
            }
            let found = &mut finding.events[place];
            found.n += 1;
            let n = found.n as f64;
            found.start_s += (event.start_s - found.start_s) / n;
            found.away_s += (event.away_s - found.away_s) / n;
            found.away_max_s = found.away_max_s.max(event.away_s);
            if let Some(unsynced) = event.unsynced {
                let mean = found.unsynced.unwrap_or(0.0);
                found.unsynced = Some(mean + (unsynced as f64 - mean) / n);
            }
            for aside in event.intended.values() {
                found.completed += aside.completed;
                found.failed += aside.failed;
            }
        }
        if let (Some(acknowledged), Some(lost)) = (trial.acknowledged, trial.lost()) {
            finding.counted += 1;
            finding.acknowledged += acknowledged;
            finding.lost += lost;
            finding.hidden += trial.hidden();
            finding.trials_with_loss += u64::from(lost > 0);
            finding.surplus += trial.surplus();
        }
    }
    for (place, found) in finding.events.iter_mut().enumerate() {
        let happened: Vec<&EventMeasurement> =
            valid.iter().filter_map(|trial| trial.events.as_ref()?.events.get(place)).collect();
        let mut meanwhile = Histogram::default();
        for aside in happened.iter().flat_map(|event| event.intended.values()) {
            meanwhile.merge(&aside.response_time);
        }
        found.response_time_s = time_finding(&meanwhile);
        let gaps: Vec<f64> = happened.iter().filter_map(|event| event.gap_s).collect();
        found.gap_s = (!gaps.is_empty()).then(|| gaps.iter().sum::<f64>() / gaps.len() as f64);
        found.gap_max_s = gaps.into_iter().reduce(f64::max);
    }
    (!finding.events.is_empty() || not_back > 0).then_some(finding)
}

/// Returns verdicts on each case with events: their durations, and what is gone.
fn verdicts(groups: &[CaseTrials<'_>]) -> Vec<Verdict> {
    let of_group = |group: &CaseTrials<'_>| {
        let finding = events(group)?;
        let label = show_levels(&group.case.levels);
        let label = if group.case.levels.is_empty() { String::new() } else { format!("{label}: ") };
        let mut parts: Vec<String> = finding.events.iter().map(show_event).collect();
        parts.extend((!finding.events.is_empty()).then(|| match finding.failed {
            0 => "no operation failed".to_owned(),
            failed => {
                let [failed, all] = [failed, finding.scheduled].map(|count| show_number(count as f64));
                format!("{failed} of {all} operations failed")
            }
        }));
        let found = Found::Events {
            levels: group.case.levels.clone(),
            lost: (finding.counted > 0).then_some(finding.lost),
            trials_with_loss: finding.trials_with_loss,
            counted: finding.counted,
            not_back: finding.not_back,
        };
        parts.extend(came_back_empty(&group.case.settings).filter(|_| finding.lost > 0));
        let told = match (finding.not_back, finding.events.is_empty()) {
            (0, _) => show_kept(&finding),
            (times, true) => show_not_back(times, group.trials.len()),
            (times, false) => format!("{}; {}", show_not_back(times, group.trials.len()), show_kept(&finding)),
        };
        let verdict = Verdict::new(found, format!("{label}{told}"));
        Some(if parts.is_empty() { verdict } else { verdict.and(parts.join("; ")) })
    };
    let mut verdicts: Vec<Verdict> = groups.iter().filter_map(of_group).collect();
    // The worst is reported first.
    verdicts.sort_by_key(|verdict| !verdict.tells_of_loss());
    verdicts
}

/// Returns in words that the primary came back without its data, so that its replicas have none either; `None` where it had its data or was not ended.
fn came_back_empty(settings: &Settings) -> Option<String> {
    let clustered = clustered_of(&settings.database).filter(|_| nodes_of(&settings.database) > 1)?;
    let why = clustered.forgets_at_its_end(&settings.database)?;
    let mut until_promoted = settings.events.iter().take_while(|event| event.what != EventKind::Promote);
    let is_ended = |event: &EventSettings| event.node == 1 && [EventKind::Kill, EventKind::Stop].contains(&event.what);
    until_promoted.any(is_ended).then(|| {
        format!(
            "node 1, the primary, came back without data ({why}), and its replicas dropped theirs to have the same; a promoted replica would have kept them"
        )
    })
}

/// Formats `the server did not come back in 2 of 5 trials`.
fn show_not_back(times: u64, of: usize) -> String {
    format!("the server did not come back in {times} of {}", show_count(of as u64, "trial"))
}

/// Formats `nothing is gone of 120,000 records that were acknowledged (5 trials)`.
fn show_kept(finding: &EventsFinding) -> String {
    let EventsFinding { counted, acknowledged, lost, hidden, trials_with_loss, surplus, .. } = finding;
    let number = |count: u64| show_number(count as f64);
    let trials = show_count(*counted, "trial");
    let kept = match (counted, lost) {
        (0, _) => "whether anything is gone was not counted, since the load does not only add records".to_owned(),
        (_, 0) if *hidden > 0 => format!(
            "at most {} are gone of {} records that were acknowledged ({trials}): so many were sent and not answered, and may be there in their place",
            number(*hidden),
            number(*acknowledged)
        ),
        (_, 0) => format!("nothing is gone of {} records that were acknowledged ({trials})", number(*acknowledged)),
        _ => format!(
            "{} of {} records that were acknowledged are gone, in {trials_with_loss} of {trials}",
            number(*lost),
            number(*acknowledged)
        ),
    };
    match surplus {
        0 => kept,
        _ => format!("{kept}; {} are there that were refused", number(*surplus)),
    }
}

/// Formats `killed at 3 s it let clients in again after 1.2 s (longest 1.4 s, n = 5), and nothing was completed for 1.9 s (longest 2.1 s)`.
fn show_event(event: &EventFinding) -> String {
    let at = show_seconds(event.start_s);
    let (away, longest, n) = (show_seconds(event.away_s), show_seconds(event.away_max_s), event.n);
    let happened = match event.what.as_str() {
        "promote" => format!("the primary killed at {at}, its replica took writes after {away}"),
        "pause" => format!("paused at {at} it stood still for {away}"),
        "stop" => format!("stopped at {at} it let clients in again after {away}"),
        "slow-disk" => format!("its disk was slow from {at} on, for {away}"),
        "full-disk" => format!("its disk was full from {at} on, for {away}"),
        "cut-link" => format!("its link was cut at {at}, for {away}"),
        "cut-node" => format!("cut off from the other nodes at {at}, all had the same data again after {away}"),
        "cut-power" => {
            let unsynced = show_number(event.unsynced.unwrap_or_default());
            format!(
                "its power cut at {at}, with {unsynced} blocks and names not synced, it let clients in again after {away}"
            )
        }
        _ => format!("killed at {at} it let clients in again after {away}"),
    };
    let gap = event.gap_s.zip(event.gap_max_s).map_or(String::new(), |(gap_s, gap_max_s)| {
        format!(", and nothing was completed for {} (longest {})", show_seconds(gap_s), show_seconds(gap_max_s))
    });
    let times = event.response_time_s;
    let slowly = times.p50.zip(times.p99).filter(|_| event.what == "slow-disk").map_or(String::new(), |(p50, p99)| {
        format!("; operations due meanwhile took {} (p50) and {} (p99)", show_seconds(p50), show_seconds(p99))
    });
    let node = event.node.filter(|_| event.what != "promote");
    let node = node.map_or(String::new(), |number| format!("node {number}, "));
    format!("{node}{happened} (longest {longest}, n = {n}){gap}{slowly}")
}

/// Returns a row for each event of each case.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (case, found) in findings.cases.iter().filter_map(|case| Some((case, case.events.as_ref()?))) {
        for event in &found.events {
            let gone = match found.counted {
                0 => "not counted".to_owned(),
                _ => format!("{} of {}", show_number(found.lost as f64), show_number(found.acknowledged as f64)),
            };
            rows.push(vec![
                show_levels(&case.levels),
                event.node.map_or(event.what.clone(), |number| format!("{} (node {number})", event.what)),
                show_seconds(event.start_s),
                event.n.to_string(),
                show_seconds(event.away_s),
                event.gap_s.map_or("-".to_owned(), show_seconds),
                show_number(event.failed as f64),
                event.response_time_s.p99.map_or("-".to_owned(), show_seconds),
                gone,
            ]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{AsideMeasurement, EventsMeasurement};
    use crate::reason::Reason;
    use crate::trial::{Case, Levels, Trial};

    fn trial(away_s: f64, gap_s: f64, found: Option<u64>) -> Measurement {
        let trial = Trial::new(Case::new(Levels::new(), Settings::default()), 0, 1);
        let mut measurement = Measurement::unmeasured(&trial);
        let aside = AsideMeasurement { completed: 3, failed: 2, ..AsideMeasurement::default() };
        let event = EventMeasurement {
            what: "kill".to_owned(),
            start_s: 3.0,
            away_s,
            gap_s: Some(gap_s),
            intended: [("insert".to_owned(), aside)].into(),
            ..EventMeasurement::default()
        };
        let acknowledged = found.map(|_| 1_000);
        measurement.events = Some(EventsMeasurement {
            events: vec![event],
            acknowledged,
            found,
            unknown: 4,
            unknown_found: found.map(|found| found.saturating_sub(1_000).min(4)),
        });
        measurement
    }

    fn said(trials: &[Measurement]) -> String {
        let group = CaseTrials { case: &trials[0].trial.case, discarded: None, trials: trials.iter().collect() };
        verdicts(&[group])[0].to_string()
    }

    #[test]
    fn what_was_kept_and_how_long_it_took_is_told_in_a_sentence() {
        let text = said(&[trial(1.0, 1.5, Some(1_004)), trial(2.0, 2.5, Some(1_000))]);
        assert!(
            text.starts_with("nothing is gone of 2,000 records that were acknowledged (2 trials); killed at 3 s"),
            "{text}"
        );
        assert!(
            text.contains("after 1.50 s (longest 2 s, n = 2), and nothing was completed for 2 s (longest 2.50 s)"),
            "{text}"
        );
        assert!(text.ends_with("; no operation failed"), "{text}");
    }

    #[test]
    fn the_node_that_an_event_happened_to_is_named() {
        let mut of_node = trial(1.0, 1.5, Some(1_000));
        let event = &mut of_node.events.as_mut().unwrap().events[0];
        event.node = Some(2);
        let text = said(&[of_node.clone()]);
        assert!(text.contains("; node 2, killed at 3 s it let clients in again after 1 s"), "{text}");
        let event = &mut of_node.events.as_mut().unwrap().events[0];
        event.what = "cut-node".to_owned();
        let text = said(&[of_node.clone()]);
        assert!(
            text.contains("; node 2, cut off from the other nodes at 3 s, all had the same data again after 1 s"),
            "{text}"
        );
        let event = &mut of_node.events.as_mut().unwrap().events[0];
        (event.what, event.node) = ("promote".to_owned(), Some(1));
        let text = said(&[of_node]);
        assert!(text.contains("; the primary killed at 3 s, its replica took writes after 1 s"), "{text}");
    }

    #[test]
    fn a_primary_that_came_back_empty_is_told_where_something_is_gone() {
        let told = |config: &[(&str, &str)], events: &[EventKind], found| {
            let mut settings = Settings::default();
            (settings.database.name, settings.database.nodes) = ("redis".to_owned(), Some(2));
            let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            settings.database.config = config.collect();
            settings.events = events.iter().map(|what| EventSettings::new(1.0, *what)).collect();
            let mut ended = trial(1.0, 1.5, Some(found));
            ended.trial = Trial::new(Case::new(Levels::new(), settings), 0, 1);
            said(&[ended])
        };
        let (memory, killed) = ([("appendonly", "no")], [EventKind::Kill]);
        let text = told(&memory, &killed, 990);
        let end = "(appendonly is no), and its replicas dropped theirs to have the same; a promoted replica would have kept them";
        assert!(text.ends_with(end), "{text}");
        let is_told = |text: String| text.contains("came back without data");
        assert!(!is_told(told(&[], &killed, 990)), "it has a log");
        assert!(!is_told(told(&memory, &[EventKind::Promote, EventKind::Kill], 990)), "node 1 was not the primary");
        assert!(!is_told(told(&memory, &killed, 1_004)), "nothing is gone");
    }

    #[test]
    fn what_is_gone_is_told_first_and_what_nobody_counted_is_not_called_there() {
        let text = said(&[trial(1.0, 1.5, Some(990)), trial(2.0, 2.5, Some(1_005))]);
        assert!(
            text.starts_with("10 of 2,000 records that were acknowledged are gone, in 1 of 2 trials; 1 are there that"),
            "{text}"
        );
        let text = said(&[trial(1.0, 1.5, None)]);
        assert!(text.starts_with("whether anything is gone was not counted"), "{text}");
    }

    #[test]
    fn records_that_nobody_looked_for_may_stand_for_others_and_a_server_that_is_gone_is_told_first() {
        let mut unseen = trial(1.0, 1.5, Some(1_002));
        unseen.events.as_mut().unwrap().unknown_found = None;
        let text = said(&[unseen]);
        assert!(text.starts_with("at most 4 are gone of 1,000 records that were acknowledged (1 trial)"), "{text}");

        let mut gone = trial(1.0, 1.5, Some(1_000));
        gone.events.as_mut().unwrap().events[0].error = Some("it ended at once".to_owned());
        gone.invalid_because = vec![Reason::NotCarriedOut { error: "it ended at once".to_owned() }];
        let text = said(&[trial(1.0, 1.5, Some(1_000)), gone.clone()]);
        assert!(text.starts_with("the server did not come back in 1 of 2 trials; nothing is gone of 1,000"), "{text}");
        assert_eq!(said(&[gone]), "the server did not come back in 1 of 1 trial");
    }
}
