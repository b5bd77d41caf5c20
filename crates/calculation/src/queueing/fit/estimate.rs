//! The result of a fit: parameters with their uncertainty, and the goodness of the fit.
//!
//! Main type: [`Fit`]. Invariant: a figure that the points do not give is `None` (null in JSON), never a guess.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::gamma_ur;

use super::least_squares::Minimum;
use super::problem::{Problem, Sigma};
pub use super::range::Range;
use crate::queueing::family::{Family, Surroundings};
use crate::queueing::queue::Queue;
use crate::statistics::student::{DF_NORMAL, t_quantile};

/// A parameter as fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Name, with its unit last.
    #[serde(skip)]
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Standard error: from the points' own errors where they are known, otherwise scaled by the residuals. `None` where the points
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

/// The quality of predictions of the highest arrival rates, or of single ones, by the others.
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
    /// Name for people.
    pub title: &'static str,
    /// Parameters by name.
    #[serde(serialize_with = "by_name")]
    pub parameters: Vec<Estimate>,
    /// Correlations of the continuous parameters, in their order; `None` where the points do not identify them.
    pub correlation: Option<Vec<Vec<f64>>>,
    /// Sum of squared residuals over squared standard errors; in squared units of the figure without standard errors.
    pub chi2: f64,
    /// Degrees of freedom: observations minus parameters.
    pub df: usize,
    /// Probability of a chi² at least as large if the model were true, by F where standard errors come from few trials; `None` without
    /// standard errors or degrees of freedom.
    pub goodness_of_fit_p: Option<f64>,
    /// Akaike's criterion, corrected for few points (Hurvich and Tsai 1989); `None` with fewer than two points more than
    /// parameters.
    pub aicc: Option<f64>,
    /// Akaike weight among the models fitted, 0 to 1.
    pub weight: Option<f64>,
    /// Share of the weighted variance that the model explains.
    pub r2: Option<f64>,
    /// Root mean square of the relative residuals.
    pub relative_error_rms: f64,
    /// Highest stable arrival rate, or highest throughput of a closed loop, per second; `None` where there is no highest.
    pub capacity_per_s: Option<f64>,
    /// 95 % interval of the capacity; `None` where the model's parameters give no direct interval.
    pub capacity_ci95: Option<Range>,
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
    /// Returns the parameter with a name.
    pub fn parameter(&self, name: &str) -> Option<&Estimate> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Returns the model with the fitted parameters, for its curve and its arrival rates; `None` for models of closed
    /// loops, and when the surroundings lack the workers that it needs.
    pub fn queue(&self, around: &Surroundings) -> Option<Box<dyn Queue>> {
        let family = Family::find(self.model)?;
        let value = |name: &str| self.parameter(name).map(|parameter| parameter.value);
        let values: Vec<f64> = family.parameters.iter().map(|one| value(one.name)).collect::<Option<_>>()?;
        let servers = value("servers").map(|servers| servers as u32).or(around.servers);
        (family.build)(&values, &Surroundings { servers, ..*around })
    }
}

/// Rises of chi² that bound 95 % intervals: t² with the degrees of freedom of the errors, 3.84 where they are known; and t² chi² / df
/// with errors scaled by the residuals.
#[derive(Debug, Clone, Copy)]
pub struct Rises {
    /// Rise by the errors themselves; `None` where they are not known.
    pub own: Option<f64>,
    /// Rise by the residuals; `None` without degrees of freedom.
    pub scaled: Option<f64>,
}

impl Rises {
    fn of(chi2: f64, df: usize, sigma: Sigma) -> Self {
        let square = |freedom: f64| t_quantile(0.975, freedom).powi(2);
        let scaled = (df > 0).then(|| square(df as f64) * chi2 / df as f64);
        Rises { own: sigma.freedom().map(square), scaled: scaled.filter(|rise| *rise > 0.0) }
    }

    /// Returns the rise that gives the interval.
    pub fn chosen(&self) -> Option<f64> {
        self.own.or(self.scaled)
    }
}

/// Probability of its residuals below which a model is rejected.
pub const GOODNESS_LEAST: f64 = 0.01;
/// Relative residual (root mean square) above which a model does not describe the points at all.
const RELATIVE_ERROR_HOPELESS: f64 = 0.15;

/// Describes the parameters of a problem at its minimum; `varied` further parameters were varied outside the problem and took their best value.
pub fn describe(
    (model, title): (&'static str, &'static str),
    problem: &Problem,
    best: &Minimum,
    sigma: Sigma,
    varied: usize,
) -> (Fit, Rises) {
    let count = problem.parameters.len() + varied;
    let df = problem.observations.len().saturating_sub(count);
    let rises = Rises::of(best.chi2, df, sigma);
    let goodness_of_fit_p = sigma.freedom().filter(|_| df > 0).map(|freedom| exceeded(best.chi2, df, freedom));
    let fit = Fit {
        model,
        title,
        parameters: estimates(problem, best, rises, df, goodness_of_fit_p),
        correlation: correlation(best),
        chi2: best.chi2,
        df,
        goodness_of_fit_p,
        aicc: aicc(problem, best.chi2, count, sigma),
        weight: None,
        r2: r2(problem, best.chi2),
        relative_error_rms: problem.relative_error_rms(&best.values),
        capacity_per_s: None,
        capacity_ci95: None,
        leave_one_out: leave_one_out(problem, best),
        held_out: held_out(problem, best),
    };
    (fit, rises)
}

