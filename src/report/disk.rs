//! What a writer beside the load wrote to the disk, in sentences.
//!
//! Main function: [`notes`]. Invariant: a speed counts the time of the last sync, so that the page cache is not taken for the disk.

use crate::histogram::Histogram;
use crate::measurement::DiskMeasurement;
use crate::report::analyse::CaseTrials;
use crate::report::metric::Metric;
use crate::statistics::summary::mean;
use crate::trial::{DiskSettings, DiskSync};
use crate::units::{NS_PER_S, show_bytes, show_seconds};

/// A writer that was told this much faster than the disk was writing into memory.
const CACHED_SHARE: f64 = 1.1;

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
    let how = match disk.sync {
        DiskSync::Each => "each synced",
        DiskSync::None => "synced at the end",
        DiskSync::Direct => "past the page cache",
    };
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
