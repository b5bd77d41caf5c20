//! Verdicts on fits, in words.
//!
//! Main function: [`verdict`]. Invariant: every number has its unit, its interval where there is one, and n.

use serde::Serialize;

use super::estimate::{Estimate, Fit};
use crate::said::said;
use crate::units::{show_number, show_seconds};

/// Whether a model fits, and the model that does. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum FitVerdict {
    /// A model describes the points.
    #[error("{words}")]
    Fits {
        /// The model that describes them best.
        model: &'static str,
        /// Models that the points do not distinguish from it.
        tie: Vec<&'static str>,
        /// Points that were fitted.
        points: usize,
        /// Relative error of the model, root mean square.
        relative_error_share: f64,
        /// The sentence, with parameters and their intervals.
        #[serde(skip)]
        words: String,
    },
    /// No model describes the points.
    #[error("No model fits the {target}: {because}; n = {points} points.")]
    NoFit {
        /// The figure that was fitted.
        target: String,
        /// The reason.
        because: String,
        /// Points that were fitted.
        points: usize,
    },
}

said!(FitVerdict);

/// Returns the verdict on the fits.
pub fn verdict(
    best: Option<&Fit>,
    fits: &[Fit],
    tie: &[&'static str],
    no_fit_because: Option<&str>,
    points: usize,
    target: &str,
) -> FitVerdict {
    let Some(best) = best else {
        let because = no_fit_because.unwrap_or("nothing was fitted").to_owned();
        return FitVerdict::NoFit { target: target.to_owned(), because, points };
    };
    let parameters: Vec<String> = best.parameters.iter().map(show_parameter).collect();
    let mut text = format!("{} fits best: {}, n = {points} points", best.title, parameters.join(", "));
    match best.goodness_of_fit_p {
        Some(p) => text.push_str(&format!("; chi²/df = {:.2}/{} (p = {p:.2})", best.chi2, best.df)),
        None => text.push_str(&format!("; off by {} (root mean square)", show_share(best.relative_error_rms))),
    }
    if let Some(error) = best.leave_one_out.as_ref().map(|left_out| left_out.relative_error_rms) {
        let error = if error.is_finite() { show_share(error) } else { "overload".to_owned() };
        text.push_str(&format!("; points left out are predicted within {error}"));
    }
    let title = |model: &&'static str| fits.iter().find(|fit| fit.model == *model).map_or(*model, |fit| fit.title);
    if !tie.is_empty() {
        let names: Vec<&str> = tie.iter().map(title).collect();
        text.push_str(&format!("; the points do not tell it from {} (AICc within 2)", names.join(" and ")));
    }
    let (model, relative_error_share) = (best.model, best.relative_error_rms);
    FitVerdict::Fits { model, tie: tie.to_vec(), points, relative_error_share, words: text + "." }
}

/// Shows a parameter as `mu = 1,000/s [993, 1,008]`; an open end of the interval is `-`.
pub fn show_parameter(parameter: &Estimate) -> String {
    let (name, show): (&str, fn(f64) -> String) = match parameter.name {
        name if name.ends_with("_per_s") => {
            (name.trim_end_matches("_per_s"), |value| format!("{}/s", show_number(value)))
        }
        name if name.ends_with("_s") => (name.trim_end_matches("_s"), show_seconds),
        name => (name, |value| show_plain(value)),
    };
    let value = show(parameter.value);
    match parameter.ci95 {
        Some(range) => {
            let end = |end: f64| show(end).trim_end_matches("/s").to_owned();
            format!("{name} = {value} [{}, {}]", end(range.low), end(range.high))
        }
        None => format!("{name} = {value}"),
    }
}

/// Shows a number without unit with three significant digits, however small.
fn show_plain(value: f64) -> String {
    if !value.is_finite() {
        "-".to_owned()
    } else if value != 0.0 && value.abs() < 0.001 {
        format!("{value:.2e}")
    } else {
        show_number(value)
    }
}

/// Shows a share as `2.1 %`.
pub fn show_share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
