//! Fits of points as they come: what is recovered, what is refused, and what the verdict says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use loadline::queueing::fit::{FitReport, Request, fit};
use loadline::queueing::load_dependent::LoadDependent;
use loadline::queueing::mg1::Mg1;
use loadline::queueing::mm1::{Mm1, Mm1Workers};
use loadline::queueing::mmc::Mmc;
use loadline::queueing::{Point, Points, QuantilePoint, Queue, Surroundings, Target, Timer};
use loadline::random::Stream;
use loadline::said::Said;

/// Points of a curve at rates, each off by a fixed pattern of half a standard error of 1 %.
fn points(rates: &[f64], workers: Option<u32>, mean_s: impl Fn(f64) -> f64) -> Points {
    let pattern = [0.3, -0.5, 0.1, 0.4, -0.2, -0.4, 0.5, -0.1];
    let point = |(index, rate): (usize, &f64)| {
        let exact_s = mean_s(*rate);
        let se_s = 0.01 * exact_s;
        let seen_s = exact_s + pattern[index % pattern.len()] * se_s;
        Point { arrival_rate_per_s: Some(*rate), mean_s: Some(seen_s), se_s: Some(se_s), workers, ..Point::default() }
    };
    Points(rates.iter().enumerate().map(point).collect())
}

fn fit_all(points: &Points) -> FitReport {
    fit(points, &Request::default()).unwrap()
}

#[track_caller]
fn assert_holds(report: &FitReport, model: &str, name: &str, truth: f64) {
    let found = report.fits.iter().find(|fit| fit.model == model).unwrap();
    let range = found.parameter(name).unwrap().ci95.unwrap();
    assert!(range.low <= truth && truth <= range.high, "{name} of {model}: {range:?} without {truth}");
}

#[test]
fn servers_in_parallel_that_slow_each_other_down_are_found() {
    let (service_s, growth, workers) = (0.004, 0.05, 16);
    let timer = Timer::Intended;
    let queue = LoadDependent { service_s, growth, workers, parallel: workers, delta_s: 0.001, timer };
    let rates = [100.0, 400.0, 700.0, 900.0, 1100.0, 1300.0, 1500.0, 1600.0, 1700.0];
    let report = fit_all(&points(&rates, Some(workers), |rate| queue.mean_s(rate).unwrap()));
    assert_eq!(report.best, Some("load-dependent-parallel"), "{}", report.verdict);
    assert_holds(&report, "load-dependent-parallel", "x_s", service_s);
    assert_holds(&report, "load-dependent-parallel", "p", growth);
}

const RATES: &[f64] = &[50.0, 150.0, 250.0, 350.0, 450.0, 550.0, 620.0, 660.0, 690.0, 710.0];

fn loaded(timer: Timer) -> LoadDependent {
    LoadDependent { service_s: 0.001, growth: 0.02, workers: 16, parallel: 1, delta_s: 0.002, timer }
}

#[test]
fn load_dependent_service_is_told_from_mm1_and_its_parameters_are_found() {
    let report = fit_all(&points(RATES, Some(16), |rate| loaded(Timer::Intended).mean_s(rate).unwrap()));
    assert_eq!(report.best, Some("load-dependent"), "{}", report.verdict);
    assert_holds(&report, "load-dependent", "x_s", 0.001);
    assert_holds(&report, "load-dependent", "p", 0.02);
    assert_holds(&report, "load-dependent", "delta_s", 0.002);
    let capacity = report.fits[0].capacity_per_s.unwrap();
    assert!((capacity / loaded(Timer::Intended).capacity_per_s() - 1.0).abs() < 0.02, "{capacity}");
}

#[test]
fn several_servers_are_found_with_their_number() {
    let queue = Mmc { mu_per_s: 200.0, servers: 4, delta_s: 0.001 };
    let rates = [50.0, 200.0, 350.0, 500.0, 600.0, 680.0, 720.0, 750.0, 770.0];
    let report = fit_all(&points(&rates, None, |rate| queue.mean_s(rate).unwrap()));
    assert_eq!(report.best, Some("mmc"), "{}", report.verdict);
    assert_eq!(report.fits[0].parameter("servers").unwrap().value, 4.0);
    assert_holds(&report, "mmc", "mu_per_s", 200.0);
    let fitted = report.fits[0].queue(&Surroundings::default()).unwrap();
    assert_eq!(Some(fitted.capacity_per_s()), report.fits[0].capacity_per_s);
    assert!((fitted.mean_s(700.0).unwrap() / queue.mean_s(700.0).unwrap() - 1.0).abs() < 0.02);
    assert!(
        report.skipped.iter().any(|skipped| skipped.model == "load-dependent" && skipped.because.contains("--workers"))
    );
}

