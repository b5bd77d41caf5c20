//! Judges ramps: the level at which throughput is highest, and the effect of conditions on throughput.
//!
//! Main function: [`verdicts`]. Invariant: a level is excluded as the best only if another one is certainly better.

use crate::finding::{Found, Verdict};
use crate::metric::Metric;
use crate::report::contest::{self, Scored};
use crate::report::factors::{Factors, grouped_by, is_given, level_text, same_level, show_levels};
use crate::statistics::best::not_told_apart;
use crate::statistics::pairs::Case;
use crate::study::Factor;
use crate::units::{Carried, show_number, show_ratio};

/// The most verdicts on one ramp; the plots show further ones better.
const VERDICTS_MOST: usize = 4;
/// The confidence that the best level is among those that are named.
const CONFIDENCE: f64 = 0.95;

/// Returns verdicts on each alternative, the highest figures first: the level of highest throughput along a ramp, or the effect of a condition.
pub fn verdicts(factors: &Factors, ramp: &Factor, metric: &Metric, scored: &[Scored<'_>]) -> Vec<Verdict> {
    if !metric.more_is_better {
        return Vec::new();
    }
    let mut ordered: Vec<&Scored<'_>> = scored.iter().collect();
    ordered.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let alternatives = grouped_by(ordered.into_iter(), |case| factors.choice_label(case.levels));
    let verdict_of = |(label, own): &(String, Vec<&Scored<'_>>)| {
        let verdict = if is_given(ramp) {
            condition(label, ramp, metric, own)?
        } else {
            highest(label, factors, ramp, metric, own)?
        };
        let lead = if label.is_empty() { String::new() } else { format!("{label}: ") };
        Some(verdict.about(&lead))
    };
    let mut verdicts: Vec<Verdict> = alternatives.iter().filter_map(verdict_of).collect();
    let more = verdicts.len().saturating_sub(VERDICTS_MOST);
    if more > 0 {
        verdicts.truncate(VERDICTS_MOST);
        let setting = ramp.setting.clone();
        let answer = format!("how throughput goes with {setting} for {more} more alternatives is in the plots");
        verdicts.push(Verdict::new(Found::MoreInPlots { setting, more }, answer));
    }
    verdicts
}

/// Returns the effect of a condition on throughput from its lowest to its highest level, over all cases that differ only in it: the best case
/// alone would also be the luckiest one.
fn condition(alternative: &str, ramp: &Factor, metric: &Metric, cases: &[&Scored<'_>]) -> Option<Verdict> {
    let levels = levels_of(ramp, cases);
    let (lowest, highest) = (*levels.first()?, *levels.last()?);
    let at = |level: f64| cases.iter().copied().filter(move |case| level_of(ramp, case) == Some(level));
    let is_match = |a: &Scored<'_>, b: &Scored<'_>| {
        a.levels.iter().all(|(setting, level)| {
            *setting == ramp.setting || b.levels.get(setting).is_some_and(|other| same_level(level, other))
        })
    };
    let matched: Vec<(&Scored<'_>, &Scored<'_>)> = at(highest)
        .filter_map(|last| Some((last, at(lowest).find(|first| is_match(last, first))?)))
        .filter(|(last, first)| lowest < highest && !last.is_cold && !first.is_cold)
        .collect();
    let ratio = contest::estimate(&matched)?;
    let interval = ratio.interval;
    let word = match (interval.low > 1.0, interval.high < 1.0) {
        (true, _) => "rises",
        (_, true) => "falls",
        _ => "is not certain to change",
    };
    let how = match matched[..] {
        [(last, first)] => {
            let show = |case: &Scored<'_>| {
                let interval = case.interval.map(|found| [found.low, found.high]);
                Carried::by(interval).show(case.mean, |mean| metric.show(mean))
            };
            format!("from {} to {}{}, ", show(first), show(last), metric.unit_behind())
        }
        _ => String::new(),
    };
    let of_several =
        if matched.len() > 1 { format!(", geometric mean of {} ratios", matched.len()) } else { String::new() };
    let (shown, ends) = show_ratio(ratio.ratio, Some([interval.low, interval.high]), 2);
    let found = Found::Condition {
        metric: metric.name,
        alternative: alternative.to_owned(),
        setting: ramp.setting.clone(),
        between: [lowest, highest],
        ratio: ratio.ratio,
        ratio_ci95: [interval.low, interval.high],
    };
    let (from, to) = (show_number(lowest), show_number(highest));
    let answer = format!("{} {word} from {} = {from} to {to}", what(metric), ramp.setting);
    let evidence = format!("{how}{shown} × {ends}, n = {} + {}{of_several}", ratio.n_to, ratio.n_of);
    Some(Verdict::new(found, answer).because(evidence))
}

/// Returns the levels of a ramp that may be the best one, among all cases of an alternative; the first case has the highest mean.
fn highest(
    alternative: &str,
    factors: &Factors,
    ramp: &Factor,
    metric: &Metric,
    cases: &[&Scored<'_>],
) -> Option<Verdict> {
    let trials: Vec<usize> = cases.iter().map(|case| case.values.len()).collect();
    let known: Vec<Case<'_>> = cases.iter().map(|case| Case::new(&case.trials)).collect();
    let may_be = not_told_apart(&trials, CONFIDENCE, |a, b| known[a].over(&known[b]));
    let best: Vec<&Scored<'_>> =
        cases.iter().zip(&may_be).filter(|(_, may_be)| **may_be).map(|(case, _)| *case).collect();
    let (peak, all) = (cases.first()?, levels_of(ramp, cases));
    let cold = cases.iter().find(|case| case.is_cold);
    // The final figure of a case that had hardly begun is unknown.
    let (found, at) = (levels_of(ramp, if cold.is_some() { cases } else { &best }), level_of(ramp, peak)?);
    if all.len() < 2 {
        return None;
    }
    let with: Vec<String> = factors
        .ramps
        .iter()
        .filter(|other| other.setting != ramp.setting)
        .map(|other| format!("{} = {}", other.setting, listed(&levels_of(other, &best))))
        .filter(|with| !with.ends_with("= "))
        .collect();
    let with = if with.is_empty() { String::new() } else { format!(" (with {})", with.join(", ")) };
    let (figure, what, setting) =
        (metric.show_mean(peak.mean, peak.interval, peak.values.len()), what(metric), &ramp.setting);
    let is_decided = found.len() < all.len();
    let (alternative, mean) = (alternative.to_owned(), peak.mean);
    let verdict = |answer: String| {
        let (setting, at) = (setting.clone(), found.clone());
        Verdict::new(Found::Highest { metric: metric.name, alternative, setting, at, mean, is_decided }, answer)
    };
    if let Some(cold) = cold {
        let levels = show_levels(cold.levels);
        let why =
            format!("the load had hardly begun when {levels} was measured; a longer load.warmup shows what lasts");
        return Some(verdict(format!("undecided at which {setting} {what} is highest")).because(why));
    }
    let limit = agents_limit(setting, &found, &all).unwrap_or_default();
    if !is_decided {
        let answer = format!("no level of {setting} is certainly better for {what} than all others{with}");
        return Some(verdict(answer).and(format!("the highest mean is at {at}: {figure}{limit}")));
    }
    let edge = match (found.last() == all.last(), found.len()) {
        _ if !limit.is_empty() => "",
        (true, 1) => "; that is the highest level tried, so the peak may lie beyond",
        (true, _) => "; the highest level tried is among them, so the peak may lie beyond",
        _ => "",
    };
    let (apart, place) = match found.len() {
        1 => ("", String::new()),
        _ => (", which are not told apart", format!(" at {at}")),
    };
    let answer = format!("{what} is highest at {setting} = {}{apart}{with}", listed(&found));
    Some(verdict(answer).because(format!("{figure}{place}{edge}{limit}")))
}

/// Returns what was the limit of a load that was driven by several numbers of agents, of which some may be the best one: the agents as long as throughput
/// grows with their number, else what they drive. `None` for another factor.
fn agents_limit(setting: &str, may_be_best: &[f64], all: &[f64]) -> Option<String> {
    let (least, (first, last)) = (may_be_best.first()?, (all.first()?, all.last()?));
    let beyond = "the database or its connections were the limit, not the agents";
    match setting {
        "load.agents" if least == last => Some(format!(
            "; it still grows with the number of agents: they were the limit, and more than {last} may drive more"
        )),
        "load.agents" if least == first => {
            Some(format!("; more agents than {first} do not certainly drive more: {beyond}"))
        }
        "load.agents" => {
            Some(format!("; more than {least} agents do not certainly drive more: from there on {beyond}"))
        }
        _ => None,
    }
}

fn what(metric: &Metric) -> &'static str {
    match metric.name {
        "stored" => "what is stored per second",
        "intake" => "the intake",
        _ => "throughput",
    }
}

/// Formats levels as in `1, 2 or 4`.
fn listed(levels: &[f64]) -> String {
    let shown: Vec<String> = levels.iter().map(f64::to_string).collect();
    match shown.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => shown.concat(),
    }
}

fn level_of(ramp: &Factor, case: &Scored<'_>) -> Option<f64> {
    let level = case.levels.get(&ramp.setting)?;
    level.as_f64().or_else(|| level_text(level).parse().ok())
}

/// Returns the levels of these cases, lowest first.
fn levels_of(ramp: &Factor, cases: &[&Scored<'_>]) -> Vec<f64> {
    let mut levels: Vec<f64> = cases.iter().filter_map(|case| level_of(ramp, case)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}
