//! `loadline report`: tables on the terminal and `report.html`, from what is stored alone.

use std::path::PathBuf;

use anyhow::Context;

use super::output::{print, print_json};
use super::{Failure, Status};
use crate::finding::{ClaimVerdict, Findings};
use crate::report;
use crate::store::Run;

/// Reports on runs.
///
/// # Errors
/// [`Failure::Usage`] when one is not a run directory.
pub fn run(runs: &[PathBuf], is_json: bool, is_strict: bool) -> Result<Status, Failure> {
    let mut status = Status::Valid;
    for path in runs {
        let run = Run::open(path).map_err(Failure::usage)?;
        run.notes.iter().for_each(|note| eprintln!("note: {note}"));
        let findings = publish(&run, is_json).map_err(Failure::broken)?;
        status = status.max(status_of(&findings, is_strict));
    }
    Ok(status)
}

/// Writes `report.html` and prints the findings.
pub(super) fn publish(run: &Run, is_json: bool) -> anyhow::Result<Findings> {
    let (study, environment) = (&run.file.study, &run.file.environment);
    let findings = report::analyse(&run.path.display().to_string(), study, environment, &run.measurements);
    let page = report::html(&findings, study, environment, &run.measurements);
    let path = run.path.join("report.html");
    std::fs::write(&path, page).with_context(|| format!("{} cannot be written", path.display()))?;
    if is_json {
        print_json(&findings);
    } else {
        print(&report::terminal(&findings, study));
        print(&format!("\nreport: {}\n", path.display()));
    }
    Ok(findings)
}

/// Whether something is invalid or, when asked to be strict, contradicted.
pub(super) fn status_of(findings: &Findings, is_strict: bool) -> Status {
    let is_contradicted = is_strict && findings.claims.iter().any(|claim| claim.verdict == ClaimVerdict::Contradicted);
    if findings.valid && !is_contradicted { Status::Valid } else { Status::Invalid }
}
