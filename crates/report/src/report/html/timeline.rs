//! Shows the course of a trial in figures with one axis of time: throughput, response times, CPU, disk, and what the database reported.
//!
//! Item: [`SECTION`]. Invariant: a case is shown by one of its own trials, never by a mean of several.

use maud::{Markup, html};

use super::plot::{Line, Mark, Plot, Point, Stroke, keys};
use super::scale::{Scale, Tick};
use super::section::Section;
use super::unit::Unit;
use crate::imported::TimeKind;
use crate::measurement::{EventMeasurement, Measurement, Moment, Timeline, ToldUnit};
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;

/// The most cases that are shown: those with the most trials.
const CASES_MOST: usize = 3;
/// The size of a plot.
const SIZE: (f64, f64) = (1000.0, 190.0);
/// The most marks in the first plot for which names of events that the database told of are drawn.
const NAMED_MARKS_MOST: usize = 6;

/// A trial with its timeline.
type Shown<'m> = (&'m Measurement, &'m Timeline);

/// Returns the trials that are shown, in the order of their cases.
fn shown<'g, 'a>(groups: &'g [CaseTrials<'a>]) -> Vec<(&'g CaseTrials<'a>, Shown<'a>)> {
    let mut found: Vec<(usize, &CaseTrials<'_>, Shown<'_>)> = groups
        .iter()
        .enumerate()
        .filter_map(|(place, group)| {
            let mut trials: Vec<Shown<'_>> =
                group.valid().filter_map(|trial| Some((trial, trial.timeline.as_ref()?))).collect();
            let p99_s = |trial: &Measurement| trial.quantile_s(TimeKind::ResponseTime, 0.99).unwrap_or_default();
            trials.sort_by(|(a, _), (b, _)| p99_s(a).total_cmp(&p99_s(b)));
            let middle = trials.get(trials.len().saturating_sub(1) / 2)?;
            (middle.1.moments.len() > 1).then_some((place, group, *middle))
        })
        .collect();
    found.sort_by_key(|(place, group, _)| (std::cmp::Reverse(group.valid().count()), *place));
    found.truncate(CASES_MOST);
    found.sort_by_key(|(place, ..)| *place);
    found.into_iter().map(|(_, group, trial)| (group, trial)).collect()
}

/// The section, shown if there is a trial with a timeline.
pub const SECTION: Section = Section {
    id: "timeline",
    title: |_| "Within a trial",
    is_shown: |page| !shown(page.groups).is_empty(),
    draw: |page| section(page.groups),
};

fn section(groups: &[CaseTrials<'_>]) -> Markup {
    let shown = shown(groups);
    html! {
        section #timeline {
            h2 { "Within a trial" }
            p.about {
                "One trial of a case, the one whose p99 is in the middle"
                @if groups.len() > shown.len() { "; cases with the most trials" }
                ". What the database told of itself stands below what was seen of it from outside."
                @if shown.iter().any(|(_, (trial, _))| trial.events.is_some()) { " The study's events are shaded from their beginning to their end." }
            }
            @for (group, trial) in &shown {
                h3 { @if group.case.levels.is_empty() { "the only case" } @else { (show_levels(&group.case.levels)) } }
                @for plot in aligned(plots(*trial)) { div.wide { (plot) } }
            }
        }
    }
}

/// Draws the plots with equal margins: at their left for the longest number, and at their right without names, which are below.
fn aligned(plots: Vec<Plot>) -> Vec<Markup> {
    let length = |tick: &Tick| tick.label.chars().count();
    let longest = plots.iter().flat_map(|plot| plot.y.ticks.iter().map(length)).max().unwrap_or(0);
    let draw = |mut plot: Plot| {
        let named: Vec<Line> = plot.lines.iter().filter(|line| !line.label.is_empty()).cloned().collect();
        plot.lines.iter_mut().for_each(|line| line.label.clear());
        // A figure space is as wide as a digit.
        for tick in plot.y.ticks.iter_mut().filter(|tick| !tick.label.is_empty()) {
            tick.label = format!("{}{}", "\u{2007}".repeat(longest - tick.label.chars().count()), tick.label);
        }
        html! {
            (plot.draw())
            @if !named.is_empty() { (keys(named.iter())) }
        }
    };
    plots.into_iter().map(draw).collect()
}

