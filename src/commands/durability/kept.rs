//! The files that a durability test leaves in its directory: `run.toml`, the result, and a report as a page.
//!
//! Main functions: [`begin`], [`keep`], [`report_again`]. Invariant: the page shows the content of `durability.json` and nothing else.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::super::output::{document, print, print_json, print_report};
use super::super::{Failure, Status};
use super::told;
use crate::file;
use crate::finding::DurabilityTest;
use crate::monitor;
use crate::report;
use crate::runner::execute::now_utc;
use crate::store::{Run, RunDirectory};
use crate::study::Study;

/// Name of the file with the result.
const FILE: &str = "durability.json";
const PAGE: &str = "report.html";

/// Creates the directory of a test.
///
/// # Errors
/// Fails if the directory exists already or cannot be created.
pub fn begin(path: &Path, study: &Study, words: Vec<String>) -> anyhow::Result<RunDirectory> {
    if path.exists() {
        anyhow::bail!("{} exists already; name another with --out", path.display());
    }
    let beside = path.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new("."));
    let mut directory = RunDirectory::create(path, study, monitor::environment(beside), &now_utc())?;
    directory.note_command(words)?;
    Ok(directory)
}

/// Writes the result and the page, and returns the path of the page.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn keep(directory: &RunDirectory, test: &DurabilityTest) -> Result<PathBuf, Failure> {
    directory.write_file(FILE, &document(test)).map_err(Failure::broken)?;
    let run = Run::open(directory.path()).map_err(Failure::broken)?;
    write_page(&run, test)
}

fn write_page(run: &Run, test: &DurabilityTest) -> Result<PathBuf, Failure> {
    let page = report::html::durability_page(test, &run.path.display().to_string(), &run.file);
    let path = run.path.join(PAGE);
    let written = std::fs::write(&path, page).with_context(|| format!("{} cannot be written", path.display()));
    written.map(|()| path).map_err(Failure::broken)
}

/// Prints the result, and the path of its page.
///
/// # Errors
/// Fails if it cannot be printed.
pub fn tell(test: &DurabilityTest, page: Option<&Path>, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return print_json(test);
    }
    print_report(&told::text_of(test))?;
    page.map_or(Ok(()), |page| print(&format!("\nreport: {}\n", page.display())))
}

/// Prints the result of a test again and writes its page anew, for `loadline report`.
///
/// # Errors
/// [`Failure::Usage`] if the result is missing or is not in the form that a test writes.
pub fn report_again(run: &Run, is_json: bool) -> Result<Status, Failure> {
    let path = run.path.join(FILE);
    let read = file::read_text(&path, file::MADE_MOST).map_err(anyhow::Error::from);
    let read = read.and_then(|text| serde_json::from_str::<DurabilityTest>(&text).map_err(anyhow::Error::from));
    let remedy = "the test ended before it had found anything, or the file was changed; begin it again";
    let test = read.with_context(|| format!("{}: {remedy}", path.display())).map_err(Failure::usage)?;
    let page = write_page(run, &test)?;
    tell(&test, Some(&page), is_json)?;
    Ok(if test.is_as_promised() { Status::Valid } else { Status::Invalid })
}
