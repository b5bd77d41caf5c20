//! Judges claims: compares the statements of a study's source with the measurements.
//!
//! Main function: [`judge_claim`]. Invariant: only a whole interval reproduces or contradicts a claim; a case named by the claim that has no
//! valid trial leaves it undecided.

mod bound;
mod line;

use serde_json::Value;

use crate::finding::{ClaimFinding, ClaimVerdict, LoadLine};
use crate::measurement::Measurement;
use crate::metric::{LOAD_LINE, METRICS, Metric};
use crate::queueing::fit::{Request, fit};
use crate::queueing::{FAMILIES, Timer};
use crate::report::answers::{rows_per_query, unlike};
use crate::report::case_trials::{CaseTrials, is_overloaded};
use crate::report::factors::{same_level, show_level, show_levels};
use crate::report::points::{Curve, curves};
use crate::report::warming::is_cold;
use crate::statistics::best::BestRatio;
use crate::statistics::noise::Series;
use crate::statistics::summary::{Interval, geometric_mean};
use crate::statistics::{Cell, RatioEstimate, TrialValue, weighted_ratio};
use crate::study::{Claim, ClaimedModel, ClaimedRatio, Smaller, Study};
use crate::trial::{Arrivals, Case, Levels};
use crate::units::show_ratio;

/// Metrics that a shorter load changes, because the remainder at its end weighs more.
const OF_LENGTH: [&str; 7] = ["intake", "carried_share", "stored", "buffer", "disk_share", "answer", "freshness_lost"];

/// Returns the verdict on one claim, with its evidence in words. A rehearsal that shrank what the claim depends on leaves it undecided.
pub fn judge_claim(study: &Study, claim: &Claim, groups: &[CaseTrials<'_>], lines: &[LoadLine]) -> ClaimFinding {
    let found = judge(study, claim, groups, lines);
    match made_smaller(study, claim) {
        Some(reason) if found.verdict != ClaimVerdict::Undecided => ClaimFinding {
            verdict: ClaimVerdict::Undecided,
            evidence: format!("{reason}; rehearsed: {}", found.evidence),
            ..found
        },
        _ => found,
    }
}

/// Returns the reason for which a rehearsal cannot answer a claim; `None` if it can, and for studies that were not shrunk.
fn made_smaller(study: &Study, claim: &Claim) -> Option<String> {
    let names = |setting: &str| {
        let ratio = claim.ratio.iter().flat_map(|ratio| [&ratio.of, &ratio.to, &ratio.only]);
        let bound = claim.bound.iter().map(|bound| &bound.of);
        let model = claim.model.iter().map(|model| &model.only);
        ratio.chain(bound).chain(model).any(|levels| levels.contains_key(setting))
    };
    let matters =
        |one: &&Smaller| !names(&one.setting) && (!one.is_length || OF_LENGTH.contains(&claim.metric.as_str()));
    let all: Vec<String> = study
        .shrunk
        .smaller
        .iter()
        .filter(matters)
        .map(|one| format!("{} smaller ({} instead of {})", one.setting, one.to, one.from))
        .collect();
    (!all.is_empty())
        .then(|| format!("only the study without --quick can answer this; --quick made {}", all.join(" and ")))
}

fn judge(study: &Study, claim: &Claim, groups: &[CaseTrials<'_>], lines: &[LoadLine]) -> ClaimFinding {
    if let Some(model) = &claim.model {
        return judge_model(claim, model, groups);
    }
    if let Some(bound) = &claim.bound {
        return bound::judge_bound(study, claim, bound, groups);
    }
    let Some(ratio) = &claim.ratio else { return empty(claim, "the claim names neither a ratio nor a model") };
    if claim.metric == LOAD_LINE.name {
        return line::judge_line(study, claim, ratio, lines);
    }
    let metric = Metric::named(&claim.metric);
    let members: Vec<Member<'_>> = match metric {
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
            Ok((estimate, interval, remark)) => {
                let (shown, ends) = show_ratio(estimate.ratio, Some([interval.low, interval.high]), 2);
                let evidence = format!("ratio {shown} {ends}, n = {} + {}{remark}", estimate.n_of, estimate.n_to);
                (against((ratio.low, ratio.high), interval), evidence)
            }
        },
    };
    ClaimFinding { verdict, evidence, ..undecided(claim, ratio, "") }
}

/// Returns the finding on a claim about a ratio that could not be determined.
fn undecided(claim: &Claim, ratio: &ClaimedRatio, why: &str) -> ClaimFinding {
    ClaimFinding {
        says: claim.says.clone(),
        metric: claim.metric.clone(),
        between: Some((ratio.low, ratio.high)),
        claimed: match (ratio.low, ratio.high) {
            (low, None) => format!("at least {low}"),
            (0.0, Some(high)) => format!("at most {high}"),
            (low, Some(high)) => format!("{low} to {high}"),
        },
        verdict: ClaimVerdict::Undecided,
        evidence: why.to_owned(),
    }
}