#[test]
fn the_naive_curve_is_biased_by_the_timer_of_a_worker_and_the_workers_curve_is_not() {
    let seen = Mm1Workers { mu_per_s: 1000.0, delta_s: 0.0016, workers: 6 };
    let rates = [50.0, 200.0, 400.0, 600.0, 700.0, 800.0, 850.0, 900.0];
    let points = points(&rates, Some(6), |rate| seen.mean_s(rate).unwrap());
    let naive = fit(&points, &Request { model: "mm1".to_owned(), ..Request::default() }).unwrap();
    let mu = naive.fits[0].parameter("mu_per_s").unwrap();
    assert!(mu.ci95.unwrap().low > 1020.0, "the naive curve overestimates mu: {mu:?}");
    let around = Surroundings { timer: Timer::Sent, ..Surroundings::default() };
    let allowed = fit(&points, &Request { model: "mm1".to_owned(), around, ..Request::default() }).unwrap();
    assert_eq!(allowed.best, Some("mm1"), "{}", allowed.verdict);
    assert_holds(&allowed, "mm1", "mu_per_s", 1000.0);
    assert_holds(&allowed, "mm1", "delta_s", 0.0016);
}

#[test]
fn times_from_sending_need_the_workers() {
    let points = points(RATES, None, |rate| loaded(Timer::Intended).mean_s(rate).unwrap());
    let around = Surroundings { timer: Timer::Sent, ..Surroundings::default() };
    let error = fit(&points, &Request { around, ..Request::default() }).unwrap_err();
    assert_eq!(error.to_string(), "--timer sent needs the number of workers; add the column workers, or --workers N");
    let around = Surroundings { workers: Some(16), ..around };
    let report = fit(&points, &Request { around, ..Request::default() }).unwrap();
    assert!(report.skipped.iter().any(|skipped| skipped.model == "md1"), "{:?}", report.skipped);
}

fn mm1(rate: f64) -> f64 {
    Mm1 { mu_per_s: 1000.0, delta_s: 0.0016 }.mean_s(rate).unwrap()
}

#[test]
fn points_above_saturation_are_left_out_with_a_note() {
    let rates = [50.0, 200.0, 400.0, 600.0, 700.0, 800.0, 900.0];
    let mut points = points(&rates, None, mm1);
    points.0.iter_mut().for_each(|point| point.throughput_per_s = point.arrival_rate_per_s);
    // One point of low load missed arrivals by chance; that is no saturation.
    points.0[1].throughput_per_s = Some(190.0);
    points.0.push(Point {
        arrival_rate_per_s: Some(1200.0),
        mean_s: Some(0.9),
        se_s: Some(0.1),
        throughput_per_s: Some(990.0),
        ..Point::default()
    });
    let report = fit_all(&points);
    assert_eq!((report.best, report.points), (Some("mm1"), 7), "{}", report.verdict);
    assert!(
        report.notes.iter().any(|note| {
            let note = note.to_string();
            note.contains("1,200/s") && note.contains("990/s")
        }),
        "{:?}",
        report.notes
    );
}

#[test]
fn curves_that_no_model_has_are_rejected_and_the_closest_is_named() {
    // Response time that falls and rises again, as with a cache that warms up.
    let report = fit_all(&points(RATES, Some(16), |rate| 0.004 + 0.003 * (rate / 120.0).sin()));
    assert_eq!(report.best, None);
    assert!(report.closest.is_some() && report.tie.is_empty());
    let because = report.no_fit_because.unwrap();
    assert!(because.contains("every model is rejected"), "{because}");
    assert!(
        report.verdict.to_string().starts_with("No model fits the mean: every model is rejected"),
        "{}",
        report.verdict
    );
}

#[test]
fn low_load_alone_does_not_identify_the_capacity() {
    let report = fit_all(&points(&[5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0], None, mm1));
    assert_eq!(report.best, None, "{}", report.verdict);
    let because = report.no_fit_because.unwrap();
    assert!(
        because.contains("do not identify the capacity") && because.contains("measure at higher rates"),
        "{because}"
    );
}

/// Very nearly a normal number of mean 0 and variance 1: the sum of twelve uniform ones.
fn normal(random: &mut Stream) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

#[test]
fn no_model_is_best_beside_a_likelier_one_that_does_not_tell_the_capacity() {
    // M/M/1 at a twentieth of its capacity, known to 0.2 %: with servers in parallel the curve would turn where nothing was measured.
    let queue = Mm1 { mu_per_s: 2_000.0, delta_s: 0.0 };
    for seed in 0..8 {
        let mut random = Stream::seeded(seed);
        let mut points =
            points(&[10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0], Some(8), |rate| queue.mean_s(rate).unwrap());
        for point in &mut points.0 {
            let exact_s = queue.mean_s(point.arrival_rate_per_s.unwrap()).unwrap();
            let se_s = 0.002 * exact_s;
            (point.mean_s, point.se_s) = (Some(exact_s + se_s * normal(&mut random)), Some(se_s));
        }
        let report = fit_all(&points);
        assert!(report.best.is_none_or(|best| best == "mm1" || report.tie.contains(&"mm1")), "{}", report.verdict);
    }
}

