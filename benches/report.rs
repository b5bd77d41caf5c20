//! Reads runs of 1,000, 5,000 and 20,000 trials and reports on them, as `loadline report` does: seconds, and the most memory that was used.
//!
//! The trials are made up, 18 cases of them, with histograms, series and clients as a run has them. Memory is the peak of the process, which
//! only rises: the sizes come in rising order, and making the trials keeps one case at a time.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should end there")]

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use loadline::report;
use loadline::store::{Run, RunDirectory};
use loadline::trial::Trial;

#[path = "../tests/report/synthetic.rs"]
mod synthetic;

const SIZES: [usize; 3] = [1_000, 5_000, 20_000];

fn main() {
    for trials in SIZES {
        let directory = std::env::temp_dir().join(format!("loadline-bench-report-{}", std::process::id()));
        write_run(&directory, trials);
        let begun = Instant::now();
        let run = Run::open(&directory).unwrap();
        let read_s = begun.elapsed().as_secs_f64();
        let findings = report::analyse("bench", &run.file.study, &run.file.environment, &run.measurements);
        let page = report::html(&findings, &run.file.study, &run.file.environment, &run.measurements);
        let all_s = begun.elapsed().as_secs_f64();
        println!(
            "{trials} trials: {all_s:.2} s, {read_s:.2} s of them for reading; at most {:.0} MB; page {:.1} MB",
            peak_bytes() / 1e6,
            page.len() as f64 / 1e6
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

/// A run directory of so many trials, written without the sync that each has in a run.
fn write_run(directory: &Path, trials: usize) {
    let study = synthetic::layouts_and_clients();
    RunDirectory::create(directory, &study, synthetic::environment(), "2026-01-01T00:00:00Z").unwrap();
    let mut lines = std::io::BufWriter::new(std::fs::File::create(directory.join("trials.jsonl")).unwrap());
    let rounds = trials.div_ceil(study.cases.len()) as u32;
    let mut left = trials;
    for round in 0..rounds {
        for mut trial in synthetic::measurements(&study, 1).into_iter().take(left) {
            left -= 1;
            trial.trial = Trial::new(trial.trial.case, round, u64::from(round));
            trial.measured_s *= 1.0 + 0.01 * f64::from(round % 7);
            serde_json::to_writer(&mut lines, &trial).unwrap();
            lines.write_all(b"\n").unwrap();
        }
    }
}

/// The most memory that this process has used.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() * 1024.0
}
