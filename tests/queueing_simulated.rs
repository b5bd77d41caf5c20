//! The models against simulations that follow every operation, and the fit of M/M/1 against a simulated server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

#[path = "queueing/simulation.rs"]
mod simulation;

use loadline::queueing::fit::{Request, fit};
use loadline::queueing::flush::Flush;
use loadline::queueing::load_dependent::LoadDependent;
use loadline::queueing::mg1::{Md1, Mg1};
use loadline::queueing::mm1::Mm1Workers;
use loadline::queueing::mmc::Mmc;
use loadline::queueing::repairman::Repairman;
use loadline::queueing::{Point, Points, Queue, Timer};
use loadline::statistics::random::Random;
use loadline::statistics::{mean, sample_sd};
use simulation::{Times, exponential};

/// Mean and its standard error, from means of batches, which are longer than times depend on each other.
fn mean_and_error(times_s: &[f64]) -> (f64, f64) {
    let warm = &times_s[times_s.len() / 20..];
    let batches: Vec<f64> = warm.chunks_exact(warm.len() / 40).map(|batch| mean(batch).unwrap()).collect();
    (mean(&batches).unwrap(), sample_sd(&batches).unwrap() / (batches.len() as f64).sqrt())
}

/// The simulated mean is the model's within four standard errors, and those are small enough to tell.
#[track_caller]
fn assert_mean(times_s: &[f64], expected_s: f64) {
    let (found_s, error_s) = mean_and_error(times_s);
    assert!(error_s < 0.02 * expected_s, "the simulation is too short: {error_s} of {expected_s}");
    assert!((found_s - expected_s).abs() < 4.0 * error_s, "{found_s} +- {error_s} instead of {expected_s}");
}

/// The share of times above the model's quantile is what it should be, within four standard errors.
#[track_caller]
fn assert_quantiles(times_s: &[f64], quantile_s: impl Fn(f64) -> f64) {
    for quantile in [0.5, 0.9, 0.99] {
        let bound_s = quantile_s(quantile);
        let above: Vec<f64> = times_s.iter().map(|time_s| f64::from(u8::from(*time_s > bound_s))).collect();
        let (share, error) = mean_and_error(&above);
        assert!(error < 0.25 * (1.0 - quantile), "the simulation is too short for {quantile}: {share} +- {error}");
        let apart = (share - (1.0 - quantile)).abs();
        assert!(apart < 4.0 * error, "{share} +- {error} above the quantile {quantile}, {bound_s}");
    }
}

fn response_s(times: &[Times]) -> Vec<f64> {
    times.iter().map(|times| times.done_s - times.intended_s).collect()
}

fn residence_s(times: &[Times]) -> Vec<f64> {
    times.iter().map(|times| times.done_s - times.sent_s).collect()
}

const COUNT: usize = 400_000;

#[test]
fn the_timer_of_a_worker_sees_what_a_simulation_sees() {
    let mut random = Random::new(1);
    let times = simulation::server_behind_workers(&mut random, 800.0, 10, COUNT, |random| exponential(random, 1000.0));
    let model = Mm1Workers { mu_per_s: 1000.0, delta_s: 0.0, workers: 10 };
    assert_mean(&residence_s(&times), model.mean_s(800.0).unwrap());
    assert_quantiles(&residence_s(&times), |quantile| model.quantile_s(800.0, quantile).unwrap());
    assert_mean(&response_s(&times), 1.0 / 200.0);
}

#[test]
fn deterministic_and_general_service_agree_with_a_simulation() {
    let mut random = Random::new(2);
    let times = simulation::server_behind_workers(&mut random, 800.0, usize::MAX, COUNT, |_| 0.001);
    let model = Md1 { mu_per_s: 1000.0, delta_s: 0.0 };
    assert_mean(&response_s(&times), model.mean_s(800.0).unwrap());
    assert_quantiles(&response_s(&times), |quantile| model.quantile_s(800.0, quantile).unwrap());
    // A mixture: short with probability 0.9, long else; mean 1 ms, cv² = 2 (0.9 / 2000² + 0.1 / (1000/5.5)²) / 1e-6 - 1.
    let mixed = |random: &mut Random| {
        let rate_per_s = if random.unit() < 0.9 { 2000.0 } else { 1000.0 / 5.5 };
        exponential(random, rate_per_s)
    };
    let cv2 = 2.0 * (0.9 * 0.25 + 0.1 * 5.5 * 5.5) - 1.0;
    let times = simulation::server_behind_workers(&mut random, 600.0, usize::MAX, COUNT, mixed);
    assert_mean(&response_s(&times), Mg1 { mu_per_s: 1000.0, delta_s: 0.0, cv2 }.mean_s(600.0).unwrap());
}

