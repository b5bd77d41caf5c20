//! Load lines: what a search said about each case, as findings and in sentences, and how alternatives compare by their brackets.
//!
//! Main functions: [`load_lines`], [`sentences`] and [`comparisons`]. Invariant: it says what the search itself says when it is given the same
//! trials, and the quantile beside a line is that of the case in every table and plot.

use crate::finding::LoadLine;
use crate::histogram::Histogram;
use crate::measurement::{Measurement, starved};
use crate::queueing::Target;
use crate::queueing::load_line::{Answer, Ending, Line, Refuted, Step, next};
use crate::report::factors::{Factors, show_levels};
use crate::statistics::summary::Interval;
use crate::study::{Factor, Goal, Study, goal};
use crate::trial::{Case, Levels};
use crate::units::{Carried, NS_PER_S, show_number, show_ratio, show_seconds};

/// A quantile below this share of the bound, beside a refuted rate at most so many times as high, is that of a cliff.
const CLIFF: f64 = 0.5;
const CLIFF_BESIDE: f64 = 1.5;

/// The load lines of all cases with a trial; empty for a study without a goal. The study is the one that was written.
pub fn load_lines(study: &Study, measurements: &[Measurement]) -> Vec<LoadLine> {
    let Some(wanted) = &study.goal else { return Vec::new() };
    let of_base = goal::by_base(measurements);
    let line_of = |base: Case| {
        let own: &[&Measurement] = of_base.get(&base.id).map_or(&[], Vec::as_slice);
        let probes = goal::probes(wanted, own);
        let step = next(&goal::bound_of(study, wanted, &base.settings), &probes);
        let quantile_s = |rate_per_s| quantile_s(wanted, rate_per_s, own);
        (!probes.is_empty()).then(|| finding(wanted, base.levels.clone(), &step, &quantile_s))
    };
    goal::base_cases(study).into_iter().filter_map(line_of).collect()
}

/// The quantile of all valid trials of a search at a rate together, in seconds; none without one. Where the disturbed ones lose the bound it is
/// that of the others, if they keep it: they are what confirms a rate then.
fn quantile_s(wanted: &Goal, rate_per_s: f64, own: &[&Measurement]) -> Option<f64> {
    let of = |with_disturbed: bool| {
        let mut all = Histogram::new();
        let is_there = |trial: &&&Measurement| {
            let is_at = trial.trial.case.settings.load.rate_per_s == Some(rate_per_s);
            is_at && trial.is_valid() && (with_disturbed || !goal::is_disturbed(wanted, trial))
        };
        own.iter().filter(is_there).for_each(|trial| all.merge(&trial.response_times()));
        (all.count() > 0).then(|| all.quantile_ns(wanted.quantile) as f64 / NS_PER_S)
    };
    let (all_s, undisturbed_s) = (of(true)?, of(false));
    let is_theirs = all_s > wanted.below_s;
    Some(undisturbed_s.filter(|seconds| is_theirs && *seconds <= wanted.below_s).unwrap_or(all_s))
}

fn finding(wanted: &Goal, levels: Levels, step: &Step, quantile_s: &dyn Fn(f64) -> Option<f64>) -> LoadLine {
    let line = if let Step::Done(Answer { line, .. }) = step { line.as_ref() } else { None };
    let ending = if let Step::Done(Answer { ending, .. }) = step { Some(*ending) } else { None };
    LoadLine {
        levels,
        quantile: wanted.quantile,
        below_s: wanted.below_s,
        arrival_rate_per_s: line.map(|line| line.rate_per_s),
        ci95: line.and_then(Line::bracket),
        verified: line.is_some_and(|line| line.is_verified),
        quantile_s: line.and_then(|line| quantile_s(line.rate_per_s)),
        trials: line.map_or(0, |line| line.trials as u64),
        disturbed: matches!(ending, Some(Ending::Disturbed { .. } | Ending::NotDriven(..) | Ending::Unusable)),
        outcome: outcome(wanted, step, quantile_s),
    }
}

fn rate(rate_per_s: f64) -> String {
    format!("{}/s", show_number(rate_per_s))
}

