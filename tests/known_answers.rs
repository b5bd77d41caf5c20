//! Known answers: results computed elsewhere, with other software, that loadline's calculations must reproduce.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use loadline::statistics::bootstrap::bca;
use loadline::statistics::t_test::{Summary, pooled, welch};
use loadline::statistics::{family, order, rank, ratio, series, summary, two_level};
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

fn summaries(inputs: &Value) -> (Summary, Summary) {
    let summary =
        |mean, sd, n| Summary { mean: number(inputs, mean), sd: number(inputs, sd), n: number(inputs, n) as u64 };
    (summary("m1", "s1", "n1"), summary("m2", "s2", "n2"))
}

#[test]
fn t_tests_from_summaries_agree() {
    let (inputs, expected) = known("welch");
    let (a, b) = summaries(&inputs);
    let (by_welch, by_pooling) = (welch(a, b).unwrap(), pooled(a, b).unwrap());
    assert_close(by_welch.t, number(&expected, "t"), 1e-9);
    assert_close(by_welch.df, number(&expected, "welch_df"), 1e-9);
    assert_close(by_welch.p, number(&expected, "welch_p"), 1e-9);
    assert_close(by_pooling.p, number(&expected, "pooled_p"), 1e-9);
}

#[test]
fn t_tests_of_groups_of_unequal_size_agree() {
    let (inputs, expected) = known("welch_unequal_n");
    let (a, b) = summaries(&inputs);
    assert_close(welch(a, b).unwrap().t, number(&expected, "t"), 1e-9);
    assert_close(welch(a, b).unwrap().p, number(&expected, "welch_p"), 1e-9);
    assert_close(pooled(a, b).unwrap().p, number(&expected, "pooled_p"), 1e-9);
}

#[test]
fn adjusted_p_values_agree() {
    let (inputs, expected) = known("holm_bh");
    let p = numbers(&inputs["p"]);
    for (found, expected) in [(family::holm(&p), &expected["holm"]), (family::benjamini_hochberg(&p), &expected["bh"])]
    {
        found.iter().zip(numbers(expected)).for_each(|(found, expected)| assert_close(*found, expected, 1e-9));
    }
}

#[test]
fn ranks_of_quantile_intervals_agree() {
    let (inputs, expected) = known("quantile_ci");
    for (index, case) in inputs["cases"].as_array().unwrap().iter().enumerate() {
        let case = numbers(case);
        let found = order::quantile_ranks(case[0] as usize, case[1], 0.95).unwrap();
        assert_eq!(vec![found.low as f64, found.high as f64], numbers(&expected["ranks"][index]));
        assert_close(found.coverage, numbers(&expected["coverage"])[index], 1e-9);
    }
}

#[test]
fn fiellers_interval_agrees() {
    let (inputs, expected) = known("fieller");
    let (old, new) = (numbers(&inputs["old"]), numbers(&inputs["new"]));
    let (ratio, interval) = ratio::fieller(&new, &old).unwrap();
    assert_close(ratio, number(&expected, "ratio"), 1e-9);
    assert_close(interval.low, number(&expected, "lo"), 1e-9);
    assert_close(interval.high, number(&expected, "hi"), 1e-9);
    assert_close(summary::t_interval(&old, 0.95).unwrap().half_width(), number(&expected, "h_old"), 1e-9);
    assert_close(summary::t_interval(&new, 0.95).unwrap().half_width(), number(&expected, "h_new"), 1e-9);
}

#[test]
fn the_two_levels_of_repetition_agree() {
    let (inputs, expected) = known("kalibera");
    let executions: Vec<Vec<f64>> = inputs["data"].as_array().unwrap().iter().map(numbers).collect();
    let found = two_level::two_level(&executions).unwrap();
    assert_close(found.within_variance, number(&expected, "S1sq"), 1e-9);
    assert_close(found.between_variance, number(&expected, "S2sq"), 1e-9);
    assert_close(found.added_variance, number(&expected, "T2sq"), 1e-9);
    assert_close(found.mean, number(&expected, "mean"), 1e-9);
    assert_close(found.interval.half_width(), number(&expected, "t95_half"), 1e-9);
    let best = found.best_iterations(number(&inputs, "c1"), number(&inputs, "c2")).unwrap();
    assert_close(best, number(&expected, "r1_opt_real"), 1e-9);
    assert_close(best.ceil(), number(&expected, "r1_opt"), 1e-9);
}

#[test]
fn rank_statistics_agree() {
    let (inputs, expected) = known("rank_effect");
    let (x, y) = (numbers(&inputs["x"]), numbers(&inputs["y"]));
    let test = rank::mann_whitney(&x, &y).unwrap();
    assert!(test.exact);
    assert_close(test.u, number(&expected, "U"), 1e-9);
    assert_close(test.p, number(&expected, "p_exact"), 1e-9);
    assert_close(rank::hodges_lehmann(&x, &y).unwrap(), number(&expected, "HL"), 1e-9);
    assert_close(rank::cliffs_delta(&x, &y).unwrap(), number(&expected, "cliff"), 1e-9);
    assert_close(rank::ratio_of_medians(&x, &y).unwrap(), number(&expected, "ratio_medians"), 1e-9);
}

