//! Verdicts: the answer to a study's question, in sentences that carry their evidence.
//!
//! Main function: [`verdicts`]. Invariant: an alternative is called fastest only where it beats every other one, after
//! Holm's correction for all comparisons of the study.

use crate::report::analyse::{CaseTrials, is_overloaded};
use crate::report::factors::{Factors, same_level, short_level, show_level, show_levels};
use crate::report::growth;
use crate::report::load_lines::{self, CaseLine};
use crate::report::metric::{LOAD_LINE, Metric};
use crate::statistics::summary::mean;
use crate::statistics::{RatioEstimate, Verdict, family, judge, matched_ratio};
use crate::study::{Factor, Study};
use crate::trial::{Arrivals, Levels};
use crate::units::show_number;

/// A relative difference below this counts as none.
pub const EQUAL_WITHIN: f64 = 0.05;
/// A peak is said to be reached where this share of it is.
const NEARLY: f64 = 0.9;
/// Sentences about one ramp at most; beyond, the plots say it better.
const RAMP_SENTENCES_MOST: usize = 4;

/// A case with the value of each of its valid trials.
struct Scored<'a> {
    levels: &'a Levels,
    values: Vec<f64>,
    mean: f64,
}

/// Alternatives that compete, the leader first, and the comparison of every pair.
struct Contest {
    before: String,
    after: String,
    labels: Vec<String>,
    /// (place of a, place of b, estimate of a / b), a before b.
    pairs: Vec<(usize, usize, Option<RatioEstimate>)>,
}