/// Returns the finding on a claim that names nothing to judge.
fn empty(claim: &Claim, why: &str) -> ClaimFinding {
    let (metric, evidence) = (claim.metric.clone(), why.to_owned());
    let verdict = ClaimVerdict::Undecided;
    ClaimFinding { says: claim.says.clone(), metric, between: None, claimed: "nothing".to_owned(), verdict, evidence }
}

/// Judges a claim about the growth of response times with the arrival rate. If several curves have the levels, all must agree.
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
                Ok(report) => (report.says_whether(&model.name), report.verdict.to_string()),
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

/// A case with the trials that a claim may use.
#[derive(Clone)]
struct Member<'a> {
    case: &'a Case,
    trials: Vec<TrialValue>,
    /// Whether the case is overloaded, so that its times only show how long the load lasted.
    is_overloaded: bool,
    /// Whether the load had hardly begun when the case was measured.
    is_cold: bool,
    /// The mean number of rows per query; `None` if rows were not counted.
    rows: Option<f64>,
    /// The 95 % interval of the mean, by the noise of all cases, if requested.
    interval: Option<Interval>,
}

impl Member<'_> {
    fn series(&self) -> Series {
        self.trials.iter().map(|trial| (trial.place.map_or(0, |(round, _)| round), trial.value)).collect()
    }

    fn values(&self) -> Vec<f64> {
        self.trials.iter().map(|trial| trial.value).collect()
    }
}

/// Returns the ratio of a claim with its 95 % interval and a remark on how it was computed, or the reason for which there is none.
fn weigh(
    study: &Study,
    ratio: &ClaimedRatio,
    metric: &Metric,
    members: &[Member<'_>],
) -> Result<(RatioEstimate, Interval, String), String> {
    let of = with_levels(study, &ratio.of, &ratio.only, members)?;
    let to = with_levels(study, &ratio.to, &ratio.only, members)?;
    let too_few = || format!("{} needs at least two valid trials a case, and values above zero", metric.title);
    if ratio.best {
        let (best, remark) = best_ratio(ratio, metric, &of, &to)?;
        let best = best.ok_or_else(too_few)?;
        return Ok((best.chosen, best.interval_at(0.95), remark));
    }
    let (cells, remark) = matched_cells(ratio, &of, &to)?;
    let estimate = weighted_ratio(&cells).ok_or_else(too_few)?;
    Ok((estimate, estimate.interval, remark))
}

/// Returns the values of a case's trials.
fn of_trials<'a>(case: &'a Case, metric: &Metric, groups: &[CaseTrials<'_>]) -> Member<'a> {
    let group = groups.iter().find(|group| group.case.id == case.id);
    let placed = |trial: &Measurement| {
        let place = Some((trial.trial.round, trial.sequence));
        Some(TrialValue { place, value: metric.of(trial)? })
    };
    let trials = group.map(|group| group.valid().filter_map(placed).collect());
    // As in verdicts, the times of an overloaded case only grow with the trial's length.
    let is_open = case.settings.load.arrivals != Arrivals::Closed;
    let is_overloaded =
        is_open && metric.is_time() && group.is_some_and(|group| is_overloaded(&group.valid().collect::<Vec<_>>()));
    let rows = group.and_then(|group| rows_per_query(&group.valid().collect::<Vec<_>>()));
    let is_cold = group.is_some_and(is_cold);
    Member { case, trials: trials.unwrap_or_default(), is_overloaded, is_cold, rows, interval: None }
}

/// Returns all cases with these levels; an error if there is none.
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
        let is_gone = |(setting, level): (&String, &Value)| {
            let of = study.shrunk.left_out.iter().find(|factor| factor.setting == *setting);
            of.is_some_and(|factor| factor.levels.iter().any(|gone| same_level(gone, level)))
        };
        let remedy = match all.iter().find(|level| is_gone(*level)) {
            Some((setting, level)) => {
                format!("; --quick left {setting} = {} out: run the study without --quick", show_level(level))
            }
            None => String::new(),
        };
        return Err(format!("the study has no case with {}{remedy}", show_levels(&all)));
    }
    if let Some(cold) = found.iter().find(|member| member.is_cold) {
        let levels = show_levels(&cold.case.levels);
        return Err(format!(
            "the load had hardly begun when {levels} was measured; a longer load.warmup shows what lasts"
        ));
    }
    Ok(found)
}

