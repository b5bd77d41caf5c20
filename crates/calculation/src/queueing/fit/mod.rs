//! Fitting of models to points: all applicable models, best first, and a verdict in words.
//!
//! Main function: [`fit`]. Main type: [`FitReport`]. Invariant: a model is called the best only when the points do not reject
//! it and do identify its capacity; otherwise the report says why no model is.

mod closed;
mod errors;
mod estimate;
mod least_squares;
mod matrix;
mod note;
mod open;
mod paper;
mod problem;
mod range;
mod select;
mod servers;
mod set;
mod verdict;

use serde::Serialize;

use super::family::Surroundings;
use super::points::Points;
use super::queue::{Target, Timer};

pub use closed::CLOSED_MODELS;
pub use estimate::{Estimate, Fit, LeftOut, Range};
pub use note::FitNote;
pub use paper::{PaperEstimate, PaperFit};
pub use verdict::{FitVerdict, show_parameter};

/// A request for a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name of a model, or `auto` for all models that the points allow.
    pub model: String,
    /// The figure of response time whose curve is fitted.
    pub target: Target,
    /// What is known about the system; the number of workers that a point names itself takes precedence.
    pub around: Surroundings,
}

impl Default for Request {
    fn default() -> Self {
        Request { model: "auto".to_owned(), target: Target::Mean, around: Surroundings::default() }
    }
}

/// The result of fitting models to points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// The models, best first.
    pub fits: Vec<Fit>,
    /// Name of the best model; none when no model fits.
    pub best: Option<&'static str>,
    /// Models that the points do not tell apart from the best: AICc within 2 of it.
    pub tie: Vec<&'static str>,
    /// The first of the models, whether it fits or not.
    pub closest: Option<&'static str>,
    /// The reason why no model fits.
    pub no_fit_because: Option<String>,
    /// The result in a sentence.
    pub verdict: FitVerdict,
    /// The figure that was fitted.
    pub target: String,
    /// The event at which times begin.
    pub timer: Timer,
    /// Points that were fitted.
    pub points: usize,
    /// Whether standard errors were given with the points, so that chi² tests the models.
    pub errors_known: bool,
    /// Models that were not fitted, with the reason.
    pub skipped: Vec<Skipped>,
    /// Notes that a reader should know.
    pub notes: Vec<FitNote>,
    /// The result of the paper's own procedure, for mean response times.
    pub paper: Option<PaperFit>,
}

/// Largest relative error with which a fitting model may predict points that it was not fitted to.
pub const LEFT_OUT_MOST: f64 = 0.25;

impl Fit {
    /// Returns whether the fit predicts each of the loads from the others within [`LEFT_OUT_MOST`], root mean square.
    pub fn predicts_what_was_left_out(&self) -> bool {
        self.leave_one_out.as_ref().is_some_and(|left_out| left_out.relative_error_rms <= LEFT_OUT_MOST)
    }
}

impl FitReport {
    /// Returns whether a model fits: false where the points reject it. `None` where the points cannot decide: they do not come near enough to the
    /// capacity, or they are too few to reject much, and the model does not predict one of them from the others.
    pub fn says_whether(&self, model: &str) -> Option<bool> {
        let fit = self.fits.iter().find(|fit| fit.model == model)?;
        if !select::describes(fit) {
            return Some(false);
        }
        let is_good = self.best.is_some_and(|best| best == model) || self.tie.contains(&model);
        (is_good && fit.predicts_what_was_left_out()).then_some(true)
    }
}

/// A model that was not fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Skipped {
    /// Name of the model.
    pub model: &'static str,
    /// The reason.
    pub because: String,
}

/// The reason why nothing can be fitted: the request does not match the points.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// No model has this name.
    #[error("unknown model \"{name}\"; known are auto, {known}")]
    UnknownModel {
        /// The name as written.
        name: String,
        /// All names.
        known: String,
    },
    /// The points lack something that is needed.
    #[error("{0}")]
    Missing(String),
    /// The model cannot be identified from points.
    #[error("{model} cannot be fitted: {because}")]
    NotFitted {
        /// Name of the model.
        model: &'static str,
        /// The reason, and what to do.
        because: String,
    },
}

/// Returns the names of all models that can be requested.
pub fn model_names() -> Vec<&'static str> {
    super::family::FAMILIES.iter().map(|family| family.name).chain(CLOSED_MODELS.iter().copied()).collect()
}

/// Fits models to points.
///
/// # Errors
/// When the request does not match the points; too few points give a report without a best model instead of an error.
pub fn fit(points: &Points, request: &Request) -> Result<FitReport, FitError> {
    let name = request.model.replace('_', "-");
    if name != "auto" && !model_names().contains(&name.as_str()) {
        return Err(FitError::UnknownModel { name: request.model.clone(), known: model_names().join(", ") });
    }
    let is_closed = CLOSED_MODELS.contains(&name.as_str())
        || name == "auto" && points.0.iter().all(|point| point.arrival_rate_per_s.is_none());
    if is_closed { closed::fit_closed(points, &name) } else { open::fit_open(points, &name, request) }
}
