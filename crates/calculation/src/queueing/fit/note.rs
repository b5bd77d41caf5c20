//! Notes on fits. Main type: [`FitNote`].

use serde::Serialize;

use super::verdict::show_share;
use crate::said::said;
use crate::units::show_number;

/// A note that qualifies fits. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum FitNote {
    /// Points lack the figure that is fitted.
    #[error("{points} points have no {target} and are left out")]
    WithoutFigure {
        /// Number of such points.
        points: usize,
        /// The figure.
        target: String,
    },
    /// The system did not keep up at some points.
    #[error(
        "left out as above saturation (throughput below {} % of the arrival rate): {}/s; the most completed there was {}/s",
        100.0 * kept_up_share,
        rates_per_s.iter().map(|rate| show_number(*rate)).collect::<Vec<_>>().join(", "),
        show_number(*completed_most_per_s)
    )]
    Saturated {
        /// Throughput as a share of the arrival rate, below which a point is left out.
        kept_up_share: f64,
        /// Arrival rates of these points.
        rates_per_s: Vec<f64>,
        /// The highest throughput among these points.
        completed_most_per_s: f64,
    },
    /// Standard errors are pooled along a trend over the points.
    #[error(
        "standard errors come from trials, {freedom:.1} degrees of freedom each: they are pooled over the points, along their trend"
    )]
    ErrorsPooled {
        /// Degrees of freedom of each standard error.
        freedom: f64,
    },
    /// Standard errors are taken to be proportional to those of the mean.
    #[error(
        "standard errors of {target} are not known; they are taken as proportional to those of the mean, and estimated from the residuals, \
         so the fit itself is not tested"
    )]
    ErrorsOfMean {
        /// The figure.
        target: String,
    },
    /// Not every point has a standard error.
    #[error(
        "not every point has a standard error: all weigh the same, so the slowest decide, and the fit itself is not tested; give se_s for all \
         to change that"
    )]
    ErrorsUnknown {},
    /// Points are from closed loops.
    #[error("points of closed loops have no standard errors: all weigh the same")]
    ClosedLoops {},
    /// Some models do not give the quantile.
    #[error(
        "the {target} of {} is approximated by that of an exponential response time with the model's mean",
        models.join(", ")
    )]
    Approximated {
        /// The figure.
        target: String,
        /// Titles of the models.
        models: Vec<&'static str>,
    },
    /// Times do not include the wait for a worker.
    #[error("times begin when a worker sends: waiting for a worker is not in them, and the curves allow for it")]
    TimesFromSending {},
    /// There are few points.
    #[error("{points} points are few; 8 rates up to near saturation tell models apart better")]
    FewPoints {
        /// Number of points.
        points: usize,
    },
    /// A parameter is at its lower bound.
    #[error("{model}: {parameter} stands on its bound, 0")]
    OnBound {
        /// Title of the model.
        model: &'static str,
        /// The parameter.
        parameter: String,
    },
    /// Mean times do not tell the queueing discipline.
    #[error("mean times do not tell first come first served from processor sharing; quantiles differ")]
    DisciplineUnknown {},
    /// A scaled M/M/1 has the curve of an M/G/1.
    #[error(
        "cv² = {}: {} M/M/1 scaled by a = {} has this curve of means",
        show_number(*cv2),
        if *is_there { "the" } else { "no" },
        show_number(*scale)
    )]
    SameAsScaled {
        /// Squared coefficient of variation of the service time.
        cv2: f64,
        /// The scale.
        scale: f64,
        /// Whether such a model exists: its delay would not be negative.
        is_there: bool,
    },
    /// An M/G/1 has the curve of a scaled M/M/1.
    #[error(
        "a = {}: the same mean curve as {}{}",
        show_number(*scale),
        cv2.map_or("no M/G/1".to_owned(), |cv2| format!("M/G/1 with cv² = {}", show_number(cv2))),
        if *scale > 1.0 { ", and that of a server that stalls" } else { "" }
    )]
    SameAsGeneral {
        /// The scale.
        scale: f64,
        /// Squared coefficient of variation of the service time of that M/G/1; null where there is none.
        cv2: Option<f64>,
    },
    /// Loads are far below the capacity.
    #[error(
        "the highest arrival rate is {} of the fitted capacity; beyond it the curve is extrapolated",
        show_share(*capacity_share)
    )]
    Extrapolated {
        /// The highest arrival rate over the capacity.
        capacity_share: f64,
    },
    /// The highest loads differ from the prediction of the lower ones.
    #[error("{model}: fitted to the lower loads alone it predicts {} at the highest; do not extrapolate", show_error(*relative_error_rms))]
    DoNotExtrapolate {
        /// Title of the model.
        model: &'static str,
        /// Its relative error at the highest loads, root mean square; null where it predicts overload.
        relative_error_rms: f64,
    },
}

said!(FitNote);

fn show_error(relative_error_rms: f64) -> String {
    if relative_error_rms.is_finite() {
        format!("{} off", show_share(relative_error_rms))
    } else {
        "overload".to_owned()
    }
}
