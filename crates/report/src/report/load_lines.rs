//! Reports load lines: the result of a search for each case, as findings and verdicts, and comparisons of alternatives by their brackets.
//!
//! Main functions: [`load_lines`], [`verdicts`] and [`comparisons`]. Invariant: the result is that of the search itself for the same trials,
//! and the quantile beside a line is that of the case in every table and plot.

use crate::finding::{Compared, Found, LoadLine, Outcome, RefutedSeen, Seen, Told, UNUSABLE, Verdict};
use crate::histogram::Histogram;
use crate::measurement::{Measurement, starved};
use crate::queueing::Target;
use crate::queueing::load_line::{Ending, Line, Refuted, Step, next, so_far};
use crate::report::factors::{Factors, show_levels};
use crate::statistics::summary::Interval;
use crate::study::{Factor, Goal, Study, bound, goal};
use crate::trial::{Case, Levels};
use crate::units::{Carried, NS_PER_S, show_number, show_ratio, show_seconds};

/// Returns the load lines of all cases with a trial; empty for a study without a goal. The study is the one that was written.
pub fn load_lines(study: &Study, measurements: &[Measurement]) -> Vec<LoadLine> {
    let Some(wanted) = &study.goal else { return Vec::new() };
    let of_base = goal::by_base(measurements);
    let line_of = |base: Case| {
        let own: &[&Measurement] = of_base.get(&base.id).map_or(&[], Vec::as_slice);
        let probes = goal::probes(wanted, own);
        let bound = bound::bound_of(study, wanted, &base.settings);
        // Trials that confirm a line do so even if the search would go on: it may have been interrupted, or have ended by an earlier version's rules.
        let (step, line) = (next(&bound, &probes), so_far(&bound, &probes));
        let quantile_s = |rate_per_s| quantile_s(wanted, rate_per_s, own);
        let replay = base.settings.load.replay;
        let speed = line.as_ref().zip(replay).map(|(line, replay)| replay.speed(Some(line.rate_per_s)));
        let found = || finding(wanted, base.levels.clone(), (&step, line.as_ref()), &quantile_s);
        (!probes.is_empty()).then(|| LoadLine { speed, ..found() })
    };
    goal::base_cases(study).into_iter().filter_map(line_of).collect()
}

/// Returns the quantile over all valid trials of a search at a rate, in seconds; `None` without trials. If the disturbed trials miss the bound
/// and the others keep it, it is the quantile of the others, because these confirm the rate.
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

fn finding(
    wanted: &Goal,
    levels: Levels,
    (step, line): (&Step, Option<&Line>),
    quantile_s: &dyn Fn(f64) -> Option<f64>,
) -> LoadLine {
    let ending = if let Step::Done(answer) = step { Some(answer.ending) } else { None };
    LoadLine {
        levels,
        quantile: wanted.quantile,
        below_s: wanted.below_s,
        arrival_rate_per_s: line.map(|line| line.rate_per_s),
        speed: None,
        ci95: line.and_then(Line::bracket),
        verified: line.is_some_and(|line| line.is_verified),
        quantile_s: line.and_then(|line| quantile_s(line.rate_per_s)),
        trials: line.map_or(0, |line| line.trials as u64),
        disturbed: matches!(ending, Some(Ending::Disturbed { .. } | Ending::NotDriven(..) | Ending::Unusable)),
        outcome: outcome(wanted, (step, line), quantile_s),
    }
}

/// Returns how the search ended.
fn outcome(wanted: &Goal, (step, line): (&Step, Option<&Line>), quantile_s: &dyn Fn(f64) -> Option<f64>) -> Outcome {
    let (quantile, below_s) = (wanted.quantile, wanted.below_s);
    let seen = || line.map(|line| seen(wanted, line, quantile_s));
    let answer = match step {
        Step::Measure { rate_per_s, .. } => return Outcome::NotFinished { seen: seen(), next_per_s: *rate_per_s },
        Step::Done(answer) => answer,
    };
    match answer.ending {
        Ending::Found => Outcome::Found { seen: seen() },
        Ending::NotReached(at_per_s, quantile_s) => {
            let quantile_s = Some(quantile_s).filter(|quantile_s| quantile_s.is_finite());
            Outcome::NotReached { quantile, quantile_s, at_per_s, below_s }
        }
        Ending::AboveClient(at_per_s) => Outcome::AboveClient { quantile, at_per_s, below_s },
        Ending::NotDriven(at_per_s, above_per_s) => Outcome::NotDriven { quantile, at_per_s, above_per_s, below_s },
        Ending::Unbounded(at_per_s) => Outcome::Unbounded { quantile, at_per_s, below_s },
        Ending::Disturbed { by_others, by_hypervisor, by_client } => {
            let stolen_share_most = starved::stolen_most(quantile);
            Outcome::Disturbed { by_others, by_hypervisor, by_client, stolen_share_most, seen: seen() }
        }
        Ending::Unusable => Outcome::Unusable { seen: seen() },
        Ending::TooShort(at_per_s, needed_s) => Outcome::TooShort { at_per_s, needed_s },
        Ending::Unsettled => Outcome::Unsettled { seen: seen() },
    }
}

