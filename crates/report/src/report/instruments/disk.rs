//! Reports what a writer beside the load wrote to the disk.
//!
//! Main functions: [`verdicts`], on the fastest way to write and its effect on the load; [`notes`], on each way; [`written`], on a case.
//! Invariant: a speed includes the time of the last sync, so that the page cache is not mistaken for the disk.

use crate::finding::{Cached, Estimate, Found, Note, Verdict};
use crate::histogram::Histogram;
use crate::measurement::{DiskMeasurement, Measurement};
use crate::metric::Metric;
use crate::report::case_trials::{CaseTrials, estimate};
use crate::report::factors::show_levels;
use crate::report::instruments::instrument::Instrument;
use crate::statistics::summary::mean;
use crate::trial::{DiskSettings, DiskSync};
use crate::units::{NS_PER_S, show_bytes, show_seconds};

/// The ratio of the speed accepted from a writer to the speed written to the disk, above which the writer wrote into memory.
const CACHED_SHARE: f64 = 1.1;

/// The report on a writer beside the load.
pub const INSTRUMENT: Instrument = Instrument {
    find: |group, finding| finding.disk_written_bytes_per_s = written(&group.valid().collect::<Vec<_>>()),
    verdicts: |said| verdicts(said.groups),
    notes,
    ..Instrument::SILENT
};

/// Returns the bytes per second that were written in a case; `None` without a writer.
fn written(valid: &[&Measurement]) -> Option<Estimate> {
    let metric = Metric::named("disk_written")?;
    let values: Vec<f64> = valid.iter().filter_map(|trial| metric.of(trial)).filter(|value| *value > 0.0).collect();
    (!values.is_empty()).then(|| estimate(&values))
}

