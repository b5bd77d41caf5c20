//! What a fit says: parameters with their uncertainty, and how good the fit is.
//!
//! Main type: [`Fit`]. Invariant: a figure that the points do not give is `None` (null in JSON), never a guess.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use statrs::function::gamma::gamma_ur;

use super::least_squares::Minimum;
use super::problem::{Problem, Sigma};
use crate::queueing::family::{Family, Surroundings};
use crate::queueing::queue::Queue;
use crate::statistics::student::t_quantile;

/// An interval of a parameter; an end is infinite where the points give none, which JSON shows as null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.low, self.high].serialize(serializer)
    }
}

/// A parameter as fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Name, with its unit last.
    #[serde(skip)]
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Standard error: from the points' own errors where they are known, else scaled by the residuals. None where the points
    /// do not identify the parameter, and on a bound.
    pub se: Option<f64>,
    /// 95 % interval by profile, with the same errors as `se`; from scaled standard errors where the residuals are rounding,
    /// and where the model is off by more than 15 %.
    pub ci95: Option<Range>,
    /// Standard error scaled by the residuals: sqrt(chi² / df) times the one from the points' errors.
    pub se_scaled: Option<f64>,
    /// 95 % interval by profile with scaled errors.
    pub ci95_scaled: Option<Range>,
}

/// How well highest or single arrival rates are predicted by the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The loads that were left out: arrivals per second, or clients.
    pub loads: Vec<f64>,
    /// Predicted over observed minus 1; infinite (null) where overload was predicted.
    pub relative_errors: Vec<f64>,
    /// Root of their mean square; infinite (null) where overload was predicted.
    pub relative_error_rms: f64,
}

/// A model, fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Name of the model.
    pub model: &'static str,
    /// Name as people write it.
    pub title: &'static str,
    /// Parameters by name.
    #[serde(serialize_with = "by_name")]
    pub parameters: Vec<Estimate>,
    /// Correlations of the continuous parameters, in their order; none where the points do not identify them.
    pub correlation: Option<Vec<Vec<f64>>>,
    /// Sum of squared residuals over squared standard errors; in squared units of the figure without standard errors.
    pub chi2: f64,
    /// Degrees of freedom: observations minus parameters.
    pub df: usize,
    /// Probability of a chi² at least as large were the model true; none without standard errors or degrees of freedom.
    pub goodness_of_fit_p: Option<f64>,
    /// Akaike's criterion, corrected for few points (Hurvich and Tsai 1989); none with fewer than two points more than
    /// parameters.
    pub aicc: Option<f64>,
    /// Akaike weight among the models fitted, 0 to 1.
    pub weight: Option<f64>,
    /// Share of the weighted variance that the model explains.
    pub r2: Option<f64>,
    /// Root mean square of the relative residuals.
    pub relative_error_rms: f64,
    /// Highest stable arrival rate, or highest throughput of a closed loop, per second; none where there is no highest.
    pub capacity_per_s: Option<f64>,
    /// Each load predicted by the others.
    pub leave_one_out: Option<LeftOut>,
    /// The highest loads, a quarter of them, predicted by the lower ones.
    pub held_out: Option<LeftOut>,
}

fn by_name<S: Serializer>(parameters: &[Estimate], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(parameters.len()))?;
    for parameter in parameters {
        map.serialize_entry(parameter.name, parameter)?;
    }
    map.end()
}

impl Fit {
    /// The parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&Estimate> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// The model with the fitted parameters, to draw its curve and to find its arrival rates; `None` for models of closed
    /// loops, and when the surroundings lack the workers that it needs.
    pub fn queue(&self, around: &Surroundings) -> Option<Box<dyn Queue>> {
        let family = Family::find(self.model)?;
        let value = |name: &str| self.parameter(name).map(|parameter| parameter.value);
        let values: Vec<f64> = family.parameters.iter().map(|one| value(one.name)).collect::<Option<_>>()?;
        let servers = value("servers").map(|servers| servers as u32).or(around.servers);
        (family.build)(&values, &Surroundings { servers, ..*around })
    }
}

/// The 0.95 quantile of chi² with one degree of freedom.
const CHI2_95: f64 = 3.841_458_820_694_124;

/// Rises of chi² that bound 95 % intervals: with known errors, and t² chi² / df with errors scaled by the residuals.
pub fn chi2_rise(chi2: f64, df: usize) -> (f64, Option<f64>) {
    let scaled = (df > 0).then(|| t_quantile(0.975, df as f64).powi(2) * chi2 / df as f64);
    (CHI2_95, scaled.filter(|rise| *rise > 0.0))
}

