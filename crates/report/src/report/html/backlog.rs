//! Draws the backlog over time: how far an overloaded database falls behind within a trial.
//!
//! Item: [`SECTION`]. Invariant: the backlog is the number of scheduled operations minus completed and failed ones, counted from the start
//! of the measured phase, and never negative.

use maud::{Markup, html};
use serde_json::Value;

use super::plot::{Line, Plot, Point, Stroke};
use super::scale::Scale;
use super::section::Section;
use super::unit::Unit;
use crate::measurement::Measurement;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::{short_setting, show_level, show_levels};
use crate::report::growth::{Loaded, series};
use crate::statistics::summary::median;
use crate::trial::Levels;
use crate::units::show_number;

const SMALL: (f64, f64) = (340.0, 230.0);
/// The most points in time at which the trials of a case are combined.
const STEPS: usize = 50;

/// Returns cases with a backlog: overloaded ones, and those whose backlog exceeded a tenth of a second's arrivals by more than 10 operations.
fn behind<'g, 'a>(groups: &'g [CaseTrials<'a>]) -> Vec<(Loaded<'g, 'a>, Vec<Step>)> {
    let cases = series(groups).into_iter().flat_map(|series| series.cases);
    let with_steps = cases.map(|case| {
        let steps = steps(&case.trials);
        (case, steps)
    });
    with_steps
        .filter(|(case, steps)| {
            let most = steps.iter().map(|step| step.high).fold(0.0, f64::max);
            !steps.is_empty() && (case.is_overloaded || most > 0.1 * case.offered_per_s + 10.0)
        })
        .collect()
}

/// The section, shown if a database did not keep up.
pub const SECTION: Section = Section {
    id: "backlog",
    title: |_| "Backlog",
    is_shown: |page| page.has_cases() && !behind(page.groups).is_empty(),
    draw: |page| section(page.groups),
};

fn section(groups: &[CaseTrials<'_>]) -> Markup {
    let cases = behind(groups);
    html! {
        section #backlog {
            h2 { "Backlog over time" }
            p.about {
                "Operations that had arrived and were not answered yet, for every case in which the database fell behind: the line is \
                 the median of the trials, the band reaches from the least to the most. A straight rise is overload; a rise \
                 that falls again is a stall."
            }
            div.panels { @for (case, steps) in &cases { (panel(case, steps)) } }
            details {
                summary { "Backlog as a table" }
                div.scroll { table {
                    thead { tr { th { "Case" } th.number { "Largest backlog" } th.number { "At the end" } th.number { "Abandoned" } } }
                    tbody { @for (case, steps) in &cases { tr {
                        th scope="row" { (show_levels(&case.group.case.levels)) }
                        td { (show_number(steps.iter().map(|step| step.high).fold(0.0, f64::max))) }
                        td { (steps.last().map_or("-".to_owned(), |step| show_number(step.median))) }
                        td { (show_number(case.trials.iter().map(|trial| trial.abandoned()).sum::<u64>() as f64)) }
                    } } }
                } }
            }
        }
    }
}

/// The backlog at one point in time, over all trials of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    at_s: f64,
    low: f64,
    median: f64,
    high: f64,
}

/// Returns the backlog of a trial after each interval.
fn backlog(trial: &Measurement) -> Vec<(f64, f64)> {
    let mut waiting = 0.0;
    let after = |interval: &crate::measurement::IntervalMeasurement| {
        waiting += interval.scheduled as f64 - (interval.completed + interval.failed) as f64;
        (interval.end_s, f64::max(waiting, 0.0))
    };
    trial.series.iter().map(after).collect()
}

fn steps(trials: &[&Measurement]) -> Vec<Step> {
    let all: Vec<Vec<(f64, f64)>> = trials.iter().map(|trial| backlog(trial)).collect();
    let longest = trials.iter().map(|trial| trial.measured_s).fold(0.0, f64::max);
    let count = all.iter().map(Vec::len).max().unwrap_or(0).min(STEPS);
    let step = |place: usize| {
        let at_s = longest * place as f64 / count as f64;
        // The last interval that ended by then.
        let value = |trial: &Vec<(f64, f64)>| {
            trial.iter().rev().find(|(end_s, _)| *end_s <= at_s * 1.000_001).map(|(_, behind)| *behind)
        };
        let values: Vec<f64> = all.iter().filter_map(value).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        Some(Step { at_s, low, median: median(&values)?, high })
    };
    (1..=count).filter_map(step).collect()
}

/// Formats the levels of a case in short: numbers with the name of their setting, words without.
fn short_title(levels: &Levels) -> String {
    let short = |(setting, level): (&String, &Value)| match level {
        Value::String(text) => text.clone(),
        other => format!("{} {}", short_setting(setting), show_level(other)),
    };
    if levels.is_empty() { show_levels(levels) } else { levels.iter().map(short).collect::<Vec<_>>().join(", ") }
}

fn panel(case: &Loaded<'_, '_>, steps: &[Step]) -> Markup {
    let highest = steps.iter().map(|step| step.high).fold(0.0, f64::max);
    let longest = steps.last().map_or(0.0, |step| step.at_s);
    let x = Scale::to_end(longest, Unit::Seconds);
    let point = |step: &Step| Point { x: step.at_s, y: step.median, interval: None, tip: String::new() };
    Plot {
        title: short_title(&case.group.case.levels),
        description: "Operations that had arrived and were not answered, over time.".to_owned(),
        size: SMALL,
        x_title: format!("time into the measured phase, {}", x.unit),
        x,
        y: Scale::from_zero(highest, Unit::Rate("operations")),
        lines: vec![Line {
            label: String::new(),
            style: 1,
            points: steps.iter().map(point).collect(),
            band: steps.iter().map(|step| (step.at_s, step.low, step.high)).collect(),
            stroke: Stroke::Solid,
        }],
        marks: Vec::new(),
    }
    .draw()
}