#[test]
fn too_few_points_are_said_to_be_too_few() {
    let report = fit_all(&points(&[100.0], None, mm1));
    assert_eq!((report.best, report.fits.len()), (None, 0));
    assert!(
        report.verdict.to_string().contains("1 arrival rates are too few for its 2 parameters"),
        "{}",
        report.verdict
    );
    let report = fit_all(&points(&[100.0, 800.0, 900.0], None, mm1));
    let mm1 = report.fits.iter().find(|fit| fit.model == "mm1").unwrap();
    assert_eq!((mm1.df, mm1.aicc), (1, None), "three points fit two parameters and rank nothing");
}

#[test]
fn quantile_curves_are_fitted_where_a_quantile_is_asked_for() {
    let queue = Mm1 { mu_per_s: 1000.0, delta_s: 0.0016 };
    let mut points = points(&[50.0, 200.0, 400.0, 600.0, 700.0, 800.0, 850.0, 900.0], None, mm1);
    for point in &mut points.0 {
        let value_s = queue.quantile_s(point.arrival_rate_per_s.unwrap(), 0.9).unwrap();
        point.quantiles = vec![QuantilePoint { quantile: 0.9, value_s, se_s: Some(0.01 * value_s) }];
    }
    let request = Request { target: Target::Quantile(0.9), ..Request::default() };
    let report = fit(&points, &request).unwrap();
    assert_eq!((report.best, report.target.as_str()), (Some("mm1"), "p90"), "{}", report.verdict);
    let value = |name| report.fits[0].parameter(name).unwrap().value;
    assert!((value("mu_per_s") / 1000.0 - 1.0).abs() < 1e-5 && (value("delta_s") / 0.0016 - 1.0).abs() < 1e-4);
    assert!(report.notes.iter().any(|note| note.kind() == "approximated"), "{:?}", report.notes);
    let error = fit(&points, &Request { target: Target::Quantile(0.99), ..Request::default() }).unwrap_err();
    assert!(error.to_string().contains("no point has its p99"), "{error}");
}

#[test]
fn exact_points_without_errors_prefer_the_simpler_model() {
    let mut points = points(&[50.0, 200.0, 400.0, 600.0, 700.0, 800.0, 850.0, 900.0], Some(64), mm1);
    for point in &mut points.0 {
        (point.mean_s, point.se_s) = (Some(mm1(point.arrival_rate_per_s.unwrap())), None);
    }
    let report = fit_all(&points);
    assert_eq!((report.best, report.errors_known), (Some("mm1"), false), "{}", report.verdict);
    let mu = report.fits[0].parameter("mu_per_s").unwrap();
    assert!((mu.value / 1000.0 - 1.0).abs() < 1e-7 && mu.ci95.is_some(), "{mu:?}");
}

#[test]
fn models_that_the_points_do_not_tell_apart_are_named_as_ties() {
    // Up to 70 % of the capacity, with 1 % of error, one parameter more buys about what it costs.
    let scaled = |rate: f64| 0.001 + 1.12 / (1000.0 - rate);
    let rates = [50.0, 150.0, 200.0, 300.0, 400.0, 450.0, 500.0, 550.0, 600.0, 650.0, 680.0, 700.0];
    let report = fit_all(&points(&rates, None, scaled));
    let best = report.best.unwrap();
    // M/G/1 and the scaled M/M/1 are one curve here, and both are tied with M/M/1.
    assert_eq!(
        report.tie.len(),
        2,
        "{:?} {:?}",
        report.verdict,
        report.fits.iter().map(|f| (f.model, f.aicc)).collect::<Vec<_>>()
    );
    assert!(report.tie.contains(&"mm1") || best == "mm1", "{}", report.verdict);
    assert!(report.verdict.to_string().contains("the points do not tell it from M/"), "{}", report.verdict);
    let aicc = |model: &str| report.fits.iter().find(|fit| fit.model == model).unwrap().aicc.unwrap();
    for fit in &report.fits {
        let is_near = fit.model != best && (fit.aicc.unwrap() - aicc(best)).abs() < 2.0;
        assert_eq!(report.tie.contains(&fit.model), is_near, "{}", fit.model);
    }
}

