//! The arrival rate that the recorder takes from a run: from a verified load line, or from a model of the measured quantiles.
//!
//! Main function: [`model_line`]. Invariant: the rate is a promise about the requested quantile. It comes from measurements of
//! that quantile, never from a mean, and if these do not suffice there is no rate.

use std::path::Path;

use super::{Failure, Refusal};
use crate::queueing::fit::{Fit, LEFT_OUT_MOST, Request, fit};
use crate::queueing::held::{Held, HeldBy, NotHeld, held_rate, interpolation_error, measured_mean_s};
use crate::queueing::{Points, Queue, Surroundings, Target, Timer};
use crate::recorder::admission::ModelLine;
use crate::recorder::config::AdmissionConfig;
use crate::report::analyse::group;
use crate::report::load_lines::load_lines;
use crate::report::points::curves;
use crate::store::Run;
use crate::study::goal;
use crate::units::{show_number, show_seconds};

/// The remedy: the kind of run that contains enough information.
const REMEDY: &str = "name a run whose only factor is load.rate, with load.arrivals = \"poisson\"";
/// The remedy for a run with too little information: the measurements to add.
const MEASURE: &str =
    "measure at six rates or more up to near what the database carries, or search for the line itself with [goal]";

/// The warning on a load line measured with tables other than a recorder's.
const OWN_TABLES: &str =
    "it is that of the study's own tables, and layout.tables=recorder measures those that are written here";

/// Largest relative error at left-out rates up to which a model is not compared with simulated ones, which take time.
const GOOD_ENOUGH: f64 = 0.1;

/// Returns the line of a run of one combination of settings, at several arrival rates.
///
/// # Errors
/// [`Failure::Usage`] if the run cannot be read or shows no rate that keeps the bound; with the measurements to add.
pub fn model_line(path: &Path, config: &AdmissionConfig) -> Result<ModelLine, Failure> {
    let place = format!("admission.model \"{}\"", path.display());
    let wrong = |what: String| Failure::refused(Refusal::about(&*place, what));
    let run = Run::open(path).map_err(|error| wrong(error.to_string()))?;
    super::stored::told(&run);
    let study = goal::unfold(&run.file.study, &run.measurements);
    let groups = group(&study, &run.measurements);
    let mut found = curves(&groups, Timer::Intended, Some(config.quantile), &Default::default());
    found.retain(|curve| curve.points.0.iter().all(|point| point.arrival_rate_per_s.is_some()));
    if found.is_empty() {
        return Err(wrong(format!("it has no valid trial at a rate of arrivals; loadline report says why; {REMEDY}")));
    }
    if found.len() > 1 {
        return Err(wrong(format!(
            "it has {} combinations of settings besides the arrival rate; {REMEDY}",
            found.len()
        )));
    }
    let points = found.remove(0).points;
    let base = &run.file.study.base;
    let (rate_per_s, from) = match verified(&run, config) {
        Some(line) => line,
        None => from_quantiles(&points, base.load.clients, config).map_err(wrong)?,
    };
    let from = if base.layout.tables_as_recorded { from } else { format!("{from}; {OWN_TABLES}") };
    let batch_rows = base.workload.batch.max(1);
    let rows_per_operation = f64::from(batch_rows);
    let mean_s = measured_mean_s(&points.0);
    Ok(ModelLine {
        batch_rows,
        rows_per_s: rate_per_s * rows_per_operation,
        mean_s: Box::new(move |rows_per_s| mean_s(rows_per_s / rows_per_operation)),
        from,
    })
}

/// Returns the line that a search found and verified for this quantile and bound or stricter ones: a load that keeps a higher quantile below a
/// lower bound keeps this bound too.
fn verified(run: &Run, config: &AdmissionConfig) -> Option<(f64, String)> {
    let lines = load_lines(&run.file.study, &run.measurements);
    let [line] = lines.as_slice() else { return None };

    let is_as_strict =
        line.quantile >= config.quantile - 1e-9 && line.below_s <= config.below.as_secs_f64() * (1.0 + 1e-9);
    let rate_per_s = line.arrival_rate_per_s.filter(|rate| line.verified && is_as_strict && *rate > 0.0)?;
    let (figure, below) = (Target::Quantile(line.quantile), show_seconds(line.below_s));
    Some((rate_per_s, format!("the verified load line {}/s for {figure} below {below}", show_number(rate_per_s))))
}

