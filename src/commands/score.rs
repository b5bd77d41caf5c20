//! `loadline score`: points for alternatives from runs or from tables, with a verdict.
//!
//! Main function: [`run`]. Invariant: all calculations are in [`crate::report::score`]; this module prints their results.

use std::path::Path;

use anyhow::Context;

use super::output::{print, print_json, table};
use super::{Failure, Refusal, Status, open_run, status_of_files};
use crate::cli::{QueryWeighting, ScoreArguments};
use crate::file;
use crate::report::score::{ScoreNote, score, terminal};
use crate::report::scored::{Roles, Scored, evidence};
use crate::scoring::{Evidence, Weighting, evidence_from_csv};
use crate::store::Run;

/// Largest write weight; beyond it, reads change a score by less than its digits show.
const WRITE_WEIGHT_MAX: f64 = 1e6;

/// Scores alternatives.
///
/// # Errors
/// [`Failure::Usage`] if a file or run cannot be read or does not hold what is scored; [`Failure::Broken`] if the page
/// cannot be written.
pub fn run(arguments: &ScoreArguments, is_json: bool) -> Result<Status, Failure> {
    let write_weight = arguments.write_weight;
    if !(0.0..=WRITE_WEIGHT_MAX).contains(&write_weight) {
        return Err(Failure::refused(Refusal::at(
            "--write-weight",
            format!("{write_weight} is not possible"),
            "write a number from 0 to 1000000, as in 2",
        )));
    }
    let weighting = match arguments.query_weighting {
        QueryWeighting::Query => Weighting::ByQuery,
        QueryWeighting::Case => Weighting::ByCase,
    };
    let (evidence, notes, source, status) = match (&arguments.writes, &arguments.reads) {
        (Some(writes), Some(reads)) => {
            let found = from_tables(writes, reads)?;
            (found, Vec::new(), format!("{}, {}", writes.display(), reads.display()), Status::Valid)
        }
        _ => from_runs(arguments)?,
    };
    let finding = score(&evidence, weighting, write_weight, notes).map_err(Failure::usage)?;
    if is_json {
        print_json(&finding)?;
    } else {
        print(&terminal(&finding, table))?;
    }
    if let Some(path) = &arguments.html {
        let page = crate::report::html::score::page(&finding, &source);
        let written = std::fs::write(path, page).with_context(|| format!("{} cannot be written", path.display()));
        written.map_err(Failure::broken)?;
        if !is_json {
            print(&format!("\nreport: {}\n", path.display()))?;
        }
    }
    Ok(status)
}

fn from_tables(writes: &Path, reads: &Path) -> Result<Evidence, Failure> {
    let read = |path: &Path, columns: &str| {
        let text = file::read_text(path, file::MADE_MOST);
        text.with_context(|| format!("{} cannot be read; name a CSV file with the columns {columns}", path.display()))
            .map_err(Failure::usage)
    };
    let (write_text, read_text) =
        (read(writes, "alternative,throughput")?, read(reads, "alternative,query,case,time_s")?);
    let (write_name, read_name) = (writes.display().to_string(), reads.display().to_string());
    evidence_from_csv((&write_name, &write_text), (&read_name, &read_text)).map_err(Failure::refused)
}

fn from_runs(arguments: &ScoreArguments) -> Result<(Evidence, Vec<ScoreNote>, String, Status), Failure> {
    let runs: Vec<Run> = arguments.runs.iter().map(|path| open_run(path)).collect::<Result<_, _>>()?;
    let defaults = Roles::default();
    let or = |told: &[String], default: Vec<String>| if told.is_empty() { default } else { told.to_vec() };
    let roles = Roles {
        factor: arguments.factor.clone(),
        query: arguments.query.clone(),
        writes: or(&arguments.write_operations, defaults.writes),
        reads: or(&arguments.read_operations, defaults.reads),
    };
    let names: Vec<String> = runs.iter().map(|run| run.path.display().to_string()).collect();
    let scored: Vec<Scored<'_>> = runs
        .iter()
        .zip(&names)
        .map(|(run, name)| Scored { name, study: &run.file.study, measurements: &run.measurements })
        .collect();
    let (evidence, mut notes) =
        evidence(&scored, &roles).map_err(|why| Failure::refused(Refusal::about(names.join(", "), why)))?;
    if runs.iter().any(|run| run.file.study.quick) {
        notes.push(ScoreNote::Rehearsal {});
    }
    let status = runs.iter().map(status_of_files).max().unwrap_or(Status::Valid);
    Ok((evidence, notes, names.join(", "), status))
}
