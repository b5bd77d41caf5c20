//! Fitting models to points: all models that can be, best first, and a verdict in words.
//!
//! Main function: [`fit`]. Main type: [`FitReport`]. Invariant: a model is called the best only when the points do not reject
//! it and do identify its capacity; otherwise the report says why none is.

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

/// What is to be fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name of a model, or `auto` for all that the points allow.
    pub model: String,
    /// The figure of response time whose curve is fitted.
    pub target: Target,
    /// What is known of the system; workers that a point names itself go before.
    pub around: Surroundings,
}

impl Default for Request {
    fn default() -> Self {
        Request { model: "auto".to_owned(), target: Target::Mean, around: Surroundings::default() }
    }
}

/// What models say about points.
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
    /// Why no model fits.
    pub no_fit_because: Option<String>,
    /// All of it in a sentence.
    pub verdict: FitVerdict,
    /// The figure that was fitted.
    pub target: String,
    /// Where times begin.
    pub timer: Timer,
    /// Points that were fitted.
    pub points: usize,
    /// Whether standard errors were given with the points, so that chi² tests the models.
    pub errors_known: bool,
    /// Models that were not fitted, with the reason.
    pub skipped: Vec<Skipped>,
    /// What is to be known about it.
    pub notes: Vec<FitNote>,
    /// The paper's own procedure, for mean response times.
    pub paper: Option<PaperFit>,
}

/// A model that fits predicts points that it was not fitted to within this share of them.
pub const LEFT_OUT_MOST: f64 = 0.25;

impl Fit {
    /// Whether it predicts each of the loads from the others within [`LEFT_OUT_MOST`], root mean square.
    pub fn predicts_what_was_left_out(&self) -> bool {
        self.leave_one_out.as_ref().is_some_and(|left_out| left_out.relative_error_rms <= LEFT_OUT_MOST)
    }
}

impl FitReport {
    /// Whether a model fits: not where the points reject it. None where that cannot be told: they do not reach near enough to the
    /// capacity, or so few points are not rejected by much, and the model does not predict one of them from the others.
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
    /// Its name.
    pub model: &'static str,
    /// Why.
    pub because: String,
}

/// Why nothing can be fitted: the request does not match the points.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// No model has this name.
    #[error("unknown model \"{name}\"; known are auto, {known}")]
    UnknownModel {
        /// As written.
        name: String,
        /// All names.
        known: String,
    },
    /// The points lack what is needed.
    #[error("{0}")]
    Missing(String),
    /// The model cannot be identified from points.
    #[error("{model} cannot be fitted: {because}")]
    NotFitted {
        /// Its name.
        model: &'static str,
        /// Why, and what to do.
        because: String,
    },
}

/// Names of all models that can be asked for.
pub fn model_names() -> Vec<&'static str> {
    super::family::FAMILIES.iter().map(|family| family.name).chain(CLOSED_MODELS.iter().copied()).collect()
}

/// Fits models to points.
///
/// # Errors
/// When the request does not match the points; too few points are no error but a report without a best model.
pub fn fit(points: &Points, request: &Request) -> Result<FitReport, FitError> {
    let name = request.model.replace('_', "-");
    if name != "auto" && !model_names().contains(&name.as_str()) {
        return Err(FitError::UnknownModel { name: request.model.clone(), known: model_names().join(", ") });
    }
    let is_closed = CLOSED_MODELS.contains(&name.as_str())
        || name == "auto" && points.0.iter().all(|point| point.arrival_rate_per_s.is_none());
    if is_closed { closed::fit_closed(points, &name) } else { open::fit_open(points, &name, request) }
}
