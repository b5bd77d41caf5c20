//! A family with the observations to which it is fitted. Main type: [`Set`].

use super::estimate::{Fit, Rises, describe};
use super::problem::{Observation, Problem, Sigma};
use crate::queueing::family::{Family, Needs, Surroundings};
use crate::queueing::queue::Target;

/// A family with the observations to which it is fitted.
pub(super) struct Set<'a> {
    pub family: &'static Family,
    pub observations: &'a [Observation],
    pub sigma: Sigma,
    pub target: Target,
}

impl Set<'_> {
    /// Fits the family in these surroundings; `varied` of the surroundings were varied, and count as parameters.
    pub fn fit(&self, around: Surroundings, varied: usize) -> Result<(Fit, Rises), String> {
        let Set { family, observations, sigma, target } = *self;
        let count = family.parameters.len() + varied;
        let curve = curve_of(family, target, around);
        let problem = problem_of(family, observations, &curve, around);
        let rates = problem.loads().len();
        if rates < count {
            return Err(format!("{rates} arrival rates are too few for its {count} parameters"));
        }
        let best = problem.solve().ok_or_else(|| none_exists(family))?;
        let (mut fit, rises) = describe((family.name, family.title), &problem, &best, sigma, varied);
        let busiest = observations.iter().max_by(|a, b| a.load.total_cmp(&b.load));
        let workers = busiest.and_then(|seen| seen.workers);
        let queue =
            (family.build)(&best.values, &Surroundings { workers, ..around }).ok_or_else(|| none_exists(family))?;
        fit.capacity_per_s = Some(queue.capacity_per_s());
        let servers = f64::from(around.servers.filter(|_| family.needs == Needs::Servers).unwrap_or(1));
        let mu = fit.parameter("mu_per_s").filter(|_| family.not_fitted.is_none());
        fit.capacity_ci95 = mu.and_then(|mu| mu.ci95).map(|range| range.times(servers));
        Ok((fit, rises))
    }
}

pub(super) fn none_exists(family: &Family) -> String {
    format!("no parameters of {} carry the highest arrival rate", family.title)
}

pub(super) fn curve_of(
    family: &Family,
    target: Target,
    around: Surroundings,
) -> impl Fn(&[f64], &Observation) -> Option<f64> {
    let build = family.build;
    move |values, seen| {
        let around = Surroundings { workers: seen.workers, ..around };
        build(values, &around)?.figure_s(seen.load, target)
    }
}

/// Returns the problem with its starts: every shape of the family with the constant delay that suits it best.
pub(super) fn problem_of<'a>(
    family: &'a Family,
    observations: &[Observation],
    curve: &'a dyn Fn(&[f64], &Observation) -> Option<f64>,
    around: Surroundings,
) -> Problem<'a> {
    let rate_max = observations.iter().map(|seen| seen.load).fold(0.0, f64::max);
    let lowest_s = observations.iter().map(|seen| seen.value).fold(f64::INFINITY, f64::min);
    let with_delay = |mut shape: Vec<f64>| {
        shape.push(0.0);
        let (mut sum, mut weights) = (0.0, 0.0);
        for seen in observations {
            let weight = seen.se.powi(-2);
            sum += weight * (seen.value - curve(&shape, seen)?);
            weights += weight;
        }
        *shape.last_mut()? = (sum / weights).max(0.0);
        Some(shape)
    };
    let starts = (family.shapes)(rate_max, lowest_s, &around).into_iter().filter_map(with_delay).collect();
    Problem { parameters: family.parameters, observations: observations.to_vec(), curve, starts }
}
