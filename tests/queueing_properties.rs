//! Properties that every model has, whatever its parameters.

use loadline::queueing::fit::{Request, fit};
use loadline::queueing::{FAMILIES, Family, Point, Points, Queue, Surroundings, Target, Timer};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// A family with parameters of a plausible magnitude: each of `dice`, in 0..1, decides one.
fn build(which: usize, dice: &[f64], workers: u32, timer: Timer) -> Option<(&'static Family, Box<dyn Queue>)> {
    let family = &FAMILIES[which % FAMILIES.len()];
    let value = |(parameter, die): (&loadline::queueing::family::Parameter, &f64)| match parameter.name {
        "mu_per_s" => 10.0_f64.powf(1.0 + 4.0 * die),
        "x_s" => 10.0_f64.powf(-5.0 + 4.0 * die),
        "delta_s" => 0.01 * die,
        "p" => 0.1 * die * die,
        "a" => 10.0_f64.powf(2.0 * die - 1.0),
        "cv2" => 20.0 * die,
        _ => 10.0_f64.powf(3.0 * die),
    };
    let values: Vec<f64> = family.parameters.iter().zip(dice).map(value).collect();
    let around = Surroundings { workers: Some(workers), servers: Some(1 + workers / 4), timer };
    Some((family, (family.build)(&values, &around)?))
}

fn above(low: f64, high: f64, what: &str) -> Result<(), TestCaseError> {
    prop_assert!(high >= low * (1.0 - 1e-9), "{} falls: {} to {}", what, low, high);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_grow_with_the_arrival_rate_and_with_the_quantile(
        which in 0..9_usize,
        dice in prop::collection::vec(0.0..1.0_f64, 4),
        workers in 1..200_u32,
        sent in any::<bool>(),
        shares in (0.0..0.98_f64, 0.0..0.98_f64),
        quantiles in (0.01..0.999_f64, 0.01..0.999_f64),
    ) {
        let timer = if sent { Timer::Sent } else { Timer::Intended };
        let Some((family, queue)) = build(which, &dice, workers, timer) else { return Ok(()) };
        let capacity = queue.capacity_per_s();
        prop_assume!(capacity > 1e-6);
        let (low, high) = (shares.0.min(shares.1) * capacity, shares.0.max(shares.1) * capacity);
        let (mean_low, mean_high) = (queue.mean_s(low).unwrap(), queue.mean_s(high).unwrap());
        prop_assert!(mean_low.is_finite() && mean_low >= queue.delay_s());
        above(mean_low, mean_high, family.name)?;
        prop_assert!((queue.throughput_per_s(high) - high).abs() <= 1e-9 * high);
        prop_assert!((queue.throughput_per_s(2.0 * capacity) - capacity).abs() <= 1e-9 * capacity);
        if queue.has_quantiles() {
            let (q_low, q_high) = (quantiles.0.min(quantiles.1), quantiles.0.max(quantiles.1));
            let at = |rate, quantile| queue.quantile_s(rate, quantile).unwrap();
            above(at(high, q_low), at(high, q_high), family.name)?;
            above(at(low, q_low), at(high, q_low), family.name)?;
        }
    }

    #[test]
    fn the_highest_arrival_rate_for_a_bound_is_the_inverse(
        which in 0..9_usize,
        dice in prop::collection::vec(0.0..1.0_f64, 4),
        workers in 1..100_u32,
        share in 0.05..0.95_f64,
        quantile in prop::option::of(0.1..0.99_f64),
    ) {
        let Some((family, queue)) = build(which, &dice, workers, Timer::Intended) else { return Ok(()) };
        let capacity = queue.capacity_per_s();
        prop_assume!(capacity > 1e-6);
        let target = quantile.map_or(Target::Mean, Target::Quantile);
        let bound_s = queue.figure_s(share * capacity, target).unwrap();
        let limit = queue.limit_per_s(target, bound_s).unwrap();
        let back_s = queue.figure_s(limit, target).unwrap();
        prop_assert!((back_s / bound_s - 1.0).abs() < 1e-6, "{}: {} instead of {}", family.name, back_s, bound_s);
        prop_assert!(limit >= share * capacity * (1.0 - 1e-9), "{}: a higher rate keeps the bound", family.name);
        let by_mean = queue.limit_by_mean_alone_per_s(0.9, bound_s);
        let own = queue.limit_per_s(Target::Quantile(0.9), bound_s);
        if queue.has_quantiles() {
            prop_assert!(by_mean.unwrap_or(0.0) <= own.unwrap_or(0.0) * (1.0 + 1e-9), "Markov's bound is the lower one");
        }
    }
}

/// So many servers for so little work that the mean grows by less than its rounding: the bound is met again all the same.
#[test]
fn a_bound_that_hardly_depends_on_the_rate_has_its_highest_rate() {
    let parallel = FAMILIES.iter().position(|family| family.name == "load-dependent-parallel").unwrap();
    for share in [0.05, 0.1, 0.102_107_755_643_394_86, 0.124_166_157_702_246_88, 0.239_250_227_408_791_95] {
        for workers in [12, 16, 27, 34, 63] {
            let dice = [0.992_319_573_724_061_5, 0.000_162_456_020_117_334_02, 0.0, 0.0];
            let (_, queue) = build(parallel, &dice, workers, Timer::Intended).unwrap();
            let rate = share * queue.capacity_per_s();
            let bound_s = queue.mean_s(rate).unwrap();
            let limit = queue.limit_per_s(Target::Mean, bound_s);
            assert!(limit.is_some_and(|limit| limit >= rate * (1.0 - 1e-9)), "{share} of {workers} workers: {limit:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_points_give_back_mm1_in_any_unit(ln_mu in 0.0..12.0_f64, load in 0.5..0.95_f64, delay in 0.0..20.0_f64) {
        let mu = ln_mu.exp();
        let delta = delay / mu;
        let point = |share: f64| {
            let rate = share * load * mu;
            let mean_s = delta + 1.0 / (mu - rate);
            Point { arrival_rate_per_s: Some(rate), mean_s: Some(mean_s), se_s: Some(0.01 * mean_s), ..Point::default() }
        };
        let points = Points([0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0].map(point).to_vec());
        let report = fit(&points, &Request { model: "mm1".to_owned(), ..Request::default() }).unwrap();
        let value = |name| report.fits[0].parameter(name).unwrap().value;
        prop_assert!((value("mu_per_s") / mu - 1.0).abs() < 1e-4, "{}", report.verdict);
        prop_assert!((value("delta_s") - delta).abs() < 1e-3 / mu, "{} instead of {}", value("delta_s"), delta);
        let range = report.fits[0].parameter("mu_per_s").unwrap().ci95.unwrap();
        prop_assert!(range.low < mu && mu < range.high);
    }

    #[test]
    fn no_file_of_points_makes_the_reader_fail(text in "[a-z_,0-9.e\\-\n\"# ]{0,200}") {
        let heading = "arrival_rate,mean_s,workers\n";
        if let Ok(points) = Points::from_csv("f.csv", &format!("{heading}{text}")) {
            prop_assert!(points.0.iter().all(|point| point.mean_s.unwrap() > 0.0));
        }
    }
}