/// How the search ended, in words.
fn outcome(wanted: &Goal, step: &Step, quantile_s: &dyn Fn(f64) -> Option<f64>) -> String {
    let (figure, below) = (Target::Quantile(wanted.quantile), show_seconds(wanted.below_s));
    let answer = match step {
        Step::Measure { rate_per_s, .. } => return format!("not finished: the next trial is at {}", rate(*rate_per_s)),
        Step::Done(answer) => answer,
    };
    match answer.ending {
        Ending::Found => {
            answer.line.as_ref().map_or("found".to_owned(), |line| format!("found: {}", seen(wanted, line, quantile_s)))
        }
        Ending::NotReached(at, quantile_s) => {
            let quantile = if quantile_s.is_finite() { show_seconds(quantile_s) } else { "out of bounds".to_owned() };
            format!("not reached: {figure} is {quantile} even at {}, and the bound is {below}", rate(at))
        }
        Ending::AboveClient(at) => format!(
            "above what this client can drive: {figure} is still below {below} at {}, and above it a load thread used up its CPU; set \
             load.loops, or drive the load from a larger machine",
            rate(at)
        ),
        Ending::NotDriven(at, above) => format!(
            "disturbed: {figure} is still below {below} at {}, and at {} the load could not be sent as planned although the load \
             threads had CPU left; find what else takes the CPUs, and run it again",
            rate(at),
            rate(above)
        ),
        Ending::Unbounded(at) => {
            format!(
                "not bounded: {figure} is still below {below} at {} after the trials allowed; set a higher load.rate",
                rate(at)
            )
        }
        Ending::Disturbed { by_others, by_hypervisor, by_client } => {
            let why = disturbed_by(wanted, by_others, by_hypervisor, by_client);
            match &answer.line {
                Some(line) => {
                    format!(
                        "not bounded: {}; what is lost above it cannot be told: {why}",
                        seen(wanted, line, quantile_s)
                    )
                }
                None => format!("disturbed: {why}"),
            }
        }
        Ending::Unusable => match &answer.line {
            Some(line) => {
                format!("not bounded: {}; above it trials were invalid again and again", seen(wanted, line, quantile_s))
            }
            None => "no line: trials were invalid again and again".to_owned(),
        },
        Ending::TooShort(at, needed_s) => format!(
            "not confirmed: at {} a trial shows ten operations above the bound only after {}, which is more than ten times load.duration; \
             set a longer one",
            rate(at),
            show_seconds(needed_s)
        ),
        Ending::Unsettled => {
            let why = "the trials allowed were used up";
            match &answer.line {
                Some(line) => {
                    format!("not bounded: {}; {why} before a higher rate was refuted", seen(wanted, line, quantile_s))
                }
                None => format!("not confirmed: {why} before the bound was kept for certain"),
            }
        }
    }
}

/// What disturbed trials, and what is to be done.
fn disturbed_by(wanted: &Goal, by_others: usize, by_hypervisor: usize, by_client: usize) -> String {
    if by_client > by_others.max(by_hypervisor) {
        return format!(
            "loadline sent operations later than a tenth of the bound in {by_client} trials, which is a part of their response times; give it \
             CPUs of its own (load.cpus, database.cpus), or drive the load from another machine"
        );
    }
    if by_others > by_hypervisor {
        return format!(
            "other processes kept more than a quarter of a CPU busy in {by_others} trials, while less than half of the machine was idle; stop \
             them, and run it again"
        );
    }
    format!(
        "the hypervisor gave more than {} % of the CPU time to other machines in {by_hypervisor} trials; take a machine whose CPUs are its \
         own, or another hour, or permit it with LOADLINE_STOLEN",
        (1000.0 * starved::stolen_most(wanted.quantile)).round() / 10.0
    )
}

/// What was seen at the line and above it.
fn seen(wanted: &Goal, line: &Line, quantile_s: &dyn Fn(f64) -> Option<f64>) -> String {
    let figure = Target::Quantile(wanted.quantile);
    let here_s = quantile_s(line.rate_per_s);
    let mut text =
        format!("{figure} is {} over {} trials", here_s.map_or("unknown".to_owned(), show_seconds), line.trials);
    if line.disturbed > 0 {
        text += &format!(
            " (in {} of them something else took CPU time, or loadline sent late, which only makes response times longer: without it the \
             line may be higher)",
            line.disturbed
        );
    }
    if let Some(Refuted { rate_per_s, trials, fallen_behind }) = line.refuted {
        let is_beside = rate_per_s <= CLIFF_BESIDE * line.rate_per_s;
        let is_cliff = is_beside && here_s.is_some_and(|here_s| here_s < CLIFF * wanted.below_s);
        let lead = if is_cliff { "; a cliff follows: at" } else { "; at" };
        let above_s = quantile_s(rate_per_s).map(show_seconds);
        text += &format!("{lead} {} ", rate(rate_per_s));
        text += &match (fallen_behind, above_s) {
            (0, Some(above)) => format!("it is {above} (n = {trials})"),
            _ => format!("the database falls behind in {fallen_behind} of {trials} trials"),
        };
    }
    if let Some(slow) = line.slow_below_per_s {
        text += &format!("; at {} and below the bound is lost too: the database is slower when it is idle", rate(slow));
    }
    if let Some(again) = line.kept_again_per_s {
        text += &format!("; at {} trials kept the bound again, so that the curve is not monotone", rate(again));
    }
    text
}

