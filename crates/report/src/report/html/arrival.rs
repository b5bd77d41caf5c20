//! Draws response time against arrival rate: measured points with their intervals, fitted curves, and the load line, as in figures 6 to 8
//! of Kihl et al. (2011).
//!
//! Item: [`SECTION`]. Invariant: a curve is drawn only for a model that the points do not reject, and everything left out of a plot is
//! mentioned beside it.

use maud::{Markup, html};

use super::plot::{Line, Mark, Plot, Point, Stroke, marker, style_class};
use super::scale::Scale;
use super::section::Section;
use super::unit::Unit;
use crate::finding::{Findings, LoadLine};
use crate::queueing::fit::{Fit, FitReport, Request, fit};
use crate::queueing::{Points, Queue, Surroundings, Target, Timer};
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::report::growth::{Loaded, Series, series};
use crate::report::points::curves;
use crate::statistics::summary::{Interval, t_interval};
use crate::units::{Carried, NS_PER_S, show_number, show_seconds};

/// The number of arrival rates at which a curve is calculated.
const STEPS: usize = 80;
/// Sizes of a plot that stands alone, and of one beside others.
const WIDE: (f64, f64) = (1000.0, 420.0);
const HALF: (f64, f64) = (520.0, 340.0);

/// The section, shown if the arrival rate was varied.
pub const SECTION: Section = Section {
    id: "arrival-rate",
    title: |_| "Arrival rate",
    is_shown: |page| page.has_cases() && series(page.groups).iter().any(|series| series.cases.len() > 1),
    draw: |page| section(page.findings, page.groups),
};

fn section(findings: &Findings, groups: &[CaseTrials<'_>]) -> Markup {
    let all: Vec<Series<'_, '_>> = series(groups).into_iter().filter(|series| series.cases.len() > 1).collect();
    let goal = findings.load_lines.first().map(|line| line.quantile);
    let points = curves(groups, Timer::Intended, goal, &Default::default());
    let figures: Vec<(Markup, Vec<String>)> = all
        .iter()
        .map(|series| {
            let line = findings.load_lines.iter().find(|line| line.levels == series.levels);
            let points = points.iter().find(|curve| curve.levels == series.levels).map(|curve| &curve.points);
            let size = if all.len() == 1 { WIDE } else { HALF };
            figure(series, points.unwrap_or(&Points::default()), line, goal, size)
        })
        .collect();
    html! {
        section #arrival-rate {
            h2 { "Response time against arrival rate" }
            p.about {
                "Measured points are of all trials together, their whiskers 95 % intervals over trials; dashed are the curves of the \
                 model that fits best. Rates at which the database was overloaded are in the table and not drawn: there, response \
                 time grows with the length of the trial."
            }
            (legend(goal))
            div class=(if all.len() == 1 { "wide" } else { "pairs" }) { @for (plot, _) in &figures { (plot) } }
            ul.notes { @for note in figures.iter().flat_map(|(_, notes)| notes) { li { (note) } } }
            (table(&all, goal))
        }
    }
}

/// Returns the figures that are drawn: the mean, and quantiles.
fn targets(goal: Option<f64>) -> Vec<Target> {
    let mut quantiles = vec![0.5, 0.9, 0.99];
    quantiles.extend(goal.filter(|goal| quantiles.iter().all(|known: &f64| (known - goal).abs() > 1e-9)));
    quantiles.sort_by(f64::total_cmp);
    [Target::Mean].into_iter().chain(quantiles.into_iter().map(Target::Quantile)).collect()
}

fn legend(goal: Option<f64>) -> Markup {
    html! {
        ul.legend {
            @for (style, target) in targets(goal).iter().enumerate() {
                li {
                    svg.key viewBox="0 0 26 12" aria-hidden="true" {
                        g class=(style_class(style)) { path.line.dashed d="M0 6H26" {} path.marker d=(marker(style, 13.0, 6.0)) {} }
                    }
                    (target)
                }
            }
        }
    }
}

/// Returns the value of a case with its interval over trials.
fn value(case: &Loaded<'_, '_>, target: Target) -> (f64, Option<[f64; 2]>) {
    let each = case.trials.iter().map(|trial| trial.response_times());
    let figure = |all: crate::histogram::Histogram| match target {
        Target::Mean => all.mean_ns() / NS_PER_S,
        Target::Quantile(quantile) => all.quantile_ns(quantile) as f64 / NS_PER_S,
    };
    let values: Vec<f64> = each.map(figure).collect();
    let all = match target {
        Target::Mean => values.iter().sum::<f64>() / values.len().max(1) as f64,
        Target::Quantile(quantile) => case.quantile_s(quantile),
    };
    // A time is positive; an interval of few trials may reach below zero, which a logarithmic scale cannot show.
    let interval = t_interval(&values, 0.95).map(|Interval { low, high }| [low.max(0.2 * all), high.min(5.0 * all)]);
    (all, interval)
}

