//! Judges contests: alternatives that compete in a figure, compared pair by pair.
//!
//! Main functions: [`contests`] and [`contest_verdicts`]. Invariant: an alternative is called fastest only if it beats every other one, by
//! intervals that hold simultaneously for all comparisons of the study (Bonferroni).

use std::collections::HashMap;

use super::answers::unlike;
use super::factors::{
    Factors, grouped_by, is_question, is_server_setting, same_level, setting_word, short_level, show_level, show_levels,
};
use crate::finding::{Compared, Found, Leader, Pays, Told, Verdict};
use crate::metric::Metric;
use crate::report::growth::is_rate;
use crate::statistics::best::BestRatio;
use crate::statistics::noise::{Series, Stopping, means};
use crate::statistics::ratio::is_comparable;
use crate::statistics::summary::{geometric_mean, mean};
use crate::statistics::verdict::SIGNIFICANCE;
use crate::statistics::{Interval, RatioEstimate, TrialValue, Verdict as Judgement, judge, matched_ratio};
use crate::study::Factor;
use crate::trial::Levels;
use crate::units::{show_number, show_ratio};

/// Relative differences below this count as no difference.
pub const EQUAL_WITHIN: f64 = 0.05;

/// The remark on an estimate from trials paired by round.
const BY_ROUND: &str = ", trials paired by round";

/// A case with the value of each of its valid trials.
pub struct Scored<'a> {
    /// The case's levels.
    pub levels: &'a Levels,
    /// One value for each valid trial.
    pub values: Vec<f64>,
    /// The mean of the values.
    pub mean: f64,
    /// The geometric mean of the values; ratios are computed from it, so it decides which case is ahead.
    pub geometric_mean: f64,
    /// The 95 % interval of the mean, by the noise of all cases.
    pub interval: Option<Interval>,
    /// The values with the rounds in which they were measured.
    pub trials: Vec<TrialValue>,
    /// The mean number of rows per query; `None` if rows were not counted.
    pub rows: Option<f64>,
    /// Whether the load had hardly begun when it was measured, so that its figures say nothing about a lasting load.
    pub is_cold: bool,
}

impl<'a> Scored<'a> {
    /// Creates a case from its trials; `None` without trials.
    pub fn new(levels: &'a Levels, trials: Vec<TrialValue>) -> Option<Self> {
        let values: Vec<f64> = trials.iter().map(|trial| trial.value).collect();
        let (mean, geometric_mean) = (mean(&values)?, geometric_mean(&values)?);
        Some(Scored { levels, mean, geometric_mean, interval: None, values, trials, rows: None, is_cold: false })
    }
}

/// Gives every case its interval by the noise of all of them, as in the table of cases.
pub fn judge_together(scored: &mut [Scored<'_>], stopping: Stopping) {
    let series = |case: &Scored<'_>| -> Series {
        case.trials.iter().map(|trial| (trial.place.map_or(0, |(round, _)| round), trial.value)).collect()
    };
    let found = means(&scored.iter().map(series).collect::<Vec<_>>(), stopping);
    scored.iter_mut().zip(found).for_each(|(case, found)| case.interval = found.map(|found| found.interval));
}

/// The index of another alternative with the leader's ratio to it, or the reason for which there is none.
type Pair = (usize, Result<BestRatio, String>);

/// The reason for which alternatives have no ratio.
const TOO_FEW: &str = "a case has fewer than two valid trials";

