//! A curve, its observations, and the best parameters: solving, intervals by profile, prediction of left-out observations.
//!
//! Main type: [`Problem`]. Invariant: leaving observations out changes nothing else about a problem.

use super::least_squares::{Minimum, STEPS_MAX, minimise};
use super::range::Range;
use crate::queueing::family::Parameter;

/// One observed figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Arrival rate per second, or number of clients.
    pub load: f64,
    /// Number of workers in front of the system.
    pub workers: Option<u32>,
    /// The figure, in seconds or completed operations per second.
    pub value: f64,
    /// Its standard error in the same unit, or, where [`Sigma`] is unknown, a value proportional to it.
    pub se: f64,
}

/// Whether standard errors are known, or only their ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sigma {
    /// Known: chi² tests the model.
    Known,
    /// Estimated from trials, each error worth so many degrees of freedom: F tests the model, and Student's t bounds parameters.
    Estimated(f64),
    /// Known up to a factor, which is estimated from the residuals; chi² does not test the model.
    Unknown,
}

impl Sigma {
    /// Returns the degrees of freedom of each standard error; infinite where errors are known, `None` where they are not.
    pub fn freedom(self) -> Option<f64> {
        match self {
            Sigma::Known => Some(f64::INFINITY),
            Sigma::Estimated(freedom) => Some(freedom),
            Sigma::Unknown => None,
        }
    }
}

/// A function that gives the figure for parameters and an observation's load; `None` where there is none.
pub type Curve<'a> = &'a dyn Fn(&[f64], &Observation) -> Option<f64>;

/// A fit to be computed.
pub struct Problem<'a> {
    /// The parameters that are varied.
    pub parameters: &'a [Parameter],
    /// The observed figures.
    pub observations: Vec<Observation>,
    /// The curve that is fitted.
    pub curve: Curve<'a>,
    /// Parameters from which the search may start.
    pub starts: Vec<Vec<f64>>,
}

/// Number of starts that are followed for a few steps: those with the lowest chi². The lowest of them are followed to their minimum.
const STARTS_TRIED: usize = 10;
const STARTS_FOLLOWED: usize = 2;
const STEPS_TRIED: usize = 8;
/// Minima whose parameters differ by less than this share count as the same.
const APART: f64 = 0.1;

