//! Ranking of fits: weights, ties, and whether any of them fits at all.
//!
//! Main function: [`select`]. Invariant: models are ranked by AICc over the same observations; those without one come last.

use super::estimate::{Fit, GOODNESS_LEAST};
use super::note::FitNote;
use super::paper::PaperFit;
use super::problem::{Observation, Sigma};
use super::verdict::{show_share, verdict};
use super::{FitReport, Skipped};
use crate::queueing::queue::Timer;
use crate::units::show_number;

/// The results before the ranking.
pub struct Collected {
    /// The fits, in any order.
    pub fits: Vec<Fit>,
    /// Models that were not fitted.
    pub skipped: Vec<Skipped>,
    /// Notes made so far.
    pub notes: Vec<FitNote>,
    /// The observations that were fitted.
    pub observations: Vec<Observation>,
    /// What is known of the standard errors.
    pub sigma: Sigma,
    /// The figure that was fitted.
    pub target: String,
    /// The event at which times begin.
    pub timer: Timer,
    /// The result of the paper's procedure.
    pub paper: Option<PaperFit>,
    /// The unit of the loads, for messages.
    pub unit: &'static str,
}

/// Largest difference of AICc at which models are not told apart (Burnham and Anderson 2002, chapter 2).
const TIE: f64 = 2.0;
/// Without known errors: largest residuals, relative to the figures, of a model that describes them.
const RELATIVE_ERROR_MOST: f64 = 0.15;
/// Largest width of the capacity parameter's interval, relative to its value, at which the capacity is identified.
const WIDTH_MOST: f64 = 1.0;
/// Error in predicting the highest loads from the lower ones that is worth a note.
const HELD_OUT_NOTED: f64 = 0.2;

/// Ranks fits and interprets them.
pub fn select(collected: Collected) -> FitReport {
    let Collected { mut fits, skipped, mut notes, observations, sigma, target, timer, paper, unit } = collected;
    give_weights(&mut fits);
    fits.sort_by(by_order);
    let load_max = observations.iter().map(|seen| seen.load).fold(0.0, f64::max);
    let lowest = fits.iter().filter(|fit| describes(fit)).filter_map(|fit| fit.aicc).fold(f64::INFINITY, f64::min);
    let fits_well = |fit: &&Fit| describes(fit) && is_identified(fit, load_max) && is_lowest(fit, lowest);
    let best = fits.iter().find(fits_well);
    let tie = best.map(|best| tied(best, &fits)).unwrap_or_default();
    let no_fit_because = best.is_none().then(|| why_none(&fits, &skipped, &observations, load_max, unit));
    if let Some(fit) = best.or(fits.first()) {
        notes.extend(notes_on(fit, load_max, unit));
    }
    if observations.len() < 8 && !fits.is_empty() {
        notes.push(FitNote::FewPoints { points: observations.len() });
    }
    let closest = fits.first().map(|fit| fit.model);
    let verdict = verdict(best, &fits, &tie, no_fit_because.as_deref(), observations.len(), &target);
    FitReport {
        best: best.map(|fit| fit.model),
        tie,
        closest,
        no_fit_because,
        verdict,
        target,
        timer,
        points: observations.len(),
        errors_known: sigma != Sigma::Unknown,
        skipped,
        notes,
        paper,
        fits,
    }
}

/// Orders by AICc, the lowest first. Models with the same curve, as M/G/1 and the scaled M/M/1 often have, differ by rounding alone; they remain
/// in the order of the registry, because the sort is stable.
fn by_order(a: &Fit, b: &Fit) -> std::cmp::Ordering {
    let aicc = |fit: &Fit| fit.aicc.map_or(f64::INFINITY, |aicc| (aicc / SAME).round() * SAME);
    let of = |fit: &Fit| (aicc(fit), fit.parameters.len(), (fit.chi2 / SAME).round());
    let (a, b) = (of(a), of(b));
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.total_cmp(&b.2))
}

/// Largest difference of AICc between fits of the same curve.
const SAME: f64 = 1e-4;

/// Akaike weights: exp(-difference / 2) over their sum (Burnham and Anderson 2002, chapter 2).
fn give_weights(fits: &mut [Fit]) {
    let lowest = fits.iter().filter_map(|fit| fit.aicc).fold(f64::INFINITY, f64::min);
    let share = |fit: &Fit| fit.aicc.map(|aicc| (-(aicc - lowest) / 2.0).exp());
    let total: f64 = fits.iter().filter_map(share).sum();
    fits.iter_mut().for_each(|fit| fit.weight = share(fit).map(|share| share / total));
}

fn tied(best: &Fit, fits: &[Fit]) -> Vec<&'static str> {
    let Some(lowest) = best.aicc else { return Vec::new() };
    let is_near = |fit: &&Fit| fit.aicc.is_some_and(|aicc| (aicc - lowest).abs() < TIE);
    fits.iter().filter(|fit| fit.model != best.model).filter(is_near).map(|fit| fit.model).collect()
}

