//! `loadline report`: tables on the terminal and `report.html`, from stored data alone.

use anyhow::Context;
use serde::Serialize;

use super::output::{print, print_json, print_report};
use super::{Failure, Status, screen, status_of_files};
use crate::finding::{ClaimVerdict, Findings};
use crate::report;
use crate::store::Run;
use crate::study::goal;

/// The document of several runs.
#[derive(Serialize)]
struct Several<'a> {
    runs: &'a [Findings],
}

/// Prints the findings of runs, then writes a `report.html` into each, in this order so that the figures appear even if the disk is full. As JSON it is one document: the
/// findings of the only run, or an object with those of several.
///
/// # Errors
/// [`Failure::Broken`] if something cannot be written.
pub fn publish(runs: &[Run], is_json: bool, is_strict: bool) -> Result<Status, Failure> {
    let analyse = |run: &Run| {
        let (study, environment) = (&run.file.study, &run.file.environment);
        let mut findings = report::analyse(&run.path.display().to_string(), study, environment, &run.measurements);
        findings.valid &= run.left_out.is_empty();
        findings
    };
    let all: Vec<Findings> = runs.iter().map(analyse).collect();
    match &all[..] {
        [only] if is_json => print_json(only)?,
        several if is_json => print_json(&Several { runs: several })?,
        _ => {
            let texts = runs.iter().zip(&all).map(|(run, findings)| {
                let study = goal::unfold(&run.file.study, &run.measurements);
                report::terminal::terminal_of(findings, &study, screen::width())
            });
            print_report(&texts.collect::<Vec<_>>().join("\n\n"))?;
        }
    }
    let mut paths = String::new();
    for (run, findings) in runs.iter().zip(&all) {
        let (study, environment) = (goal::unfold(&run.file.study, &run.measurements), &run.file.environment);
        let page = report::html(findings, &study, environment, &run.measurements);
        let path = run.path.join("report.html");
        let written = std::fs::write(&path, page).with_context(|| format!("{} cannot be written", path.display()));
        written.map_err(Failure::broken)?;
        paths.push_str(&format!("\nreport: {}", path.display()));
    }
    if !is_json {
        print(&format!("{paths}\n"))?;
    }
    let of_files = runs.iter().map(status_of_files);
    Ok(all.iter().map(|findings| status_of(findings, is_strict)).chain(of_files).max().unwrap_or(Status::Valid))
}

/// Returns the status: invalid if something is invalid or, in strict mode, a claim is contradicted.
fn status_of(findings: &Findings, is_strict: bool) -> Status {
    let is_contradicted = is_strict && findings.claims.iter().any(|claim| claim.verdict == ClaimVerdict::Contradicted);
    if findings.valid && !is_contradicted { Status::Valid } else { Status::Invalid }
}