#[test]
fn several_servers_agree_with_a_simulation() {
    for (servers, rate) in [(4, 1000.0), (2, 300.0), (16, 4200.0)] {
        let times_s = simulation::servers_response_s(&mut Random::new(3), rate, 300.0, servers, COUNT);
        let model = Mmc { mu_per_s: 300.0, servers: servers as u32, delta_s: 0.0 };
        assert_mean(&times_s, model.mean_s(rate).unwrap());
        assert_quantiles(&times_s, |quantile| model.quantile_s(rate, quantile).unwrap());
    }
}

#[test]
fn load_dependent_service_agrees_with_a_simulation() {
    for (rate, service_s, growth, parallel) in [(550.0, 0.001, 0.02, 1), (1500.0, 0.004, 0.05, 16)] {
        let delta_s = 0.0;
        let model = LoadDependent { service_s, growth, workers: 16, parallel, delta_s, timer: Timer::Intended };
        let rate_of = |at_server: usize| {
            let served = if parallel == 1 { 1.0 } else { at_server as f64 };
            served / (service_s * (1.0 + growth).powi(at_server as i32 - 1))
        };
        let times = simulation::load_dependent(&mut Random::new(4), rate, 16, parallel > 1, COUNT, rate_of);
        assert_mean(&response_s(&times), model.mean_s(rate).unwrap());
        let seen = LoadDependent { timer: Timer::Sent, ..model };
        assert_mean(&residence_s(&times), seen.mean_s(rate).unwrap());
    }
}

#[test]
fn stalls_agree_with_a_simulation() {
    let (mu_per_s, stall_per_s, recovery_per_s) = (1000.0, 5.0, 50.0);
    let model = Flush { mu_per_s, delta_s: 0.0, stall_per_s, recovery_per_s };
    let stalls = (stall_per_s, recovery_per_s);
    let times_s = simulation::stalling_response_s(&mut Random::new(5), 300.0, mu_per_s, stalls, 2 * COUNT);
    assert_mean(&times_s, model.mean_s(300.0).unwrap());
    assert_quantiles(&times_s, |quantile| model.quantile_s(300.0, quantile).unwrap());
}

#[test]
fn the_closed_loop_agrees_with_a_simulation() {
    let model = Repairman { clients: 12, think_s: 0.01, service_s: 0.001 };
    let times_s = simulation::closed_response_s(&mut Random::new(6), 12, 0.01, 0.001, COUNT);
    assert_mean(&times_s, model.state().response_s);
    assert_quantiles(&times_s, |quantile| model.quantile_s(quantile).unwrap());
}

/// Trials of each rate.
const TRIALS: u32 = 15;

/// Eight rates of a simulated M/M/1 server behind a constant delay, each measured in trials as a run would.
fn simulated_points(seed: u64, mu_per_s: f64, delta_s: f64) -> Points {
    let mut random = Random::new(seed);
    let point = |share: f64| {
        let rate_per_s = share * mu_per_s;
        let mut trial = |_| {
            let times_s = simulation::mm1_response_s(&mut random, rate_per_s, mu_per_s, 4_000);
            delta_s + mean(&times_s).unwrap()
        };
        let trials: Vec<f64> = (0..TRIALS).map(&mut trial).collect();
        Point {
            arrival_rate_per_s: Some(rate_per_s),
            mean_s: mean(&trials),
            se_s: sample_sd(&trials).map(|sd| sd / f64::from(TRIALS).sqrt()),
            trials: Some(TRIALS),
            ..Point::default()
        }
    };
    Points([0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.75, 0.8].map(point).to_vec())
}

#[test]
fn fits_give_back_the_parameters_of_a_simulated_server_as_often_as_their_intervals_promise() {
    let (mu_per_s, delta_s) = (1000.0, 0.0016);
    let request = Request { model: "mm1".to_owned(), ..Request::default() };
    let (mut mu_held, mut delta_held, mut rejected) = (0, 0, 0);
    for seed in 0..100 {
        let report = fit(&simulated_points(seed, mu_per_s, delta_s), &request).unwrap();
        let holds = |name: &str, truth: f64| {
            let range = report.fits[0].parameter(name).unwrap().ci95.unwrap();
            u32::from(range.low <= truth && truth <= range.high)
        };
        mu_held += holds("mu_per_s", mu_per_s);
        delta_held += holds("delta_s", delta_s);
        rejected += u32::from(report.best.is_none());
    }
    assert!(mu_held >= 90, "mu lies within its 95 % interval in {mu_held} of 100");
    assert!(delta_held >= 90, "delta lies within its 95 % interval in {delta_held} of 100");
    assert!(rejected <= 5, "the true model is rejected in {rejected} of 100");
}
