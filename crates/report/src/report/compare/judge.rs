//! Turns samples into comparisons: every pair of alternatives, adjusted together and judged.
//!
//! Main function: [`compare`]. Invariant: the same samples, options and seed give the same document, whatever the order of machines and
//! cases.

use std::collections::HashMap;

use super::marks::{marks, unconfirmed};
use super::note::CompareNote;
use super::outcome::{Adjustment, Comparison, Comparisons, Letters, Options};
use super::sample::{Figures, Sample};
use crate::statistics::change_point::change_point;
use crate::statistics::equivalence::equivalence_p;
use crate::statistics::letters::letters;
use crate::statistics::median_ratio::median_ratio;
use crate::statistics::rank::mann_whitney;
use crate::statistics::ratio::{apart_ratio, fieller_of, matched_ratio};
use crate::statistics::rounding::p_range;
use crate::statistics::rounds::shared_values;
use crate::statistics::shift::shift;
use crate::statistics::t_test::{pooled, welch};
use crate::statistics::{Interval, RatioEstimate, Verdict, family, judge};

/// Returns all pairs of samples that are alternatives to each other, case by case, in their order.
pub fn pairs(samples: &[Sample]) -> Vec<(&Sample, &Sample)> {
    let mut alternatives: Vec<Vec<&Sample>> = Vec::new();
    let mut place_of: HashMap<_, usize> = HashMap::new();
    for sample in samples {
        let place = *place_of.entry(sample.question()).or_insert_with(|| {
            alternatives.push(Vec::new());
            alternatives.len() - 1
        });
        alternatives[place].push(sample);
    }
    let places = |count: usize| (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)));
    alternatives.iter().flat_map(|own| places(own.len()).map(move |(a, b)| (own[a], own[b]))).collect()
}

/// Compares all pairs of samples that are alternatives to each other, case by case, in their order.
pub fn compare(samples: &[Sample], options: &Options) -> Comparisons {
    let pairs = pairs(samples);
    let mut comparisons: Vec<Comparison> = pairs.iter().map(|(a, b)| weigh(a, b, options.seed)).collect();
    let decided: Vec<usize> =
        (0..comparisons.len()).filter(|place| comparisons[*place].deciding_p().is_some()).collect();
    let p: Vec<f64> = decided.iter().filter_map(|place| comparisons[*place].deciding_p()).collect();
    let adjusted = match options.adjustment {
        Adjustment::Bonferroni => family::bonferroni(&p),
        Adjustment::Holm => family::holm(&p),
        Adjustment::Bh => family::benjamini_hochberg(&p),
    };
    for (place, p) in decided.iter().zip(adjusted) {
        comparisons[*place].p_adjusted = Some(p);
    }
    for ((a, b), comparison) in pairs.iter().zip(&mut comparisons) {
        let level = options.alpha * share_of_level(comparison, options.adjustment, p.len());
        let estimate = estimate(a, b).filter(|_| comparison.p_adjusted.is_some());
        let interval = estimate.map(|estimate| estimate.interval_at(1.0 - level));
        comparison.ratio_adjusted = interval.map(|interval| [interval.low, interval.high]);
        comparison.verdict = judged(a, b, comparison, interval, options);
    }
    let mut notes = Vec::new();
    let still = comparisons.iter().filter(|comparison| comparison.deciding_p().is_none()).count();
    if still > 0 {
        notes.push(CompareNote::NothingVaries { comparisons: still });
    }
    notes.extend(changes(&pairs, &comparisons, options.seed));
    let places: Vec<(&Sample, &Sample, &Comparison)> =
        pairs.iter().zip(&comparisons).map(|((a, b), comparison)| (*a, *b, comparison)).collect();
    Comparisons {
        valid: true,
        alpha: options.alpha,
        margin: options.margin,
        adjustment: options.adjustment,
        family: p.len() as u64,
        marks: marks(&places),
        unconfirmed: unconfirmed(&places, options.alpha),
        letters: all_letters(samples, &comparisons),
        comparisons,
        notes,
    }
}

/// The number of shuffles with which a series is tested for a change.
const SHUFFLES: u32 = 199;
/// The p at or below which a change is reported: stricter than 5 %, because every series is tested.
const CHANGED: f64 = 0.01;

