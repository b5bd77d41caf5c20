//! What a writer beside the load wrote to the disk, in sentences.
//!
//! Main functions: [`sentences`], the fastest way to write and what suffered from it; [`notes`], each way; [`written`], of a case. Invariant: a speed counts the time of the last sync, so that the page cache is not taken for the disk.

use crate::finding::Estimate;
use crate::histogram::Histogram;
use crate::measurement::{DiskMeasurement, Measurement};
use crate::report::analyse::{CaseTrials, estimate};
use crate::report::factors::show_levels;
use crate::report::metric::Metric;
use crate::statistics::summary::mean;
use crate::trial::{DiskSettings, DiskSync};
use crate::units::{NS_PER_S, show_bytes, show_seconds};

/// A writer that was told this much faster than the disk was writing into memory.
const CACHED_SHARE: f64 = 1.1;

/// What was written in a case per second; none without a writer.
pub fn written(valid: &[&Measurement]) -> Option<Estimate> {
    let metric = Metric::named("disk_written")?;
    let values: Vec<f64> = valid.iter().filter_map(|trial| metric.of(trial)).filter(|value| *value > 0.0).collect();
    (!values.is_empty()).then(|| estimate(&values))
}

/// For each way of syncing the case in which most was written; then the one in which operations beside it suffered most. Nothing where
/// writers do not differ: then they are a condition, and not the question.
pub fn sentences(groups: &[CaseTrials<'_>]) -> Vec<String> {
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
        let (block, n) = (show_bytes(disk.block_bytes as f64), estimate.n);
        Some(format!("{}, blocks of {block} are written fastest: {}, n = {n}", way(sync), estimate.show(show)))
    });
    fastest.chain(suffering(groups, &writer)).collect()
}

/// The response times of the case where half of the operations waited longest, beside those without a writer.
fn suffering(groups: &[CaseTrials<'_>], writer: &dyn Fn(&CaseTrials<'_>) -> Option<DiskSettings>) -> Option<String> {
    let times = |group: &CaseTrials<'_>| {
        let mut all = Histogram::new();
        group.valid().for_each(|trial| all.merge(&trial.response_times()));
        all
    };
    let mut undisturbed = Histogram::new();
    groups.iter().filter(|group| writer(group).is_none()).for_each(|group| undisturbed.merge(&times(group)));
    let disturbed = groups.iter().filter(|group| writer(group).is_some()).map(|group| (group, times(group)));
    let (group, worst) = disturbed.max_by_key(|(_, times)| times.quantile_ns(0.5))?;
    let show = |times: &Histogram, quantile| show_seconds(times.quantile_ns(quantile) as f64 / NS_PER_S);
    (undisturbed.count() > 0).then(|| {
        format!(
            "operations beside it suffer most with {}: {} (p50) and {} (p99) of response time, {} and {} without a writer",
            show_levels(&group.case.levels),
            show(&worst, 0.5),
            show(&worst, 0.99),
            show(&undisturbed, 0.5),
            show(&undisturbed, 0.99)
        )
    })
}

fn way(sync: DiskSync) -> &'static str {
    match sync {
        DiskSync::Each => "each synced",
        DiskSync::None => "synced at the end of a file",
        DiskSync::Direct => "past the page cache",
    }
}

/// A sentence for each kind of writer; trials of all cases with it count together.
pub fn notes(groups: &[CaseTrials<'_>]) -> Vec<String> {
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
    told.map(|(disk, seen, speeds)| sentence(disk, seen, &metric.show_estimate(speeds))).collect()
}

fn sentence(disk: &DiskSettings, seen: &[&DiskMeasurement], speed: &str) -> String {
    let how = way(disk.sync);
    let mut times = Histogram::new();
    seen.iter().for_each(|each| times.merge(&each.block_time));
    let block = |quantile| show_seconds(times.quantile_ns(quantile) as f64 / NS_PER_S);
    let of = |figure: fn(&DiskMeasurement) -> f64| {
        mean(&seen.iter().map(|each| figure(each)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let (accepted, written) = (of(|each| each.accepted_bytes_per_s), of(|each| each.written_bytes_per_s));
    let cached = if accepted > CACHED_SHARE * written {
        let flush = show_seconds(of(|each| each.flush_s));
        format!("; the page cache took {}/s, and the last sync {flush}", show_bytes(accepted))
    } else {
        String::new()
    };
    let writers = if disk.writers > 1 { format!(" by {} writers", disk.writers) } else { String::new() };
    format!(
        "disk: blocks of {} {how}{writers}: {speed}; a block took {} (p50), {} (p99){cached}",
        show_bytes(disk.block_bytes as f64),
        block(0.5),
        block(0.99)
    )
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
        let text = sentence(&settings, &[&seen], "95.4 MiB/s, n = 1");
        assert!(text.contains("the page cache took 1.86 GiB/s, and the last sync 3 s"), "{text}");
        seen.accepted_bytes_per_s = 1.02e8;
        assert!(!sentence(&settings, &[&seen], "").contains("page cache took"));
    }
}