#[test]
fn exact_points_of_mg1_with_long_services_and_a_small_delay_are_recognised() {
    // A scaled M/M/1 would need a delay of 0.2 ms - 4.5 / 1000/s.
    let queue = Mg1 { mu_per_s: 1000.0, cv2: 10.0, delta_s: 0.0002 };
    let rates = [50.0, 200.0, 400.0, 600.0, 700.0, 800.0, 850.0, 900.0];
    let report = fit_all(&points(&rates, None, |rate| queue.mean_s(rate).unwrap()));
    assert_eq!(report.best, Some("mg1"), "{}", report.verdict);
    assert_holds(&report, "mg1", "mu_per_s", 1000.0);
    assert_holds(&report, "mg1", "cv2", 10.0);
    assert!(!report.tie.contains(&"mm1-scaled"), "{:?}", report.tie);
    assert!(
        report.notes.iter().any(|note| note.to_string().contains("no M/M/1 scaled by a = 5.")),
        "{:?}",
        report.notes
    );
    // With a delay that is long enough both are the same curve.
    let queue = Mg1 { delta_s: 0.006, ..queue };
    let report = fit_all(&points(&rates, None, |rate| queue.mean_s(rate).unwrap()));
    assert_eq!((report.best, report.tie.contains(&"mm1-scaled")), (Some("mg1"), true), "{}", report.verdict);
}

#[test]
fn intervals_of_several_servers_do_not_hold_their_number_fixed() {
    // Up to 60 % of the capacity 3, 4 or 5 servers look alike; their service rates do not.
    let queue = Mmc { mu_per_s: 200.0, servers: 4, delta_s: 0.001 };
    let rates = [50.0, 150.0, 250.0, 330.0, 400.0, 480.0, 560.0];
    let request = Request { model: "mmc".to_owned(), ..Request::default() };
    let seen = points(&rates, None, |rate| queue.mean_s(rate).unwrap());
    let report = fit(&seen, &request).unwrap();
    let range = |name: &str| report.fits[0].parameter(name).unwrap().ci95.unwrap();
    let (servers, mu) = (range("servers"), range("mu_per_s"));
    assert!(servers.low < servers.high, "the points allow several numbers: {servers:?}");
    for count in [servers.low, servers.high] {
        let around = Surroundings { servers: Some(count as u32), ..Surroundings::default() };
        let held = fit(&seen, &Request { around, ..request.clone() }).unwrap();
        let value = held.fits[0].parameter("mu_per_s").unwrap().value;
        assert!(mu.low <= value && value <= mu.high, "with {count} servers mu is {value}, not in {mu:?}");
    }
    let capacity = report.fits[0].capacity_ci95.unwrap();
    assert!(capacity.low <= 800.0 && 800.0 <= capacity.high, "{capacity:?}");
    assert_eq!(report.fits[0].parameter("mu_per_s").unwrap().se, None, "it would be that of one number of servers");
}

#[test]
fn a_server_that_stalls_cannot_be_told_from_means_and_the_refusal_says_what_can() {
    let points = points(RATES, Some(16), mm1_of_low);
    let error = fit(&points, &Request { model: "mm1_flush".to_owned(), ..Request::default() }).unwrap_err();
    assert!(error.to_string().contains("fit mm1-scaled"), "{error}");
    let error = fit(&points, &Request { model: "mm2".to_owned(), ..Request::default() }).unwrap_err();
    assert!(error.to_string().starts_with("unknown model \"mm2\"; known are auto, mm1, md1, mg1"), "{error}");
}

fn mm1_of_low(rate: f64) -> f64 {
    Mm1 { mu_per_s: 800.0, delta_s: 0.001 }.mean_s(rate).unwrap()
}

#[test]
fn held_out_rates_show_that_a_wrong_model_does_not_extrapolate() {
    let report = fit_all(&points(RATES, Some(16), |rate| loaded(Timer::Intended).mean_s(rate).unwrap()));
    let error = |model: &str| {
        let found = report.fits.iter().find(|fit| fit.model == model).unwrap();
        let held_out = found.held_out.as_ref().unwrap();
        assert_eq!(held_out.loads, [660.0, 690.0, 710.0]);
        held_out.relative_error_rms
    };
    assert!(error("load-dependent") < error("md1"), "{} {}", error("load-dependent"), error("md1"));
}

#[test]
fn a_model_fits_does_not_fit_or_cannot_be_told() {
    let whether = |rates: &[f64], workers, mean_s: &dyn Fn(f64) -> f64| {
        let request = Request { model: "mm1".to_owned(), ..Request::default() };
        fit(&points(rates, workers, mean_s), &request).unwrap().says_whether("mm1")
    };
    let rates = [100.0, 200.0, 400.0, 600.0, 800.0, 900.0];
    assert_eq!(whether(&rates, None, &mm1), Some(true));
    assert_eq!(whether(&rates, None, &|rate| 0.001 + if rate > 500.0 { 0.02 } else { 0.0 }), Some(false));
    let low = [5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0];
    assert_eq!(whether(&low, None, &mm1), None, "far below the capacity all models are flat");
}