fn estimates(
    problem: &Problem,
    best: &Minimum,
    rises: Rises,
    df: usize,
    goodness_of_fit_p: Option<f64>,
) -> Vec<Estimate> {
    let factor = (df > 0).then(|| (best.chi2 / df as f64).sqrt());
    let is_rounding = best.chi2 <= squares(problem) * ROUNDING * ROUNDING * 1e-6;
    // Near saturation few trials may be that far off by chance: their own errors decide whether it is chance.
    let is_hopeless = problem.relative_error_rms(&best.values) > RELATIVE_ERROR_HOPELESS
        && goodness_of_fit_p.is_none_or(|p| p < GOODNESS_LEAST);
    let others = if is_rounding {
        Vec::new()
    } else {
        problem.others(best, rises.own.unwrap_or(0.0).max(rises.scaled.unwrap_or(0.0)))
    };
    let describe_one = |index: usize| {
        let absolute = best.covariance.as_ref().map(|covariance| covariance[index][index].sqrt());
        let absolute = absolute.filter(|se| *se > 0.0 && se.is_finite());
        let se_scaled = absolute.zip(factor).map(|(se, factor)| se * factor);
        let profile = |rise: f64| {
            let near = others.iter().filter(|other| other.chi2 < best.chi2 + rise);
            near.fold(problem.profile(best, index, absolute, rise), |range, other| {
                range.hull(problem.profile(other, index, None, best.chi2 + rise - other.chi2))
            })
        };
        // Where the residuals are rounding, chi² is too rough to be followed, and where the model is hopeless it is not worth it.
        let by_se = |se: f64| {
            let half = t_quantile(0.975, df as f64) * se;
            let (value, parameter) = (best.values[index], &problem.parameters[index]);
            Range { low: (value - half).max(parameter.low), high: (value + half).min(parameter.high) }
        };
        let ci95_scaled = if is_rounding || is_hopeless { se_scaled.map(by_se) } else { rises.scaled.map(profile) };
        let (se, ci95) = match rises.own {
            Some(_) if is_hopeless => (absolute, ci95_scaled),
            Some(rise) => (absolute, Some(profile(rise))),
            None => (se_scaled, ci95_scaled),
        };
        let (name, value) = (problem.parameters[index].name, best.values[index]);
        Estimate { name, value, se, ci95, se_scaled, ci95_scaled }
    };
    (0..best.values.len()).map(describe_one).collect()
}

fn correlation(best: &Minimum) -> Option<Vec<Vec<f64>>> {
    let covariance = best.covariance.as_ref()?;
    let one = |row: usize, column: usize| {
        let scale = (covariance[row][row] * covariance[column][column]).sqrt();
        if scale > 0.0 { covariance[row][column] / scale } else { f64::from(u8::from(row == column)) }
    };
    Some((0..covariance.len()).map(|row| (0..covariance.len()).map(|column| one(row, column)).collect()).collect())
}

/// Returns the probability of residuals at least as large if the model were true: chi² over its degrees of freedom is F distributed with those of
/// the errors, and chi² distributed where the errors are known.
pub fn exceeded(chi2: f64, df: usize, freedom: f64) -> f64 {
    if chi2 <= 0.0 {
        return 1.0;
    }
    let half = df as f64 / 2.0;
    if freedom >= DF_NORMAL {
        gamma_ur(half, chi2 / 2.0)
    } else {
        beta_reg(freedom / 2.0, half, freedom / (freedom + chi2))
    }
}

/// Deviations below one millionth of the figures are rounding; a model is not preferred for having fewer of them.
const ROUNDING: f64 = 1e-6;

/// Returns chi² + 2 k + 2 k (k + 1) / (n - k - 1) with known errors. With errors of nu degrees of freedom (nu + n) ln(1 + chi² / nu) replaces
/// chi², the likelihood of residuals that are jointly t distributed; with none n ln(chi² / n), and the error's scale as one more
/// parameter.
fn aicc(problem: &Problem, chi2: f64, count: usize, sigma: Sigma) -> Option<f64> {
    let n = problem.observations.len();
    let k = if sigma == Sigma::Unknown { count + 1 } else { count };
    if n < k + 2 {
        return None;
    }
    let (size, k) = (n as f64, k as f64);
    let penalty = 2.0 * k + 2.0 * k * (k + 1.0) / (size - k - 1.0);
    let misfit = match sigma {
        Sigma::Known => chi2,
        Sigma::Estimated(freedom) => (freedom + size) * (chi2 / freedom).ln_1p(),
        Sigma::Unknown => size * (chi2.max(squares(problem) * ROUNDING * ROUNDING) / size).ln(),
    };
    Some(misfit + penalty)
}

/// Returns the sum of the squared figures over their squared standard errors.
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
            assert!((exceeded(chi2, df, f64::INFINITY) / expected - 1.0).abs() < 1e-7, "{chi2} {df}");
        }
        assert_eq!(exceeded(0.0, 3, 4.0), 1.0);
    }

    #[test]
    fn probabilities_of_f_agree_with_tables() {
        for (f, df, freedom, expected) in
            [(5.786_135, 2, 5.0, 0.05), (10.127_964, 1, 3.0, 0.05), (2.866_081, 4, 20.0, 0.05)]
        {
            let found = exceeded(f * df as f64, df, freedom);
            assert!((found / expected - 1.0).abs() < 1e-5, "{f} {df} {freedom}: {found}");
        }
    }

    #[test]
    fn open_ends_are_null_in_json() {
        let range = Range { low: 1.0, high: f64::INFINITY };
        assert_eq!(serde_json::to_string(&range).unwrap(), "[1.0,null]");
    }
}