/// Returns, for each way of syncing, the case in which most was written, then the case in which operations beside the writer suffered most.
/// Empty if all writers are alike: then the writer is a condition instead of the question.
fn verdicts(groups: &[CaseTrials<'_>]) -> Vec<Verdict> {
    let writer = |group: &CaseTrials<'_>| group.case.settings.disk.clone().filter(|disk| disk.block_bytes > 0);
    let cases: Vec<(&CaseTrials<'_>, DiskSettings, Estimate)> = groups
        .iter()
        .filter_map(|group| Some((group, writer(group)?, written(&group.valid().collect::<Vec<_>>())?)))
        .collect();
    if cases.iter().all(|(_, disk, _)| *disk == cases[0].1) {
        return Vec::new();
    }
    let speed = |case: &&(&CaseTrials<'_>, DiskSettings, Estimate)| case.2.mean.unwrap_or(0.0);
    let fastest = [DiskSync::Each, DiskSync::None, DiskSync::Direct].into_iter().filter_map(|sync| {
        let own = cases.iter().filter(|(_, disk, _)| disk.sync == sync);
        let (_, disk, estimate) = own.max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        let show = |bytes_per_s| format!("{}/s", show_bytes(bytes_per_s));
        let (block, n, sync) = (show_bytes(disk.block_bytes as f64), estimate.n, way(sync));
        let found = Found::DiskFastest { sync, block_bytes: disk.block_bytes, written_bytes_per_s: *estimate };
        let answer = format!("{sync}, blocks of {block} are written fastest");
        Some(Verdict::new(found, answer).because(format!("{}, n = {n}", estimate.show(show))))
    });
    fastest.chain(suffering(groups, &writer)).collect()
}

/// Compares the response times of the case with the longest median with those of cases without a writer.
fn suffering(groups: &[CaseTrials<'_>], writer: &dyn Fn(&CaseTrials<'_>) -> Option<DiskSettings>) -> Option<Verdict> {
    let times = |group: &CaseTrials<'_>| {
        let mut all = Histogram::new();
        group.valid().for_each(|trial| all.merge(&trial.response_times()));
        all
    };
    let mut undisturbed = Histogram::new();
    groups.iter().filter(|group| writer(group).is_none()).for_each(|group| undisturbed.merge(&times(group)));
    let disturbed = groups.iter().filter(|group| writer(group).is_some()).map(|group| (group, times(group)));
    let (group, worst) = disturbed.max_by_key(|(_, times)| times.quantile_ns(0.5))?;
    let quantiles_s = |times: &Histogram| [0.5, 0.99].map(|quantile| times.quantile_ns(quantile) as f64 / NS_PER_S);
    (undisturbed.count() > 0).then(|| {
        let (response_time_s, undisturbed_s) = (quantiles_s(&worst), quantiles_s(&undisturbed));
        let ([p50, p99], [p50_without, p99_without]) =
            (response_time_s.map(show_seconds), undisturbed_s.map(show_seconds));
        let levels = group.case.levels.clone();
        let answer = format!("operations beside it suffer most with {}", show_levels(&levels));
        Verdict::new(Found::DiskSuffering { levels, response_time_s, undisturbed_s }, answer).because(format!(
            "{p50} (p50) and {p99} (p99) of response time, {p50_without} and {p99_without} without a writer"
        ))
    })
}

fn way(sync: DiskSync) -> &'static str {
    match sync {
        DiskSync::Each => "each synced",
        DiskSync::None => "synced at the end of a file",
        DiskSync::Direct => "past the page cache",
    }
}

/// Returns a note for each kind of writer; the trials of all cases with it count together.
fn notes(groups: &[CaseTrials<'_>]) -> Vec<Note> {
    let Some(metric) = Metric::named("disk_written") else { return Vec::new() };
    let mut writers: Vec<(&DiskSettings, Vec<&DiskMeasurement>, Vec<f64>)> = Vec::new();
    for group in groups {
        let Some(disk) = group.case.settings.disk.as_ref().filter(|disk| disk.block_bytes > 0) else { continue };
        let seen: Vec<&DiskMeasurement> = group.valid().filter_map(|trial| trial.disk.as_ref()).collect();
        let speeds: Vec<f64> = group.valid().filter_map(|trial| metric.of(trial)).collect();
        match writers.iter_mut().find(|(known, _, _)| *known == disk) {
            Some((_, all, values)) => {
                all.extend(seen);
                values.extend(speeds);
            }
            None => writers.push((disk, seen, speeds)),
        }
    }
    let told = writers.iter().filter(|(_, seen, _)| !seen.is_empty());
    told.map(|(disk, seen, speeds)| note(disk, seen, metric.show_estimate(speeds))).collect()
}

fn note(disk: &DiskSettings, seen: &[&DiskMeasurement], speed: String) -> Note {
    let mut times = Histogram::new();
    seen.iter().for_each(|each| times.merge(&each.block_time));
    let block_s = |quantile| times.quantile_ns(quantile) as f64 / NS_PER_S;
    let of = |figure: fn(&DiskMeasurement) -> f64| {
        mean(&seen.iter().map(|each| figure(each)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let accepted_bytes_per_s = of(|each| each.accepted_bytes_per_s);
    let written_bytes_per_s = of(|each| each.written_bytes_per_s);
    let cached = Cached { accepted_bytes_per_s, flush_s: of(|each| each.flush_s) };
    Note::DiskWriter {
        sync: way(disk.sync),
        block_bytes: disk.block_bytes,
        writers: disk.writers,
        written_bytes_per_s,
        speed,
        block_p50_s: block_s(0.5),
        block_p99_s: block_s(0.99),
        cached: (accepted_bytes_per_s > CACHED_SHARE * written_bytes_per_s).then_some(cached),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_cache_is_told_from_the_disk() {
        let settings = DiskSettings { block_bytes: 1 << 20, sync: DiskSync::None, file_bytes: 1 << 30, writers: 1 };
        let mut seen =
            DiskMeasurement { accepted_bytes_per_s: 2e9, written_bytes_per_s: 1e8, flush_s: 3.0, ..Default::default() };
        seen.block_time.record(500_000);
        let text = note(&settings, &[&seen], "95.4 MiB/s, n = 1".to_owned()).to_string();
        assert!(text.contains("the page cache took 1.86 GiB/s, and the last sync 3 s"), "{text}");
        seen.accepted_bytes_per_s = 1.02e8;
        assert!(matches!(note(&settings, &[&seen], String::new()), Note::DiskWriter { cached: None, .. }));
    }
}
