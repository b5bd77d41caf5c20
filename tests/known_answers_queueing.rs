//! Known answers of queueing: results computed elsewhere, with other software, that the models and fits must reproduce.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use loadline::queueing::fit::{Fit, FitReport, Request, fit};
use loadline::queueing::flush::Flush;
use loadline::queueing::load_dependent::LoadDependent;
use loadline::queueing::mg1::{Md1, Mg1, Sharing};
use loadline::queueing::mm1::{Mm1, Mm1Workers, estimate_mu_per_s};
use loadline::queueing::mmc::Mmc;
use loadline::queueing::repairman::Repairman;
use loadline::queueing::usl::Usl;
use loadline::queueing::{Point, Points, Queue, Target, Timer};
use serde_json::Value;

/// The inputs and the expected results of one question.
fn known(name: &str) -> (Value, Value) {
    let all: Value = serde_json::from_str(include_str!("known-answers.json")).unwrap();
    assert!(all[name].is_object(), "there is no known answer {name}");
    (all[name]["inputs"].clone(), all[name]["expected"].clone())
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is not a number in {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1e-300), "{found} instead of {expected}");
}

#[test]
fn mm1_with_a_delay_and_its_inverse_agree() {
    let (inputs, expected) = known("mm1_delta");
    let (queue, rate) =
        (Mm1 { mu_per_s: number(&inputs, "mu"), delta_s: number(&inputs, "delta") }, number(&inputs, "lam"));
    assert_close(queue.mean_s(rate).unwrap(), number(&expected, "T"), 1e-9);
    assert_close(queue.utilisation(rate), number(&expected, "rho"), 1e-9);
    assert_close((queue.mean_s(rate).unwrap() - queue.delta_s) * rate, number(&expected, "L"), 1e-9);
    for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        assert_close(queue.quantile_s(rate, quantile).unwrap(), number(&expected, name), 1e-9);
    }
    let limit = |target, bound_s| queue.limit_per_s(target, bound_s).unwrap();
    assert_close(limit(Target::Quantile(0.9), 0.01), number(&expected, "lam_at_p90_10ms"), 1e-9);
    assert_close(limit(Target::Mean, 0.01), number(&expected, "lam_at_mean_10ms"), 1e-9);
    assert_close(limit(Target::Quantile(0.9), 0.05), number(&expected, "lam_at_p90_50ms_fcfs"), 1e-9);
    let by_mean = queue.limit_by_mean_alone_per_s(0.9, 0.05).unwrap();
    assert_close(by_mean, number(&expected, "lam_at_p90_50ms_markov_bound_meanonly"), 1e-9);
}

#[test]
fn the_papers_estimator_is_biased_by_the_low_rate_and_corrected_for_it() {
    let (inputs, expected) = known("lund_estimator");
    let (low_mean_s, delta_s) = (number(&inputs, "r0"), number(&inputs, "delta"));
    let naive = estimate_mu_per_s(low_mean_s, delta_s, 0.0).unwrap();
    let corrected = estimate_mu_per_s(low_mean_s, delta_s, number(&inputs, "lam0")).unwrap();
    assert_close(naive, number(&expected, "mu_naive"), 1e-9);
    assert_close(corrected, number(&expected, "mu_corrected"), 1e-9);
    let mean_s = |mu_per_s| Mm1 { mu_per_s, delta_s }.mean_s(number(&inputs, "lam")).unwrap();
    assert_close(mean_s(naive), number(&expected, "r_hat_naive"), 1e-9);
    assert_close(mean_s(corrected), number(&expected, "r_hat_true"), 1e-9);
}

/// The points of the question `wnls_mm1`; without standard errors when they are not wanted.
fn points(has_errors: bool) -> Points {
    let (inputs, _) = known("wnls_mm1");
    let column = |name: &str| numbers(&inputs[name]);
    let (rates, means, errors) = (column("lam"), column("r"), column("se"));
    let point = |index: usize| Point {
        arrival_rate_per_s: Some(rates[index]),
        mean_s: Some(means[index]),
        se_s: has_errors.then(|| errors[index]),
        ..Point::default()
    };
    Points((0..rates.len()).map(point).collect())
}

fn fit_model(points: &Points, model: &str) -> FitReport {
    fit(points, &Request { model: model.to_owned(), ..Request::default() }).unwrap()
}