#[test]
fn the_bootstrap_over_all_resamples_agrees() {
    let (inputs, expected) = known("bca_ideal");
    let x = numbers(&inputs["x"]);
    let count = x.len();
    let resample = |number: usize| (0..count).map(|place| x[number / count.pow(place as u32) % count]).sum::<f64>();
    let replicates: Vec<f64> = (0..count.pow(count as u32)).map(|number| resample(number) / count as f64).collect();
    let total: f64 = x.iter().sum();
    let mean = total / count as f64;
    let influences: Vec<f64> = x.iter().map(|value| mean - (total - value) / (count - 1) as f64).collect();
    let found = bca(&replicates, mean, &influences, number(&inputs, "conf")).unwrap();
    assert_close(found.bias, number(&expected, "z0"), 1e-6);
    assert_close(found.acceleration, number(&expected, "a"), 1e-6);
    assert_close(found.shares[0], numbers(&expected["alpha"])[0], 1e-6);
    assert_close(found.shares[1], numbers(&expected["alpha"])[1], 1e-6);
    assert_close(found.interval.low, number(&expected, "lo"), 1e-6);
    assert_close(found.interval.high, number(&expected, "hi"), 1e-6);
}

#[test]
fn the_oulu_rule_agrees() {
    let (inputs, expected) = known("oulu_rule");
    let x = numbers(&inputs["x"]);
    assert_close(summary::mean(&x).unwrap(), number(&expected, "mean"), 1e-9);
    assert_close(summary::population_sd(&x).unwrap(), number(&expected, "s_pop"), 1e-9);
    assert_close(summary::standard_error_share(&x).unwrap(), number(&expected, "ratio_pop"), 1e-9);
    assert_close(summary::relative_half_width(&x).unwrap(), number(&expected, "t95_rel_half"), 1e-9);
    let by_sample = summary::sample_sd(&x).unwrap() / (x.len() as f64).sqrt() / summary::mean(&x).unwrap();
    assert_close(by_sample, number(&expected, "ratio_sample"), 1e-9);
}

#[test]
fn the_end_of_a_warm_up_agrees() {
    let (inputs, expected) = known("mser5");
    let value = |i: u32| {
        let wave = if i.is_multiple_of(2) { 0.5 } else { -0.5 };
        let spike = if i.is_multiple_of(7) { 0.7 } else { 0.0 };
        ((10.0 + 8.0 * 0.9_f64.powi(i as i32) + wave + spike) * 1e6).round() / 1e6
    };
    let values: Vec<f64> = (0..number(&inputs, "n") as u32).map(value).collect();
    let found = series::mser(&values, number(&inputs, "b") as usize).unwrap();
    assert_close(found.values as f64, number(&expected, "truncate"), 1e-9);
    assert_close(found.statistic, number(&expected, "stat"), 1e-9);
    assert_close(summary::mean(&values[found.values..]).unwrap(), number(&expected, "mean_after"), 1e-9);
    assert_close(summary::mean(&values).unwrap(), number(&expected, "mean_all"), 1e-9);
}

/// The series of the known answer `ess_batch`: AR(1) with 0.8, from a linear congruential generator.
fn autoregressive() -> Vec<f64> {
    let (mut state, mut last) = (12_345_u64, 0.0);
    let mut uniform = || {
        state = (1_103_515_245 * state + 12_345) % (1 << 31);
        state as f64 / (1_u64 << 31) as f64
    };
    let mut value = || {
        last = 0.8 * last + (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (last * 1e6).round() / 1e6
    };
    (0..1000).map(|_| value()).collect()
}

#[test]
fn the_effective_size_of_a_dependent_series_agrees() {
    let (_, expected) = known("ess_batch");
    let values = autoregressive();
    numbers(&expected["first5"])
        .iter()
        .zip(&values)
        .for_each(|(expected, found)| assert_close(*found, *expected, 1e-6));
    assert_close(summary::mean(&values).unwrap(), number(&expected, "mean"), 1e-6);
    assert_close(series::autocorrelation(&values, 1).unwrap(), number(&expected, "rho1"), 1e-6);
    let found = series::effective_size(&values).unwrap();
    assert_close(found.pairs as f64, number(&expected, "geyer_pairs"), 1e-6);
    assert_close(found.correlation_time, number(&expected, "tau"), 1e-6);
    assert_close(found.size, number(&expected, "ess"), 1e-6);
    let (error, half) = series::batch_means(&values, 20).unwrap();
    assert_close(error, number(&expected, "bm20_se"), 1e-6);
    assert_close(half, number(&expected, "bm20_t95_half"), 1e-6);
    let naive = summary::sample_sd(&values).unwrap() / (values.len() as f64).sqrt();
    assert_close(naive, number(&expected, "naive_se"), 1e-6);
}
