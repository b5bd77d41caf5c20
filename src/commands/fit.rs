//! `loadline fit`: queueing models fitted to measured points, best first, with a verdict.
//!
//! Main function: [`run`]. Invariant: all calculations are in [`crate::queueing::fit`]; this module prints their results.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;

use super::output::{note, print, print_json, table};
use super::{Failure, Refusal, Status, open_run, status_of_files};
use crate::cli::FitArguments;
use crate::fault::fault;
use crate::file::MADE_MOST;
use crate::queueing::fit::{Fit, FitError, FitReport, PaperEstimate, Request, fit, model_names, show_parameter};
use crate::queueing::raw_times::RawTimes;
use crate::queueing::{Points, Surroundings, Target, Timer};
use crate::report::analyse::group;
use crate::report::factors::show_levels;
use crate::report::points::{Curve, Sampled, curves};
use crate::report::samples::batches;
use crate::statistics::batches::Batches;
use crate::store::Run;
use crate::trial::Levels;
use crate::units::{show_number, show_seconds};
use crate::written::closest;

/// Fits models to the points of a file or of a run.
///
/// # Errors
/// [`Failure::Usage`] if the file or run cannot be read or understood, or the request does not match it.
pub fn run(arguments: &FitArguments, is_json: bool) -> Result<Status, Failure> {
    let request = request(arguments)?;
    if let Some(path) = &arguments.run {
        return fit_run(path, &request, is_json);
    }
    let Some(path) = &arguments.points else {
        return Err(Failure::refused(
            fault!("there is nothing to fit"; "name a run directory or give --points FILE.csv"),
        ));
    };
    let name = path.display().to_string();
    let points = read_points(path, &name)?;
    let report = fit(&points, &request).map_err(|error| refusal(error, &name))?;
    if is_json {
        print_json(&report)?;
    } else {
        print(&text_of(&report))?;
    }
    Ok(Status::Valid)
}

/// Largest length of a line of points, in bytes.
const LINE_MOST: u64 = 1 << 20;

/// Reads the points of a file: those it states, or those computed from raw times, one for each line, which are not kept in memory.
fn read_points(path: &Path, name: &str) -> Result<Points, Failure> {
    let unreadable = || format!("{name} cannot be read; name a CSV file of points");
    let file = std::fs::File::open(path).with_context(unreadable).map_err(Failure::usage)?;
    let mut file = BufReader::new(file);
    let mut line = String::new();
    let too_long = |what: &str| Failure::refused(fault!("{name} {what}"; "name a CSV file of points"));
    let next = |line: &mut String, file: &mut BufReader<std::fs::File>| {
        line.clear();
        let read = file.take(LINE_MOST).read_line(line).with_context(unreadable).map_err(Failure::usage)?;
        if read as u64 == LINE_MOST { Err(too_long("has a line of more than 1 MiB")) } else { Ok(read) }
    };
    next(&mut line, &mut file)?;
    let Some(mut times) = RawTimes::from_heading(&line) else {
        let mut rest = String::new();
        let read = file.take(MADE_MOST).read_to_string(&mut rest).with_context(unreadable).map_err(Failure::usage)?;
        if read as u64 == MADE_MOST {
            return Err(too_long("has more than 1 GiB"));
        }
        return Points::from_csv(name, &(line + &rest)).map_err(Failure::usage);
    };
    for number in 2.. {
        if next(&mut line, &mut file)? == 0 {
            break;
        }
        times.read_line(name, number, &line).map_err(Failure::refused)?;
    }
    times.points(name).map_err(Failure::refused)
}

/// The fit for one combination of the other factors' levels.
#[derive(Serialize)]
struct Combination {
    levels: Levels,
    #[serde(flatten)]
    report: FitReport,
}

/// Fits models to a run's points, once per combination of the factors besides the arrival rate (or a closed loop's clients).
fn fit_run(path: &Path, request: &Request, is_json: bool) -> Result<Status, Failure> {
    if path.is_file() {
        let name = path.display();
        return Err(Failure::refused(fault!(
            "{name} is a file and no run directory"; "for a file of points write --points {name}"
        )));
    }
    let run = open_run(path)?;
    let name = path.display().to_string();
    let quantile = if let Target::Quantile(quantile) = request.target { Some(quantile) } else { None };
    let groups = group(&run.file.study, &run.measurements);
    let sampled = read_samples(&run, request.around.timer)?;
    let mut combinations = Vec::new();
    for Curve { levels, points } in curves(&groups, request.around.timer, quantile, &sampled) {
        let report = fit(&points, request).map_err(|error| refusal(error, &name))?;
        combinations.push(Combination { levels, report });
    }
    match &combinations[..] {
        [] => return Err(Failure::refused(format!("{name} has no valid trial; there is nothing to fit"))),
        [only] if is_json => print_json(only)?,
        several if is_json => print_json(&json!({ "combinations": several }))?,
        several => {
            let heading = |levels: &Levels| if levels.is_empty() { String::new() } else { show_levels(levels) + "\n" };
            let texts = several.iter().map(|one| format!("{}{}", heading(&one.levels), text_of(&one.report)));
            print(&texts.collect::<Vec<_>>().join("\n"))?;
        }
    }
    Ok(status_of_files(&run))
}

/// Reads batches of the raw times of all valid trials that have them; the intact part of a torn file is used, with a note.
fn read_samples(run: &Run, timer: Timer) -> Result<Sampled, Failure> {
    let mut sampled = Sampled::new();
    for measurement in run.measurements.iter().filter(|measurement| measurement.is_valid()) {
        if let Some(mut reader) = run.samples(measurement).map_err(Failure::usage)? {
            sampled.insert(measurement.trial.id.clone(), batches(&mut reader, timer).map_err(Failure::usage)?);
            reader.note().iter().for_each(|line| note(&format!("note: {line}")));
        }
    }
    if !sampled.is_empty() {
        let times: u64 = sampled.values().map(Batches::count).sum();
        let (times, trials) = (show_number(times as f64), sampled.len());
        note(&format!("note: {times} raw times of {trials} trials are used"));
    }
    Ok(sampled)
}

