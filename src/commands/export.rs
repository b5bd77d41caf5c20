//! `loadline export`: writes a run as files for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;

use super::output::{note, print, print_json};
use super::{Failure, Status, open_run, status_of_files};
use crate::cli::ExportFormat;
use crate::fault::fault;
use crate::report::export;
use crate::report::export::parquet::{ParquetFile, write_table};
use crate::report::samples::{self, Rows};
use crate::store::{Run, SampleBlock};

/// Writes a run's trials into a directory, which is created if necessary.
///
/// # Errors
/// [`Failure::Usage`] if it is no run; [`Failure::Broken`] if a file cannot be written.
pub fn run(run: &Path, format: ExportFormat, out: &Path, is_json: bool) -> Result<Status, Failure> {
    let run = open_run(run)?;
    let ending = match format {
        ExportFormat::Csv => "csv",
        ExportFormat::Jsonl => "jsonl",
        ExportFormat::Parquet => "parquet",
    };
    let mut paths = vec![out.join(format!("trials.{ending}"))];
    if run.measurements.iter().any(|measurement| measurement.samples.is_some()) {
        paths.push(out.join(format!("samples.{ending}")));
    }
    if let Some(path) = paths.iter().find(|path| path.exists()) {
        return Err(Failure::refused(fault!("{} exists already", path.display(); "name another directory with --out")));
    }
    let unwritten = |path: &Path| format!("{} cannot be written", path.display());
    let written = std::fs::create_dir_all(out).and_then(|()| write_trials(&run, format, &paths[0]));
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
    Ok(status_of_files(&run))
}

fn write_trials(run: &Run, format: ExportFormat, path: &Path) -> std::io::Result<()> {
    match format {
        ExportFormat::Csv => std::fs::write(path, export::table(&run.measurements).csv()),
        ExportFormat::Jsonl => std::fs::write(path, export::jsonl(&run.measurements)),
        ExportFormat::Parquet => write_table(&export::table(&run.measurements), BufWriter::new(File::create(path)?)),
    }
}

/// Writes the raw times of all trials that have them, block by block.
fn write_samples(run: &Run, format: ExportFormat, out: impl Write + Send, unwritten: &str) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::broken(anyhow::Error::new(error).context(unwritten.to_owned()));
    let mut file = SampleFile::new(format, out).map_err(broken)?;
    let mut block = SampleBlock::default();
    for measurement in &run.measurements {
        let Some(mut reader) = run.samples(measurement).map_err(Failure::usage)? else { continue };
        let measure_ns = reader.header.measure_ns;
        while reader.next_block(&mut block).map_err(Failure::broken)? {
            file.push(&Rows { measurement, measure_ns, block: &block }).map_err(broken)?;
        }
        reader.note().iter().for_each(|line| note(&format!("note: {line}")));
    }
    file.finish().map_err(broken)
}

/// A file of raw times that is being written.
enum SampleFile<W: Write + Send> {
    Csv(W),
    Jsonl(W),
    Parquet(Box<ParquetFile<W>>),
}

impl<W: Write + Send> SampleFile<W> {
    fn new(format: ExportFormat, mut out: W) -> std::io::Result<Self> {
        Ok(match format {
            ExportFormat::Csv => {
                writeln!(out, "{}", samples::COLUMNS.map(|(name, _)| name).join(","))?;
                SampleFile::Csv(out)
            }
            ExportFormat::Jsonl => SampleFile::Jsonl(out),
            ExportFormat::Parquet => {
                let columns = samples::COLUMNS.map(|(name, kind)| (name.to_owned(), kind));
                SampleFile::Parquet(Box::new(ParquetFile::new(out, &columns)?))
            }
        })
    }

    fn push(&mut self, rows: &Rows<'_>) -> std::io::Result<()> {
        match self {
            SampleFile::Csv(out) => rows.csv(out),
            SampleFile::Jsonl(out) => rows.jsonl(out),
            SampleFile::Parquet(file) => rows.parquet(file),
        }
    }

    fn finish(self) -> std::io::Result<()> {
        match self {
            SampleFile::Csv(mut out) | SampleFile::Jsonl(mut out) => out.flush(),
            SampleFile::Parquet(file) => file.finish(),
        }
    }
}