fn only(report: FitReport) -> Fit {
    assert_eq!(report.fits.len(), 1);
    report.fits.into_iter().next().unwrap()
}

#[test]
fn weighted_least_squares_agree_with_errors_intervals_and_goodness_of_fit() {
    let (_, expected) = known("wnls_mm1");
    let found = only(fit_model(&points(true), "mm1"));
    let (mu, delta) = (found.parameter("mu_per_s").unwrap(), found.parameter("delta_s").unwrap());
    assert_close(mu.value, number(&expected, "mu"), 1e-5);
    assert_close(delta.value, number(&expected, "delta"), 1e-5);
    assert_close(found.chi2, number(&expected, "chi2"), 1e-5);
    assert_eq!(found.df as f64, number(&expected, "df"));
    assert_close(mu.se.unwrap(), number(&expected, "se_mu_abs"), 1e-5);
    assert_close(delta.se.unwrap(), number(&expected, "se_delta_abs"), 1e-5);
    assert_close(found.correlation.as_ref().unwrap()[0][1], number(&expected, "corr"), 1e-5);
    assert_close(mu.se_scaled.unwrap(), number(&expected, "se_mu_scaled"), 1e-5);
    assert_close(delta.se_scaled.unwrap(), number(&expected, "se_delta_scaled"), 1e-5);
    for (range, name) in [(mu.ci95, "profile95_mu_known_sigma"), (mu.ci95_scaled, "profile95_mu_scaled")] {
        assert_close(range.unwrap().low, numbers(&expected[name])[0], 1e-7);
        assert_close(range.unwrap().high, numbers(&expected[name])[1], 1e-7);
    }
    assert_close(found.aicc.unwrap(), number(&expected, "AICc_known_sigma"), 1e-5);
    assert_close(found.goodness_of_fit_p.unwrap(), number(&expected, "gof_p"), 1e-5);
}

#[test]
fn least_squares_without_errors_agree() {
    let (_, expected) = known("wnls_mm1");
    let found = only(fit_model(&points(false), "mm1"));
    assert_close(found.parameter("mu_per_s").unwrap().value, number(&expected, "unweighted_mu"), 1e-5);
    assert_close(found.parameter("delta_s").unwrap().value, number(&expected, "unweighted_delta"), 1e-5);
    assert_eq!(found.goodness_of_fit_p, None, "without errors the fit is not tested");
}

#[test]
fn the_information_criterion_prefers_the_same_model() {
    let (_, expected) = known("aicc");
    for (name, model) in [("mm1", "mm1"), ("mm1_scaled", "mm1-scaled"), ("md1", "md1")] {
        let found = only(fit_model(&points(true), model));
        assert_close(found.chi2, number(&expected[name], "chi2"), 1e-4);
        assert_close(found.aicc.unwrap(), number(&expected[name], "AICc"), 1e-4);
        for (parameter, key) in [("mu_per_s", "mu"), ("delta_s", "delta"), ("a", "a")] {
            let Some(value) = expected[name][key].as_f64() else { continue };
            assert_close(found.parameter(parameter).unwrap().value, value, 1e-4);
        }
        if let Some(se) = expected[name]["a_se"].as_f64() {
            assert_close(found.parameter("a").unwrap().se.unwrap(), se, 1e-4);
        }
    }
    let report = fit_model(&points(true), "auto");
    assert_eq!((report.best, report.fits[0].model), (Some("mm1"), "mm1"));
    let weights: f64 = report.fits.iter().filter_map(|fit| fit.weight).sum();
    assert_close(weights, 1.0, 1e-12);
}

/// The load-dependent server of a question; `m` workers at a time.
fn load_dependent(inputs: &Value, timer: Timer) -> LoadDependent {
    LoadDependent {
        service_s: number(inputs, "x"),
        growth: number(inputs, "p"),
        workers: number(inputs, "N") as u32,
        parallel: number(inputs, "m") as u32,
        delta_s: 0.0,
        timer,
    }
}

