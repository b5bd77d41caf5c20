//! `loadline compare`: alternatives of a run, two runs, or published summaries, with honest statistics.
//!
//! Main function: [`run`]. Invariant: a wrong request is refused before anything is printed or written.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::output::{print, print_json};
use super::{Failure, Refusal, Status, open_run};
use crate::cli::{Adjusting, CompareArguments};
use crate::fault::fault;
use crate::file;
use crate::metric::{LOAD_LINE, METRICS, Metric};
use crate::report::compare::{
    Adjustment, Chosen, CompareNote, Comparisons, Options, RunInput, Sample, between, compare, runs, summaries, text,
    within,
};
use crate::report::html::compare_page;
use crate::store::Run;
use crate::study::Study;
use crate::written::closest;

/// Seed of the bootstraps of summaries, which have no seed of their own.
const SEED: u64 = 1;

/// Compares what the arguments name. Invalid runs are compared by their valid trials, and the status reports them.
///
/// # Errors
/// [`Failure::Usage`] if a run or file cannot be read or understood, there is no such factor or metric, or there is nothing to
/// compare; [`Failure::Broken`] if the page cannot be written.
pub fn run(arguments: &CompareArguments, is_json: bool) -> Result<Status, Failure> {
    let metric = arguments.metric.as_deref().map(metric).transpose()?;
    let options = options(arguments)?;
    let page = arguments.html.as_deref().map(page_path).transpose()?;
    let (title, samples, found) = match (&arguments.run, &arguments.summaries) {
        (Some(path), _) => of_runs(path, arguments, metric, &options)?,
        (None, Some(path)) => of_summaries(path, metric, &options)?,
        (None, None) => {
            return Err(Failure::refused(
                fault!("there is nothing to compare"; "name a run or give --summaries FILE.csv"),
            ));
        }
    };
    if is_json {
        print_json(&found)?;
    } else {
        print(&text(&found))?;
    }
    if let Some(path) = page {
        let written = std::fs::write(&path, compare_page(&title, &samples, &found));
        written.with_context(|| format!("{} cannot be written", path.display())).map_err(Failure::broken)?;
        if !is_json {
            print(&format!("\nreport: {}\n", path.display()))?;
        }
    }
    Ok(if found.valid { Status::Valid } else { Status::Invalid })
}

fn options(arguments: &CompareArguments) -> Result<Options, Failure> {
    let CompareArguments { alpha, margin, .. } = *arguments;
    if !(alpha > 0.0 && alpha <= 0.5) {
        return Err(Failure::refused(Refusal::at(
            "--alpha",
            format!("{alpha} is not above 0 and at most 0.5"),
            "write 0.05 for 5 %",
        )));
    }
    if !(0.0..1.0).contains(&margin) {
        return Err(Failure::refused(Refusal::at(
            "--margin",
            format!("{margin} is not from 0 to below 1"),
            "write 0.05 for 5 %",
        )));
    }
    let adjustment = match arguments.adjust {
        Adjusting::Bonferroni => Adjustment::Bonferroni,
        Adjusting::Holm => Adjustment::Holm,
        Adjusting::Bh => Adjustment::Bh,
    };
    Ok(Options { alpha, margin, adjustment, seed: SEED })
}

/// Returns the metric of a name.
fn metric(name: &str) -> Result<&'static Metric, Failure> {
    if name == LOAD_LINE.name {
        return Ok(&LOAD_LINE);
    }
    Metric::named(name).ok_or_else(|| {
        let names = || METRICS.iter().map(|metric| metric.name).chain([LOAD_LINE.name]);
        let meant = closest(name, names()).map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
        let known = names().collect::<Vec<_>>().join(", ");
        Failure::refused(Refusal::about("--metric", fault!("unknown metric \"{name}\""; "{meant}there are {known}")))
    })
}

/// Returns the path of the page. An existing file is replaced only if it is such a page.
fn page_path(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_dir() {
        return Ok(path.join("compare.html"));
    }
    let is_page = path.extension().is_some_and(|extension| extension == "html");
    if path.exists() && !is_page {
        let remedy = "name a file that ends in .html, or a directory";
        return Err(Failure::refused(Refusal::at(
            "--html",
            format!("{} is there and is no page", path.display()),
            remedy,
        )));
    }
    if !is_page {
        std::fs::create_dir_all(path)
            .with_context(|| format!("--html: {} cannot be made", path.display()))
            .map_err(Failure::usage)?;
        return Ok(path.join("compare.html"));
    }
    Ok(path.to_owned())
}