fn plots((trial, timeline): Shown<'_>) -> Vec<Plot> {
    let end_s = trial.measured_s.max(timeline.moments.last().map_or(0.0, |moment| moment.at_s));
    let x = Scale::to_end(end_s, Unit::Seconds);
    let marks = [told_events(timeline), done_on_purpose(trial)].concat();
    let mut plots = Vec::new();
    let mut put = |title: &str, description: &str, y: Scale, lines: Vec<Line>| {
        let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        if lines.is_empty() {
            return;
        }
        let is_first = plots.is_empty();
        let mark = |Happening { at_s, lasts_s, name }: &Happening| {
            let band = lasts_s.map(|lasts_s| [*at_s, at_s + lasts_s]);
            let is_named = is_first && (band.is_some() || marks.len() <= NAMED_MARKS_MOST);
            Mark::Upright(*at_s, band, if is_named { name.clone() } else { String::new() })
        };
        plots.push(Plot {
            title: title.to_owned(),
            description: description.to_owned(),
            size: SIZE,
            x: x.clone(),
            x_title: format!("time into the measured phase, {}", x.unit),
            y,
            lines,
            marks: marks.iter().map(mark).collect(),
        });
    };
    let rates = rates(trial);
    put(
        "Throughput",
        "Operations completed per second.",
        Scale::from_zero(largest(&rates), Unit::Rate("operations/s")),
        vec![line("", 0, rates)],
    );
    let times = times(trial);
    let all_s: Vec<f64> = times.iter().flat_map(|line| &line.points).map(|point| point.y).collect();
    put("Response time", "p50, p99 and the slowest, logarithmic.", Scale::of_times(all_s.into_iter()), times);
    let of = |figure: &dyn Fn(&Moment) -> Option<f64>| -> Vec<(f64, f64)> {
        timeline.moments.iter().filter_map(|moment| Some((moment.at_s, figure(moment)?))).collect()
    };
    let cpu = [("server", of(&|moment| moment.server_cpu)), ("loadline", of(&|moment| Some(moment.client_cpu)))];
    put("CPU", "CPUs kept busy.", scale(&cpu, Unit::Cpus), named(&cpu));
    for unit in [ToldUnit::BytesPerSecond, ToldUnit::Share, ToldUnit::PerSecond, ToldUnit::Count] {
        let mut figures: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
        if unit == ToldUnit::BytesPerSecond {
            figures.push(("all disks", of(&|moment| moment.disk_written_bytes_per_s)));
        }
        for (place, figure) in timeline.figures.iter().enumerate().filter(|(_, figure)| figure.unit == unit) {
            figures.push((&figure.name, of(&|moment| *moment.told.get(place)?)));
        }
        // Events that never happened need no room.
        figures.retain(|(_, points)| points.iter().any(|(_, value)| *value > 0.0));
        let (title, description, of_axis) = match unit {
            ToldUnit::BytesPerSecond => ("Written", "Bytes written per second.", Unit::BytesPerSecond),
            ToldUnit::Share => {
                ("Answered from memory", "Share of the pages asked for that were in the database's cache.", Unit::Share)
            }
            ToldUnit::PerSecond => {
                ("Counted by the database", "What the database counts, per second.", Unit::Rate("per second"))
            }
            ToldUnit::Count | ToldUnit::Events => ("Waiting", "Sessions that wait.", Unit::Rate("sessions")),
        };
        put(title, description, scale(&figures, of_axis), named(&figures));
    }
    plots
}

/// Returns operations per second, at the ends of intervals.
fn rates(trial: &Measurement) -> Vec<(f64, f64)> {
    let mut begin_s = 0.0;
    let rate = |interval: &crate::measurement::IntervalMeasurement| {
        let seconds = interval.end_s - begin_s;
        begin_s = interval.end_s;
        (seconds > 1e-3).then(|| (interval.end_s, interval.completed as f64 / seconds))
    };
    trial.series.iter().filter_map(rate).collect()
}

/// Returns response times, at the ends of intervals in which something was answered.
fn times(trial: &Measurement) -> Vec<Line> {
    let answered = || trial.series.iter().filter(|interval| interval.completed > 0);
    let quantile = |place: usize| -> Vec<(f64, f64)> {
        answered().filter_map(|interval| Some((interval.end_s, interval.response_time_quantiles_s?[place]))).collect()
    };
    let slowest = answered().map(|interval| (interval.end_s, interval.response_time_max_s)).collect();
    vec![line("p50", 0, quantile(0)), line("p99", 1, quantile(1)), line("slowest", 2, slowest)]
}

/// Something that happened at a moment.
#[derive(Clone)]
struct Happening {
    at_s: f64,
    /// How long it lasted; `None` if that is not known.
    lasts_s: Option<f64>,
    name: String,
}

/// Returns the events of the study.
fn done_on_purpose(trial: &Measurement) -> Vec<Happening> {
    let events = trial.events.iter().flat_map(|seen| &seen.events);
    let of = |event: &EventMeasurement| Happening {
        at_s: event.start_s,
        lasts_s: Some(event.away_s),
        name: event.what.clone(),
    };
    events.map(of).collect()
}

/// Returns the events that the database reported.
fn told_events(timeline: &Timeline) -> Vec<Happening> {
    let mut found = Vec::new();
    for (place, figure) in timeline.figures.iter().enumerate().filter(|(_, figure)| figure.unit == ToldUnit::Events) {
        let happened =
            |moment: &&Moment| moment.told.get(place).is_some_and(|count| count.is_some_and(|count| count >= 0.5));
        let of = |moment: &Moment| Happening { at_s: moment.at_s, lasts_s: None, name: figure.name.clone() };
        found.extend(timeline.moments.iter().filter(happened).map(of));
    }
    found
}

fn largest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
}

fn scale(figures: &[(&str, Vec<(f64, f64)>)], unit: Unit) -> Scale {
    Scale::from_zero(figures.iter().map(|(_, points)| largest(points)).fold(0.0, f64::max), unit)
}

fn named(figures: &[(&str, Vec<(f64, f64)>)]) -> Vec<Line> {
    figures.iter().enumerate().map(|(style, (name, points))| line(name, style, points.clone())).collect()
}

fn line(label: &str, style: usize, points: Vec<(f64, f64)>) -> Line {
    let points = points.into_iter().map(|(x, y)| Point { x, y, interval: None, tip: String::new() }).collect();
    Line { label: label.to_owned(), style: style % 6, points, band: Vec::new(), stroke: Stroke::Solid }
}