/// A model and its figures for the quantile.
struct Candidate {
    title: &'static str,
    queue: Box<dyn Queue>,
    is_simulated: bool,
    /// Root mean square of the relative errors at rates that the model was not fitted to.
    error: f64,
}

impl Candidate {
    fn quantile_s(&self, rate_per_s: f64, quantile: f64) -> Option<f64> {
        match self.is_simulated {
            true => self.queue.simulated_quantile_s(rate_per_s, quantile),
            false => self.queue.quantile_s(rate_per_s, quantile),
        }
    }

    /// Returns the highest rate that keeps the bound; for a simulation with no more digits than it supports.
    fn limit_per_s(&self, quantile: f64, bound_s: f64) -> Option<f64> {
        if !self.is_simulated {
            return self.queue.limit_per_s(Target::Quantile(quantile), bound_s);
        }
        let keeps = |rate: f64| self.quantile_s(rate, quantile).is_some_and(|found_s| found_s <= bound_s);
        let (mut low, mut high) = (0.0, self.queue.capacity_per_s());
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            if keeps(middle) { low = middle } else { high = middle }
        }
        (low > 0.0).then_some(low)
    }
}

/// Returns the rate that a model of the measured quantiles permits, as far as the measurements support it.
fn from_quantiles(points: &Points, workers: u32, config: &AdmissionConfig) -> Result<(f64, String), String> {
    let target = Target::Quantile(config.quantile);
    let around = Surroundings { workers: Some(workers.max(1)), ..Surroundings::default() };
    let bound_s = config.below.as_secs_f64();
    let asked = format!("{target} of response time below {}", show_seconds(bound_s));
    // The measurements may rule every rate out, whatever a model would predict.
    held_rate(&points.0, config.quantile, bound_s, f64::INFINITY).map_err(|why| why_not(why, &asked))?;
    let told = |error: crate::queueing::fit::FitError| format!("{error}; {REMEDY}");
    let request = Request { target, around, ..Request::default() };
    let of_quantiles = fit(points, &request).map_err(told)?;
    let lowest = |candidates: Vec<Candidate>| candidates.into_iter().min_by(|a, b| a.error.total_cmp(&b.error));
    let mut best = lowest(of_quantiles.fits.iter().filter_map(|fit| exact(fit, &around)).collect());
    if best.as_ref().is_none_or(|best| best.error > GOOD_ENOUGH) {
        let of_means = fit(points, &Request { around, ..Request::default() }).map_err(told)?;
        let simulated = |fit| simulated(fit, points, &around, config.quantile);
        best = lowest(best.into_iter().chain(of_means.fits.iter().filter_map(simulated)).collect());
    }
    match best.as_ref().filter(|best| best.error <= LEFT_OUT_MOST) {
        Some(best) => from_model(best, points, config, &asked),
        None => interpolated(points, config, best.as_ref(), &asked),
    }
}

/// Returns the rate that a model permits, as far as the measurements support it.
fn from_model(
    best: &Candidate,
    points: &Points,
    config: &AdmissionConfig,
    asked: &str,
) -> Result<(f64, String), String> {
    let bound_s = config.below.as_secs_f64();
    let limit = best.limit_per_s(config.quantile, bound_s).filter(|limit| *limit > 0.0);
    let limit = limit.ok_or_else(|| {
        format!("model {} says that no arrival rate keeps {asked}; raise admission.below", best.title)
    })?;
    let held = held_rate(&points.0, config.quantile, bound_s, limit);
    let Held { rate_per_s, by } = held.map_err(|why| why_not(why, asked))?;
    let by = match by {
        HeldBy::Model => String::new(),
        HeldBy::Measured(above) => {
            format!(", bounded by what was measured: {}/s exceeded the bound or may have", show_number(above))
        }
        HeldBy::Highest(highest) => {
            let (limit, highest) = (show_number(limit), show_number(highest));
            format!(", which says {limit}/s, bounded because nothing was measured above {highest}/s")
        }
    };
    let (n, error) = (points.0.len(), best.error * 100.0);
    let of = if best.is_simulated { ("means", ", its quantiles simulated") } else { ("quantiles", "") };
    let off = format!("off by {error:.0} % at rates that it was not told of");
    let from = format!("{} fitted to the {} of {n} rates{} ({off}){by}", best.title, of.0, of.1);
    Ok((rate_per_s, from))
}

