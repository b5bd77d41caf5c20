//! A/A: how often alternatives that differ in nothing are told apart, over the whole way from trials to verdicts.

use loadline::measurement::Measurement;
use loadline::report::compare::{Adjustment, Comparisons, Options, RunInput, compare, within};
use loadline::report::metric::Metric;
use loadline::statistics::Verdict;
use loadline::statistics::random::Random;
use loadline::study::Study;
use loadline::trial::Levels;

use crate::trials::{Machine, measure, study};

const EQUAL: fn(&Levels) -> f64 = |_| 1.0;

/// Compares at the 5 % level; with a margin of 0 every difference that is found is told.
fn compared(study: &Study, trials: &[Measurement], metric: &str, seed: u64) -> Comparisons {
    let run = RunInput { path: "r", label: "r", machine: "m", study, written: study, measurements: trials };
    let chosen = within(&run, None, Metric::named(metric).unwrap()).unwrap();
    compare(&chosen.samples, &Options { alpha: 0.05, margin: 0.0, adjustment: Adjustment::Holm, seed })
}

fn is_told_apart(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

/// In how many of `count` simulated runs any two alternatives are told apart.
fn told_apart(study: &Study, machine: &Machine, rounds: u32, metric: &str, count: u64) -> u64 {
    let found = |seed: &u64| {
        let trials = measure(study, machine, rounds, &mut Random::new(1000 * u64::from(rounds) + seed));
        let found = compared(study, &trials, metric, *seed);
        assert_eq!(found.comparisons[0].paired_rounds.is_some(), machine.is_interleaved);
        found.comparisons.iter().any(|comparison| is_told_apart(comparison.verdict))
    };
    (0..count).filter(found).count() as u64
}

/// Asserts that a count is one that a probability of 5 % gives: within 3.3 standard deviations, so that of a thousand right
/// programs one would be refused. The seeds are fixed: this one never changes its mind.
#[track_caller]
fn assert_about_five_in_a_hundred(found: u64, count: u64) {
    let (expected, deviation) = (0.05 * count as f64, (0.05 * 0.95 * count as f64).sqrt());
    let is_about = (found as f64 - expected).abs() <= 3.3 * deviation;
    assert!(is_about, "{found} of {count} told apart; {expected} ± {:.0} expected", 3.3 * deviation);
}

fn two() -> Study {
    study(&[("layout.name", &["one", "other"])])
}

#[test]
fn equal_alternatives_in_rounds_are_told_apart_in_five_of_a_hundred_runs() {
    let calm = Machine { noise: 0.05, drift: 0.0, is_interleaved: true, speed: EQUAL };
    assert_about_five_in_a_hundred(told_apart(&two(), &calm, 8, "throughput", 600), 600);
    assert_about_five_in_a_hundred(told_apart(&two(), &calm, 12, "throughput", 300), 300);
}

#[test]
fn a_machine_that_drifts_does_not_make_differences() {
    let drifting = Machine { noise: 0.03, drift: 0.2, is_interleaved: true, speed: EQUAL };
    assert_about_five_in_a_hundred(told_apart(&two(), &drifting, 8, "throughput", 600), 600);
}

#[test]
fn equal_alternatives_without_rounds_are_told_apart_as_seldom() {
    let apart = Machine { noise: 0.05, drift: 0.0, is_interleaved: false, speed: EQUAL };
    assert_about_five_in_a_hundred(told_apart(&two(), &apart, 8, "throughput", 600), 600);
}

#[test]
fn quantiles_of_skewed_times_are_told_apart_as_seldom() {
    let calm = Machine { noise: 0.05, drift: 0.05, is_interleaved: true, speed: EQUAL };
    assert_about_five_in_a_hundred(told_apart(&two(), &calm, 9, "response_time_p90", 400), 400);
}

#[test]
fn a_family_of_fifteen_comparisons_has_a_false_one_in_at_most_five_of_a_hundred_runs() {
    let six = study(&[("layout.name", &["a", "b", "c", "d", "e", "f"])]);
    let calm = Machine { noise: 0.05, drift: 0.05, is_interleaved: true, speed: EQUAL };
    let count = 300;
    let found = told_apart(&six, &calm, 8, "throughput", count);
    // Holm's bound is 5 %; it is not exact, so only the upper end is checked.
    assert!(found as f64 <= 0.05 * count as f64 + 3.3 * (0.05 * 0.95 * count as f64).sqrt(), "{found} of {count}");
}

#[test]
fn rounds_find_a_small_difference_under_a_large_drift() {
    let speed: fn(&Levels) -> f64 = |levels| if levels["layout.name"] == "one" { 1.05 } else { 1.0 };
    let drifting = Machine { noise: 0.01, drift: 0.2, is_interleaved: true, speed };
    let trials = measure(&two(), &drifting, 12, &mut Random::new(4));
    let found = &compared(&two(), &trials, "throughput", 1).comparisons[0];
    assert_eq!((found.verdict, found.paired_rounds), (Verdict::Faster, Some(12)));
    let ([low, high], [wide_low, wide_high]) = (found.ratio_ci95.unwrap(), found.fieller_ci95.unwrap());
    assert!(low < 1.05 && 1.05 < high && high - low < 0.2 * (wide_high - wide_low), "{found:?}");
    assert!(found.p_welch.unwrap() > 0.05 && found.p_paired.unwrap() < 1e-4, "Welch's test does not see it: {found:?}");
}

#[test]
fn equal_seeds_give_equal_documents() {
    let calm = Machine { noise: 0.05, drift: 0.0, is_interleaved: true, speed: EQUAL };
    let trials = measure(&two(), &calm, 12, &mut Random::new(9));
    assert_eq!(compared(&two(), &trials, "throughput", 3), compared(&two(), &trials, "throughput", 3));
}