/// Above this relative residual (root mean square) a model does not describe the points at all.
const RELATIVE_ERROR_HOPELESS: f64 = 0.15;

/// A parameter that takes whole values: all that were tried, one after the other.
pub struct Ladder<'a> {
    /// Its name.
    pub name: &'static str,
    /// The value with the lowest chi².
    pub value: u32,
    /// Values and their chi².
    pub tried: &'a [(u32, f64)],
}

/// All that a minimum says; the parameters are those of the problem, and the one of the ladder.
pub fn describe(
    (model, title): (&'static str, &'static str),
    problem: &Problem,
    best: &Minimum,
    sigma: Sigma,
    ladder: Option<Ladder>,
) -> Fit {
    let n = problem.observations.len();
    let count = problem.parameters.len() + usize::from(ladder.is_some());
    let df = n.saturating_sub(count);
    let (known, scaled) = problem.rises(best, count);
    let mut parameters = estimates(problem, best, sigma, (known, scaled), df);
    if let Some(ladder) = ladder {
        parameters.insert(0, whole_estimate(&ladder, sigma, (known, scaled)));
    }
    let is_tested = sigma == Sigma::Known && df > 0;
    Fit {
        model,
        title,
        parameters,
        correlation: correlation(best),
        chi2: best.chi2,
        df,
        goodness_of_fit_p: is_tested.then(|| chi2_exceeded(best.chi2, df)),
        aicc: aicc(problem, best.chi2, count, sigma),
        weight: None,
        r2: r2(problem, best.chi2),
        relative_error_rms: problem.relative_error_rms(&best.values),
        capacity_per_s: None,
        leave_one_out: leave_one_out(problem, best),
        held_out: held_out(problem, best),
    }
}

fn estimates(
    problem: &Problem,
    best: &Minimum,
    sigma: Sigma,
    (known, scaled): (f64, Option<f64>),
    df: usize,
) -> Vec<Estimate> {
    let factor = (df > 0).then(|| (best.chi2 / df as f64).sqrt());
    let is_rounding = best.chi2 <= squares(problem) * ROUNDING * ROUNDING * 1e-6;
    let is_hopeless = problem.relative_error_rms(&best.values) > RELATIVE_ERROR_HOPELESS;
    let describe_one = |index: usize| {
        let absolute = best.covariance.as_ref().map(|covariance| covariance[index][index].sqrt());
        let absolute = absolute.filter(|se| *se > 0.0 && se.is_finite());
        let se_scaled = absolute.zip(factor).map(|(se, factor)| se * factor);
        let profile = |rise: f64| problem.profile(best, index, absolute, rise);
        // Where the residuals are rounding chi² is too rough to be followed, and where the model is hopeless it is not worth it.
        let by_se = |se: f64| {
            let half = t_quantile(0.975, df as f64) * se;
            let (value, parameter) = (best.values[index], &problem.parameters[index]);
            Range { low: (value - half).max(parameter.low), high: (value + half).min(parameter.high) }
        };
        let ci95_scaled = if is_rounding || is_hopeless { se_scaled.map(by_se) } else { scaled.map(profile) };
        let (se, ci95) = match sigma {
            Sigma::Known if is_hopeless => (absolute, ci95_scaled),
            Sigma::Known => (absolute, Some(profile(known))),
            Sigma::Unknown => (se_scaled, ci95_scaled),
        };
        let (name, value) = (problem.parameters[index].name, best.values[index]);
        Estimate { name, value, se, ci95, se_scaled, ci95_scaled }
    };
    (0..best.values.len()).map(describe_one).collect()
}

/// A whole-numbered parameter: its interval holds the values at which chi² is not much above the best.
fn whole_estimate(ladder: &Ladder, sigma: Sigma, (known, scaled): (f64, Option<f64>)) -> Estimate {
    let Ladder { name, value, tried } = *ladder;
    let lowest = tried.iter().map(|(_, chi2)| *chi2).fold(f64::INFINITY, f64::min);
    let range = |rise: f64| {
        let kept: Vec<f64> =
            tried.iter().filter(|(_, chi2)| *chi2 <= lowest + rise).map(|(at, _)| f64::from(*at)).collect();
        let end = |pick: fn(f64, f64) -> f64| kept.iter().copied().fold(f64::from(value), pick);
        Range { low: end(f64::min), high: end(f64::max) }
    };
    let ci95_scaled = scaled.map(range);
    let ci95 = if sigma == Sigma::Known { Some(range(known)) } else { ci95_scaled };
    Estimate { name, value: f64::from(value), se: None, ci95, se_scaled: None, ci95_scaled }
}

