//! `loadline import`: turns output of YCSB, sysbench or pgbench into a run directory.
//!
//! Main function: [`run`]. Invariant: the directory appears whole or not at all.

use std::path::Path;

use anyhow::Context;
use serde_json::json;

use super::output::{note, print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::{ImportArguments, ImportedTool};
use crate::file;
use crate::import::{self, Import, Naming, Options, SourceFile, Tool};
use crate::measurement::{Environment, Measurement};
use crate::reason::show_reasons;
use crate::store::{RunDirectory, StoreError};

/// Imports the files of the arguments.
///
/// # Errors
/// [`Failure::Usage`] if a file cannot be read or understood, or the directory already exists;
/// [`Failure::Broken`] if the directory cannot be written. Nothing is left there in that case.
pub fn run(arguments: &ImportArguments, is_json: bool) -> Result<Status, Failure> {
    let out = &arguments.out;
    if out.exists() {
        return Err(Failure::usage(StoreError::Exists(out.display().to_string())));
    }
    let tool = match arguments.tool {
        ImportedTool::Ycsb => Tool::Ycsb,
        ImportedTool::Sysbench => Tool::Sysbench,
        ImportedTool::Pgbench => Tool::Pgbench,
    };
    let naming = Naming::new(&arguments.levels, arguments.pattern.as_deref()).map_err(Failure::usage)?;
    let files: Vec<SourceFile> = arguments.files.iter().map(|path| source(path)).collect::<Result<_, _>>()?;
    let options = Options { name: name_of(out), discard_first: arguments.discard_first };
    let import = import::read(tool, &files, &naming, &options).map_err(Failure::usage)?;
    write(&import, tool, out).map_err(Failure::broken)?;
    tell(&import, tool, out, is_json)
}

fn source(path: &Path) -> Result<SourceFile, Failure> {
    let name = path.display().to_string();
    let bytes =
        file::read(path, file::MADE_MOST).with_context(|| format!("{name} cannot be read")).map_err(Failure::usage)?;
    let text = file::text_of(bytes).map_err(|line| {
        let remedy = "give the tool's output as it was printed, not packed";
        Failure::refused(Refusal::at(format!("{name}:{line}"), "this is no text", remedy))
    })?;
    Ok(SourceFile { name, text })
}

/// Returns the directory's name in the form of a study's: only letters, digits and the signs - _ . remain.
fn name_of(out: &Path) -> String {
    let name = out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let sign = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(sign).take(60).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "import".to_owned() } else { name.to_owned() }
}

/// Writes the run next to its place and moves it there when it is complete.
fn write(import: &Import, tool: Tool, out: &Path) -> anyhow::Result<()> {
    let mut beside = out.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = Path::new(&beside);
    anyhow::ensure!(!beside.exists(), "{} is in the way; remove it", beside.display());
    let written = write_all(import, tool, beside)
        .and_then(|()| std::fs::rename(beside, out).with_context(|| format!("{} cannot be made", out.display())));
    if written.is_err() {
        // The remainder is loadline's own, and nothing more can be done if it cannot be removed.
        let _ = std::fs::remove_dir_all(beside);
    }
    written
}

fn write_all(import: &Import, tool: Tool, place: &Path) -> anyhow::Result<()> {
    let started = import.measurements.iter().map(|trial| trial.started.as_str()).find(|started| !started.is_empty());
    let mut directory = RunDirectory::create(place, &import.study, environment(tool), started.unwrap_or_default())?;
    import.measurements.iter().try_for_each(|measurement| directory.append(measurement, &[]))?;
    Ok(())
}

/// Returns the environment of an import: the tool's output does not describe its machine.
fn environment(tool: Tool) -> Environment {
    let unknown = format!("not told by {}", tool.name());
    Environment {
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        machine: unknown.clone(),
        cpu: String::new(),
        kernel: unknown,
        ..Environment::default()
    }
}

fn tell(import: &Import, tool: Tool, out: &Path, is_json: bool) -> Result<Status, Failure> {
    let (study, trials) = (&import.study, &import.measurements);
    let invalid: Vec<&Measurement> = trials.iter().filter(|trial| !trial.is_valid()).collect();
    let mut notes: Vec<&String> = Vec::new();
    for note in trials.iter().filter_map(|trial| trial.imported.as_ref()).flat_map(|from| &from.notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let file =
        |trial: &Measurement| trial.imported.as_ref().and_then(|from| from.files.first().cloned()).unwrap_or_default();
    let status = if invalid.is_empty() { Status::Valid } else { Status::Invalid };
    if is_json {
        let invalid: Vec<_> =
            invalid.iter().map(|trial| json!({ "file": file(trial), "because": trial.invalid_because })).collect();
        let out = out.display().to_string();
        let factors: Vec<&str> = study.factors.iter().map(|factor| factor.setting.as_str()).collect();
        print_json(&json!({
            "run": out, "study": study.name, "source": study.source, "cases": study.cases.len(), "trials": trials.len(),
            "factors": factors, "valid": invalid.is_empty(), "invalid": invalid, "notes": notes,
        }))?;
        return Ok(status);
    }
    notes.iter().for_each(|text| note(&format!("note: {}: {text}", tool.name())));
    let varied: Vec<String> = study
        .factors
        .iter()
        .map(|factor| {
            let levels: Vec<String> = factor.levels.iter().map(crate::report::factors::show_level).collect();
            format!("  {}: {}\n", factor.setting, levels.join(", "))
        })
        .collect();
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text =
        format!("{}, {}\n{}", count(study.cases.len(), "case"), count(trials.len(), "trial"), varied.concat());
    if !invalid.is_empty() {
        text.push_str(&format!("INVALID: {} of {}\n", invalid.len(), count(trials.len(), "trial")));
    }
    for trial in invalid {
        text.push_str(&format!("  {}: {}\n", file(trial), show_reasons(&trial.invalid_because)));
    }
    print(&format!("{text}run: {}\n", out.display()))?;
    Ok(status)
}
