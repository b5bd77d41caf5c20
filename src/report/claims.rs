//! Claims: what the source of a study says, held against the measurements.
//!
//! Main function: [`judge_claim`]. Invariant: a claim is reproduced or contradicted only by a whole interval; a case that the
//! claim speaks of and that has no valid trial leaves it undecided.

mod bound;

use serde_json::Value;

use crate::finding::{ClaimFinding, ClaimVerdict};
use crate::queueing::fit::{Request, fit};
use crate::queueing::{FAMILIES, Timer};
use crate::report::analyse::CaseTrials;
use crate::report::factors::{same_level, show_level, show_levels};
use crate::report::load_lines::CaseLine;
use crate::report::metric::{LOAD_LINE, METRICS, Metric};
use crate::report::points::{Curve, curves};
use crate::statistics::summary::{Interval, mean};
use crate::statistics::{Cell, RatioEstimate, weighted_ratio};
use crate::study::goal::base_cases;
use crate::study::{Claim, ClaimedModel, ClaimedRatio, Study};
use crate::trial::{Case, Levels};

/// The verdict on one claim, with its evidence in words.
pub fn judge_claim(study: &Study, claim: &Claim, groups: &[CaseTrials<'_>], lines: &[CaseLine]) -> ClaimFinding {
    if let Some(model) = &claim.model {
        return judge_model(claim, model, groups);
    }
    if let Some(bound) = &claim.bound {
        return bound::judge_bound(study, claim, bound, groups);
    }
    let Some(ratio) = &claim.ratio else { return undecided(claim, "the claim names neither a ratio nor a model") };
    let is_of_lines = claim.metric == LOAD_LINE.name;
    let metric = if is_of_lines { Some(&LOAD_LINE) } else { Metric::named(&claim.metric) };
    // The lines belong to the cases as they were written, before a search has chosen rates.
    let bases = if is_of_lines { base_cases(study) } else { Vec::new() };
    let members: Vec<Member<'_>> = match metric {
        Some(_) if is_of_lines => bases.iter().map(|case| of_line(case, lines)).collect(),
        Some(metric) => study.cases.iter().map(|case| of_trials(case, metric, groups)).collect(),
        None => Vec::new(),
    };
    let (verdict, evidence) = match metric {
        None => {
            let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            let reason = format!("there is no metric \"{}\"; there are {}", claim.metric, known.join(", "));
            (ClaimVerdict::Undecided, reason)
        }
        Some(metric) => match weigh(study, ratio, metric, &members) {
            Err(reason) => (ClaimVerdict::Undecided, reason),
            Ok((estimate, remark)) => {
                let interval = estimate.interval;
                let evidence = format!(
                    "ratio {:.2} [{:.2}, {:.2}], n = {} + {}{remark}",
                    estimate.ratio, interval.low, interval.high, estimate.n_of, estimate.n_to
                );
                (against((ratio.low, ratio.high), estimate.interval), evidence)
            }
        },
    };
    ClaimFinding {
        says: claim.says.clone(),
        metric: claim.metric.clone(),
        between: Some((ratio.low, ratio.high)),
        claimed: match (ratio.low, ratio.high) {
            (low, None) => format!("at least {low}"),
            (0.0, Some(high)) => format!("at most {high}"),
            (low, Some(high)) => format!("{low} to {high}"),
        },
        verdict,
        evidence,
    }
}

fn undecided(claim: &Claim, why: &str) -> ClaimFinding {
    let (metric, evidence) = (claim.metric.clone(), why.to_owned());
    let verdict = ClaimVerdict::Undecided;
    ClaimFinding { says: claim.says.clone(), metric, between: None, claimed: "nothing".to_owned(), verdict, evidence }
}

