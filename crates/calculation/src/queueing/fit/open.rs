//! Fits of open systems: response time against arrival rate.
//!
//! Main function: [`fit_open`]. Invariant: points above saturation are never fitted, and the report names them.

use super::errors::errors_of;
use super::estimate::Fit;
use super::note::FitNote;
use super::paper::fit_as_in_the_paper;
use super::problem::{Observation, Sigma};
use super::select::{Collected, select};
use super::servers::fit_servers;
use super::set::Set;
use super::{FitError, FitReport, Request, Skipped};
use crate::queueing::family::{FAMILIES, Family, Needs, Surroundings};
use crate::queueing::points::{Point, Points};
use crate::queueing::queue::{Target, Timer};

/// Throughput as a share of the arrival rate, below which a system did not keep up.
const KEPT_UP: f64 = 0.98;

/// Fits one model, or all candidates, to the figure that the request names.
pub fn fit_open(points: &Points, name: &str, request: &Request) -> Result<FitReport, FitError> {
    let mut notes = Vec::new();
    let (observations, sigma) = observe(points, request, &mut notes)?;
    if request.around.timer == Timer::Sent && observations.iter().any(|seen| seen.workers.is_none()) {
        let remedy = "add the column workers, or --workers N";
        return Err(FitError::Missing(format!("--timer sent needs the number of workers; {remedy}")));
    }
    let mut fits = Vec::new();
    let mut skipped = Vec::new();
    let is_asked = |family: &&Family| if name == "auto" { family.is_candidate } else { family.name == name };
    for family in FAMILIES.iter().filter(is_asked) {
        match fit_family(family, &observations, sigma, request) {
            Ok(fit) => fits.push(fit),
            Err(because) if name == "auto" => skipped.push(Skipped { model: family.name, because }),
            Err(because) if family.not_fitted.is_some() || lacks(family, &observations, request).is_some() => {
                return Err(FitError::NotFitted { model: family.name, because });
            }
            Err(because) => skipped.push(Skipped { model: family.name, because }),
        }
    }
    add_notes(&fits, &observations, request, &mut notes);
    let paper = (request.target == Target::Mean).then(|| fit_as_in_the_paper(&observations)).flatten();
    let unit = "arrival rates";
    let (target, timer) = (request.target.to_string(), request.around.timer);
    Ok(select(Collected { fits, skipped, notes, observations, sigma, target, timer, paper, unit }))
}

/// Returns the observations of the requested figure, without points above saturation.
fn observe(
    points: &Points,
    request: &Request,
    notes: &mut Vec<FitNote>,
) -> Result<(Vec<Observation>, Sigma), FitError> {
    let Points(points) = points;
    if points.iter().any(|point| point.arrival_rate_per_s.is_none()) {
        let remedy = "add the column arrival_rate, or fit usl or repairman";
        return Err(FitError::Missing(format!("a point has no arrival rate; {remedy}")));
    }
    let kept = without_saturated(points, notes);
    let figures: Vec<(&Point, f64)> =
        kept.iter().filter_map(|point| Some((*point, figure(point, request.target)?))).collect();
    if figures.is_empty() && !kept.is_empty() {
        let target = request.target;
        return Err(FitError::Missing(format!("no point has its {target}; add a column for it, or fit the mean")));
    }
    if figures.len() < kept.len() {
        notes.push(FitNote::WithoutFigure { points: kept.len() - figures.len(), target: request.target.to_string() });
    }
    let (errors, sigma) = errors_of(&figures, request.target, notes);
    let observation = |((point, value), se): (&(&Point, f64), f64)| Observation {
        load: point.arrival_rate_per_s.unwrap_or_default(),
        workers: point.workers.or(request.around.workers),
        value: *value,
        se,
    };
    Ok((figures.iter().zip(errors).map(observation).collect(), sigma))
}

fn figure(point: &Point, target: Target) -> Option<f64> {
    match target {
        Target::Mean => point.mean_s,
        Target::Quantile(wanted) => {
            let is_wanted = |quantile: f64| (quantile - wanted).abs() < 1e-9;
            point.quantiles.iter().find(|seen| is_wanted(seen.quantile)).map(|seen| seen.value_s)
        }
    }
}

/// Returns the points whose system kept up. A point that fell behind counts as saturated only when none at a higher rate kept up.
fn without_saturated<'a>(points: &'a [Point], notes: &mut Vec<FitNote>) -> Vec<&'a Point> {
    let rate = |point: &Point| point.arrival_rate_per_s.unwrap_or_default();
    let kept_up = |point: &Point| point.throughput_per_s.is_none_or(|throughput| throughput >= KEPT_UP * rate(point));
    let sure = |point: &&Point| point.throughput_per_s.is_some() && kept_up(point);
    let highest_kept = points.iter().filter(sure).map(rate).fold(0.0, f64::max);
    let (kept, saturated): (Vec<&Point>, Vec<&Point>) =
        points.iter().partition(|point| kept_up(point) || rate(point) < highest_kept);
    if !saturated.is_empty() {
        let rates_per_s = saturated.iter().map(|point| rate(point)).collect();
        let completed_most_per_s = saturated.iter().filter_map(|point| point.throughput_per_s).fold(0.0, f64::max);
        notes.push(FitNote::Saturated { kept_up_share: KEPT_UP, rates_per_s, completed_most_per_s });
    }
    kept
}

/// Returns the reason why a family cannot be fitted, whatever the values; `None` when it can.
fn lacks(family: &Family, observations: &[Observation], request: &Request) -> Option<String> {
    if family.needs == Needs::TimesFromIntended && request.around.timer == Timer::Sent {
        return Some("times from sending are not derived for this model; give times from the intended time".to_owned());
    }
    if family.needs == Needs::Workers && observations.iter().any(|seen| seen.workers.is_none()) {
        return Some("it needs the number of workers; add the column workers, or --workers N".to_owned());
    }
    family.not_fitted.map(str::to_owned)
}

fn fit_family(
    family: &'static Family,
    observations: &[Observation],
    sigma: Sigma,
    request: &Request,
) -> Result<Fit, String> {
    if let Some(because) = lacks(family, observations, request) {
        return Err(because);
    }
    let set = Set { family, observations, sigma, target: request.target };
    if family.needs == Needs::Servers && request.around.servers.is_none() {
        return fit_servers(&set, request.around);
    }
    set.fit(request.around, 0).map(|(fit, _)| fit)
}

/// Adds the notes that concern all fits.
fn add_notes(fits: &[Fit], observations: &[Observation], request: &Request, notes: &mut Vec<FitNote>) {
    if let Target::Quantile(_) = request.target {
        let workers = observations.iter().find_map(|seen| seen.workers).or(request.around.workers);
        let approximated: Vec<&str> = fits
            .iter()
            .filter(|fit| {
                let around = Surroundings { workers, servers: Some(2), ..request.around };
                let family = Family::find(fit.model);
                let values = |family: &Family| family.parameters.iter().map(|one| one.low.max(0.5)).collect::<Vec<_>>();
                family
                    .and_then(|family| (family.build)(&values(family), &around))
                    .is_some_and(|queue| !queue.has_quantiles())
            })
            .map(|fit| fit.title)
            .collect();
        if !approximated.is_empty() {
            notes.push(FitNote::Approximated { target: request.target.to_string(), models: approximated });
        }
    }
    if request.around.timer == Timer::Sent {
        notes.push(FitNote::TimesFromSending {});
    }
}