#[test]
fn load_dependent_servers_agree() {
    for name in ["mm1_workers", "lds_A", "lds_A2", "lds_B"] {
        let (inputs, expected) = known(name);
        let (queue, rate) = (load_dependent(&inputs, Timer::Intended), number(&inputs, "lam"));
        let state = queue.occupancy(rate).unwrap();
        assert_eq!(queue.is_stable(rate), expected["stable"].as_bool().unwrap());
        assert_close(queue.capacity_per_s(), number(&expected, "muN"), 1e-9);
        assert_close(queue.utilisation(rate), number(&expected, "r"), 1e-9);
        assert_close(state.empty, number(&expected, "pi0"), 1e-9);
        assert_close(state.wait, number(&expected, "P_wait"), 1e-9);
        assert_close(state.present, number(&expected, "En"), 1e-9);
        assert_close(state.at_server, number(&expected, "Ek"), 1e-9);
        assert_close(queue.mean_s(rate).unwrap(), number(&expected, "T"), 1e-9);
        let seen_s = LoadDependent { timer: Timer::Sent, ..queue }.mean_s(rate).unwrap();
        assert_close(seen_s, number(&expected, "T_srv"), 1e-9);
        // A difference of nearly equal times keeps fewer digits.
        assert_close((state.present - state.at_server) / rate, number(&expected, "W_client"), 1e-8);
    }
}

#[test]
fn the_timer_of_a_worker_sees_the_closed_form() {
    let (inputs, expected) = known("mm1_workers");
    let workers = number(&inputs, "N") as u32;
    let queue = Mm1Workers { mu_per_s: 1.0 / number(&inputs, "x"), delta_s: 0.0, workers };
    assert_close(queue.mean_s(number(&inputs, "lam")).unwrap(), number(&expected, "closed_form_T_srv"), 1e-9);
}

#[test]
fn an_overloaded_server_agrees() {
    let (inputs, expected) = known("lds_overload");
    let (queue, rate) = (load_dependent(&inputs, Timer::Sent), number(&inputs, "lam"));
    assert_eq!(queue.is_stable(rate), expected["stable"].as_bool().unwrap());
    assert_close(queue.throughput_per_s(rate), number(&expected, "throughput"), 1e-9);
    assert_close(queue.mean_s(rate).unwrap(), number(&expected, "T_srv"), 1e-9);
    assert_eq!(load_dependent(&inputs, Timer::Intended).mean_s(rate), None, "response time grows without end");
}

#[test]
fn a_server_without_a_queue_agrees() {
    let (inputs, expected) = known("lds_loss");
    let loss = load_dependent(&inputs, Timer::Intended).loss(number(&inputs, "lam"));
    assert_close(loss.lost, number(&expected, "PB"), 1e-9);
    assert_close(loss.present, number(&expected, "En"), 1e-9);
    assert_close(loss.mean_s, number(&expected, "T"), 1e-9);
}

#[test]
fn the_escape_from_a_metastable_state_agrees() {
    let (inputs, expected) = known("lds_escape");
    let (rate, count) = (number(&inputs, "lam"), number(&inputs, "M"));
    let (service_s, growth, workers) = (number(&inputs, "x"), number(&inputs, "p"), count as u32);
    let queue = LoadDependent { service_s, growth, workers, parallel: 1, delta_s: 0.0, timer: Timer::Intended };
    let critical = queue.critical_count(rate).unwrap();
    assert_close(critical, number(&expected, "nc"), 1e-9);
    assert_eq!((2.0 * critical).floor(), count);
    assert_close(queue.escape_s(rate, count as u32), number(&expected, "seconds"), 1e-9);
}

#[test]
fn several_servers_agree() {
    let (inputs, expected) = known("mmc");
    let (servers, mu_per_s, rate) = (number(&inputs, "c") as u32, number(&inputs, "mu"), number(&inputs, "lam"));
    let queue = Mmc { mu_per_s, servers, delta_s: 0.0 };
    assert_close(queue.wait_probability(rate), number(&expected, "erlangC"), 1e-9);
    assert_close(queue.mean_s(rate).unwrap(), number(&expected, "T"), 1e-9);
    assert_close(queue.quantile_s(rate, 0.9).unwrap(), number(&expected, "p90"), 1e-9);
    let (service_s, timer) = (1.0 / mu_per_s, Timer::Intended);
    let same = LoadDependent { service_s, growth: 0.0, workers: servers, parallel: servers, delta_s: 0.0, timer };
    assert_close(same.mean_s(rate).unwrap(), number(&expected, "lds_check_T"), 1e-9);
}