/// Notes samples whose level changed during the run and that are compared without pairing, so that the change is part of a difference.
fn changes(pairs: &[(&Sample, &Sample)], comparisons: &[Comparison], seed: u64) -> Vec<CompareNote> {
    let mut seen: Vec<*const Sample> = Vec::new();
    let mut notes = Vec::new();
    let unpaired = pairs.iter().zip(comparisons).filter(|(_, comparison)| comparison.paired_rounds.is_none());
    for sample in unpaired.flat_map(|((a, b), _)| [*a, *b]) {
        if seen.contains(&std::ptr::from_ref(sample)) {
            continue;
        }
        seen.push(std::ptr::from_ref(sample));
        let values = sample.values();
        let Some((split, p)) = change_point(&values, SHUFFLES, seed) else { continue };
        if p <= CHANGED {
            let Sample { case, variant, machine, .. } = sample.clone();
            notes.push(CompareNote::LevelChanged { case, variant, machine, after: split.before, all: values.len(), p });
        }
    }
    notes
}

/// Computes all figures of a comparison, before adjustment and judgement.
fn weigh(a: &Sample, b: &Sample, seed: u64) -> Comparison {
    let (of, to) = (a.summary(), b.summary());
    let (by_welch, by_pooling) = (welch(of, to), pooled(of, to));
    let is_rounded = matches!((&a.figures, &b.figures), (Figures::Summary(_), _) | (_, Figures::Summary(_)));
    let rounding = if is_rounded { p_range(a.printed(), b.printed(), welch) } else { None };
    let ends = |interval: Interval| [interval.low, interval.high];
    let mut found = Comparison {
        case: a.case.clone(),
        machine: a.machine.clone(),
        factor: a.factor.clone(),
        metric: a.metric.name,
        operation: a.operation.clone(),
        a: a.variant.clone(),
        b: b.variant.clone(),
        mean_a: of.mean,
        mean_b: to.mean,
        n_a: of.n,
        n_b: to.n,
        ratio: (of.mean > 0.0 && to.mean > 0.0).then(|| of.mean / to.mean),
        ratio_ci95: None,
        ratio_adjusted: None,
        ratio_method: None,
        fieller_ci95: fieller_of(of, to).filter(|_| of.mean > 0.0 && to.mean > 0.0).map(|(_, found)| ends(found)),
        median_ratio: None,
        median_ratio_ci95: None,
        shift: None,
        shift_ci95: None,
        p_mann_whitney: None,
        t: by_welch.map(|test| test.t),
        df: by_welch.map(|test| test.df),
        p_welch: by_welch.map(|test| test.p),
        p_pooled: by_pooling.map(|test| test.p),
        p_welch_rounding: rounding.map(ends),
        paired_rounds: None,
        p_ratio: None,
        p_paired: None,
        p_adjusted: None,
        verdict: Verdict::Undecided,
    };
    if !is_rounded {
        weigh_trials(a, b, seed, &mut found);
    }
    found
}

/// Adds the figures that require the values of trials.
fn weigh_trials(a: &Sample, b: &Sample, seed: u64, found: &mut Comparison) {
    let (values_a, values_b) = (a.values(), b.values());
    if let Some(estimate) = estimate(a, b) {
        found.ratio = Some(estimate.ratio);
        found.ratio_ci95 = Some([estimate.interval.low, estimate.interval.high]);
        found.ratio_method = Some(if estimate.rounds.is_some() { "log t over rounds" } else { "log t" });
        found.p_ratio = Some(estimate.p).filter(|_| estimate.log_se > 0.0);
        found.paired_rounds = estimate.rounds.map(|rounds| rounds as u64);
        found.p_paired = found.p_ratio.filter(|_| estimate.rounds.is_some());
    }
    let together = match (&a.figures, &b.figures) {
        (Figures::Trials(of), Figures::Trials(to)) => shared_values(of, to),
        _ => None,
    };
    let (of, to) = match &together {
        Some(pairs) => pairs.iter().copied().unzip(),
        None => (values_a.clone(), values_b.clone()),
    };
    if let Some((ratio, interval)) = median_ratio(&of, &to, together.is_some(), seed, 0.95) {
        found.median_ratio = Some(ratio);
        found.median_ratio_ci95 = interval.map(|interval| [interval.low, interval.high]);
    }
    if let Some((centre, interval)) = shift(&values_a, &values_b, 0.95) {
        found.shift = Some(centre);
        found.shift_ci95 = interval.map(|interval| [interval.low, interval.high]);
    }
    found.p_mann_whitney = mann_whitney(&values_a, &values_b).map(|test| test.p);
}

