//! Reads runs of 2,500 to 20,000 trials and reports on them, as `loadline report` does: seconds, and the most memory that was used.
//!
//! The trials are made up, in the shapes of [`shapes::SHAPES`], with histograms, series and clients as a run has them. Each report is made by a
//! process of its own, so that memory is that of this report. `cargo bench --bench report` does all shapes and sizes; `-- search 5000` one.
//! `-- write DIRECTORY search 5000` keeps the run, for `loadline report` itself; `-- read DIRECTORY` writes beside it what was found.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should end there")]

#[path = "../../tests/report/synthetic.rs"]
mod synthetic;

mod shapes;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use loadline::report;
use loadline::store::Run;
use loadline::study::goal;

const SIZES: [usize; 4] = [2_500, 5_000, 10_000, 20_000];

fn main() {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["read", directory] => read(Path::new(directory)),
        ["write", directory, shape, trials] => shapes::write_run(Path::new(directory), shape, trials.parse().unwrap()),
        [shape, trials] => measure(shape, trials.parse().unwrap()),
        _ => shapes::SHAPES.iter().for_each(|shape| SIZES.iter().for_each(|trials| measure(shape, *trials))),
    }
}

/// Writes a run, and has another process report on it.
fn measure(shape: &str, trials: usize) {
    let directory = std::env::temp_dir().join(format!("loadline-bench-report-{}", std::process::id()));
    shapes::write_run(&directory, shape, trials);
    print!("{shape}, {trials} trials: ");
    std::io::Write::flush(&mut std::io::stdout()).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap()).arg("read").arg(&directory).status().unwrap();
    assert!(ended.success());
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Reports on a run, as `loadline report` does.
fn read(directory: &Path) {
    let begun = Instant::now();
    let run = Run::open(directory).unwrap();
    let read_s = begun.elapsed().as_secs_f64();
    let findings = report::analyse("bench", &run.file.study, &run.file.environment, &run.measurements);
    let analysed_s = begun.elapsed().as_secs_f64();
    let study = goal::unfold(&run.file.study, &run.measurements);
    let text = report::terminal::terminal_of(&findings, &study, 120);
    let page = report::html(&findings, &study, &run.file.environment, &run.measurements);
    println!(
        "{:.2} s ({read_s:.2} s reading, {:.2} s analysing, {:.2} s writing); at most {:.0} MB; page {:.1} MB",
        begun.elapsed().as_secs_f64(),
        analysed_s - read_s,
        begun.elapsed().as_secs_f64() - analysed_s,
        peak_bytes() / 1e6,
        page.len() as f64 / 1e6
    );
    std::fs::write(directory.join("findings.json"), serde_json::to_string_pretty(&findings).unwrap()).unwrap();
    std::fs::write(directory.join("report.txt"), text).unwrap();
    std::fs::write(directory.join("report.html"), page).unwrap();
}

/// The most memory that this process has used.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() * 1024.0
}