#[test]
fn general_service_times_agree() {
    let (inputs, expected) = known("mg1");
    let (mu_per_s, delta_s, rate) = (1.0 / number(&inputs, "x"), 0.0, number(&inputs, "lam"));
    assert_close(Md1 { mu_per_s, delta_s }.mean_s(rate).unwrap(), number(&expected, "MD1"), 1e-9);
    assert_close(Mg1 { mu_per_s, delta_s, cv2: 4.0 }.mean_s(rate).unwrap(), number(&expected, "MG1_cv2_4"), 1e-9);
    assert_close(Sharing { mu_per_s, delta_s }.mean_s(rate).unwrap(), number(&expected, "PS"), 1e-9);
}

#[test]
fn the_closed_loop_agrees() {
    let (inputs, expected) = known("repairman");
    let (clients, think_s, service_s) = (number(&inputs, "N") as u32, number(&inputs, "Z"), number(&inputs, "D"));
    let repairman = Repairman { clients, think_s, service_s };
    let state = repairman.state();
    assert_close(state.throughput_per_s, number(&expected, "X"), 1e-9);
    assert_close(state.response_s, number(&expected, "R"), 1e-9);
    let busy = 1.0 - repairman.distribution()[0];
    assert_close(busy / service_s, number(&expected, "X_p0"), 1e-9);
    let ten = Repairman { clients: 10, ..repairman }.state();
    assert_close(ten.throughput_per_s, number(&expected, "X10"), 1e-9);
    assert_close(ten.response_s, number(&expected, "R10"), 1e-9);
    assert_close(repairman.knee(), number(&expected, "knee"), 1e-9);
}

#[test]
fn the_scalability_law_agrees_with_the_published_fit() {
    let (inputs, expected) = known("usl_cisco");
    let point = |(clients, throughput): (u32, f64)| Point {
        workers: Some(clients),
        throughput_per_s: Some(throughput),
        ..Point::default()
    };
    let found = only(fit_model(&Points((1..).zip(numbers(&inputs["X"])).map(point).collect()), "usl"));
    let value = |name: &str| found.parameter(name).unwrap().value;
    let usl = Usl { gamma_per_s: value("gamma_per_s"), alpha: value("alpha"), beta: value("beta") };
    assert_close(usl.gamma_per_s, number(&expected, "gamma"), 1e-4);
    assert_close(usl.alpha, number(&expected, "alpha"), 1e-4);
    assert_close(usl.beta, number(&expected, "beta"), 1e-4);
    let peak = usl.clients_at_peak().unwrap();
    assert_close(peak, number(&expected, "Nmax"), 1e-4);
    assert_close(usl.throughput_per_s(peak.floor()), number(&expected, "Xmax_at_floor35"), 1e-4);
    assert_close(found.capacity_per_s.unwrap(), number(&expected, "Xmax"), 1e-4);
    assert_close(usl.response_s(20.0), number(&expected, "R20"), 1e-4);
    let clients = usl.clients_for_throughput(10_000.0).unwrap();
    assert_close(clients, number(&expected, "N_at_X10000"), 1e-4);
    assert_close(usl.response_s(clients), number(&expected, "R_at_X10000"), 1e-4);
    let book = &expected["book"];
    assert_close(usl.alpha, number(book, "sigma"), 1e-5);
    assert_close(usl.beta, number(book, "kappa"), 1e-5);
    assert_close(usl.gamma_per_s, number(book, "lam"), 1e-6);
    assert_eq!(peak.floor(), number(book, "Nmax"));
    assert_eq!(usl.throughput_per_s(peak.floor()).floor(), number(book, "Xmax"));
}

#[test]
fn a_server_that_stalls_agrees() {
    let (inputs, expected) = known("mm1_flush");
    let input = |name: &str| number(&inputs, name);
    let (mu_per_s, stall_per_s, recovery_per_s) = (input("mu"), input("alpha"), input("beta"));
    let queue = Flush { mu_per_s, delta_s: 0.0, stall_per_s, recovery_per_s };
    assert_close(queue.mean_s(input("lam")).unwrap(), number(&expected, "T"), 1e-9);
    assert_close(queue.mean_s(input("lam")).unwrap() * input("lam"), number(&expected, "L"), 1e-9);
    assert_close(queue.capacity_per_s(), number(&expected, "capacity"), 1e-9);
}