/// A claim on how response times grow with the arrival rate. Where several curves have the levels, all must agree.
fn judge_model(claim: &Claim, model: &ClaimedModel, groups: &[CaseTrials<'_>]) -> ClaimFinding {
    let request = Request { model: model.name.clone(), ..Request::default() };
    let has_levels = |curve: &Curve| {
        let same =
            |(setting, level): (&String, &Value)| curve.levels.get(setting).is_some_and(|own| same_level(own, level));
        model.only.iter().all(same)
    };
    let curves = curves(groups, Timer::Intended, None, &Default::default());
    let judged: Vec<(Option<bool>, String)> = curves
        .iter()
        .filter(|curve| has_levels(curve))
        .map(|curve| {
            let (fits, why) = match fit(&curve.points, &request) {
                Ok(report) => (report.says_whether(&model.name), report.verdict),
                Err(error) => (None, error.to_string()),
            };
            let rest = curve.levels.iter().filter(|(setting, _)| !model.only.contains_key(*setting));
            let rest: Levels = rest.map(|(setting, level)| (setting.clone(), level.clone())).collect();
            let place = if rest.is_empty() { String::new() } else { format!("{}: ", show_levels(&rest)) };
            (fits, format!("{place}{}", why.trim_end_matches('.')))
        })
        .collect();
    let all = |wanted: bool| !judged.is_empty() && judged.iter().all(|(fits, _)| *fits == Some(wanted));
    let verdict = match (all(model.fits), all(!model.fits)) {
        (true, _) => ClaimVerdict::Reproduced,
        (_, true) => ClaimVerdict::Contradicted,
        _ => ClaimVerdict::Undecided,
    };
    let title =
        FAMILIES.iter().find(|family| family.name == model.name).map_or(model.name.as_str(), |family| family.title);
    let evidence = if judged.is_empty() {
        format!("no open loop has {} at several arrival rates", show_levels(&model.only))
    } else {
        judged.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; ")
    };
    ClaimFinding {
        says: claim.says.clone(),
        metric: String::new(),
        between: None,
        claimed: format!("{title} {}", if model.fits { "fits" } else { "does not fit" }),
        verdict,
        evidence,
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

/// The trials' values of a case that a claim may speak of.
#[derive(Clone)]
struct Member<'a> {
    case: &'a Case,
    values: Vec<f64>,
}

/// The ratio that the claim speaks of, and a remark on how it was taken; or why there is none.
fn weigh(
    study: &Study,
    ratio: &ClaimedRatio,
    metric: &Metric,
    members: &[Member<'_>],
) -> Result<(RatioEstimate, String), String> {
    let of = with_levels(study, &ratio.of, &ratio.only, members)?;
    let to = with_levels(study, &ratio.to, &ratio.only, members)?;
    let (cells, remark) =
        if ratio.best { best_cells(ratio, metric, &of, &to)? } else { matched_cells(ratio, &of, &to)? };
    let seed = study.seed ^ 0x00c1_a135;
    let estimate = weighted_ratio(&cells, seed)
        .ok_or_else(|| format!("{} needs at least two valid trials a case, and means above zero", metric.title))?;
    Ok((estimate, remark))
}

/// What the trials of a case say.
fn of_trials<'a>(case: &'a Case, metric: &Metric, groups: &[CaseTrials<'_>]) -> Member<'a> {
    let group = groups.iter().find(|group| group.case.id == case.id);
    let values = group.map(|group| group.valid().filter_map(|trial| metric.of(trial)).collect());
    Member { case, values: values.unwrap_or_default() }
}

/// The load line of a case as each trial near it estimates it; nothing where there is no line.
fn of_line<'a>(case: &'a Case, lines: &[CaseLine]) -> Member<'a> {
    let line = lines.iter().find(|line| line.finding.levels == case.levels);
    Member { case, values: line.map(|line| line.each_per_s.clone()).unwrap_or_default() }
}

/// All cases with these levels; an error when there is none.
fn with_levels<'a>(
    study: &Study,
    levels: &Levels,
    only: &Levels,
    members: &[Member<'a>],
) -> Result<Vec<Member<'a>>, String> {
    let wanted =
        |member: &&Member<'_>| levels.iter().chain(only).all(|(setting, level)| has_level(member.case, setting, level));
    let found: Vec<Member<'a>> = members.iter().filter(wanted).cloned().collect();
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
