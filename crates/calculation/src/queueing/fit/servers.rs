//! Fit of a model whose number of servers is not known: every number that the points allow widens the intervals of the others.
//!
//! Main function: [`fit_servers`]. Invariant: an interval contains all values that some number of servers makes as good as the
//! threshold requires, so that it does not pretend to know the number.

use super::estimate::{Estimate, Fit, Range};
use super::least_squares::Minimum;
use super::set::{Set, curve_of, none_exists, problem_of};
use crate::queueing::family::Surroundings;

/// Numbers of servers that are tried.
const SERVERS: &[u32] = &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 48, 64];

/// A number of servers with the best values of the other parameters.
struct Rung {
    servers: u32,
    best: Minimum,
}

/// Returns the fit with the best number of servers, between 2 and 64; the intervals include one server where it is as good.
pub fn fit_servers(set: &Set, around: Surroundings) -> Result<Fit, String> {
    let with = |servers: u32| Surroundings { servers: Some(servers), ..around };
    let rung = |servers: &u32| {
        let curve = curve_of(set.family, set.target, with(*servers));
        let best = problem_of(set.family, set.observations, &curve, with(*servers)).solve()?;
        Some(Rung { servers: *servers, best })
    };
    let rungs: Vec<Rung> = std::iter::once(&1).chain(SERVERS).filter_map(rung).collect();
    let several = rungs.iter().filter(|rung| rung.servers > 1);
    let best = several.min_by(|a, b| a.best.chi2.total_cmp(&b.best.chi2)).ok_or_else(|| none_exists(set.family))?;
    let (mut fit, rises) = set.fit(with(best.servers), 1)?;
    let within = |rise: f64| rungs.iter().filter(move |rung| rung.best.chi2 <= best.best.chi2 + rise);
    let whole = |rise: f64| {
        let range = Range::at(f64::from(best.servers));
        within(rise).fold(range, |range, rung| range.hull(Range::at(f64::from(rung.servers))))
    };
    let (own, scaled) = (rises.chosen(), rises.scaled);
    let is_alone = own.is_some_and(|rise| within(rise).count() == 1);
    for (rise, is_own) in [(own, true), (scaled, false)] {
        let Some(rise) = rise else { continue };
        for rung in within(rise).filter(|rung| rung.servers != best.servers) {
            widen(set, &mut fit, with(rung.servers), rung, best.best.chi2 + rise - rung.best.chi2, is_own);
        }
    }
    if !is_alone {
        fit.parameters.iter_mut().for_each(|parameter| (parameter.se, parameter.se_scaled) = (None, None));
        fit.correlation = None;
    }
    let value = f64::from(best.servers);
    let (ci95, ci95_scaled) = (own.map(whole), scaled.map(whole));
    fit.parameters.insert(0, Estimate { name: "servers", value, se: None, ci95, se_scaled: None, ci95_scaled });
    Ok(fit)
}

/// Widens the intervals by the values that another number of servers allows.
fn widen(set: &Set, fit: &mut Fit, around: Surroundings, rung: &Rung, rise: f64, is_own: bool) {
    let curve = curve_of(set.family, set.target, around);
    let problem = problem_of(set.family, set.observations, &curve, around);
    for (index, parameter) in fit.parameters.iter_mut().enumerate() {
        let se = rung.best.covariance.as_ref().map(|covariance| covariance[index][index].sqrt());
        let range = problem.profile(&rung.best, index, se.filter(|se| se.is_finite()), rise);
        let interval = if is_own { &mut parameter.ci95 } else { &mut parameter.ci95_scaled };
        *interval = interval.map(|known| known.hull(range));
        if is_own && parameter.name == "mu_per_s" {
            let capacity = range.times(f64::from(rung.servers));
            fit.capacity_ci95 = fit.capacity_ci95.map(|known| known.hull(capacity));
        }
    }
}