/// Returns whether the points prefer no other model that describes them: none has an AICc lower by more than a tie. A model that alone
/// locates the capacity, and is less likely than models that do not, says more than the points do.
fn is_lowest(fit: &Fit, lowest: f64) -> bool {
    lowest.is_infinite() || fit.aicc.is_some_and(|aicc| aicc - lowest < TIE)
}

/// Returns whether the points do not reject the fit.
pub(super) fn describes(fit: &Fit) -> bool {
    match fit.goodness_of_fit_p {
        Some(p) => p >= GOODNESS_LEAST,
        None => fit.relative_error_rms <= RELATIVE_ERROR_MOST,
    }
}

/// Returns whether the points locate the capacity: they come near enough to it, and its parameter has a narrow interval.
fn is_identified(fit: &Fit, load_max: f64) -> bool {
    let is_near = fit.capacity_per_s.is_none_or(|capacity| load_max > 0.1 * capacity);
    let Some(mu) = fit.parameter("mu_per_s") else { return fit.parameter("x_s").is_none() || is_near };
    let is_narrow = match (fit.capacity_ci95, fit.capacity_per_s) {
        (Some(range), Some(capacity)) => range.high - range.low <= WIDTH_MOST * capacity,
        _ => true,
    };
    // Without degrees of freedom no points give a standard error; with several numbers of servers mu has none.
    is_near && is_narrow && (mu.se.is_some() || fit.df == 0 || fit.parameter("servers").is_some())
}

fn why_none(fits: &[Fit], skipped: &[Skipped], observations: &[Observation], load_max: f64, unit: &str) -> String {
    let Some(closest) = fits.first() else {
        let mut loads: Vec<f64> = observations.iter().map(|seen| seen.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let reason = skipped.first().map(|skipped| format!(" ({}: {})", skipped.model, skipped.because));
        return format!(
            "nothing could be fitted to {} {unit}{}; measure more",
            loads.len(),
            reason.unwrap_or_default()
        );
    };
    if let Some(fit) = fits.iter().find(|fit| describes(fit)) {
        let capacity = fit.capacity_per_s.unwrap_or_default();
        return format!(
            "the points do not identify the capacity: {} puts it at {}/s, and the highest arrival rate is {}/s; measure at \
             higher rates",
            fit.title,
            show_number(capacity),
            show_number(load_max)
        );
    }
    let error = show_share(closest.relative_error_rms);
    match closest.goodness_of_fit_p {
        Some(p) => format!(
            "every model is rejected (goodness of fit p below {GOODNESS_LEAST}); the closest, {}, has p = {p:.2e} and is off by \
             {error} (root mean square)",
            closest.title
        ),
        None => format!("the closest, {}, is off by {error} (root mean square)", closest.title),
    }
}

/// Returns a note on the other model with the same curve. M/G/1 is a scaled M/M/1 with a = (1 + cv²) / 2 and the delay moved by (1 - a) / mu; where that
/// would make a delay negative, only one of the two has the curve.
fn note_on_scale(fit: &Fit) -> Option<FitNote> {
    let mu_per_s = fit.parameter("mu_per_s")?.value;
    let delta_s = fit.parameter("delta_s")?.value;
    if let Some(cv2) = fit.parameter("cv2") {
        let scale = (1.0 + cv2.value) / 2.0;
        let scaled = delta_s + (1.0 - scale) / mu_per_s;
        return Some(FitNote::SameAsScaled { cv2: cv2.value, scale, is_there: scaled >= 0.0 });
    }
    let scale = fit.parameter("a")?.value;
    let cv2 = 2.0 * scale - 1.0;
    let is_general = cv2 >= 0.0 && delta_s + (scale - 1.0) / mu_per_s >= 0.0;
    Some(FitNote::SameAsGeneral { scale, cv2: is_general.then_some(cv2) })
}

/// Returns the notes on the model that comes first.
fn notes_on(fit: &Fit, load_max: f64, unit: &str) -> Vec<FitNote> {
    let mut notes = Vec::new();
    for parameter in fit.parameters.iter().filter(|one| one.value == 0.0) {
        notes.push(FitNote::OnBound { model: fit.title, parameter: parameter.name.to_string() });
    }
    if fit.model == "mm1" {
        notes.push(FitNote::DisciplineUnknown {});
    }
    notes.extend(note_on_scale(fit));
    if let Some(capacity) = fit.capacity_per_s.filter(|capacity| *capacity > 0.0 && unit == "arrival rates") {
        let reached = load_max / capacity;
        if reached < 0.7 {
            notes.push(FitNote::Extrapolated { capacity_share: reached });
        }
    }
    if let Some(held_out) = fit.held_out.as_ref().filter(|held_out| held_out.relative_error_rms > HELD_OUT_NOTED) {
        let relative_error_rms = held_out.relative_error_rms;
        notes.push(FitNote::DoNotExtrapolate { model: fit.title, relative_error_rms });
    }
    notes
}
