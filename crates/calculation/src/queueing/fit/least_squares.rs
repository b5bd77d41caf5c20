//! Non-linear least squares: Levenberg-Marquardt within bounds, with positive parameters by their logarithm.
//!
//! Main function: [`minimise`]. Invariant: the sum of squares never rises, and a point where the residuals do not exist is
//! never entered.

use super::matrix::{Matrix, inverse, solve};
use crate::queueing::family::Parameter;

/// Returns the residuals at a point, each divided by its standard error; `None` where they do not exist.
pub type Residuals<'a> = &'a dyn Fn(&[f64]) -> Option<Vec<f64>>;

/// A minimum of the sum of squares.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    /// The parameters.
    pub values: Vec<f64>,
    /// Sum of squared residuals.
    pub chi2: f64,
    /// Whether each parameter is on one of its bounds.
    pub on_bound: Vec<bool>,
    /// (J'J)^-1 in the parameters themselves: their covariance when residuals have variance 1. `None` when it does not
    /// exist, because the points do not identify all parameters; rows of parameters on a bound are 0.
    pub covariance: Option<Matrix>,
}

/// Number of steps after which a search has ended or creeps along the edge of where the residuals exist.
pub const STEPS_MAX: usize = 100;
const DAMPING_MAX: f64 = 1e14;

/// Goes downhill from a start, in at most `steps_max` steps; parameters outside their bounds are first moved onto them. `None` when residuals do not exist
/// at the start.
pub fn minimise(residuals: Residuals, parameters: &[Parameter], start: &[f64], steps_max: usize) -> Option<Minimum> {
    let space = Space { residuals, parameters };
    let mut place: Vec<f64> = start.to_vec();
    place.iter_mut().zip(parameters).for_each(|(value, parameter)| *value = space.to_inner(*value, parameter));
    space.clamp(&mut place);
    let mut found = space.residuals_at(&place)?;
    let mut chi2 = sum_of_squares(&found);
    let mut damping = 1e-3;
    for _ in 0..steps_max {
        let jacobian = space.jacobian(&place, &found);
        let (normal, gradient) = normal_equations(&jacobian, &found);
        let free = space.free(&place, &gradient, &normal);
        let mut has_moved = false;
        let mut is_settled = free.is_empty();
        while !has_moved && !is_settled && damping < DAMPING_MAX {
            let Some(next) = space.step(&place, &normal, &gradient, &free, damping) else {
                damping *= 10.0;
                continue;
            };
            let reached = space.residuals_at(&next).map(|residuals| (sum_of_squares(&residuals), residuals));
            match reached {
                Some((reached, residuals)) if reached <= chi2 => {
                    is_settled = space.is_same(&place, &next) && chi2 - reached <= 1e-14 * chi2;
                    (place, found, chi2) = (next, residuals, reached);
                    damping = (damping / 10.0).max(1e-12);
                    has_moved = true;
                }
                _ => {
                    is_settled = space.is_same(&place, &next);
                    damping *= 4.0;
                }
            }
        }
        if is_settled || !has_moved {
            break;
        }
    }
    Some(space.minimum(place, chi2, &found))
}

/// The function to be minimised over its inner coordinates: logarithms for logarithmic parameters.
struct Space<'a> {
    residuals: Residuals<'a>,
    parameters: &'a [Parameter],
}