/// Returns the ratio with its interval, over rounds if possible. `None` for summaries.
fn estimate(a: &Sample, b: &Sample) -> Option<RatioEstimate> {
    match (&a.figures, &b.figures, a.noise.zip(b.noise)) {
        (Figures::Trials(of), Figures::Trials(to), Some((of_error, to_error))) => {
            apart_ratio((of, of_error), (to, to_error))
        }
        (Figures::Trials(of), Figures::Trials(to), None) => matched_ratio(&[(of, to)]),
        _ => None,
    }
}

/// Returns the share of the level for the comparison's own p, chosen so that p is below it exactly if the adjusted p is below the level.
fn share_of_level(found: &Comparison, adjustment: Adjustment, family: usize) -> f64 {
    match (adjustment, found.deciding_p(), found.p_adjusted) {
        (Adjustment::Holm | Adjustment::Bh, Some(p), Some(adjusted)) if p > 0.0 && adjusted < 1.0 => p / adjusted,
        _ => 1.0 / family.max(1) as f64,
    }
}

/// Returns the verdict on a: from the interval if there is one; for summaries from the adjusted p, and from two tests against the margin.
fn judged(a: &Sample, b: &Sample, found: &Comparison, interval: Option<Interval>, options: &Options) -> Verdict {
    let Some(p) = found.p_adjusted else { return Verdict::Undecided };
    let verdict = match interval {
        Some(interval) => judge(interval, options.margin),
        None => {
            let outside = equivalence_p(a.summary(), b.summary(), options.margin);
            if outside.is_some_and(|outside| outside < options.alpha / 2.0) {
                Verdict::Equal
            } else if p >= options.alpha || found.mean_a == found.mean_b {
                Verdict::Undecided
            } else if found.mean_a > found.mean_b {
                Verdict::Faster
            } else {
                Verdict::Slower
            }
        }
    };
    if a.metric.more_is_better { verdict } else { verdict.reversed() }
}

/// Returns what two alternatives are compared in, and their names in alphabetical order.
fn question_of<'a>(
    comparison: &'a Comparison,
    a: &'a str,
    b: &'a str,
) -> ((&'a str, &'a str, &'a str, &'static str), &'a str, &'a str) {
    let Comparison { machine, case, factor, metric, .. } = comparison;
    ((machine, case, factor, *metric), a.min(b), a.max(b))
}

/// Returns the letters of every case on every machine.
fn all_letters(samples: &[Sample], comparisons: &[Comparison]) -> Vec<Letters> {
    let mut found: Vec<Letters> = Vec::new();
    let mut seen: Vec<&Sample> = Vec::new();
    let verdicts: HashMap<_, Verdict> =
        comparisons.iter().map(|one| (question_of(one, &one.a, &one.b), one.verdict)).collect();
    for first in samples {
        if seen.iter().any(|known| known.is_alternative_to(first)) {
            continue;
        }
        seen.push(first);
        let mut own: Vec<&Sample> = samples.iter().filter(|sample| sample.is_alternative_to(first)).collect();
        if own.len() < 2 {
            continue;
        }
        let sign = if first.metric.more_is_better { -1.0 } else { 1.0 };
        own.sort_by(|x, y| (sign * x.summary().mean).total_cmp(&(sign * y.summary().mean)));
        let differs = |x: usize, y: usize| {
            let (x, y) = (own[x].variant.as_str(), own[y].variant.as_str());
            let verdict = verdicts.get(&(first.question(), x.min(y), x.max(y)));
            matches!(verdict, Some(Verdict::Faster | Verdict::Slower))
        };
        let names = letters(own.len(), differs);
        let groups = own.iter().zip(names).map(|(sample, name)| (sample.variant.clone(), sample.summary().mean, name));
        found.push(Letters {
            case: first.case.clone(),
            machine: first.machine.clone(),
            metric: first.metric.name,
            groups: groups.collect(),
        });
    }
    found
}