fn figure(
    series: &Series<'_, '_>,
    points: &Points,
    line: Option<&LoadLine>,
    goal: Option<f64>,
    size: (f64, f64),
) -> (Markup, Vec<String>) {
    let name = if series.levels.is_empty() { String::new() } else { show_levels(&series.levels) };
    let shown: Vec<&Loaded<'_, '_>> = series.cases.iter().filter(|case| !case.is_overloaded).collect();
    let line_rate = line.and_then(|line| line.arrival_rate_per_s);
    let rate_max = shown.iter().map(|case| case.rate_per_s()).chain(line_rate).fold(0.0, f64::max);
    let mut lines = Vec::new();
    let mut notes = Vec::new();
    let mut values = Vec::new();
    for (style, target) in targets(goal).into_iter().enumerate() {
        let measured = measured_line(&shown, target, style);
        let highest = measured.points.iter().map(|point| point.y).fold(0.0, f64::max);
        values.extend(
            measured.points.iter().flat_map(|point| [Some(point.y), point.interval.map(|[_, high]| high)]).flatten(),
        );
        values.extend(measured.points.iter().filter_map(|point| point.interval.map(|[low, _]| low)));
        let fitted = fit(points, &Request { target, ..Request::default() }).ok();
        if let Some(best) = fitted.as_ref().and_then(best_of) {
            let workers = points.0.iter().find_map(|point| point.workers);
            let queue = best.queue(&Surroundings { workers, ..Surroundings::default() });
            lines.extend(queue.map(|queue| curve(&*queue, target, style, rate_max * 1.1, highest * 1.6)));
        }
        if let Some(report) = fitted.filter(|report| target == Target::Mean || report.best.is_none()) {
            let lead = if name.is_empty() { String::new() } else { format!("{name}, ") };
            notes.push(format!("{lead}{target}: {}", report.verdict));
        }
        lines.push(measured);
    }
    let mut marks = Vec::new();
    if let Some(line) = line {
        let target = Target::Quantile(line.quantile);
        marks.push(Mark::Level(line.below_s, format!("{target} below {}", show_seconds(line.below_s))));
        values.push(line.below_s);
        let label = |rate: f64| format!("load line {}/s", show_number(rate));
        marks.extend(line.arrival_rate_per_s.map(|rate| Mark::Upright(rate, line.ci95, label(rate))));
    }
    let plot = Plot {
        title: if name.is_empty() { "Response time".to_owned() } else { name },
        description: "Response time against arrival rate: measured points and fitted curves.".to_owned(),
        size,
        x: Scale::from_zero(rate_max * 1.1, Unit::Rate("/s")),
        x_title: "arrivals per second".to_owned(),
        y: Scale::of_times(values.into_iter()),
        lines,
        marks,
    };
    (plot.draw(), notes)
}

fn best_of(report: &FitReport) -> Option<&Fit> {
    report.fits.iter().find(|fit| report.best == Some(fit.model))
}

fn measured_line(cases: &[&Loaded<'_, '_>], target: Target, style: usize) -> Line {
    let point = |case: &&Loaded<'_, '_>| {
        let (y, interval) = value(case, target);
        let rate = case.rate_per_s();
        let carried = Carried::by(interval);
        let within = interval.map_or(String::new(), |ends| format!(" {}", carried.show_ends(ends, show_seconds)));
        let (at, time, n) = (show_number(rate), carried.show(y, show_seconds), case.trials.len());
        Point { x: rate, y, interval, tip: format!("{target} at {at}/s: {time}{within}, n = {n}") }
    };
    let points = cases.iter().map(point).filter(|point| point.y > 0.0).collect();
    Line { label: String::new(), style, points, band: Vec::new(), stroke: Stroke::Unjoined }
}

/// Returns the curve of a fitted model up to a rate, and no higher than a time.
fn curve(queue: &dyn Queue, target: Target, style: usize, rate_max: f64, time_max_s: f64) -> Line {
    let at = |step: usize| {
        let x = rate_max * step as f64 / STEPS as f64;
        let y = queue.figure_s(x, target).filter(|y| *y > 0.0 && *y <= time_max_s)?;
        Some(Point { x, y, interval: None, tip: String::new() })
    };
    let points = (1..=STEPS).map_while(at).collect();
    Line { label: String::new(), style, points, band: Vec::new(), stroke: Stroke::Dashed }
}

fn table(all: &[Series<'_, '_>], goal: Option<f64>) -> Markup {
    let targets = targets(goal);
    html! {
        details {
            summary { "Arrival rates as a table" }
            div.scroll { table {
                thead { tr {
                    th { "Case" }
                    @for heading in ["Arrival rate", "Offered/s", "Carried/s", "n"] { th.number { (heading) } }
                    @for target in &targets { th.number { (target) } }
                    th { "Load" }
                } }
                tbody { @for series in all { @for case in &series.cases { tr {
                    th scope="row" { (show_levels(&series.levels)) }
                    td { (show_number(case.rate_per_s())) }
                    td { (show_number(case.offered_per_s)) }
                    td { (case.carried_per_s.show_mean(show_number)) }
                    td { (case.trials.len()) }
                    @let least = if case.trials.iter().any(|trial| trial.abandoned() > 0) { "≥ " } else { "" };
                    @for target in &targets { td { (least) (show_seconds(value(case, *target).0)) } }
                    td { (if case.is_overloaded { "overloaded" } else { "carried" }) }
                } } } }
            } }
        }
    }
}
