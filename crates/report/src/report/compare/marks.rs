//! Compares the results of two machines: the marks of the KTH study (2018, chapter 8), and the findings that its rule does not mark.
//!
//! Main functions: [`marks`] and [`unconfirmed`]. Invariant: a comparison is either marked or unconfirmed or neither, never both.

use std::collections::HashMap;

use super::outcome::{Comparison, Mark, MarkWord, Unconfirmed};
use super::sample::Sample;
use crate::statistics::rounding::is_order_certain;

/// The difference of p above which two machines contradict each other: 50 percentage points.
const CONTRADICTION: f64 = 0.5;

/// A comparison with its samples.
type Placed<'a> = (&'a Sample, &'a Sample, &'a Comparison);

/// Returns the marks of every comparison that two machines have, in the order of the first machine.
pub fn marks(comparisons: &[Placed<'_>]) -> Vec<Mark> {
    both_machines(comparisons).into_iter().filter_map(|(first, second)| mark(first, second)).collect()
}

/// Returns the findings at this level that only one of two machines has and that no mark shows.
pub fn unconfirmed(comparisons: &[Placed<'_>], alpha: f64) -> Vec<Unconfirmed> {
    let mut found = Vec::new();
    for (first, second) in both_machines(comparisons) {
        let is_finding = |(_, _, comparison): Placed<'_>| comparison.p_welch.is_some_and(|p| p < alpha);
        if is_finding(first) == is_finding(second) || mark(first, second).is_some() {
            continue;
        }
        let (with, without) = if is_finding(first) { (first.2, second.2) } else { (second.2, first.2) };
        found.push(Unconfirmed {
            case: with.case.clone(),
            a: first.2.a.clone(),
            b: first.2.b.clone(),
            metric: with.metric,
            machines: [with.machine.clone(), without.machine.clone()],
            p_welch: [with.p_welch, without.p_welch],
        });
    }
    found
}

/// Returns all pairs of comparisons of the same alternatives in the same case on different machines.
fn both_machines<'a>(comparisons: &[Placed<'a>]) -> Vec<(Placed<'a>, Placed<'a>)> {
    // Two hundred alternatives have twenty thousand comparisons, so those of the same alternatives are grouped first.
    let mut alike: HashMap<_, Vec<usize>> = HashMap::new();
    let key = |(sample, _, comparison): &Placed<'a>| {
        let ((_, case, factor, metric), a, b) = (sample.question(), comparison.a.as_str(), comparison.b.as_str());
        (case, factor, metric, a.min(b), a.max(b))
    };
    for (place, placed) in comparisons.iter().enumerate() {
        alike.entry(key(placed)).or_default().push(place);
    }
    let mut found = Vec::new();
    for (place, first) in comparisons.iter().enumerate() {
        let others = alike.get(&key(first)).into_iter().flatten().filter(|other| **other > place);
        for second in others.map(|other| comparisons[*other]).filter(|second| second.2.machine != first.2.machine) {
            // The second machine's file may list the alternatives in another order.
            let is_turned = first.2.a != second.2.a;
            found.push((*first, if is_turned { (second.1, second.0, second.2) } else { second }));
        }
    }
    found
}

fn mark(first: Placed<'_>, second: Placed<'_>) -> Option<Mark> {
    let p = [first.2.p_welch, second.2.p_welch];
    let contradicts = p[0].zip(p[1]).is_some_and(|(p, q)| (p - q).abs() > CONTRADICTION);
    let difference = |(a, b, _): Placed<'_>| a.summary().mean - b.summary().mean;
    let turns = difference(first) * difference(second) < 0.0;
    let word = match (contradicts, turns) {
        (true, true) => MarkWord::Both,
        (true, false) => MarkWord::Contradicts,
        (false, true) => MarkWord::Direction,
        (false, false) => return None,
    };
    let is_direction_certain = [first, second].iter().all(|(a, b, _)| is_order_certain(a.printed(), b.printed()));
    let is_certain = match word {
        MarkWord::Contradicts => is_contradiction_certain(first.2, second.2),
        MarkWord::Direction => is_direction_certain,
        MarkWord::Both => is_direction_certain && is_contradiction_certain(first.2, second.2),
    };
    Some(Mark {
        case: first.2.case.clone(),
        a: first.2.a.clone(),
        b: first.2.b.clone(),
        mark: word,
        metric: first.2.metric,
        machines: [first.2.machine.clone(), second.2.machine.clone()],
        p_welch: p,
        certain: is_certain,
    })
}

/// Returns whether the p differ by that much however the printed figures were rounded.
fn is_contradiction_certain(first: &Comparison, second: &Comparison) -> bool {
    let range = |comparison: &Comparison| {
        comparison.p_welch_rounding.or(comparison.p_welch.map(|p| [p, p])).unwrap_or([0.0, 1.0])
    };
    let ([low, high], [low_other, high_other]) = (range(first), range(second));
    low - high_other > CONTRADICTION || low_other - high > CONTRADICTION
}