/// What was found about each case, a sentence each.
pub fn sentences(lines: &[LoadLine]) -> Vec<String> {
    lines.iter().map(sentence).collect()
}

fn sentence(line: &LoadLine) -> String {
    let lead = if line.levels.is_empty() { String::new() } else { format!("{}: ", show_levels(&line.levels)) };
    let bound = format!("{} of response time below {}", Target::Quantile(line.quantile), show_seconds(line.below_s));
    let Some(rate) = line.arrival_rate_per_s else {
        // That there is none is said already.
        let why = line.outcome.strip_prefix("no line: ").map(|why| format!(": {why}"));
        return format!("{lead}no load line for {bound}{}", why.unwrap_or_else(|| format!("; {}", line.outcome)));
    };
    let carried = Carried::by(line.ci95);
    let interval = line.ci95.map(|ends| format!(" {}", carried.show_ends(ends, show_number)));
    let kept = if line.ci95.is_some() { "the load line is" } else { "the load line is at least" };
    // That a line is found is said already; what was seen there is the evidence, behind a colon.
    let found = line.outcome.strip_prefix("found: ").map(|seen| format!(": {seen}"));
    let outcome = found.unwrap_or_else(|| format!("; {}", line.outcome));
    format!("{lead}{kept} {}/s{}, with {bound}{outcome}", carried.show(rate, show_number), interval.unwrap_or_default())
}

/// The ratio of two lines, from their brackets: no ratio outside is possible when both hold.
pub fn ratio(of: [f64; 2], to: [f64; 2]) -> (f64, Interval) {
    let middle = |[low, high]: [f64; 2]| (low * high).sqrt();
    (middle(of) / middle(to), Interval { low: of[0] / to[1], high: of[1] / to[0] })
}

/// Which alternative carries the most, where the others are equal: told apart where the brackets have nothing in common.
pub fn comparisons(study: &Study, lines: &[LoadLine]) -> Vec<String> {
    let mut factors = Factors::of(study);
    factors.ramps.retain(|ramp| ramp.setting != crate::report::growth::RATE);
    factors.choices.iter().flat_map(|factor| of_factor(factor, lines)).collect()
}

/// A sentence for each combination of the other levels.
fn of_factor(factor: &Factor, lines: &[LoadLine]) -> Vec<String> {
    let rest = |line: &LoadLine| {
        let mut levels = line.levels.clone();
        levels.remove(&factor.setting);
        levels
    };
    let mut others: Vec<Levels> = Vec::new();
    for levels in lines.iter().map(rest) {
        if !others.contains(&levels) {
            others.push(levels);
        }
    }
    let told = |levels: &Levels| {
        let own = lines.iter().filter(|line| rest(line) == *levels);
        let bracketed = own.filter_map(|line| {
            Some((crate::report::factors::short_level(factor, line.levels.get(&factor.setting)?), line.ci95?))
        });
        contest(levels, bracketed.collect())
    };
    others.iter().filter_map(told).collect()
}

fn contest(others: &Levels, mut lines: Vec<(String, [f64; 2])>) -> Option<String> {
    lines.sort_by(|(_, a), (_, b)| b[0].total_cmp(&a[0]));
    let (first, rest) = lines.split_first()?;
    let lead = if others.is_empty() { String::new() } else { format!("{}: ", show_levels(others)) };
    let against = |(name, bracket): &(String, [f64; 2])| {
        let (ratio, interval) = ratio(first.1, *bracket);
        let (ratio, ends) = show_ratio(ratio, Some([interval.low, interval.high]), 2);
        format!("{ratio} × {name} {ends}")
    };
    let all: Vec<String> = rest.iter().map(against).collect();
    let is_first = rest.iter().all(|(_, bracket)| first.1[0] > bracket[1]);
    match (rest.is_empty(), is_first) {
        (true, _) => None,
        (_, true) => Some(format!("{lead}{} is able to carry the most load: {}", first.0, all.join(", "))),
        (_, false) => Some(format!(
            "{lead}undecided which carries the most load, because brackets overlap: {} carries {}",
            first.0,
            all.join(", ")
        )),
    }
}
