//! Reports each of several recorders between clients and database, and the one that differs from the others.
//!
//! Main functions: [`each`], from the trials of a case to findings; [`rows`], of their table. Invariant: a recorder that is alone has no row.

use crate::finding::{Findings, Note, RecorderFinding};
use crate::measurement::{Measurement, RecorderMeasurement, outlying_recorder};
use crate::report::case_trials::{CaseTrials, estimate};
use crate::report::factors::show_levels_short;
use crate::report::instruments::instrument::{Instrument, TextTable};
use crate::units::{show_bytes, show_number};

/// Headings of [`rows`].
pub const HEADINGS: [&str; 6] = ["Case", "recorder", "stored/s", "parts", "CPUs", "memory at most"];

/// The report on several recorders.
pub const INSTRUMENT: Instrument = Instrument {
    notes,
    tables: |findings| {
        let title = "Each recorder";
        vec![TextTable { title, headings: &HEADINGS, rows: rows(findings), ..TextTable::default() }]
    },
    ..Instrument::SILENT
};

/// Returns the findings on each recorder of the trials of a case; empty if there was one.
pub fn each(valid: &[&Measurement]) -> Vec<RecorderFinding> {
    let trials: Vec<&Vec<RecorderMeasurement>> =
        valid.iter().filter_map(|trial| Some(&trial.recorded.as_ref()?.recorders)).collect();
    let count = trials.iter().map(|recorders| recorders.len()).max().unwrap_or(0);
    let of = |place: usize| {
        let seen: Vec<&RecorderMeasurement> = trials.iter().filter_map(|recorders| recorders.get(place)).collect();
        let mean =
            |figure: fn(&RecorderMeasurement) -> f64| estimate(&seen.iter().map(|one| figure(one)).collect::<Vec<_>>());
        RecorderFinding {
            stored_per_s: mean(|one| one.stored_per_s),
            recorder_cpu: mean(|one| one.recorder_cpu).mean.unwrap_or(0.0),
            memory_max_bytes: seen.iter().map(|one| one.memory_max_bytes).max().unwrap_or(0),
            parts: mean(|one| one.parts as f64).mean.unwrap_or(0.0),
        }
    };
    (0..count).map(of).collect()
}

/// Returns a row for each recorder of each case with several.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for case in &findings.cases {
        let recorders = case.recorded.iter().flat_map(|recorded| (1..).zip(&recorded.recorders));
        for (number, one) in recorders {
            let number: usize = number;
            rows.push(vec![
                show_levels_short(&case.levels),
                number.to_string(),
                one.stored_per_s.show(show_number),
                if one.parts > 0.0 { show_number(one.parts) } else { "-".to_owned() },
                format!("{:.2}", one.recorder_cpu),
                show_bytes(one.memory_max_bytes as f64),
            ]);
        }
    }
    rows
}

/// Returns what is remarkable about recorders: the one that differs most from the others of its case, and parts of a stream that moved.
fn notes(groups: &[CaseTrials<'_>]) -> Vec<Note> {
    let mut differing: Vec<(&CaseTrials<'_>, usize, f64)> = Vec::new();
    let (mut moved, mut all) = (Vec::new(), 0);
    for group in groups {
        let valid: Vec<&Measurement> = group.valid().collect();
        let stored = each(&valid).into_iter().map(|one| one.stored_per_s.mean.unwrap_or(0.0));
        differing.extend(outlying_recorder(stored).map(|(place, ratio)| (group, place, ratio)));
        if group.case.settings.recorded().is_some_and(|recorder| recorder.is_shared()) {
            let recorded = valid.iter().filter_map(|trial| trial.recorded.as_ref());
            all += valid.len();
            moved.extend(recorded.map(|recorded| recorded.parts_moved).filter(|moved| *moved > 0));
        }
    }
    let distance = |(_, _, ratio): &(&CaseTrials<'_>, usize, f64)| ratio.ln().abs();
    let farthest = differing.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)));
    let differs = farthest.map(|(group, place, ratio)| Note::RecorderDiffers {
        levels: group.case.levels.clone(),
        recorder: place + 1,
        ratio: *ratio,
        further: differing.len() - 1,
    });
    let most = moved.iter().copied().max();
    let moved = most.map(|most| Note::PartsMoved { trials: moved.len(), all, most });
    differs.into_iter().chain(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::RecordedMeasurement;
    use crate::trial::{Case, Levels, RecorderBuffer, RecorderPath, RecorderSettings, Settings, Trial};

    fn trial(stored_per_s: &[f64], parts_moved: u64) -> Measurement {
        let (path, through) = (RecorderPath::Http, RecorderBuffer::Stream);
        let recorder = Some(RecorderSettings { path, through, ..RecorderSettings::default() });
        let case = Case::new(Levels::new(), Settings { recorder, ..Settings::default() });
        let one = |stored_per_s: &f64| RecorderMeasurement {
            stored_per_s: *stored_per_s,
            recorder_cpu: 0.5,
            memory_max_bytes: 1 << 20,
            parts: 4,
            ..RecorderMeasurement::default()
        };
        let recorders = stored_per_s.iter().map(one).collect();
        let recorded = Some(RecordedMeasurement { recorders, parts_moved, ..RecordedMeasurement::default() });
        Measurement { recorded, ..Measurement::unmeasured(&Trial::new(case, 0, 1)) }
    }

    fn told(trials: &[Measurement]) -> Vec<String> {
        let group = CaseTrials { case: &trials[0].trial.case, discarded: None, trials: trials.iter().collect() };
        notes(&[group]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_recorder_that_stores_least_is_named_and_parts_that_moved_are_counted() {
        assert_eq!(told(&[trial(&[100.0, 110.0, 90.0], 0)]), Vec::<String>::new());
        let notes = told(&[trial(&[100.0, 110.0, 40.0], 0), trial(&[100.0, 110.0, 60.0], 3)]);
        assert!(
            notes[0].contains("recorder 3 stored 0.45 times as many records per second as the others"),
            "{notes:?}"
        );
        assert!(notes[1].starts_with("in 1 of 2 trials, parts of the stream went to another recorder"), "{notes:?}");
        assert!(notes[1].contains("at most 3 in a trial"), "{notes:?}");
    }

    #[test]
    fn each_recorder_has_a_row_with_the_means_of_its_trials() {
        let trials = [trial(&[100.0, 300.0], 0), trial(&[200.0, 400.0], 0)];
        let found = each(&trials.iter().collect::<Vec<_>>());
        let means: Vec<_> = found.iter().map(|one| one.stored_per_s.mean).collect();
        assert_eq!((means, found[1].recorder_cpu, found[1].parts), (vec![Some(150.0), Some(350.0)], 0.5, 4.0));
        assert_eq!(each(&[&trial(&[], 0)]), [], "one that is alone has no row");
    }
}