fn of_summaries(
    path: &Path,
    metric: Option<&'static Metric>,
    options: &Options,
) -> Result<(String, Vec<Sample>, Comparisons), Failure> {
    let name = path.display().to_string();
    let text = file::read_text(path, file::MADE_MOST)
        .with_context(|| format!("{name} cannot be read; name a CSV file with {}", summaries::COLUMNS.join(",")))
        .map_err(Failure::usage)?;
    let usual = &METRICS[0];
    let samples = summaries::read(&name, &text, metric.unwrap_or(usual)).map_err(Failure::usage)?;
    let mut found = compare(&samples, options);
    let has_own = text.lines().any(|line| line.split(',').any(|cell| cell.trim().trim_matches('"') == "metric"));
    if metric.is_none() && !has_own {
        found.notes.push(CompareNote::MoreIsBetter { metric: usual.name });
    }
    Ok((name, samples, found))
}

/// An opened run with its study, as written and as carried out.
struct Opened {
    run: Run,
    path: String,
    unfolded: Study,
}

impl Opened {
    fn open(path: &Path) -> Result<Self, Failure> {
        let run = open_run(path)?;
        let unfolded = runs::unfolded(&run.file.study, &run.measurements);
        Ok(Opened { path: path.display().to_string(), run, unfolded })
    }

    /// Returns the name of the run's directory, without its parents.
    fn name(&self) -> String {
        let name = self.run.path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        name.unwrap_or_else(|| self.path.clone())
    }

    fn machine(&self) -> &str {
        &self.run.file.environment.machine
    }

    fn input<'a>(&'a self, label: &'a str, machine: &'a str) -> RunInput<'a> {
        RunInput {
            path: &self.path,
            label,
            machine,
            study: &self.unfolded,
            written: &self.run.file.study,
            measurements: &self.run.measurements,
        }
    }
}

fn of_runs(
    path: &Path,
    arguments: &CompareArguments,
    metric: Option<&'static Metric>,
    options: &Options,
) -> Result<(String, Vec<Sample>, Comparisons), Failure> {
    let first = Opened::open(path)?;
    let options = Options { seed: first.run.file.study.seed, ..*options };
    let mut is_whole = first.run.left_out.is_empty();
    let chosen = match &arguments.run2 {
        None => {
            let name = first.name();
            let input = first.input(&name, first.machine());
            within(&input, arguments.factor.as_deref(), metric.unwrap_or_else(|| runs::usual_metric(&input)))
        }
        Some(path) => {
            let second = Opened::open(path)?;
            is_whole &= second.run.left_out.is_empty();
            of_two_runs(&first, &second, arguments.factor.as_deref(), metric)
        }
    };
    let chosen = chosen.map_err(Failure::refused)?;
    let mut found = compare(&chosen.samples, &options);
    found.valid = chosen.valid && is_whole;
    found.notes.splice(0..0, chosen.notes);
    if first.run.file.study.quick {
        found.notes.push(CompareNote::Rehearsal {});
    }
    let second = arguments.run2.as_ref().map_or(String::new(), |path| format!(" and {}", path.display()));
    Ok((format!("{}{second}", first.path), chosen.samples, found))
}

/// Compares two runs: with a factor, its levels within each run and whether the runs agree; without one, the runs themselves.
fn of_two_runs(
    first: &Opened,
    second: &Opened,
    factor: Option<&str>,
    metric: Option<&'static Metric>,
) -> Result<Chosen, String> {
    let (mut one, mut other) = (first.name(), second.name());
    if one == other {
        (one, other) = (first.path.clone(), second.path.clone());
    }
    if one == other {
        return Err(format!("{one} is named twice; name two different runs"));
    }
    let is_one_machine = first.machine() == second.machine();
    let usual = runs::usual_metric(&first.input(&one, &one));
    let metric = metric.unwrap_or(usual);
    let Some(factor) = factor else {
        return between(&first.input(&one, first.machine()), &second.input(&other, second.machine()), metric);
    };
    // Two runs of one machine are distinguished by their names.
    let place =
        |opened: &Opened, name: &str| if is_one_machine { name.to_owned() } else { opened.machine().to_owned() };
    let (place_one, place_other) = (place(first, &one), place(second, &other));
    let mut chosen = within(&first.input(&one, &place_one), Some(factor), metric)?;
    let more = within(&second.input(&other, &place_other), Some(factor), metric)?;
    chosen.samples.extend(more.samples);
    chosen.notes.extend(more.notes);
    chosen.valid &= more.valid;
    Ok(chosen)
}
