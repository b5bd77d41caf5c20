//! Judges claims on load lines: the ratio of two lines, from their brackets.
//!
//! Main function: [`judge_line`]. Invariant: a side without a bracket leaves the claim undecided.

use super::{against, has_level, undecided};
use crate::finding::{ClaimFinding, LoadLine};
use crate::report::factors::{show_level, show_levels};
use crate::report::load_lines;
use crate::statistics::summary::{Interval, mean};
use crate::study::goal::base_cases;
use crate::study::{Claim, ClaimedRatio, Study};
use crate::trial::{Case, Levels};
use crate::units::show_ratio;

/// A case as written, before a search has chosen rates, with its bracket.
struct Bracketed<'a> {
    case: &'a Case,
    bracket: [f64; 2],
}

/// Judges a claim on the ratio of load lines. At each end of the ratio, one line is as low and the other as high as its bracket allows; for
/// several matched cases, the ends are geometric means.
pub(super) fn judge_line(study: &Study, claim: &Claim, ratio: &ClaimedRatio, lines: &[LoadLine]) -> ClaimFinding {
    let bases = base_cases(study);
    match weigh(&bases, ratio, lines) {
        Err(why) => undecided(claim, ratio, &why),
        Ok((middle, interval, cases)) => {
            let (shown, ends) = show_ratio(middle, Some([interval.low, interval.high]), 2);
            ClaimFinding {
                verdict: against((ratio.low, ratio.high), interval),
                evidence: format!("ratio {shown} {ends}, from the brackets of {cases} + {cases} load lines"),
                ..undecided(claim, ratio, "")
            }
        }
    }
}

fn weigh(bases: &[Case], ratio: &ClaimedRatio, lines: &[LoadLine]) -> Result<(f64, Interval, usize), String> {
    let (of, to) = (side(bases, &ratio.of, ratio, lines)?, side(bases, &ratio.to, ratio, lines)?);
    let pairs: Vec<(&Bracketed<'_>, &Bracketed<'_>)> = if ratio.best {
        let best = |all: &'_ [Bracketed<'_>]| {
            (0..all.len()).max_by(|a, b| all[*a].bracket[0].total_cmp(&all[*b].bracket[0])).unwrap_or(0)
        };
        vec![(&of[best(&of)], &to[best(&to)])]
    } else {
        let key = |case: &Case| -> String {
            let named = |setting: &String| ratio.of.contains_key(setting) || ratio.to.contains_key(setting);
            let rest = case.levels.iter().filter(|(setting, _)| !named(setting));
            rest.map(|(setting, level)| format!("{setting}={};", show_level(level))).collect()
        };
        of.iter().filter_map(|one| Some((one, to.iter().find(|other| key(other.case) == key(one.case))?))).collect()
    };
    let logarithms = |figure: fn((f64, Interval)) -> f64| {
        let each: Vec<f64> =
            pairs.iter().map(|(of, to)| figure(load_lines::ratio(of.bracket, to.bracket)).ln()).collect();
        mean(&each).map(f64::exp)
    };
    let ends = logarithms(|(_, interval)| interval.low).zip(logarithms(|(_, interval)| interval.high));
    match logarithms(|(middle, _)| middle).zip(ends) {
        Some((middle, (low, high))) => Ok((middle, Interval { low, high }, pairs.len())),
        None => Err("the two sides share no case: their remaining factors have no level in common".to_owned()),
    }
}

/// Returns the cases with these levels, each of which must have a line between a confirmed and a refuted rate.
fn side<'a>(
    bases: &'a [Case],
    levels: &Levels,
    ratio: &ClaimedRatio,
    lines: &[LoadLine],
) -> Result<Vec<Bracketed<'a>>, String> {
    let wanted =
        |case: &&Case| levels.iter().chain(&ratio.only).all(|(setting, level)| has_level(case, setting, level));
    let cases: Vec<&Case> = bases.iter().filter(wanted).collect();
    if cases.is_empty() {
        return Err(format!("the study has no case with {}", show_levels(levels)));
    }
    let bracketed = |case: &'a Case| {
        let line = lines.iter().find(|line| line.levels == case.levels);
        let bracket = line.and_then(|line| line.ci95);
        bracket.map(|bracket| Bracketed { case, bracket }).ok_or_else(|| {
            format!("{} has no load line between a confirmed and a refuted rate", show_levels(&case.levels))
        })
    };
    cases.into_iter().map(bracketed).collect()
}