/// Returns whether a case has a level, among its factors or else among its settings.
fn has_level(case: &Case, setting: &str, level: &Value) -> bool {
    if let Some(own) = case.levels.get(setting) {
        return same_level(own, level);
    }
    let settings = serde_json::to_value(&case.settings).unwrap_or(Value::Null);
    let pointer = format!("/{}", setting.replace('.', "/"));
    settings.pointer(&pointer).is_some_and(|own| same_level(own, level))
}

/// Compares the best case of each side; the ratio is `None` if these have too few trials.
fn best_ratio(
    ratio: &ClaimedRatio,
    metric: &Metric,
    of: &[Member<'_>],
    to: &[Member<'_>],
) -> Result<(Option<BestRatio>, String), String> {
    let sign = if metric.more_is_better { 1.0 } else { -1.0 };
    let best_first = |members: &'_ [Member<'_>]| -> Result<Vec<usize>, String> {
        let means: Vec<Option<f64>> = members.iter().map(|member| geometric_mean(&member.values())).collect();
        let mut places: Vec<usize> =
            (0..members.len()).filter(|place| means[*place].is_some() && !members[*place].is_overloaded).collect();
        let score = |place: usize| sign * means[place].unwrap_or(f64::NEG_INFINITY);
        places.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        if places.is_empty() { Err(no_figure(metric, members)) } else { Ok(places) }
    };
    let (of_places, to_places) = (best_first(of)?, best_first(to)?);
    let place = |member: &Member<'_>| {
        let named = |setting: &String| ratio.of.contains_key(setting) || ratio.to.contains_key(setting);
        let rest = member.case.levels.iter().filter(|(setting, _)| !named(setting));
        show_levels(&rest.map(|(setting, level)| (setting.clone(), level.clone())).collect())
    };
    if let Some(why) = unlike(of[of_places[0]].rows, to[to_places[0]].rows) {
        return Err(format!("the two sides are not compared, because {why}"));
    }
    let missing = of.len() + to.len() - of_places.len() - to_places.len();
    let without = if missing > 0 {
        format!("; {missing} cases overloaded or without a valid trial left out")
    } else {
        String::new()
    };
    let remark =
        format!(", each at its best ({} against {}{without})", place(&of[of_places[0]]), place(&to[to_places[0]]));
    let of_trials: Vec<&[TrialValue]> = of_places.iter().map(|place| &of[*place].trials[..]).collect();
    let to_trials: Vec<&[TrialValue]> = to_places.iter().map(|place| &to[*place].trials[..]).collect();
    Ok((BestRatio::of(&of_trials, &to_trials, metric.more_is_better), remark))
}

fn no_figure(metric: &Metric, members: &[Member<'_>]) -> String {
    format!("no valid trial of {} has a figure for {}", show_levels(&members[0].case.levels), metric.name)
}

/// Matches every case of one side with the cases of the other that share its remaining factors; all groups have the same weight.
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
    let is_overloaded = |one: &String| of.iter().chain(to).any(|member| member.is_overloaded && key(member) == *one);
    let all = keys.len();
    keys.retain(|one| !is_overloaded(one));
    if keys.is_empty() {
        return Err("every case is overloaded on a side: its times grow as long as the load lasts".to_owned());
    }
    let overloaded = all - keys.len();
    let rows = |side: &[Member<'_>], one: &String| side.iter().find(|member| key(member) == *one)?.rows;
    let why_not = keys.iter().find_map(|one| unlike(rows(of, one), rows(to, one)));
    keys.retain(|one| unlike(rows(of, one), rows(to, one)).is_none());
    if let (true, Some(why)) = (keys.is_empty(), &why_not) {
        return Err(format!("the two sides are not compared, because {why}"));
    }
    let answered_unlike = all - overloaded - keys.len();
    let mut cells = Vec::new();
    for one in &keys {
        for (side, sign) in [(of, 1.0), (to, -1.0)] {
            let matched: Vec<&Member<'_>> = side.iter().filter(|member| key(member) == *one).collect();
            for member in &matched {
                if member.trials.is_empty() {
                    return Err(format!("{} has no valid trial", show_levels(&member.case.levels)));
                }
                let weight = sign / (keys.len() * matched.len()) as f64;
                cells.push(Cell { weight, trials: &member.trials });
            }
        }
    }
    let matched = if keys.len() > 1 { format!(" in {} matched cases", keys.len()) } else { String::new() };
    let unlike_left_out = match (answered_unlike, why_not) {
        (1.., Some(why)) => format!("; {answered_unlike} of {all} left out, because {why}"),
        _ => String::new(),
    };
    let left_out = match overloaded {
        0 => String::new(),
        _ => format!(
            "; {overloaded} of {all} left out, because a side is overloaded there and its times grow as long as the load lasts"
        ),
    };
    Ok((cells, matched + &left_out + &unlike_left_out))
}
