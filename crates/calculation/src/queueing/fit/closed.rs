//! Fits of closed loops: throughput against clients.
//!
//! Main function: [`fit_closed`]. Invariant: errors of throughput are not in the points, so they are estimated from the
//! residuals and the fits are not tested.

use std::cell::RefCell;

use super::estimate::{Fit, describe};
use super::note::FitNote;
use super::problem::{Observation, Problem, Sigma};
use super::select::{Collected, select};
use super::{FitError, FitReport, Skipped};
use crate::queueing::family::Parameter;
use crate::queueing::points::{Point, Points};
use crate::queueing::queue::Timer;
use crate::queueing::repairman::Repairman;
use crate::queueing::usl::Usl;

/// Models of closed loops.
pub const CLOSED_MODELS: &[&str] = &["usl", "repairman"];

const USL: &[Parameter] = &[
    Parameter { name: "gamma_per_s", low: 1e-12, high: 1e15, is_logarithmic: true },
    Parameter { name: "alpha", low: 0.0, high: 1.0, is_logarithmic: false },
    Parameter { name: "beta", low: 0.0, high: 1e6, is_logarithmic: false },
];

const REPAIRMAN: &[Parameter] = &[
    Parameter { name: "service_s", low: 1e-15, high: 1e12, is_logarithmic: true },
    Parameter { name: "think_s", low: 0.0, high: 1e12, is_logarithmic: false },
];

/// Fits one model, or both, to throughput against clients.
pub fn fit_closed(points: &Points, name: &str) -> Result<FitReport, FitError> {
    let observe = |point: &Point| {
        let workers = point.workers?;
        let value = point.throughput_per_s.filter(|throughput| *throughput > 0.0)?;
        Some(Observation { load: f64::from(workers), workers: Some(workers), value, se: 1.0 })
    };
    let Some(observations) = points.0.iter().map(observe).collect::<Option<Vec<Observation>>>() else {
        let remedy = "give the columns workers and throughput for every point, with a throughput above 0";
        return Err(FitError::Missing(format!("closed loops are fitted to throughput against clients; {remedy}")));
    };
    let mut fits = Vec::new();
    let mut skipped = Vec::new();
    for model in CLOSED_MODELS.iter().filter(|model| name == "auto" || **model == name) {
        let fitted = if *model == "usl" { fit_usl(&observations) } else { fit_repairman(&observations) };
        match fitted {
            Ok(fit) => fits.push(fit),
            Err(because) => skipped.push(Skipped { model, because }),
        }
    }
    let notes = vec![FitNote::ClosedLoops {}];
    let (sigma, timer, target, unit) = (Sigma::Unknown, Timer::Intended, "throughput".to_owned(), "numbers of clients");
    Ok(select(Collected { fits, skipped, notes, observations, sigma, target, timer, paper: None, unit }))
}

fn solve(
    names: (&'static str, &'static str),
    problem: &Problem,
    capacity: impl Fn(&[f64]) -> Option<f64>,
) -> Result<Fit, String> {
    let (clients, count) = (problem.loads().len(), problem.parameters.len());
    if clients < count {
        return Err(format!("{clients} numbers of clients are too few for its {count} parameters"));
    }
    let best = problem.solve().ok_or("no parameters give a throughput")?;
    let (mut fit, _) = describe(names, problem, &best, Sigma::Unknown, 0);
    fit.capacity_per_s = capacity(&best.values);
    Ok(fit)
}

fn fit_usl(observations: &[Observation]) -> Result<Fit, String> {
    let usl = |values: &[f64]| Usl { gamma_per_s: values[0], alpha: values[1], beta: values[2] };
    let curve = |values: &[f64], seen: &Observation| Some(usl(values).throughput_per_s(seen.load));
    let one = observations.iter().map(|seen| seen.value / seen.load).fold(0.0, f64::max);
    let starts = [(0.0, 0.0), (0.03, 0.0), (0.03, 1e-3), (0.3, 0.0), (0.1, 1e-2), (0.0, 1e-4)];
    let starts = starts.iter().map(|(alpha, beta)| vec![one, *alpha, *beta]).collect();
    let problem = Problem { parameters: USL, observations: observations.to_vec(), curve: &curve, starts };
    solve(("usl", "Universal Scalability Law"), &problem, |values| {
        let usl = usl(values);
        usl.clients_at_peak().map(|clients| usl.throughput_per_s(clients))
    })
}

fn fit_repairman(observations: &[Observation]) -> Result<Fit, String> {
    let most_clients = observations.iter().map(|seen| seen.load as u32).max().unwrap_or(0);
    // The throughputs with 1, 2, ... clients for the values that were requested last: all observations request the same ones in turn.
    let known: RefCell<(Vec<f64>, Vec<f64>)> = RefCell::default();
    let curve = |values: &[f64], seen: &Observation| {
        let mut known = known.borrow_mut();
        if known.0 != values {
            let repairman = Repairman { clients: most_clients, service_s: values[0], think_s: values[1] };
            *known = (values.to_vec(), repairman.throughputs_per_s());
        }
        // With more clients than are listed, the server is never idle.
        known.1.get((seen.load as usize).checked_sub(1)?).or(known.1.last()).copied()
    };
    let most = observations.iter().map(|seen| seen.value).fold(0.0, f64::max);
    let services = [1.0, 0.9, 0.5, 0.1, 0.01].map(|share| share / most);
    let thinks = [0.0, 1.0, 10.0, 100.0];
    let starts = services.iter().flat_map(|service| thinks.map(|think| vec![*service, think * service])).collect();
    let problem = Problem { parameters: REPAIRMAN, observations: observations.to_vec(), curve: &curve, starts };
    solve(("repairman", "closed loop with one server"), &problem, |values| Some(1.0 / values[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::fit::{Request, fit};

    fn points(throughput: impl Fn(u32) -> f64) -> Points {
        let point = |clients: u32| Point {
            workers: Some(clients),
            throughput_per_s: Some(throughput(clients)),
            ..Point::default()
        };
        Points([1, 2, 3, 4, 6, 8, 12, 16, 24, 32].map(point).to_vec())
    }

    #[test]
    fn a_closed_loop_is_recognised_by_its_curve() {
        let repairman = |clients| Repairman { clients, think_s: 0.01, service_s: 0.001 }.state().throughput_per_s;
        let report = fit(&points(repairman), &Request::default()).unwrap();
        assert_eq!(report.best, Some("repairman"), "{}", report.verdict);
        let service = report.fits[0].parameter("service_s").unwrap();
        assert!((service.value / 0.001 - 1.0).abs() < 1e-6);
        let usl = Usl { gamma_per_s: 500.0, alpha: 0.05, beta: 0.002 };
        let report = fit(&points(|clients| usl.throughput_per_s(f64::from(clients))), &Request::default()).unwrap();
        assert_eq!(report.best, Some("usl"), "{}", report.verdict);
    }

    #[test]
    fn points_without_throughput_are_refused() {
        let points = Points(vec![Point { arrival_rate_per_s: Some(1.0), mean_s: Some(1.0), ..Point::default() }]);
        let error = fit(&points, &Request { model: "usl".to_owned(), ..Request::default() }).unwrap_err();
        assert!(error.to_string().contains("give the columns workers and throughput"), "{error}");
    }
}