/// What the measurements say about the question; the most important first.
pub fn verdicts(study: &Study, groups: &[CaseTrials<'_>], lines: &[CaseLine]) -> Vec<String> {
    let mut sentences = if study.goal.is_some() { of_load_lines(study, lines) } else { of_cases(study, groups) };
    if !groups.iter().any(|group| group.valid().next().is_some()) {
        sentences.insert(0, "no verdict: there is no valid trial".to_owned());
    }
    if study.quick {
        sentences.push("rehearsal: figures are not to be quoted".to_owned());
    }
    sentences
}

/// The load lines of all cases, compared between alternatives where there are several.
fn of_load_lines(study: &Study, lines: &[CaseLine]) -> Vec<String> {
    let mut factors = Factors::of(study);
    factors.ramps.retain(|ramp| ramp.setting != growth::RATE);
    let with_line = lines.iter().filter(|line| line.finding.verified);
    let scored: Vec<Scored<'_>> = with_line
        .filter_map(|line| {
            let values = line.each_per_s.clone();
            Some(Scored { levels: &line.finding.levels, mean: mean(&values)?, values })
        })
        .collect();
    let contests: Vec<Contest> =
        factors.choices.iter().flat_map(|factor| contests(study, &factors, factor, &LOAD_LINE, &scored)).collect();
    let mut sentences = contest_sentences(&contests, &LOAD_LINE);
    sentences.extend(load_lines::sentences(lines));
    sentences
}

/// What the cases' own figures say.
fn of_cases(study: &Study, groups: &[CaseTrials<'_>]) -> Vec<String> {
    let factors = Factors::of(study);
    let metric = metric_of(groups);
    let is_open = !metric.more_is_better;
    // Response times of an overloaded case grow with the trial's length: there is nothing to compare.
    let is_comparable = |group: &&CaseTrials<'_>| !(is_open && is_overloaded(&group.valid().collect::<Vec<_>>()));
    let scored: Vec<Scored<'_>> = groups
        .iter()
        .filter(is_comparable)
        .filter_map(|group| {
            let values: Vec<f64> = group.valid().filter_map(|trial| metric.of(trial)).collect();
            Some(Scored { levels: &group.case.levels, mean: mean(&values)?, values })
        })
        .collect();
    let mut sentences = Vec::new();
    let contests: Vec<Contest> =
        factors.choices.iter().flat_map(|factor| contests(study, &factors, factor, metric, &scored)).collect();
    sentences.extend(contest_sentences(&contests, metric));
    for ramp in &factors.ramps {
        sentences.extend(ramp_sentences(&factors, ramp, metric, &scored));
    }
    let grown = if is_open { growth::sentences(groups) } else { Vec::new() };
    if sentences.is_empty() && grown.iter().all(|(rates, _)| *rates < 2) {
        sentences.extend(scored.iter().map(|case| {
            let what = if metric.more_is_better { String::new() } else { format!("{} ", metric.title) };
            format!("{}: {what}{}", show_levels(case.levels), metric.show_estimate(&case.values))
        }));
    }
    sentences.extend(grown.into_iter().map(|(_, sentence)| sentence));
    sentences
}

/// What alternatives are compared by. An open loop sets the throughput itself, so there response times are compared;
/// batches of different size are compared by records.
pub fn metric_of(groups: &[CaseTrials<'_>]) -> &'static Metric {
    let open = !groups.is_empty() && groups.iter().all(|group| group.case.settings.load.arrivals != Arrivals::Closed);
    let trials = || groups.iter().flat_map(CaseTrials::valid);
    let is_told =
        |name: &str| Metric::named(name).is_some_and(|metric| trials().any(|trial| metric.of(trial).is_some()));
    let batched = groups.iter().any(|group| group.case.settings.workload.batch > 1) && is_told("records");
    let name = if open && !is_told("response_time_p99") && is_told("response_time_mean") {
        // Another tool measured, and kept no histogram.
        "response_time_mean"
    } else if open {
        "response_time_p99"
    } else if batched {
        "records"
    } else {
        "throughput"
    };
    Metric::named(name).expect("these names are in the list of metrics")
}

/// The contests of one factor: each level at its best per combination of the other alternatives, then over all matched
/// cases.
fn contests(study: &Study, factors: &Factors, factor: &Factor, metric: &Metric, scored: &[Scored<'_>]) -> Vec<Contest> {
    let others = Factors {
        choices: factors.choices.iter().filter(|other| other.setting != factor.setting).cloned().collect(),
        ramps: Vec::new(),
    };
    let mut strata: Vec<String> = Vec::new();
    for case in scored {
        let label = others.choice_label(case.levels);
        if !strata.contains(&label) {
            strata.push(label);
        }
    }
    let mut contests: Vec<Contest> = strata
        .iter()
        .filter_map(|stratum| {
            let inside = |case: &&Scored<'_>| others.choice_label(case.levels) == *stratum;
            let cases: Vec<&Scored<'_>> = scored.iter().filter(inside).collect();
            best_contest(study, factors, factor, metric, &cases, stratum)
        })
        .collect();
    if strata.len() > 1 || !factors.ramps.is_empty() {
        // With several combinations the answer over all of them comes first; else the answer at its best does.
        let place = if strata.len() > 1 { 0 } else { contests.len() };
        if let Some(matched) = matched_contest(study, factor, metric, scored) {
            contests.insert(place, matched);
        }
    }
    contests
}

/// Every level at the setting of the ramps where it is best.
fn best_contest(
    study: &Study,
    factors: &Factors,
    factor: &Factor,
    metric: &Metric,
    cases: &[&Scored<'_>],
    stratum: &str,
) -> Option<Contest> {
    let sign = if metric.more_is_better { 1.0 } else { -1.0 };
    if !metric.more_is_better && factors.ramps.iter().any(|ramp| ramp.setting == "load.rate") {
        // Response time is always best at the lowest arrival rate.
        return None;
    }
    let mut best: Vec<(String, &Scored<'_>)> = Vec::new();
    for level in &factor.levels {
        let own = cases.iter().copied().filter(|case| is_at(case, factor, level));
        if let Some(case) = own.max_by(|a, b| (sign * a.mean).total_cmp(&(sign * b.mean))) {
            best.push((short_level(factor, level), case));
        }
    }
    if best.len() < 2 {
        return None;
    }
    best.sort_by(|a, b| (sign * b.1.mean).total_cmp(&(sign * a.1.mean)));
    let at_best = |(label, case): &(String, &Scored<'_>)| {
        let settings = factors.ramps.iter().filter_map(|ramp| case.levels.get(&ramp.setting)).map(show_level);
        format!("{label} at {}", settings.collect::<Vec<_>>().join(" and "))
    };
    let mut after = if factors.ramps.is_empty() {
        String::new()
    } else {
        let ramps: Vec<&str> = factors.ramps.iter().map(|ramp| ramp.setting.as_str()).collect();
        let settings: Vec<String> = best.iter().map(at_best).collect();
        format!(", each at its best {} ({})", ramps.join(" and "), settings.join(", "))
    };
    after.push_str(&missing_remark(factor, metric, best.iter().map(|(label, _)| label.as_str()).collect()));
    Some(Contest {
        before: if stratum.is_empty() { String::new() } else { format!("{stratum}: ") },
        after,
        pairs: pairs(best.len(), |a, b| matched_ratio(&[(&best[a].1.values, &best[b].1.values)], study.seed)),
        labels: best.into_iter().map(|(label, _)| label).collect(),
    })
}

/// Every level over all cases that all levels have.
fn matched_contest(study: &Study, factor: &Factor, metric: &Metric, scored: &[Scored<'_>]) -> Option<Contest> {
    let key = |case: &Scored<'_>| -> String {
        let rest = case.levels.iter().filter(|(setting, _)| **setting != factor.setting);
        rest.map(|(setting, level)| format!("{setting}={};", show_level(level))).collect()
    };
    let rows: Vec<(&serde_json::Value, Vec<(String, &Scored<'_>)>)> = factor
        .levels
        .iter()
        .map(|level| {
            let own = scored.iter().filter(|case| is_at(case, factor, level));
            (level, own.map(|case| (key(case), case)).collect::<Vec<_>>())
        })
        .filter(|(_, cases)| !cases.is_empty())
        .collect();
    let shared: Vec<&String> = rows
        .first()?
        .1
        .iter()
        .map(|(key, _)| key)
        .filter(|key| rows.iter().all(|(_, cases)| cases.iter().any(|(other, _)| other == *key)))
        .collect();
    if rows.len() < 2 || shared.len() < 2 {
        return None;
    }
    let sign = if metric.more_is_better { 1.0 } else { -1.0 };
    let mut levels: Vec<(String, f64, Vec<&[f64]>)> = rows
        .iter()
        .map(|(level, cases)| {
            let of_key = |key: &&String| cases.iter().find(|(other, _)| other == *key).map(|(_, case)| *case);
            let own: Vec<&Scored<'_>> = shared.iter().filter_map(of_key).collect();
            let score: f64 = own.iter().map(|case| sign * case.mean.max(f64::MIN_POSITIVE).ln()).sum();
            (short_level(factor, level), score, own.iter().map(|case| &case.values[..]).collect())
        })
        .collect();
    levels.sort_by(|a, b| b.1.total_cmp(&a.1));
    let estimate = |a: usize, b: usize| {
        let matched: Vec<(&[f64], &[f64])> = levels[a].2.iter().zip(&levels[b].2).map(|(of, to)| (*of, *to)).collect();
        matched_ratio(&matched, study.seed)
    };
    Some(Contest {
        before: "over all matched cases, ".to_owned(),
        after: format!(
            ", geometric mean of {} ratios{}",
            shared.len(),
            missing_remark(factor, metric, levels.iter().map(|(label, ..)| label.as_str()).collect())
        ),
        pairs: pairs(levels.len(), estimate),
        labels: levels.iter().map(|(label, ..)| label.clone()).collect(),
    })
}

/// Says which levels have no valid trial; empty when all have one.
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

fn pairs(
    count: usize,
    estimate: impl Fn(usize, usize) -> Option<RatioEstimate>,
) -> Vec<(usize, usize, Option<RatioEstimate>)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).map(|(a, b)| (a, b, estimate(a, b))).collect()
}

/// One sentence per contest; p-values are adjusted over all pairs of all contests, because the data chose the leaders.
fn contest_sentences(contests: &[Contest], metric: &Metric) -> Vec<String> {
    let p: Vec<f64> = contests
        .iter()
        .flat_map(|contest| contest.pairs.iter().map(|(_, _, estimate)| estimate.map_or(1.0, |estimate| estimate.p)))
        .collect();
    let mut adjusted = family::holm(&p).into_iter();
    let mut sentences = Vec::new();
    for contest in contests {
        let judged: Vec<(usize, Option<RatioEstimate>, Verdict)> = contest
            .pairs
            .iter()
            .zip(adjusted.by_ref().take(contest.pairs.len()))
            .filter(|((leader, ..), _)| *leader == 0)
            .map(|((_, other, estimate), p)| {
                let verdict = estimate.map_or(Verdict::Undecided, |known| judge(known.interval, p, EQUAL_WITHIN));
                (*other, *estimate, verdict)
            })
            .collect();
        sentences.push(contest_sentence(contest, &judged, metric));
    }
    sentences
}

fn contest_sentence(contest: &Contest, judged: &[(usize, Option<RatioEstimate>, Verdict)], metric: &Metric) -> String {
    let better = if metric.more_is_better { Verdict::Faster } else { Verdict::Slower };
    let superlative = match metric.name {
        "load_line" => "able to carry the most load",
        _ if metric.more_is_better => "fastest",
        _ => "soonest to answer (p99)",
    };
    let (leader, before, after) = (&contest.labels[0], &contest.before, &contest.after);
    let count = |verdict| judged.iter().filter(|(_, _, found)| *found == verdict).count();
    let said = |(other, estimate, verdict): &(usize, Option<RatioEstimate>, Verdict), with_verdict: bool| {
        let other = &contest.labels[*other];
        let Some(known) = estimate else {
            return format!("{other}: undecided, because a case has fewer than two valid trials");
        };
        let word = match verdict {
            _ if !with_verdict => String::new(),
            Verdict::Equal => format!(" (equal within ±{} %)", show_number(EQUAL_WITHIN * 100.0)),
            Verdict::Undecided => " (undecided)".to_owned(),
            _ => " (certain)".to_owned(),
        };
        let interval = known.interval;
        let (ratio, n_of, n_to) = (known.ratio, known.n_of, known.n_to);
        format!("{ratio:.2} × {other} [{:.2}, {:.2}], n = {n_of} + {n_to}{word}", interval.low, interval.high)
    };
    let mixed = count(better) > 0;
    let list = |with_verdict| judged.iter().map(|one| said(one, with_verdict)).collect::<Vec<_>>().join("; ");
    if count(better) == judged.len() {
        return format!("{before}{leader} is {superlative}: {}{after}", list(false));
    }
    if count(Verdict::Undecided) == 0 {
        let equal = judged.iter().filter(|(_, _, verdict)| *verdict == Verdict::Equal);
        let names: Vec<&str> = equal.map(|(other, ..)| contest.labels[*other].as_str()).collect();
        let among = if mixed { format!("are {superlative} and ") } else { "are ".to_owned() };
        let margin = show_number(EQUAL_WITHIN * 100.0);
        return format!(
            "{before}{leader} and {} {among}equal within ±{margin} %: {}{after}",
            names.join(" and "),
            list(mixed)
        );
    }
    format!("{before}undecided which is {superlative}: {leader} is {}{after}", list(mixed || count(Verdict::Equal) > 0))
}

/// Where throughput peaks along a ramp, for each alternative with the other ramps where it peaks.
fn ramp_sentences(factors: &Factors, ramp: &Factor, metric: &Metric, scored: &[Scored<'_>]) -> Vec<String> {
    // The alternatives with the highest peak come first.
    let mut ordered: Vec<&Scored<'_>> = scored.iter().collect();
    ordered.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let mut labels: Vec<String> = Vec::new();
    for case in ordered {
        let label = factors.choice_label(case.levels);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let mut sentences: Vec<String> = labels
        .iter()
        .filter_map(|label| {
            let own: Vec<&Scored<'_>> =
                scored.iter().filter(|case| factors.choice_label(case.levels) == *label).collect();
            let sentence = ramp_sentence(factors, ramp, metric, &own)?;
            Some(if label.is_empty() { sentence } else { format!("{label}: {sentence}") })
        })
        .collect();
    let more = sentences.len().saturating_sub(RAMP_SENTENCES_MOST);
    if more > 0 {
        sentences.truncate(RAMP_SENTENCES_MOST);
        sentences
            .push(format!("how throughput goes with {} for {more} more alternatives is in the plots", ramp.setting));
    }
    sentences
}

fn ramp_sentence(factors: &Factors, ramp: &Factor, metric: &Metric, cases: &[&Scored<'_>]) -> Option<String> {
    if !metric.more_is_better {
        return None;
    }
    let peak = cases.iter().copied().max_by(|a, b| a.mean.total_cmp(&b.mean))?;
    let others: Vec<&Factor> = factors.ramps.iter().filter(|other| other.setting != ramp.setting).collect();
    let aligned =
        |case: &&Scored<'_>| others.iter().all(|o| case.levels.get(&o.setting) == peak.levels.get(&o.setting));
    let mut slice: Vec<(f64, &Scored<'_>)> = cases
        .iter()
        .copied()
        .filter(aligned)
        .filter_map(|case| Some((case.levels.get(&ramp.setting)?.as_f64()?, case)))
        .collect();
    slice.sort_by(|a, b| a.0.total_cmp(&b.0));
    if slice.len() < 2 {
        return None;
    }
    let at = show_level(peak.levels.get(&ramp.setting)?);
    let with: Vec<String> = others
        .iter()
        .filter_map(|other| Some(format!("{} = {}", other.setting, show_level(peak.levels.get(&other.setting)?))))
        .collect();
    let with = if with.is_empty() { String::new() } else { format!(" (with {})", with.join(", ")) };
    let figure = metric.show_estimate(&peak.values);
    let (first, nearly) =
        slice.iter().find(|(_, case)| case.mean >= NEARLY * peak.mean).map(|(x, case)| (*x, *case))?;
    let last = slice.last().is_some_and(|(_, case)| std::ptr::eq(*case, peak));
    let edge = if last { "; that is the highest level tried, so the peak may lie beyond" } else { "" };
    let reached =
        if std::ptr::eq(nearly, peak) { String::new() } else { format!("; 90 % of it is reached at {first}") };
    Some(format!("throughput peaks at {} = {at}{with}: {figure}{reached}{edge}", ramp.setting))
}
