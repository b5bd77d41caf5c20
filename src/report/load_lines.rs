//! Load lines: what a search said about each case, as findings and in sentences.
//!
//! Main function: [`load_lines`]. Invariant: it says what the search itself says when it is given the same trials.

use crate::finding::LoadLine;
use crate::measurement::Measurement;
use crate::queueing::Target;
use crate::queueing::load_line::{Answer, Ending, Step, next};
use crate::report::factors::show_levels;
use crate::study::{Goal, Study, goal};
use crate::trial::Levels;
use crate::units::{show_number, show_seconds};

/// The load line of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseLine {
    /// As findings have it.
    pub finding: LoadLine,
    /// The line as each trial near it estimates it, per second; empty without a line.
    pub each_per_s: Vec<f64>,
}

/// The load lines of all cases with a trial; empty for a study without a goal. The study is the one that was written.
pub fn load_lines(study: &Study, measurements: &[Measurement]) -> Vec<CaseLine> {
    let Some(wanted) = &study.goal else { return Vec::new() };
    let line_of = |base: crate::trial::Case| {
        let probes = goal::probes(wanted, &base, measurements.iter());
        let step = next(&goal::bound_of(study, wanted, &base.settings), &probes);
        (!probes.is_empty()).then(|| case_line(wanted, base.levels, step))
    };
    goal::base_cases(study).into_iter().filter_map(line_of).collect()
}

fn case_line(wanted: &Goal, levels: Levels, step: Step) -> CaseLine {
    let outcome = outcome(wanted, &step);
    let line = if let Step::Done(Answer { line, .. }) = step { line } else { None };
    CaseLine {
        finding: LoadLine {
            levels,
            quantile: wanted.quantile,
            below_s: wanted.below_s,
            arrival_rate_per_s: line.as_ref().map(|line| line.rate_per_s),
            ci95: line.as_ref().and_then(|line| line.interval),
            verified: line.as_ref().is_some_and(|line| line.is_verified),
            outcome,
        },
        each_per_s: line.map(|line| line.each_per_s).unwrap_or_default(),
    }
}

/// How the search ended, in words.
fn outcome(wanted: &Goal, step: &Step) -> String {
    let (figure, below) = (Target::Quantile(wanted.quantile), show_seconds(wanted.below_s));
    let rate = |rate: f64| format!("{}/s", show_number(rate));
    let answer = match step {
        Step::Measure(next) => return format!("not finished: the next trial is at {}", rate(*next)),
        Step::Done(answer) => answer,
    };
    let seen = answer.line.as_ref().and_then(|line| Some((show_seconds(line.quantile_s?), line.trials)));
    match answer.ending {
        Ending::Found => match seen {
            // The table of cases has the quantile of all these trials together, in which the worst one weighs more.
            Some((quantile, trials)) => {
                format!("found: {figure} is {quantile}, the geometric mean of {trials} trials at that rate")
            }
            None => "found".to_owned(),
        },
        Ending::NotReached(at, quantile_s) => {
            let quantile = if quantile_s.is_finite() { show_seconds(quantile_s) } else { "out of bounds".to_owned() };
            format!("not reached: {figure} is {quantile} even at {}, and the bound is {below}", rate(at))
        }
        Ending::AboveClient(at) => {
            format!("above what this client can drive: {figure} is still below {below} at {}", rate(at))
        }
        Ending::NotMonotone(low, high) => format!(
            "no monotone curve: {figure} is above {below} at {} and below it at {}, so there is no single line",
            rate(low),
            rate(high)
        ),
        Ending::Unusable => "no line: trials were invalid again and again".to_owned(),
        Ending::Unsettled => "not confirmed: the trials allowed were used up before the bound was kept".to_owned(),
    }
}

/// What was found about each case, a sentence each.
pub fn sentences(lines: &[CaseLine]) -> Vec<String> {
    lines.iter().map(|line| sentence(&line.finding)).collect()
}

fn sentence(line: &LoadLine) -> String {
    let lead = if line.levels.is_empty() { String::new() } else { format!("{}: ", show_levels(&line.levels)) };
    let bound = format!("{} of response time below {}", Target::Quantile(line.quantile), show_seconds(line.below_s));
    let Some(rate) = line.arrival_rate_per_s else {
        // That there is none is said already.
        let why = line.outcome.strip_prefix("no line: ").map(|why| format!(": {why}"));
        return format!("{lead}no load line for {bound}{}", why.unwrap_or_else(|| format!("; {}", line.outcome)));
    };
    let interval = line.ci95.map(|[low, high]| format!(" [{}, {}]", show_number(low), show_number(high)));
    let kept = if line.verified { "the load line is" } else { "the load line may be near" };
    // That a line is found is said already; what was seen there is the evidence, behind a colon.
    let found = line.outcome.strip_prefix("found: ").map(|seen| format!(": {seen}"));
    let outcome = found.unwrap_or_else(|| format!("; {}", line.outcome));
    format!("{lead}{kept} {}/s{}, with {bound}{outcome}", show_number(rate), interval.unwrap_or_default())
}
