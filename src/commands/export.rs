//! `loadline export`: a run as files that other tools read.

use std::path::Path;

use anyhow::Context;

use super::output::{note, print, print_json};
use super::{Failure, Status};
use crate::cli::ExportFormat;
use crate::report::export;
use crate::store::Run;

/// Writes a run's trials into a directory, which is made if it is not there.
///
/// # Errors
/// [`Failure::Usage`] when it is no run, or the format is not available; [`Failure::Broken`] when a file cannot be written.
pub fn run(run: &Path, format: ExportFormat, out: &Path, is_json: bool) -> Result<Status, Failure> {
    let run = Run::open(run).map_err(Failure::usage)?;
    run.notes.iter().for_each(|line| note(&format!("note: {line}")));
    let (name, content) = match format {
        ExportFormat::Csv => ("trials.csv", export::csv(&run.measurements)),
        ExportFormat::Jsonl => ("trials.jsonl", export::jsonl(&run.measurements)),
        ExportFormat::Parquet => {
            return Err(Failure::Usage("--format parquet is not available yet; available: csv, jsonl".to_owned()));
        }
    };
    let path = out.join(name);
    if path.exists() {
        return Err(Failure::Usage(format!("{} exists already; name another directory with --out", path.display())));
    }
    let written = std::fs::create_dir_all(out).and_then(|()| std::fs::write(&path, content));
    written.with_context(|| format!("{} cannot be written", path.display())).map_err(Failure::broken)?;
    if is_json {
        print_json(&serde_json::json!({ "files": [path.display().to_string()] }))?;
    } else {
        print(&format!("{}\n", path.display()))?;
    }
    Ok(Status::Valid)
}