impl Problem<'_> {
    fn residuals(&self, values: &[f64]) -> Option<Vec<f64>> {
        let residual = |seen: &Observation| Some(((self.curve)(values, seen)? - seen.value) / seen.se);
        self.observations.iter().map(residual).collect()
    }

    /// Returns the best parameters over all starts; `None` when the curve exists at none of them or there are no observations.
    pub fn solve(&self) -> Option<Minimum> {
        self.best_of(self.parameters, &self.starts)
    }

    /// Returns other minima, at most `rise` above the best: with three parameters two quite different sets of them may give nearly the same
    /// curve, and an interval from one of them alone would contain the truth too seldom.
    pub fn others(&self, best: &Minimum, rise: f64) -> Vec<Minimum> {
        if self.parameters.len() < 3 {
            return Vec::new();
        }
        let is_apart = |a: &Minimum, b: &Minimum| {
            a.values.iter().zip(&b.values).any(|(a, b)| (a - b).abs() > APART * a.abs().max(b.abs()))
        };
        let mut found: Vec<Minimum> = vec![best.clone()];
        for tried in self.tried(self.parameters, &self.starts) {
            let residuals = |values: &[f64]| self.residuals(values);
            if found.iter().all(|known| is_apart(known, &tried))
                && let Some(end) = minimise(&residuals, self.parameters, &tried.values, STEPS_MAX)
                && end.chi2 <= best.chi2 + rise
                && found.iter().all(|known| is_apart(known, &end))
            {
                found.push(end);
            }
        }
        found.split_off(1)
    }

    fn best_of(&self, parameters: &[Parameter], starts: &[Vec<f64>]) -> Option<Minimum> {
        let residuals = |values: &[f64]| self.residuals(values);
        let tried = self.tried(parameters, starts);
        let followed = tried.iter().take(STARTS_FOLLOWED);
        let ends = followed.filter_map(|tried| minimise(&residuals, parameters, &tried.values, STEPS_MAX));
        ends.min_by(|a, b| a.chi2.total_cmp(&b.chi2))
    }

    /// Returns the points to which the lowest starts lead in a few steps, the lowest first.
    fn tried(&self, parameters: &[Parameter], starts: &[Vec<f64>]) -> Vec<Minimum> {
        if self.observations.is_empty() {
            return Vec::new();
        }
        let residuals = |values: &[f64]| self.residuals(values);
        let height = |start: &Vec<f64>| Some(residuals(start)?.iter().map(|residual| residual * residual).sum::<f64>());
        let mut starts: Vec<(f64, &Vec<f64>)> = starts
            .iter()
            .filter_map(|start| Some((height(start)?, start)))
            .filter(|(chi2, _)| chi2.is_finite())
            .collect();
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let follow = |start: &[f64]| minimise(&residuals, parameters, start, STEPS_TRIED);
        let mut tried: Vec<Minimum> = starts.iter().take(STARTS_TRIED).filter_map(|(_, start)| follow(start)).collect();
        tried.sort_by(|a, b| a.chi2.total_cmp(&b.chi2));
        tried
    }

    /// Returns the best values of the other parameters with one of them held.
    fn solve_holding(&self, index: usize, value: f64, warm: &[f64]) -> Option<Minimum> {
        let mut parameters = self.parameters.to_vec();
        (parameters[index].low, parameters[index].high) = (value, value);
        let held = |start: &[f64]| {
            let mut start = start.to_vec();
            start[index] = value;
            start
        };
        let from_warm = minimise(&|values: &[f64]| self.residuals(values), &parameters, &held(warm), STEPS_MAX);
        from_warm.or_else(|| {
            let starts: Vec<Vec<f64>> = self.starts.iter().map(|start| held(start)).collect();
            self.best_of(&parameters, &starts)
        })
    }

    /// Returns the values of a parameter at which chi², with all others at their best, is at most `rise` above its minimum (Venzon and
    /// Moolgavkar 1988). An end is the parameter's bound when chi² does not rise that far before it, and infinite when it
    /// does not rise that far at all.
    pub fn profile(&self, best: &Minimum, index: usize, se: Option<f64>, rise: f64) -> Range {
        let end = |direction: f64| self.profile_end(best, index, se, rise, direction);
        Range { low: end(-1.0), high: end(1.0) }
    }

    fn profile_end(&self, best: &Minimum, index: usize, se: Option<f64>, rise: f64, direction: f64) -> f64 {
        let parameter = &self.parameters[index];
        let centre = best.values[index];
        let bound = if direction < 0.0 { parameter.low } else { parameter.high };
        let mut warm = best.values.clone();
        let mut excess = |value: f64| match self.solve_holding(index, value, &warm) {
            Some(minimum) => {
                warm = minimum.values;
                minimum.chi2 - best.chi2 - rise
            }
            None => f64::INFINITY,
        };
        let mut width = se.filter(|se| *se > 0.0).map_or((centre.abs() * 0.05).max(1e-6), |se| se * rise.sqrt());
        let (mut inside, mut inside_excess) = (centre, -rise);
        let (mut outside, mut outside_excess) = (centre, -rise);
        for _ in 0..40 {
            outside = centre + direction * width;
            if (outside - bound) * direction >= 0.0 {
                outside = bound;
            }
            outside_excess = excess(outside);
            if outside_excess > 0.0 {
                break;
            }
            if outside == bound {
                return if bound == 0.0 || parameter.high == 1.0 && direction > 0.0 {
                    bound
                } else {
                    direction * f64::INFINITY
                };
            }
            (inside, inside_excess) = (outside, outside_excess);
            width *= 1.6;
        }
        if outside_excess <= 0.0 {
            return direction * f64::INFINITY;
        }
        cross((inside, inside_excess), (outside, outside_excess), 1e-7 * rise, &mut excess)
    }

    /// Returns the problem without some observations; its search starts from the minimum of the whole.
    fn without(&self, is_left_out: impl Fn(&Observation) -> bool, best: &Minimum) -> Problem<'_> {
        let observations = self.observations.iter().copied().filter(|seen| !is_left_out(seen)).collect();
        Problem { parameters: self.parameters, observations, curve: self.curve, starts: vec![best.values.clone()] }
    }

    /// Returns the relative errors, predicted over observed minus 1, of observations that a fit to all others predicts; infinite where
    /// that fit says overload, `None` when there are too few others.
    pub fn errors_of_left_out(&self, best: &Minimum, is_left_out: impl Fn(&Observation) -> bool) -> Option<Vec<f64>> {
        let others = self.without(&is_left_out, best);
        if others.observations.len() <= self.parameters.len() {
            return None;
        }
        let values = others.solve()?.values;
        let error =
            |seen: &Observation| (self.curve)(&values, seen).map_or(f64::INFINITY, |found| found / seen.value - 1.0);
        Some(self.observations.iter().filter(|seen| is_left_out(seen)).map(error).collect())
    }

    /// Returns the loads in ascending order, each once.
    pub fn loads(&self) -> Vec<f64> {
        let mut loads: Vec<f64> = self.observations.iter().map(|seen| seen.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// Returns the root mean square of the relative residuals.
    pub fn relative_error_rms(&self, values: &[f64]) -> f64 {
        let square = |seen: &Observation| {
            (self.curve)(values, seen).map_or(f64::INFINITY, |found| (found / seen.value - 1.0).powi(2))
        };
        (self.observations.iter().map(square).sum::<f64>() / self.observations.len() as f64).sqrt()
    }
}

/// Finds where a function that is negative at `inside` and positive at `outside` crosses zero: false position with Illinois' rule,
/// halving while a value is infinite.
fn cross(
    (mut inside, mut at_inside): (f64, f64),
    (mut outside, mut at_outside): (f64, f64),
    near_zero: f64,
    excess: &mut dyn FnMut(f64) -> f64,
) -> f64 {
    let tolerance = 1e-8 * (outside - inside).abs().max(1e-9 * outside.abs());
    for _ in 0..80 {
        let by_chord = (at_inside * outside - at_outside * inside) / (at_inside - at_outside);
        let middle = if by_chord.is_finite() { by_chord } else { inside + (outside - inside) / 2.0 };
        let at_middle = excess(middle);
        if at_middle.abs() < near_zero || (outside - inside).abs() < tolerance {
            return middle;
        }
        if at_middle > 0.0 {
            (outside, at_outside) = (middle, at_middle);
            at_inside /= 2.0;
        } else {
            (inside, at_inside) = (middle, at_middle);
            if at_outside.is_finite() {
                at_outside /= 2.0;
            }
        }
    }
    inside
}
