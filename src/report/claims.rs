//! Claims: what the source of a study says, held against the measurements.
//!
//! Main function: [`judge_claim`]. Invariant: a claim is reproduced or contradicted only by a whole interval; a case that the
//! claim speaks of and that has no valid trial leaves it undecided.

use serde_json::Value;

use crate::finding::{ClaimFinding, ClaimVerdict};
use crate::report::analyse::CaseTrials;
use crate::report::factors::{same_level, show_level, show_levels};
use crate::report::metric::{METRICS, Metric};
use crate::statistics::summary::{Interval, mean, t_interval};
use crate::statistics::{Cell, RatioEstimate, weighted_ratio};
use crate::study::{Claim, ClaimedBound, ClaimedRatio, Study};
use crate::trial::{Case, Levels};

/// The verdict on one claim, with its evidence in words.
pub fn judge_claim(study: &Study, claim: &Claim, groups: &[CaseTrials<'_>]) -> ClaimFinding {
    let (verdict, evidence) = match Metric::named(&claim.metric) {
        None => {
            let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            let reason = format!("there is no metric \"{}\"; there are {}", claim.metric, known.join(", "));
            (ClaimVerdict::Undecided, reason)
        }
        Some(metric) => match (&claim.ratio, &claim.bound) {
            (Some(ratio), _) => judge_ratio(study, ratio, metric, groups),
            (None, Some(bound)) => judge_bound(study, bound, metric, groups),
            (None, None) => (ClaimVerdict::Undecided, "it claims nothing".to_owned()),
        },
    };
    let of_bound = || claim.bound.as_ref().map(|bound| (bound.low, bound.high));
    let between = claim.ratio.as_ref().map(|ratio| (ratio.low, ratio.high)).or_else(of_bound);
    ClaimFinding {
        says: claim.says.clone(),
        metric: claim.metric.clone(),
        between: between.unwrap_or((0.0, None)),
        claimed: show_claimed(claim),
        verdict,
        evidence,
    }
}

fn judge_ratio(
    study: &Study,
    ratio: &ClaimedRatio,
    metric: &Metric,
    groups: &[CaseTrials<'_>],
) -> (ClaimVerdict, String) {
    match weigh(study, ratio, metric, groups) {
        Err(reason) => (ClaimVerdict::Undecided, reason),
        Ok((estimate, remark)) => {
            let interval = estimate.interval;
            let evidence = format!(
                "ratio {:.2} [{:.2}, {:.2}], n = {} + {}{remark}",
                estimate.ratio, interval.low, interval.high, estimate.n_of, estimate.n_to
            );
            (against((ratio.low, ratio.high), interval), evidence)
        }
    }
}

/// Each case's mean over its trials, with its interval: all must lie in the range; one that lies outside contradicts. The evidence
/// is the case that is furthest from bearing the claim out.
fn judge_bound(
    study: &Study,
    bound: &ClaimedBound,
    metric: &Metric,
    groups: &[CaseTrials<'_>],
) -> (ClaimVerdict, String) {
    let members = match members(study, &bound.of, &Levels::new(), metric, groups) {
        Ok(members) => members,
        Err(reason) => return (ClaimVerdict::Undecided, reason),
    };
    let judged = members.iter().map(|member| {
        let interval = t_interval(&member.values, 0.95);
        let verdict = interval.map_or(ClaimVerdict::Undecided, |interval| against((bound.low, bound.high), interval));
        (verdict, member)
    });
    let distance = |verdict: &ClaimVerdict| match verdict {
        ClaimVerdict::Contradicted => 2,
        ClaimVerdict::Undecided => 1,
        ClaimVerdict::Reproduced => 0,
    };
    let mean_of = |member: &Member<'_>| mean(&member.values).unwrap_or(f64::NAN);
    let sign = if bound.high.is_some() { 1.0 } else { -1.0 };
    let worst = judged.max_by(|(a, one), (b, other)| {
        distance(a).cmp(&distance(b)).then((sign * mean_of(one)).total_cmp(&(sign * mean_of(other))))
    });
    let Some((verdict, member)) = worst else { return (ClaimVerdict::Undecided, "there is no case".to_owned()) };
    if member.values.len() < 2 {
        let levels = show_levels(&member.case.levels);
        return (
            verdict,
            format!("{} needs at least two valid trials a case; {levels} has {}", metric.title, member.values.len()),
        );
    }
    let place = if members.len() > 1 {
        format!(" in the worst of {} cases ({})", members.len(), show_levels(&member.case.levels))
    } else {
        String::new()
    };
    (verdict, format!("{} {}{place}", metric.title, metric.show_estimate(&member.values)))
}

/// The range claimed, in words.
fn show_claimed(claim: &Claim) -> String {
    let metric = Metric::named(&claim.metric);
    let show = |value: f64| match (&claim.bound, metric) {
        (Some(_), Some(metric)) => format!("{}{}", metric.show(value), metric.unit()),
        _ => value.to_string(),
    };
    let range = claim.ratio.as_ref().map(|ratio| (ratio.low, ratio.high));
    match range.or_else(|| claim.bound.as_ref().map(|bound| (bound.low, bound.high))) {
        Some((low, None)) => format!("at least {}", show(low)),
        Some((0.0, Some(high))) => format!("at most {}", show(high)),
        Some((low, Some(high))) => format!("{} to {}", show(low), show(high)),
        None => String::new(),
    }
}

fn against((low, high): (f64, Option<f64>), interval: Interval) -> ClaimVerdict {
    let high = high.unwrap_or(f64::INFINITY);
    if interval.low >= low && interval.high <= high {
        ClaimVerdict::Reproduced
    } else if interval.high < low || interval.low > high {
        ClaimVerdict::Contradicted
    } else {
        ClaimVerdict::Undecided
    }
}

/// The trials' values of a case that a claim speaks of.
struct Member<'a> {
    case: &'a Case,
    values: Vec<f64>,
}

/// The ratio that the claim speaks of, and a remark on how it was taken; or why there is none.
fn weigh(
    study: &Study,
    ratio: &ClaimedRatio,
    metric: &Metric,
    groups: &[CaseTrials<'_>],
) -> Result<(RatioEstimate, String), String> {
    let of = members(study, &ratio.of, &ratio.only, metric, groups)?;
    let to = members(study, &ratio.to, &ratio.only, metric, groups)?;
    let (cells, remark) =
        if ratio.best { best_cells(ratio, metric, &of, &to)? } else { matched_cells(ratio, &of, &to)? };
    let seed = study.seed ^ 0x00c1_a135;
    let estimate = weighted_ratio(&cells, seed)
        .ok_or_else(|| format!("{} needs at least two valid trials a case, and means above zero", metric.title))?;
    Ok((estimate, remark))
}

/// All cases of the study with these levels; an error when there is none.
fn members<'a>(
    study: &'a Study,
    levels: &Levels,
    only: &Levels,
    metric: &Metric,
    groups: &[CaseTrials<'a>],
) -> Result<Vec<Member<'a>>, String> {
    let wanted = |case: &&Case| levels.iter().chain(only).all(|(setting, level)| has_level(case, setting, level));
    let found: Vec<Member<'a>> = study
        .cases
        .iter()
        .filter(wanted)
        .map(|case| {
            let group = groups.iter().find(|group| group.case.id == case.id);
            let values = group.map(|group| group.valid().filter_map(|trial| metric.of(trial)).collect());
            Member { case, values: values.unwrap_or_default() }
        })
        .collect();
    if found.is_empty() {
        let all: Levels = levels.iter().chain(only).map(|(setting, level)| (setting.clone(), level.clone())).collect();
        let remedy = if study.quick { "; --quick made it smaller: this claim needs the study as it is" } else { "" };
        return Err(format!("the study has no case with {}{remedy}", show_levels(&all)));
    }
    Ok(found)
}

/// Whether a case has a level: among its factors, else among its settings.
fn has_level(case: &Case, setting: &str, level: &Value) -> bool {
    if let Some(own) = case.levels.get(setting) {
        return same_level(own, level);
    }
    let settings = serde_json::to_value(&case.settings).unwrap_or(Value::Null);
    let pointer = format!("/{}", setting.replace('.', "/"));
    settings.pointer(&pointer).is_some_and(|own| same_level(own, level))
}

/// The best case of each side.
fn best_cells<'a>(
    ratio: &ClaimedRatio,
    metric: &Metric,
    of: &'a [Member<'_>],
    to: &'a [Member<'_>],
) -> Result<(Vec<Cell<'a>>, String), String> {
    let sign = if metric.more_is_better { 1.0 } else { -1.0 };
    let best = |members: &'a [Member<'_>]| {
        let scored = members.iter().filter_map(|member| Some((sign * mean(&member.values)?, member)));
        let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, member)| member);
        best.ok_or_else(|| no_figure(metric, members))
    };
    let (of_best, to_best) = (best(of)?, best(to)?);
    let place = |member: &Member<'_>| {
        let named = |setting: &String| ratio.of.contains_key(setting) || ratio.to.contains_key(setting);
        let rest = member.case.levels.iter().filter(|(setting, _)| !named(setting));
        show_levels(&rest.map(|(setting, level)| (setting.clone(), level.clone())).collect())
    };
    let missing = of.iter().chain(to).filter(|member| member.values.is_empty()).count();
    let without = if missing > 0 { format!("; {missing} cases without a valid trial left out") } else { String::new() };
    let remark = format!(", each at its best ({} against {}{without})", place(of_best), place(to_best));
    Ok((vec![Cell { weight: 1.0, trials: &of_best.values }, Cell { weight: -1.0, trials: &to_best.values }], remark))
}