fn correlation(best: &Minimum) -> Option<Vec<Vec<f64>>> {
    let covariance = best.covariance.as_ref()?;
    let one = |row: usize, column: usize| {
        let scale = (covariance[row][row] * covariance[column][column]).sqrt();
        if scale > 0.0 { covariance[row][column] / scale } else { f64::from(u8::from(row == column)) }
    };
    Some((0..covariance.len()).map(|row| (0..covariance.len()).map(|column| one(row, column)).collect()).collect())
}

/// P(chi² with df degrees of freedom exceeds a value).
pub fn chi2_exceeded(chi2: f64, df: usize) -> f64 {
    if chi2 <= 0.0 { 1.0 } else { gamma_ur(df as f64 / 2.0, chi2 / 2.0) }
}

/// Deviations below one millionth of the figures are rounding; a model is not preferred for having less of it.
const ROUNDING: f64 = 1e-6;

/// chi² + 2 k + 2 k (k + 1) / (n - k - 1) with known errors; else n ln(chi² / n) in place of chi², and the error's scale as
/// one more parameter.
fn aicc(problem: &Problem, chi2: f64, count: usize, sigma: Sigma) -> Option<f64> {
    let n = problem.observations.len();
    let k = if sigma == Sigma::Known { count } else { count + 1 };
    if n < k + 2 {
        return None;
    }
    let (size, k) = (n as f64, k as f64);
    let penalty = 2.0 * k + 2.0 * k * (k + 1.0) / (size - k - 1.0);
    let misfit = match sigma {
        Sigma::Known => chi2,
        Sigma::Unknown => size * (chi2.max(squares(problem) * ROUNDING * ROUNDING) / size).ln(),
    };
    Some(misfit + penalty)
}

/// Sum of the squared figures over their squared standard errors.
fn squares(problem: &Problem) -> f64 {
    problem.observations.iter().map(|seen| (seen.value / seen.se).powi(2)).sum()
}

fn r2(problem: &Problem, chi2: f64) -> Option<f64> {
    let weights: f64 = problem.observations.iter().map(|seen| seen.se.powi(-2)).sum();
    let centre = problem.observations.iter().map(|seen| seen.value * seen.se.powi(-2)).sum::<f64>() / weights;
    let total: f64 = problem.observations.iter().map(|seen| ((seen.value - centre) / seen.se).powi(2)).sum();
    (total > 0.0).then(|| 1.0 - chi2 / total)
}

fn left_out(loads: Vec<f64>, relative_errors: Vec<f64>) -> LeftOut {
    let mean = relative_errors.iter().map(|error| error * error).sum::<f64>() / relative_errors.len() as f64;
    LeftOut { loads, relative_errors, relative_error_rms: mean.sqrt() }
}

fn leave_one_out(problem: &Problem, best: &Minimum) -> Option<LeftOut> {
    let loads = problem.loads();
    let mut seen_loads = Vec::new();
    let mut errors = Vec::new();
    for load in loads {
        for error in problem.errors_of_left_out(best, |seen| seen.load == load)? {
            seen_loads.push(load);
            errors.push(error);
        }
    }
    (!errors.is_empty()).then(|| left_out(seen_loads, errors))
}

fn held_out(problem: &Problem, best: &Minimum) -> Option<LeftOut> {
    let loads = problem.loads();
    let first_high = loads.len() - loads.len().div_ceil(4);
    let from = *loads.get(first_high)?;
    let errors = problem.errors_of_left_out(best, |seen| seen.load >= from)?;
    let high: Vec<f64> = problem.observations.iter().map(|seen| seen.load).filter(|load| *load >= from).collect();
    Some(left_out(high, errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_chi2_agree_with_tables() {
        for (chi2, df, expected) in [(3.841_458_82, 1, 0.05), (12.591_587_24, 6, 0.05), (16.811_893_83, 6, 0.01)] {
            assert!((chi2_exceeded(chi2, df) / expected - 1.0).abs() < 1e-7, "{chi2} {df}");
        }
        assert_eq!(chi2_exceeded(0.0, 3), 1.0);
    }

    #[test]
    fn open_ends_are_null_in_json() {
        let range = Range { low: 1.0, high: f64::INFINITY };
        assert_eq!(serde_json::to_string(&range).unwrap(), "[1.0,null]");
    }
}
