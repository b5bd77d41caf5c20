//! Reports of synthetic measurements: what is counted, what is said, and that the text stays the same.

use loadline::finding::ClaimVerdict;
use loadline::measurement::Measurement;
use loadline::report::{analyse, csv, html, is_settled, jsonl, terminal};
use loadline::study::{Repeat, RepeatRule};
use serde_json::{Value, json};

#[path = "report/synthetic.rs"]
mod synthetic;

use synthetic::{environment, layouts_and_clients, measurements, study};

/// Compares with a golden file; LOADLINE_WRITE_GOLDEN=1 writes it anew.
#[track_caller]
fn assert_golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LOADLINE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs; LOADLINE_WRITE_GOLDEN=1 writes it anew. It is now:\n{text}");
}

/// Marks the trials of one level in some rounds as invalid.
fn invalidate(trials: &mut [Measurement], layout: &str, rounds: &[u32], reason: &str) {
    for trial in trials.iter_mut() {
        if trial.trial.case.levels["layout.name"] == layout && rounds.contains(&trial.trial.round) {
            trial.invalid_because.push(reason.to_owned());
            trial.errors.insert("disk full".to_owned(), 3);
        }
    }
}

#[test]
fn a_whole_run_reads_as_before() {
    let study = layouts_and_clients();
    let mut trials = measurements(&study, 12);
    invalidate(&mut trials[..18], "star-hot", &[0], "3 of 5,000 operations failed, more than the tolerated share of 0");
    let findings = analyse("runs/synthetic", &study, &environment(), &trials);
    assert_golden("report-terminal.txt", &terminal(&findings, &study));
    let json = serde_json::to_string_pretty(&findings).unwrap();
    assert_golden("report-findings.json", &(json + "\n"));
    let page = html(&findings, &study, &environment(), &trials);
    std::fs::write(format!("{}/report.html", env!("CARGO_TARGET_TMPDIR")), &page).unwrap();
}