impl Space<'_> {
    fn to_inner(&self, value: f64, parameter: &Parameter) -> f64 {
        if parameter.is_logarithmic { value.max(parameter.low).ln() } else { value }
    }

    fn values(&self, place: &[f64]) -> Vec<f64> {
        let outer =
            |(inner, parameter): (&f64, &Parameter)| if parameter.is_logarithmic { inner.exp() } else { *inner };
        place.iter().zip(self.parameters).map(outer).collect()
    }

    fn bounds(&self, index: usize) -> (f64, f64) {
        let parameter = &self.parameters[index];
        (self.to_inner(parameter.low, parameter), self.to_inner(parameter.high, parameter))
    }

    fn clamp(&self, place: &mut [f64]) {
        for (index, value) in place.iter_mut().enumerate() {
            let (low, high) = self.bounds(index);
            *value = value.clamp(low, high);
        }
    }

    fn residuals_at(&self, place: &[f64]) -> Option<Vec<f64>> {
        (self.residuals)(&self.values(place)).filter(|residuals| residuals.iter().all(|residual| residual.is_finite()))
    }

    /// Returns the derivatives of the residuals, one row per parameter: central differences, one-sided beside a bound or a point where the
    /// residuals do not exist.
    fn jacobian(&self, place: &[f64], found: &[f64]) -> Vec<Vec<f64>> {
        (0..place.len()).map(|index| self.derivative(place, found, index)).collect()
    }

    fn derivative(&self, place: &[f64], found: &[f64], index: usize) -> Vec<f64> {
        let mut width =
            if self.parameters[index].is_logarithmic { 1e-6 } else { (1e-6 * place[index].abs()).max(1e-9) };
        let (low, high) = self.bounds(index);
        if low == high {
            // A parameter that is held has no derivative, and the residuals cost most of a fit's time.
            return vec![0.0; found.len()];
        }
        // Times are of any magnitude: a step that changes nothing, or too much, is enlarged or reduced.
        for _ in 0..4 {
            let moved_to = |by: f64| {
                let mut moved = place.to_vec();
                moved[index] = (moved[index] + by).clamp(low, high);
                match moved[index] - place[index] {
                    0.0 => (0.0, Some(found.to_vec())),
                    by => (by, self.residuals_at(&moved)),
                }
            };
            let derivative = match (moved_to(width), moved_to(-width)) {
                ((up, Some(above)), (down, Some(below))) if up > down => {
                    above.iter().zip(&below).map(|(a, b)| (a - b) / (up - down)).collect()
                }
                ((by, Some(other)), _) | (_, (by, Some(other))) if by != 0.0 => {
                    other.iter().zip(found).map(|(a, b)| (a - b) / by).collect()
                }
                _ => {
                    width /= 100.0;
                    continue;
                }
            };
            return derivative;
        }
        vec![0.0; found.len()]
    }

    /// Returns the parameters that may move: those off their bounds, and those on a bound that move away from it; not those on which nothing
    /// depends here.
    fn free(&self, place: &[f64], gradient: &[f64], normal: &Matrix) -> Vec<usize> {
        (0..place.len())
            .filter(|index| {
                let (low, high) = self.bounds(*index);
                let pushed_out = place[*index] <= low && gradient[*index] >= 0.0;
                let pushed_over = place[*index] >= high && gradient[*index] <= 0.0;
                !pushed_out && !pushed_over && normal[*index][*index] > 0.0
            })
            .collect()
    }

    fn step(&self, place: &[f64], normal: &Matrix, gradient: &[f64], free: &[usize], damping: f64) -> Option<Vec<f64>> {
        let mut damped: Matrix =
            free.iter().map(|row| free.iter().map(|column| normal[*row][*column]).collect()).collect();
        damped.iter_mut().enumerate().for_each(|(index, row)| row[index] *= 1.0 + damping);
        let downhill: Vec<f64> = free.iter().map(|index| -gradient[*index]).collect();
        let step = solve(&damped, &downhill)?;
        let mut next = place.to_vec();
        free.iter().zip(step).for_each(|(index, by)| next[*index] += by);
        self.clamp(&mut next);
        Some(next)
    }

    fn is_same(&self, a: &[f64], b: &[f64]) -> bool {
        let close = |((a, b), parameter): ((&f64, &f64), &Parameter)| {
            (a - b).abs() <= if parameter.is_logarithmic { 1e-11 } else { 1e-10 * a.abs().max(b.abs()) }
        };
        a.iter().zip(b).zip(self.parameters).all(close)
    }

    fn minimum(&self, place: Vec<f64>, chi2: f64, found: &[f64]) -> Minimum {
        let values = self.values(&place);
        let is_on_bound = |index: usize| {
            let (low, high) = self.bounds(index);
            place[index] <= low || place[index] >= high
        };
        let on_bound: Vec<bool> = (0..place.len()).map(is_on_bound).collect();
        let inside: Vec<usize> = (0..place.len()).filter(|index| !on_bound[*index]).collect();
        let jacobian = self.jacobian(&place, found);
        let (normal, _) = normal_equations(&jacobian, found);
        let normal: Matrix =
            inside.iter().map(|row| inside.iter().map(|column| normal[*row][*column]).collect()).collect();
        let covariance = inverse(&normal).map(|covariance| {
            let mut full = vec![vec![0.0; place.len()]; place.len()];
            let slope = |index: usize| if self.parameters[index].is_logarithmic { values[index] } else { 1.0 };
            for (row, outer_row) in inside.iter().enumerate() {
                for (column, outer_column) in inside.iter().enumerate() {
                    full[*outer_row][*outer_column] =
                        covariance[row][column] * slope(*outer_row) * slope(*outer_column);
                }
            }
            full
        });
        Minimum { values, chi2, on_bound, covariance }
    }
}

fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual * residual).sum()
}

/// Returns J'J and J'r, from one row of derivatives per parameter.
fn normal_equations(jacobian: &[Vec<f64>], residuals: &[f64]) -> (Matrix, Vec<f64>) {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let normal = jacobian.iter().map(|row| jacobian.iter().map(|column| product(row, column)).collect()).collect();
    (normal, jacobian.iter().map(|row| product(row, residuals)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: Parameter = Parameter { name: "b", low: 0.0, high: 1e9, is_logarithmic: false };
    const POSITIVE: Parameter = Parameter { name: "a", low: 1e-12, high: 1e12, is_logarithmic: true };

    #[test]
    fn rosenbrocks_valley_is_followed_to_its_end() {
        let residuals = |v: &[f64]| Some(vec![10.0 * (v[1] - v[0] * v[0]), 1.0 - v[0]]);
        let minimum = minimise(&residuals, &[POSITIVE, LINEAR], &[0.1, 9.0], STEPS_MAX).unwrap();
        assert!((minimum.values[0] - 1.0).abs() < 1e-8 && (minimum.values[1] - 1.0).abs() < 1e-8, "{minimum:?}");
        assert!(minimum.chi2 < 1e-18);
    }

    #[test]
    fn a_line_has_the_standard_errors_of_the_textbook() {
        let xs = [1.0, 2.0, 3.0, 4.0, 5.0];
        let ys = [2.2, 3.9, 6.1, 8.0, 9.9];
        let residuals = |v: &[f64]| Some(xs.iter().zip(ys).map(|(x, y)| v[0] * x + v[1] - y).collect());
        let minimum = minimise(&residuals, &[POSITIVE, LINEAR], &[1.0, 1.0], STEPS_MAX).unwrap();
        // Slope 1.95, intercept 0.17; (X'X)^-1 = [[1/10, -3/10], [-3/10, 11/10]].
        assert!((minimum.values[0] - 1.95).abs() < 1e-9 && (minimum.values[1] - 0.17).abs() < 1e-8, "{minimum:?}");
        let covariance = minimum.covariance.unwrap();
        assert!((covariance[0][0] - 0.1).abs() < 1e-6 && (covariance[0][1] + 0.3).abs() < 1e-6, "{covariance:?}");
        assert!((covariance[1][1] - 1.1).abs() < 1e-6);
    }

    #[test]
    fn a_minimum_beyond_a_bound_is_found_on_it() {
        let residuals = |v: &[f64]| Some(vec![v[0] - 2.0, v[1] + 3.0]);
        let minimum = minimise(&residuals, &[POSITIVE, LINEAR], &[5.0, 5.0], STEPS_MAX).unwrap();
        assert!((minimum.values[0] - 2.0).abs() < 1e-9);
        assert_eq!((minimum.values[1], minimum.on_bound), (0.0, vec![false, true]));
        assert_eq!(minimum.covariance.unwrap()[1][1], 0.0);
    }

    #[test]
    fn places_where_nothing_exists_are_not_entered() {
        let residuals = |v: &[f64]| (v[0] > 1.5).then(|| vec![v[0] - 1.0, 0.1]);
        assert!(minimise(&residuals, &[POSITIVE], &[1.0], STEPS_MAX).is_none());
        let minimum = minimise(&residuals, &[POSITIVE], &[8.0], STEPS_MAX).unwrap();
        assert!((minimum.values[0] - 1.5).abs() < 1e-3, "{minimum:?}");
    }

    #[test]
    fn parameters_that_nothing_depends_on_have_no_covariance() {
        let residuals = |v: &[f64]| Some(vec![v[0] - 1.0, v[0] - 2.0]);
        let minimum = minimise(&residuals, &[POSITIVE, LINEAR], &[3.0, 3.0], STEPS_MAX).unwrap();
        assert!((minimum.values[0] - 1.5).abs() < 1e-9);
        assert_eq!(minimum.covariance, None);
    }
}