/// Returns the rate interpolated between the two measured ones on either side of the bound, if no model describes the quantiles but
/// neighbouring points predict each other.
fn interpolated(
    points: &Points,
    config: &AdmissionConfig,
    closest: Option<&Candidate>,
    asked: &str,
) -> Result<(f64, String), String> {
    let held = held_rate(&points.0, config.quantile, config.below.as_secs_f64(), f64::INFINITY);
    let Held { rate_per_s, by } = held.map_err(|why| why_not(why, asked))?;
    let error = interpolation_error(&points.0, config.quantile);
    if let (HeldBy::Measured(above), Some(error)) = (by, error.filter(|error| *error <= LEFT_OUT_MOST)) {
        let (n, error, above) = (points.0.len(), error * 100.0, show_number(above));
        let from = "the measured quantiles alone, one over them along a line between neighbours";
        let from = format!(
            "{from}, n = {n} rates (off by {error:.0} % at rates left out); {above}/s exceeded the bound or may have"
        );
        return Ok((rate_per_s, from));
    }
    let closest = closest.filter(|one| one.error.is_finite()).map_or(String::new(), |one| {
        format!(" (the closest, {}, is off by {:.0} % at rates left out)", one.title, one.error * 100.0)
    });
    let (figure, most) = (Target::Quantile(config.quantile), LEFT_OUT_MOST * 100.0);
    Err(format!(
        "no model predicts the measured {figure} within {most} %{closest}, and neighbouring rates do not predict each other or none \
         exceeded the bound, so that no rate is known to keep {asked}; {MEASURE}, or leave admission.model out"
    ))
}

/// Returns the candidate of a fit to the quantiles, for a model with a distribution of its own.
fn exact(fit: &Fit, around: &Surroundings) -> Option<Candidate> {
    let queue = fit.queue(around).filter(|queue| queue.has_quantiles())?;
    let error = fit.leave_one_out.as_ref()?.relative_error_rms;
    Some(Candidate { title: fit.title, queue, is_simulated: false, error })
}

/// Returns the candidate of a fit to the means, for a model with simulated quantiles; its error is measured at the quantiles, which it was not fitted to.
fn simulated(fit: &Fit, points: &Points, around: &Surroundings, quantile: f64) -> Option<Candidate> {
    let queue = fit.queue(around)?;
    let candidate = Candidate { title: fit.title, queue, is_simulated: true, error: 0.0 };
    let mut squares = Vec::new();
    for point in &points.0 {
        let Some(rate) = point.arrival_rate_per_s.filter(|rate| candidate.queue.is_stable(*rate)) else { continue };
        let Some(seen) = point.quantiles.iter().find(|seen| (seen.quantile - quantile).abs() < 1e-9) else { continue };
        squares.push((candidate.quantile_s(rate, quantile)? / seen.value_s - 1.0).powi(2));
    }
    // Three points identify its three parameters, and a fourth one tests them.
    let error = (squares.len() > 3).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())?;
    Some(Candidate { error, ..candidate })
}

fn why_not(why: NotHeld, asked: &str) -> String {
    match why {
        NotHeld::Unmeasured => {
            format!("no trial tells its quantiles, so that no rate is known to keep {asked}; {MEASURE}")
        }
        NotHeld::Lowest(rate, time_s) => {
            let was = if time_s.is_finite() {
                format!("it was {}", show_seconds(time_s))
            } else {
                "it was overloaded".to_owned()
            };
            format!(
                "no rate is known to keep {asked}: {was} at {}/s, the lowest rate measured; measure at lower rates, or raise admission.below",
                show_number(rate)
            )
        }
    }
}