/// Returns the observations at the line and above it.
fn seen(wanted: &Goal, line: &Line, quantile_s: &dyn Fn(f64) -> Option<f64>) -> Seen {
    let refuted = |refuted: Refuted| RefutedSeen {
        at_per_s: refuted.rate_per_s,
        quantile_s: quantile_s(refuted.rate_per_s),
        trials: refuted.trials,
        fallen_behind: refuted.fallen_behind,
    };
    Seen {
        quantile: wanted.quantile,
        below_s: wanted.below_s,
        at_per_s: line.rate_per_s,
        quantile_s: quantile_s(line.rate_per_s),
        trials: line.trials,
        seconds: line.seconds,
        stalled: line.stalled,
        disturbed: line.disturbed,
        disturbed_above: line.disturbed_above,
        refuted: line.refuted.map(refuted),
        slow_below_per_s: line.slow_below_per_s,
        kept_again_per_s: line.kept_again_per_s,
    }
}

/// Returns one verdict on the search of each case.
pub fn verdicts(lines: &[LoadLine]) -> Vec<Verdict> {
    lines.iter().map(verdict).collect()
}

fn verdict(line: &LoadLine) -> Verdict {
    let LoadLine { levels, quantile, below_s, arrival_rate_per_s, ci95: ci95_per_s, outcome, .. } = line.clone();
    let lead = if levels.is_empty() { String::new() } else { format!("{}: ", show_levels(&levels)) };
    let bound = format!("{} of response time below {}", Target::Quantile(quantile), show_seconds(below_s));
    let found = Found::LoadLine { levels, quantile, below_s, arrival_rate_per_s, ci95_per_s, outcome };
    let Some(rate) = arrival_rate_per_s else {
        let verdict = Verdict::new(found, format!("{lead}no load line for {bound}"));
        // The answer already says that there is none.
        let is_unusable = matches!(line.outcome, Outcome::Unusable { seen: None });
        return if is_unusable { verdict.because(UNUSABLE) } else { verdict.and(line.outcome.to_string()) };
    };
    let carried = Carried::by(ci95_per_s);
    let interval = ci95_per_s.map(|ends| format!(" {}", carried.show_ends(ends, show_number))).unwrap_or_default();
    let kept = if ci95_per_s.is_some() { "the load line is" } else { "the load line is at least" };
    let rate = carried.show(rate, show_number);
    let speed =
        line.speed.map_or(String::new(), |speed| format!(", {} times as fast as in the trace", show_number(speed)));
    let verdict = Verdict::new(found, format!("{lead}{kept} {rate}/s{interval}{speed}, with {bound}"));
    match &line.outcome {
        // The answer already says that a line is found; the observations there are the evidence.
        Outcome::Found { seen: Some(seen) } => verdict.because(seen.to_string()),
        outcome => verdict.and(outcome.to_string()),
    }
}

/// Returns the ratio of two lines and its range from their brackets: no ratio outside is possible if both brackets hold.
pub fn ratio(of: [f64; 2], to: [f64; 2]) -> (f64, Interval) {
    let middle = |[low, high]: [f64; 2]| (low * high).sqrt();
    (middle(of) / middle(to), Interval { low: of[0] / to[1], high: of[1] / to[0] })
}

/// Compares the lines of alternatives whose other levels are equal: they differ if their brackets do not overlap.
pub fn comparisons(study: &Study, lines: &[LoadLine]) -> Vec<Verdict> {
    let mut factors = Factors::of(study);
    factors.ramps.retain(|ramp| ramp.setting != crate::report::growth::RATE);
    factors.choices.iter().flat_map(|factor| of_factor(factor, lines)).collect()
}

/// Returns a verdict for each combination of the other levels.
fn of_factor(factor: &Factor, lines: &[LoadLine]) -> Vec<Verdict> {
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

fn contest(others: &Levels, mut lines: Vec<(String, [f64; 2])>) -> Option<Verdict> {
    lines.sort_by(|(_, a), (_, b)| b[0].total_cmp(&a[0]));
    let (first, rest) = lines.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let lead = if others.is_empty() { String::new() } else { format!("{}: ", show_levels(others)) };
    let against = |(name, bracket): &(String, [f64; 2])| {
        let (known, interval) = ratio(first.1, *bracket);
        let (shown, ends) = show_ratio(known, Some([interval.low, interval.high]), 2);
        let told = if first.1[0] > bracket[1] { Told::Apart } else { Told::Undecided };
        let ratio_interval = Some([interval.low, interval.high]);
        let compared = Compared { name: name.clone(), ratio: Some(known), ratio_interval, told };
        (compared, format!("{shown} × {name} {ends}"))
    };
    let (compared, shown): (Vec<Compared>, Vec<String>) = rest.iter().map(against).unzip();
    let is_decided = compared.iter().all(|other| other.told == Told::Apart);
    let (name, shown) = (&first.0, shown.join(", "));
    let found = Found::MostLoad { levels: others.clone(), first: name.clone(), others: compared, is_decided };
    Some(if is_decided {
        Verdict::new(found, format!("{lead}{name} is able to carry the most load")).because(shown)
    } else {
        let answer = format!("{lead}undecided which carries the most load, because brackets overlap");
        Verdict::new(found, answer).because(format!("{name} carries {shown}"))
    })
}