/// Returns the reason for not comparing cases if one of them had hardly begun when it was measured; `None` if all lasted. If the best of several
/// is compared, any of them might be the best in the end.
fn hardly_begun(cases: &[&Scored<'_>]) -> Option<String> {
    let cold = cases.iter().find(|case| case.is_cold)?;
    Some(format!("the load had hardly begun when {} was measured (see load.warmup)", show_levels(cold.levels)))
}

/// Competing alternatives, the leader first, with the leader's comparisons with the others.
pub struct Contest {
    /// The server setting whose levels compete over all cases, if a setting competes.
    setting: Option<String>,
    before: String,
    after: String,
    labels: Vec<String>,
    /// The comparison of the leader with each of the others.
    pairs: Vec<Pair>,
    /// The number of comparable pairs among all alternatives, among which the intervals divide their level, because the data chose the leader.
    comparable: usize,
}

/// Returns the contests of one factor: each level at its best for each combination of the other alternatives and the conditions, then over
/// all matched cases.
pub fn contests(factors: &Factors, factor: &Factor, metric: &Metric, scored: &[Scored<'_>]) -> Vec<Contest> {
    let others = Factors {
        choices: factors.choices.iter().filter(|other| other.setting != factor.setting).cloned().collect(),
        ramps: Vec::new(),
    };
    let stratum_of = |case: &Scored<'_>| {
        let given = factors
            .given()
            .filter_map(|ramp| Some(format!("{} = {}", ramp.setting, show_level(case.levels.get(&ramp.setting)?))));
        let choices = Some(others.choice_label(case.levels)).filter(|label| !label.is_empty());
        choices.into_iter().chain(given).collect::<Vec<_>>().join(", ")
    };
    let strata = grouped_by(scored.iter(), |case| stratum_of(case));
    let mut contests: Vec<Contest> =
        strata.iter().filter_map(|(stratum, cases)| best_contest(factors, factor, metric, cases, stratum)).collect();
    if strata.len() > 1 || !factors.ramps.is_empty() {
        // With several combinations, the answer over all of them comes first; otherwise the answer at each level's best.
        let place = if strata.len() > 1 { 0 } else { contests.len() };
        // Writing and reading are different questions, so there is no leader in both together.
        let is_mixed = strata.len() > 1 && others.choices.iter().any(is_question);
        if let Some(matched) = matched_contest(factor, metric, scored).filter(|_| !is_mixed) {
            if is_server_setting(factor) && strata.len() > 1 {
                // For several server settings, the question is the effect of each, not of each combination of the others.
                return vec![matched];
            }
            contests.insert(place, matched);
        }
    }
    contests
}

/// Compares all levels, each at the setting of the chosen ramps where it is best.
fn best_contest(
    factors: &Factors,
    factor: &Factor,
    metric: &Metric,
    cases: &[&Scored<'_>],
    stratum: &str,
) -> Option<Contest> {
    let sign = if metric.more_is_better { 1.0 } else { -1.0 };
    if !metric.more_is_better && factors.ramps.iter().any(|ramp| is_rate(&ramp.setting)) {
        // The response time is always best at the lowest arrival rate.
        return None;
    }
    let best_first = |a: &&Scored<'_>, b: &&Scored<'_>| (sign * b.geometric_mean).total_cmp(&(sign * a.geometric_mean));
    let mut best: Vec<(String, Vec<&Scored<'_>>)> = Vec::new();
    for level in &factor.levels {
        let mut own: Vec<&Scored<'_>> = cases.iter().copied().filter(|case| is_at(case, factor, level)).collect();
        own.sort_by(best_first);
        if !own.is_empty() {
            best.push((short_level(factor, level), own));
        }
    }
    if best.len() < 2 {
        return None;
    }
    best.sort_by(|(_, a), (_, b)| best_first(&a[0], &b[0]));
    let at_best = |(label, cases): &(String, Vec<&Scored<'_>>)| {
        let settings = factors.chosen().filter_map(|ramp| cases[0].levels.get(&ramp.setting)).map(show_level);
        format!("{label} at {}", settings.collect::<Vec<_>>().join(" and "))
    };
    let ramps: Vec<&str> = factors.chosen().map(|ramp| ramp.setting.as_str()).collect();
    let mut after = if ramps.is_empty() {
        String::new()
    } else {
        let settings: Vec<String> = best.iter().map(at_best).collect();
        format!(", each at its best {} ({})", ramps.join(" and "), settings.join(", "))
    };
    if is_by_round(&[(best[0].1[0], best[1].1[0])]) {
        after.push_str(BY_ROUND);
    }
    after.push_str(&missing_remark(factor, metric, best.iter().map(|(label, _)| label.as_str()).collect()));
    let (pairs, comparable) = pairs(
        best.len(),
        |other| match hardly_begun(&[&best[0].1[..], &best[other].1[..]].concat())
            .or_else(|| unlike(best[0].1[0].rows, best[other].1[0].rows))
        {
            Some(why) => Err(why),
            None => best_ratio(&best[0].1, &best[other].1, metric.more_is_better).ok_or_else(|| TOO_FEW.to_owned()),
        },
        |place| is_comparable(&best[place].1[0].trials),
    );
    Some(Contest {
        setting: None,
        before: if stratum.is_empty() { String::new() } else { format!("{stratum}: ") },
        after,
        pairs,
        comparable,
        labels: best.into_iter().map(|(label, _)| label).collect(),
    })
}

/// A level with its cases, keyed by their other levels.
type LevelCases<'a> = (&'a serde_json::Value, HashMap<&'a str, &'a Scored<'a>>);

/// Returns whether the cases with these other levels answer alike at every level; other cases are not averaged.
fn is_alike(key: &str, rows: &[LevelCases<'_>]) -> bool {
    let all: Vec<Option<f64>> = rows.iter().filter_map(|(_, cases)| Some(cases.get(key)?.rows)).collect();
    all.iter().all(|rows| unlike(all[0], *rows).is_none())
}

/// Compares all levels over the cases that every level has.
fn matched_contest(factor: &Factor, metric: &Metric, scored: &[Scored<'_>]) -> Option<Contest> {
    let key = |case: &Scored<'_>| -> String {
        let rest = case.levels.iter().filter(|(setting, _)| **setting != factor.setting);
        rest.map(|(setting, level)| format!("{setting}={};", show_level(level))).collect()
    };
    let keys: Vec<String> = scored.iter().map(key).collect();
    let mut rows: Vec<LevelCases<'_>> = Vec::new();
    // The keys are in the order of the first level's cases.
    let mut shared: Vec<&str> = Vec::new();
    for level in &factor.levels {
        let mut cases = HashMap::new();
        for (case, key) in scored.iter().zip(&keys).filter(|(case, _)| is_at(case, factor, level)) {
            if rows.is_empty() {
                shared.push(key);
            }
            cases.entry(key.as_str()).or_insert(case);
        }
        if !cases.is_empty() {
            rows.push((level, cases));
        }
    }
    shared.retain(|key| rows.iter().all(|(_, cases)| cases.contains_key(key)));
    let known = shared.len();
    shared.retain(|key| rows.iter().all(|(_, cases)| cases.get(key).is_none_or(|case| !case.is_cold)));
    let all = shared.len();
    shared.retain(|key| is_alike(key, &rows));
    if rows.len() < 2 || shared.len() < 2 {
        return None;
    }
    let sign = if metric.more_is_better { 1.0 } else { -1.0 };
    let mut levels: Vec<(String, f64, Vec<&Scored<'_>>)> = rows
        .iter()
        .map(|(level, cases)| {
            let own: Vec<&Scored<'_>> = shared.iter().filter_map(|key| cases.get(key).copied()).collect();
            let score: f64 = own.iter().map(|case| sign * case.geometric_mean.ln()).sum();
            (short_level(factor, level), score, own)
        })
        .collect();
    levels.sort_by(|a, b| b.1.total_cmp(&a.1));
    let matched = |a: usize, b: usize| -> Vec<(&Scored<'_>, &Scored<'_>)> {
        levels[a].2.iter().copied().zip(levels[b].2.iter().copied()).collect()
    };
    let by_round = if is_by_round(&matched(0, 1)) { BY_ROUND } else { "" };
    let (pairs, comparable) = pairs(
        levels.len(),
        |other| estimate(&matched(0, other)).map(BestRatio::from).ok_or_else(|| TOO_FEW.to_owned()),
        |place| levels[place].2.iter().all(|case| is_comparable(&case.trials)),
    );
    Some(Contest {
        setting: is_server_setting(factor).then(|| setting_word(&factor.setting).to_owned()),
        before: "over all matched cases, ".to_owned(),
        after: format!(
            ", geometric mean of {} ratios{by_round}{}{}",
            shared.len(),
            match all - shared.len() {
                0 => String::new(),
                some => format!("; without {some} of {all}, where queries found nothing or differently many rows"),
            } + &match known - all {
                0 => String::new(),
                some => format!("; without {some} of {known}, where the load had hardly begun"),
            },
            missing_remark(factor, metric, levels.iter().map(|(label, ..)| label.as_str()).collect())
        ),
        pairs,
        comparable,
        labels: levels.iter().map(|(label, ..)| label.clone()).collect(),
    })
}

/// Compares two alternatives, each at its best case, which comes first.
fn best_ratio(of: &[&Scored<'_>], to: &[&Scored<'_>], more_is_better: bool) -> Option<BestRatio> {
    let of: Vec<&[TrialValue]> = of.iter().map(|case| &case.trials[..]).collect();
    let to: Vec<&[TrialValue]> = to.iter().map(|case| &case.trials[..]).collect();
    BestRatio::of(&of, &to, more_is_better)
}

/// Returns the ratio of matched cases, as a geometric mean if there are several. Effects shared by rounds are removed if their trials were
/// interleaved ([`crate::statistics::rounds`]); otherwise each case's own trials are used. `None` if a case has fewer than two trials.
pub fn estimate(matched: &[(&Scored<'_>, &Scored<'_>)]) -> Option<RatioEstimate> {
    let pairs: Vec<(&[TrialValue], &[TrialValue])> =
        matched.iter().map(|(of, to)| (&of.trials[..], &to.trials[..])).collect();
    matched_ratio(&pairs)
}

fn is_by_round(matched: &[(&Scored<'_>, &Scored<'_>)]) -> bool {
    estimate(matched).is_some_and(|known| known.rounds.is_some())
}

/// Names the levels without a valid trial; empty if all have one.
fn missing_remark(factor: &Factor, metric: &Metric, compared: Vec<&str>) -> String {
    let without = if metric.more_is_better { "without a valid trial" } else { "overloaded or without a valid trial" };
    let all = factor.levels.iter().map(|level| short_level(factor, level));
    let missing: Vec<String> = all.filter(|label| !compared.contains(&label.as_str())).collect();
    match missing.as_slice() {
        [] => String::new(),
        some => format!("; {without}, {} could not be compared", some.join(" and ")),
    }
}

fn is_at(case: &Scored<'_>, factor: &Factor, level: &serde_json::Value) -> bool {
    case.levels.get(&factor.setting).is_some_and(|own| same_level(own, level))
}

/// Returns the comparison of the leader with each of the others, and the number of comparable pairs among all alternatives. Only the former
/// are estimated: a setting with hundreds of levels has tens of thousands of pairs.
fn pairs(
    count: usize,
    estimate: impl Fn(usize) -> Result<BestRatio, String>,
    is_comparable: impl Fn(usize) -> bool,
) -> (Vec<Pair>, usize) {
    let members = (0..count).filter(|place| is_comparable(*place)).count();
    let with_leader = (1..count).map(|other| (other, estimate(other))).collect();
    (with_leader, members * members.saturating_sub(1) / 2)
}

/// The leader against one other: the other's index, the estimate with the interval that is judged and shown, and the judgement.
type Judged = (usize, Result<(RatioEstimate, Interval), String>, Judgement);

/// Returns one verdict per contest, and one for the server's settings together if several were varied. Intervals hold simultaneously for all
/// pairs of all contests, because the data chose the leaders.
pub fn contest_verdicts(contests: &[Contest], metric: &Metric) -> Vec<Verdict> {
    let family: usize = contests.iter().map(|contest| contest.comparable).sum();
    let confidence = 1.0 - SIGNIFICANCE / family.max(1) as f64;
    let of_leader = |(other, estimate): &Pair| {
        let known = estimate.as_ref().map(|best| (best.chosen, best.interval_at(confidence))).map_err(String::clone);
        let verdict = known.as_ref().map_or(Judgement::Undecided, |(_, interval)| judge(*interval, EQUAL_WITHIN));
        (*other, known, verdict)
    };
    let judged: Vec<(&Contest, Vec<Judged>)> =
        contests.iter().map(|contest| (contest, contest.pairs.iter().map(of_leader).collect())).collect();
    let together = if family > 1 {
        format!("intervals hold at 95 % for all {family} comparisons together")
    } else {
        String::new()
    };
    let verdicts = judged.iter().map(|(contest, judged)| {
        let has_interval = judged.iter().any(|(_, known, _)| known.is_ok());
        let verdict = contest_verdict(contest, judged, metric);
        if has_interval && !together.is_empty() { verdict.remarked(&together) } else { verdict }
    });
    what_pays(&judged, metric).into_iter().chain(verdicts).collect()
}

/// Returns a verdict on which server settings make a difference; `None` if fewer than two were varied together.
fn what_pays(judged: &[(&Contest, Vec<Judged>)], metric: &Metric) -> Option<Verdict> {
    let better = if metric.more_is_better { Judgement::Faster } else { Judgement::Slower };
    let (mut pay, mut shown, mut equal, mut undecided) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (contest, judged) in judged {
        let Some(setting) = &contest.setting else { continue };
        let beaten = judged.iter().find(|(_, _, verdict)| *verdict == better);
        match beaten {
            Some((other, Ok((known, interval)), _)) => {
                let (level, over) = (contest.labels[0].clone(), contest.labels[*other].clone());
                shown.push(format!("{level}, {}", against(known, *interval, &over)));
                pay.push(Pays { level, over, ratio: known.ratio, ratio_interval: [interval.low, interval.high] });
            }
            _ if judged.iter().all(|(_, _, verdict)| *verdict == Judgement::Equal) => equal.push(setting.clone()),
            _ => undecided.push(setting.clone()),
        }
    }
    if pay.len() + equal.len() + undecided.len() < 2 {
        return None;
    }
    let part = |title: String, list: &[String]| (!list.is_empty()).then(|| format!("{title} {}", list.join(", ")));
    let margin = show_number(EQUAL_WITHIN * 100.0);
    let parts = [
        (!shown.is_empty()).then(|| shown.join("; ")),
        part(format!("no difference (equal within ±{margin} %) by"), &equal),
        part("undecided about".to_owned(), &undecided),
    ];
    let answer =
        if pay.is_empty() { "no setting of the server was found to pay" } else { "settings of the server that pay" };
    let evidence = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Some(Verdict::new(Found::ServerSettings { pay, equal, undecided }, answer).because(evidence))
}

/// Formats `1.13 × star-hot [1.02, 1.24]`.
fn against(known: &RatioEstimate, interval: Interval, other: &str) -> String {
    let (ratio, ends) = show_ratio(known.ratio, Some([interval.low, interval.high]), 2);
    format!("{ratio} × {other} {ends}")
}

/// Returns the leader against one other, as figures.
fn compared(contest: &Contest, (other, estimate, verdict): &Judged) -> Compared {
    let known = estimate.as_ref().ok();
    Compared {
        name: contest.labels[*other].clone(),
        ratio: known.map(|(known, _)| known.ratio),
        ratio_interval: known.map(|(_, interval)| [interval.low, interval.high]),
        told: match verdict {
            Judgement::Equal => Told::Equal,
            Judgement::Undecided => Told::Undecided,
            Judgement::Faster | Judgement::Slower => Told::Apart,
        },
    }
}

/// Returns the leader against one other in words, with the judgement if that differs between the others.
fn said(contest: &Contest, (other, estimate, verdict): &Judged, with_verdict: bool) -> String {
    let other = &contest.labels[*other];
    let (known, interval) = match estimate {
        Ok(known) => known,
        Err(why) => return format!("not compared with {other}, because {why}"),
    };
    let word = match verdict {
        _ if !with_verdict => String::new(),
        Judgement::Equal => format!(" (equal within ±{} %)", show_number(EQUAL_WITHIN * 100.0)),
        Judgement::Undecided => " (undecided)".to_owned(),
        _ => " (certain)".to_owned(),
    };
    format!("{}, n = {} + {}{word}", against(known, *interval, other), known.n_of, known.n_to)
}

fn contest_verdict(contest: &Contest, judged: &[Judged], metric: &Metric) -> Verdict {
    let better = if metric.more_is_better { Judgement::Faster } else { Judgement::Slower };
    let superlative = match metric.name {
        "load_line" => "able to carry the most load",
        "freshness_p90" => "soonest to be seen (freshness p90)",
        "intake" => "best for the intake",
        _ if metric.more_is_better => "fastest",
        _ => "soonest to answer (p99)",
    };
    let (leader, before, after) = (&contest.labels[0], &contest.before, &contest.after);
    let count = |verdict| judged.iter().filter(|(_, _, found)| *found == verdict).count();
    let mixed = count(better) > 0;
    let list = |with_verdict| judged.iter().map(|one| said(contest, one, with_verdict)).collect::<Vec<_>>().join("; ");
    let found = |leads| Found::Contest {
        metric: metric.name,
        setting: contest.setting.clone(),
        first: leader.clone(),
        others: judged.iter().map(|one| compared(contest, one)).collect(),
        leader: leads,
    };
    if count(better) == judged.len() {
        let answer = format!("{before}{leader} is {superlative}");
        return Verdict::new(found(Leader::Best), answer).because(format!("{}{after}", list(false)));
    }
    if count(Judgement::Undecided) == 0 {
        let equal = judged.iter().filter(|(_, _, verdict)| *verdict == Judgement::Equal);
        let names: Vec<&str> = equal.map(|(other, ..)| contest.labels[*other].as_str()).collect();
        let among = if mixed { format!("are {superlative} and ") } else { "are ".to_owned() };
        let margin = show_number(EQUAL_WITHIN * 100.0);
        let answer = format!("{before}{leader} and {} {among}equal within ±{margin} %", names.join(" and "));
        return Verdict::new(found(Leader::Equal), answer).because(format!("{}{after}", list(mixed)));
    }
    let verdict = Verdict::new(found(Leader::Undecided), format!("{before}undecided which is {superlative}"));
    let reasons: Vec<&String> = judged.iter().filter_map(|(_, known, _)| known.as_ref().err()).collect();
    if reasons.len() == judged.len() && reasons.windows(2).all(|two| two[0] == two[1]) {
        let others: Vec<&str> = judged.iter().map(|(other, ..)| contest.labels[*other].as_str()).collect();
        let why = reasons.first().map_or(TOO_FEW, |why| why.as_str());
        let others = others.join(" and ");
        return verdict.because(format!("{leader} is not compared with {others}, because {why}"));
    }
    verdict.because(format!("{leader} is {}{after}", list(mixed || count(Judgement::Equal) > 0)))
}

#[cfg(test)]
mod tests;
