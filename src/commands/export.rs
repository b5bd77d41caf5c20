//! `loadline export`: a run as files that other tools read.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;

use super::output::{note, print, print_json};
use super::{Failure, Status};
use crate::cli::ExportFormat;
use crate::report::export;
use crate::report::samples::{self, Rows};
use crate::store::{Run, SampleBlock};

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
    let mut paths = vec![out.join(name)];
    if run.measurements.iter().any(|measurement| measurement.samples.is_some()) {
        paths.push(out.join(if format == ExportFormat::Csv { "samples.csv" } else { "samples.jsonl" }));
    }
    if let Some(path) = paths.iter().find(|path| path.exists()) {
        return Err(Failure::Usage(format!("{} exists already; name another directory with --out", path.display())));
    }
    let unwritten = |path: &Path| format!("{} cannot be written", path.display());
    let written = std::fs::create_dir_all(out).and_then(|()| std::fs::write(&paths[0], content));
    written.with_context(|| unwritten(&paths[0])).map_err(Failure::broken)?;
    if let Some(path) = paths.get(1) {
        let file = File::create(path).with_context(|| unwritten(path)).map_err(Failure::broken)?;
        write_samples(&run, format, BufWriter::new(file), &unwritten(path))?;
    }
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if is_json {
        print_json(&serde_json::json!({ "files": names }))?;
    } else {
        print(&format!("{}\n", names.join("\n")))?;
    }
    Ok(Status::Valid)
}

/// Writes the raw times of all trials that have them, block by block.
fn write_samples(run: &Run, format: ExportFormat, mut out: impl Write, unwritten: &str) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::broken(anyhow::Error::new(error).context(unwritten.to_owned()));
    let is_csv = format == ExportFormat::Csv;
    if is_csv {
        writeln!(out, "{}", samples::COLUMNS.join(",")).map_err(broken)?;
    }
    let mut block = SampleBlock::default();
    for measurement in &run.measurements {
        let Some(mut reader) = run.samples(measurement).map_err(Failure::usage)? else { continue };
        let measure_ns = reader.header.measure_ns;
        while reader.next_block(&mut block).map_err(Failure::broken)? {
            let rows = Rows { measurement, measure_ns, block: &block };
            if is_csv { rows.csv(&mut out) } else { rows.jsonl(&mut out) }.map_err(broken)?;
        }
        reader.note().iter().for_each(|line| note(&format!("note: {line}")));
    }
    out.flush().map_err(broken)
}