fn no_figure(metric: &Metric, members: &[Member<'_>]) -> String {
    format!("no valid trial of {} has a figure for {}", show_levels(&members[0].case.levels), metric.name)
}

/// Every case of one side with the cases of the other that share its remaining factors, all groups weighing the same.
fn matched_cells<'a>(
    ratio: &ClaimedRatio,
    of: &'a [Member<'_>],
    to: &'a [Member<'_>],
) -> Result<(Vec<Cell<'a>>, String), String> {
    let key = |member: &Member<'_>| -> String {
        let named = |setting: &String| ratio.of.contains_key(setting) || ratio.to.contains_key(setting);
        let rest = member.case.levels.iter().filter(|(setting, _)| !named(setting));
        rest.map(|(setting, level)| format!("{setting}={};", show_level(level))).collect()
    };
    let mut keys: Vec<String> = of.iter().map(&key).collect();
    keys.dedup();
    keys.retain(|one| to.iter().any(|member| key(member) == *one));
    if keys.is_empty() {
        return Err("the two sides share no case: their remaining factors have no level in common".to_owned());
    }
    let mut cells = Vec::new();
    for one in &keys {
        for (side, sign) in [(of, 1.0), (to, -1.0)] {
            let matched: Vec<&Member<'_>> = side.iter().filter(|member| key(member) == *one).collect();
            for member in &matched {
                if member.values.is_empty() {
                    return Err(format!("{} has no valid trial", show_levels(&member.case.levels)));
                }
                let weight = sign / (keys.len() * matched.len()) as f64;
                cells.push(Cell { weight, trials: &member.values });
            }
        }
    }
    let remark = if keys.len() > 1 { format!(" in {} matched cases", keys.len()) } else { String::new() };
    Ok((cells, remark))
}
