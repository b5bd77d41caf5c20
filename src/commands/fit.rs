//! `loadline fit`: queueing models fitted to measured points, best first, with a verdict.
//!
//! Main function: [`run`]. Invariant: what is printed is what [`crate::queueing::fit`] says; nothing is calculated here.

use anyhow::Context;

use super::output::{print, print_json, table};
use super::{Failure, Status};
use crate::cli::FitArguments;
use crate::queueing::fit::{Fit, FitError, FitReport, PaperEstimate, Request, fit, model_names, show_parameter};
use crate::queueing::{Points, Surroundings, Target, Timer};
use crate::study::closest;
use crate::units::{show_number, show_seconds};

/// Fits models to points.
///
/// # Errors
/// [`Failure::Usage`] when the file cannot be read or understood, or the request does not match it.
pub fn run(arguments: &FitArguments, is_json: bool) -> Result<Status, Failure> {
    let Some(path) = &arguments.points else {
        let remedy = "give --points FILE.csv with arrival_rate,mean_s and, where known, se_s";
        return Err(Failure::Usage(format!("fitting a run is not available yet; {remedy}")));
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{name} cannot be read; name a CSV file of points"))
        .map_err(Failure::usage)?;
    let points = Points::from_csv(&name, &text).map_err(Failure::usage)?;
    let report = fit(&points, &request(arguments)?).map_err(|error| match error {
        FitError::UnknownModel { name, .. } => Failure::Usage(unknown_model(&name)),
        error => Failure::Usage(format!("{name}: {error}")),
    })?;
    if is_json {
        print_json(&report)?;
    } else {
        print(&text_of(&report))?;
    }
    Ok(Status::Valid)
}

/// The sentence about a model that does not exist.
pub(super) fn unknown_model(name: &str) -> String {
    let names = model_names();
    let meant = closest(name, names.iter().copied().chain(["auto"]));
    let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
    format!("--model: unknown model \"{name}\"{meant} Known are {}", names.join(", "))
}

/// Where times begin.
///
/// # Errors
/// When it is neither word.
pub(super) fn read_timer(text: &str) -> Result<Timer, Failure> {
    match text {
        "intended" => Ok(Timer::Intended),
        "sent" => Ok(Timer::Sent),
        _ => Err(Failure::Usage(format!("--timer: \"{text}\" is not known; write intended or sent"))),
    }
}

/// A quantile in (0, 1).
///
/// # Errors
/// When it is outside.
pub(super) fn read_quantile(quantile: f64) -> Result<f64, Failure> {
    let is_good = quantile > 0.0 && quantile < 1.0;
    let refusal = || Failure::Usage(format!("--quantile: {quantile} is not between 0 and 1; write 0.9 for p90"));
    is_good.then_some(quantile).ok_or_else(refusal)
}

fn request(arguments: &FitArguments) -> Result<Request, Failure> {
    for (option, value) in [("--workers", arguments.workers), ("--servers", arguments.servers)] {
        if value == Some(0) {
            return Err(Failure::Usage(format!("{option}: 0 is not possible; write a number from 1")));
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

/// The report for the terminal: a table of models, the verdict, notes.
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
        out.push_str(&format!("\nThe procedure of Kihl et al. 2011 (section 6.1), r0 = {mean} at {rate}/s\n"));
        out.push_str(&format!("  as in the paper              {}\n", show(paper.naive)));
        out.push_str(&format!("  corrected for that rate      {}\n", show(paper.corrected)));
    }
    let skipped = report.skipped.iter().map(|skipped| format!("{} was not fitted: {}", skipped.model, skipped.because));
    let notes: Vec<String> = report.notes.iter().cloned().chain(skipped).collect();
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