/// Returns why nothing could be fitted to the points of a file or run.
fn refusal(error: FitError, name: &str) -> Failure {
    match error {
        FitError::UnknownModel { name, .. } => Failure::refused(unknown_model(&name)),
        error => Failure::refused(Refusal::about(name, error.to_string())),
    }
}

/// Returns the refusal of a model that does not exist.
pub(super) fn unknown_model(name: &str) -> Refusal {
    let names = model_names();
    let meant = closest(name, names.iter().copied().chain(["auto"]));
    let meant = meant.map_or("known".to_owned(), |meant| format!("did you mean \"{meant}\"? Known"));
    Refusal::about("--model", fault!("unknown model \"{name}\""; "{meant} are {}", names.join(", ")))
}

/// Reads the start of response times.
///
/// # Errors
/// Fails if the text is neither of the two words.
pub(super) fn read_timer(text: &str) -> Result<Timer, Failure> {
    match text {
        "intended" => Ok(Timer::Intended),
        "sent" => Ok(Timer::Sent),
        _ => {
            Err(Failure::refused(Refusal::at("--timer", format!("\"{text}\" is not known"), "write intended or sent")))
        }
    }
}

/// Checks that a quantile is in (0, 1).
///
/// # Errors
/// Fails if it is not.
pub(super) fn read_quantile(quantile: f64) -> Result<f64, Failure> {
    let is_good = quantile > 0.0 && quantile < 1.0;
    let refusal = || {
        Failure::refused(Refusal::at("--quantile", format!("{quantile} is not between 0 and 1"), "write 0.9 for p90"))
    };
    is_good.then_some(quantile).ok_or_else(refusal)
}

fn request(arguments: &FitArguments) -> Result<Request, Failure> {
    for (option, value) in [("--workers", arguments.workers), ("--servers", arguments.servers)] {
        if value == Some(0) {
            return Err(Failure::refused(Refusal::at(option, "0 is not possible", "write a number from 1")));
        }
    }
    let timer = read_timer(&arguments.timer)?;
    let target = match arguments.quantile {
        Some(quantile) => Target::Quantile(read_quantile(quantile)?),
        None => Target::Mean,
    };
    let (workers, servers) = (arguments.workers, arguments.servers);
    Ok(Request { model: arguments.model.clone(), target, around: Surroundings { workers, servers, timer } })
}

/// Returns the report for the terminal: a table of models, the verdict, notes.
fn text_of(report: &FitReport) -> String {
    let from = match report.timer {
        Timer::Intended => "from the intended time",
        Timer::Sent => "from sending",
    };
    let figure = if report.target == "throughput" { String::new() } else { format!(" {from}") };
    let mut out = format!("{}{figure}, {} points\n\n", report.target, report.points);
    if !report.fits.is_empty() {
        out.push_str(&models(report));
        out.push('\n');
    }
    out.push_str(&format!("{}\n", report.verdict));
    if let Some(paper) = &report.paper {
        let show = |form: Option<PaperEstimate>| match form {
            Some(form) => format!(
                "mu = {}/s, delta = {}, off by {:.1} %",
                show_number(form.mu_per_s),
                show_seconds(form.delta_s),
                form.relative_error_rms * 100.0
            ),
            None => "no curve".to_owned(),
        };
        let (rate, mean) = (show_number(paper.low_rate_per_s), show_seconds(paper.low_mean_s));
        out.push_str(&format!("\nFitted by hand, as the source of the study did: delta and mu from the mean at the lowest rate, {mean} at {rate}/s\n"));
        out.push_str(&format!("  as in the source             {}\n", show(paper.naive)));
        out.push_str(&format!("  corrected for that rate      {}\n", show(paper.corrected)));
    }
    let skipped = report.skipped.iter().map(|skipped| format!("{} was not fitted: {}", skipped.model, skipped.because));
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).chain(skipped).collect();
    if !notes.is_empty() {
        out.push_str("\nNotes\n");
    }
    notes.iter().for_each(|note| out.push_str(&format!("- {note}\n")));
    out
}

fn models(report: &FitReport) -> String {
    let heading =
        ["model", "parameters [95 % interval]", "chi²/df", "p", "AICc", "weight", "off by", "left out", "capacity"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(report.fits.iter().map(|fit| row(fit, report.errors_known)));
    table(rows)
}

fn row(fit: &Fit, errors_known: bool) -> Vec<String> {
    let number =
        |value: Option<f64>, decimals: usize| value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"));
    let share = |value: f64| if value.is_finite() { format!("{:.1} %", value * 100.0) } else { "overload".to_owned() };
    let parameters: Vec<String> = fit.parameters.iter().map(show_parameter).collect();
    vec![
        fit.model.to_owned(),
        parameters.join("\n"),
        if errors_known { format!("{:.2}/{}", fit.chi2, fit.df) } else { "-".to_owned() },
        fit.goodness_of_fit_p
            .map_or("-".to_owned(), |p| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }),
        number(fit.aicc, 2),
        number(fit.weight, 3),
        share(fit.relative_error_rms),
        fit.leave_one_out.as_ref().map_or("-".to_owned(), |left_out| share(left_out.relative_error_rms)),
        fit.capacity_per_s.map_or("-".to_owned(), |capacity| format!("{}/s", show_number(capacity))),
    ]
}
