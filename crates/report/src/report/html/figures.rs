//! Draws the figures of findings: throughput, response times, resources.
//!
//! Main type: [`Quantity`], the subject of one plot. Invariant: the table under a figure has every number that it draws, and panels of the
//! same quantity share their scale unless one would be a flat line.

use std::collections::HashMap;

use maud::{Markup, html};

use super::bars::{Bar, Bars, absent};
use super::drawing::CUT_OFF;
use super::frame::{Frame, Placed};
use super::plot::{Line, Plot, Point, Stroke, marker, style_class};
use super::scale::Scale;
use super::unit::Unit;
use crate::finding::{CaseFinding, ResourceFinding, TimeFinding};
use crate::histogram::Histogram;
use crate::report::case_trials::time_finding;
use crate::report::factors::{LEVEL_LONGEST, in_short, short_setting, show_level};
use crate::trial::Levels;
use crate::units::Carried;

/// A value with the ends of its interval, if there is one.
pub type Value = (f64, Option<[f64; 2]>);

/// A function that reads the value of a case.
pub type Reading<'a> = Box<dyn Fn(&CaseFinding) -> Option<Value> + 'a>;

/// The quantity that a plot shows for each case.
pub struct Quantity<'a> {
    /// The name of the quantity.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The function that reads a case's value; for `None` nothing is drawn.
    pub of: Reading<'a>,
}

/// The sizes of drawings.
const WIDE: (f64, f64) = (1000.0, 400.0);
const SMALL: (f64, f64) = (340.0, 230.0);
/// The longest name of a series that is written into a small panel, in characters.
const LABEL_LONGEST: usize = 12;
/// The longest name of an alternative beside its bar in a small panel, in characters.
const BAR_NAME_LONGEST: usize = 22;
/// The longest name in a legend, in characters.
const LEGEND_LONGEST: usize = 60;
/// The ratio of the panels' largest values above which each panel has its own scale, so that none is a flat line.
const OWN_SCALE_FROM: f64 = 4.0;

impl Quantity<'_> {
    /// Returns the largest value or end of an interval among these cases; 0 without cases.
    fn largest<'c>(&self, cases: impl Iterator<Item = &'c Placed<'c>>) -> f64 {
        cases
            .filter_map(|placed| (self.of)(placed.case))
            .map(|(y, i)| i.map_or(y, |[_, high]| high.max(y)))
            .fold(0.0, f64::max)
    }

    /// Draws one panel of the frame.
    fn draw(&self, frame: &Frame<'_>, panel: usize, title: &str, scale: Scale, size: (f64, f64)) -> Markup {
        let series = || (0..frame.series.len()).map(|series| (series, frame.line(series, panel)));
        let axis = match &frame.axis {
            Some(axis) => axis.setting.clone(),
            None => return self.draw_bars(frame, panel, title, scale, size.0),
        };
        let lines = series().map(|(series, cases)| Line {
            label: direct_label(&frame.series, series, size),
            style: series,
            points: cases.iter().filter_map(|placed| self.point(placed, &frame.series[series], &axis)).collect(),
            band: Vec::new(),
            stroke: Stroke::Solid,
        });
        let plot = Plot {
            title: title.to_owned(),
            description: format!("{} against {axis}, a line per alternative.", self.title),
            size,
            x: Scale::of_levels(&frame.levels()),
            x_title: axis.clone(),
            y: scale,
            lines: lines.filter(|line| !line.points.is_empty()).collect(),
            marks: Vec::new(),
        };
        plot.draw()
    }

    fn point(&self, placed: &Placed<'_>, series: &str, axis: &str) -> Option<Point> {
        let (y, interval) = (self.of)(placed.case)?;
        let level = placed.case.levels.get(axis).map(show_level).unwrap_or_default();
        let lead = if series.is_empty() { String::new() } else { format!("{series}, ") };
        let n = placed.case.valid_trials;
        let tip = format!("{lead}{} {level}: {}, n = {n}", short_setting(axis), self.show((y, interval)));
        Some(Point { x: placed.x, y, interval, tip })
    }

    fn draw_bars(&self, frame: &Frame<'_>, panel: usize, title: &str, scale: Scale, width: f64) -> Markup {
        let bar = |placed: &Placed<'_>| {
            let value = (self.of)(placed.case);
            let name = &frame.series[placed.series];
            let number = width < WIDE.0 && has_long_names(&frame.series);
            let label = if number { (placed.series + 1).to_string() } else { name.clone() };
            Bar {
                label: if name.is_empty() { "the only case".to_owned() } else { label },
                style: placed.series,
                value: value.map(|(y, _)| y),
                interval: value.and_then(|(_, interval)| interval),
                text: value.map_or_else(
                    || absent(placed.case),
                    |(y, ends)| {
                        let known = ends.map(|[low, high]| [low.max(0.0), high]);
                        // A bar without an interval is not an estimate: a resource, or a quantile of all operations.
                        if known.is_some() { Carried::by(known).show(y, |y| self.bare(y)) } else { self.bare(y) }
                    },
                ),
            }
        };
        let bars = Bars {
            title: title.to_owned(),
            description: format!("{}, a bar per alternative.", self.title),
            width,
            scale,
            bars: frame.cases.iter().filter(|placed| placed.panel == panel).map(bar).collect(),
        };
        bars.draw()
    }

    /// Formats a value with its interval, for tips.
    fn show(&self, (y, interval): Value) -> String {
        let carried = Carried::by(interval.map(|[low, high]| [low.max(0.0), high]));
        let mean = carried.show(y, |y| self.unit.show(y));
        let cut = |[low, high]: [f64; 2]| {
            if low == CUT_OFF {
                format!("[0 (cut off), {}]", carried.show(high, |end| self.bare(end)))
            } else {
                carried.show_ends([low, high], |end| self.bare(end))
            }
        };
        interval.map_or(mean.clone(), |ends| format!("{mean} {}", cut(ends)))
    }

    fn bare(&self, value: f64) -> String {
        match self.unit {
            Unit::Rate(_) => crate::units::show_number(value),
            unit => unit.show(value),
        }
    }
}

/// Returns the quantity drawn as throughput: records if a transaction has several, operations otherwise.
pub fn throughput_quantity(cases: &[CaseFinding]) -> Quantity<'static> {
    let batched = cases.iter().any(CaseFinding::is_batched);
    let (title, unit) = if batched { ("Records", "records/s") } else { ("Throughput", "operations/s") };
    let of = move |case: &CaseFinding| {
        let estimate = if batched { &case.records_per_s } else { &case.throughput_per_s };
        let low = |low: f64| if estimate.cut_off { CUT_OFF } else { low };
        estimate.mean.map(|mean| (mean, estimate.ci95.map(|[end, high]| [low(end), high])))
    };
    Quantity { title: title.to_owned(), unit: Unit::Rate(unit), of: Box::new(of) }
}

/// Draws throughput in all panels.
pub fn throughput(frame: &Frame<'_>, cases: &[CaseFinding]) -> Markup {
    panels(frame, &throughput_quantity(cases))
}

/// Draws a quantity in all panels: one plot if there is one panel, otherwise small ones.
pub fn panels(frame: &Frame<'_>, quantity: &Quantity<'_>) -> Markup {
    let largest: Vec<f64> = (0..frame.panels.len())
        .map(|panel| quantity.largest(frame.cases.iter().filter(|placed| placed.panel == panel)))
        .collect();
    let over_all = largest.iter().copied().fold(0.0, f64::max);
    let shared = largest.iter().all(|own| *own >= over_all / OWN_SCALE_FROM);
    let scale = |panel: usize| Scale::from_zero(if shared { over_all } else { largest[panel] }, quantity.unit);
    if frame.panels.len() == 1 {
        return html! { div.wide { (quantity.draw(frame, 0, &quantity.title, scale(0), WIDE)) } };
    }
    html! {
        @if !shared { p.about { "Every panel has a scale of its own." } }
        (legend(frame))
        div.panels {
            @for (panel, title) in frame.panels.iter().enumerate() { (quantity.draw(frame, panel, title, scale(panel), SMALL)) }
        }
    }
}

/// Draws median, p90 and p99 of the response times on one scale. `times` returns the merged histogram of a case.
pub fn response_times(frame: &Frame<'_>, times: &dyn Fn(&CaseFinding) -> Histogram) -> Markup {
    let figures: HashMap<&str, TimeFinding> =
        frame.cases.iter().map(|placed| (placed.case.id.as_str(), time_finding(&times(placed.case)))).collect();
    let find = |case: &CaseFinding| figures.get(case.id.as_str());
    let quantity = |title: &str, time: fn(&TimeFinding) -> Option<f64>| Quantity {
        title: title.to_owned(),
        unit: Unit::Seconds,
        of: Box::new(move |case| Some((find(case).and_then(time)?, None))),
    };
    let quantities = [
        quantity("Median", |times| times.p50),
        quantity("90th percentile (p90)", |times| times.p90),
        quantity("99th percentile (p99)", |times| times.p99),
    ];
    let panel = frame.best_panel;
    let shown = || frame.cases.iter().filter(move |placed| placed.panel == panel);
    let values = shown()
        .flat_map(|placed| quantities.iter().filter_map(|quantity| Some((quantity.of)(placed.case)?.0)))
        .collect::<Vec<f64>>();
    let scale = || match frame.axis {
        Some(_) => Scale::of_times(values.iter().copied()),
        None => Scale::from_zero(values.iter().copied().fold(0.0, f64::max), Unit::Seconds),
    };
    html! {
        (legend(frame))
        div.panels {
            @for quantity in &quantities { (quantity.draw(frame, panel, &quantity.title, scale(), SMALL)) }
        }
    }
}

/// A figure of resource use: name, unit, value.
type Resource = (&'static str, Unit, fn(&ResourceFinding) -> f64);

/// The resources that are drawn, first those of figures 5.4 to 5.7 of Ruottinen (2015) in their order, then those that are not in it.
pub const RESOURCES: [Resource; 12] = [
    ("CPU in the kernel", Unit::Share, |used| used.system),
    ("CPU waiting for disks", Unit::Share, |used| used.iowait),
    ("CPU in user mode", Unit::Share, |used| used.user),
    ("CPU idle", Unit::Share, |used| used.idle),
    ("Write requests to disks", Unit::Rate("requests/s"), |used| used.write_requests_per_s),
    ("Written to disks", Unit::BytesPerSecond, |used| used.written_bytes_per_s),
    ("Memory in use", Unit::Bytes, |used| used.memory_used_bytes),
    ("Memory of the server", Unit::Bytes, |used| used.server_memory_bytes),
    ("CPUs busy with the server", Unit::Cpus, |used| used.server_cpu),
    ("CPUs busy with loadline", Unit::Cpus, |used| used.client_cpu),
    ("Network received", Unit::BitsPerSecond, |used| 8.0 * used.received_bytes_per_s),
    ("Context switches", Unit::Rate("switches/s"), |used| used.context_switches_per_s),
];

/// Draws all resources, each with its own scale.
pub fn resources(frame: &Frame<'_>) -> Markup {
    let panel = frame.best_panel;
    let quantities = RESOURCES.map(|(title, unit, figure)| Quantity {
        title: title.to_owned(),
        unit,
        of: Box::new(move |case| Some((figure(case.resources.as_ref()?), None))),
    });
    html! {
        (legend(frame))
        div.panels {
            @for quantity in &quantities {
                @let largest = quantity.largest(frame.cases.iter().filter(|placed| placed.panel == panel));
                // An embedded database has no server.
                @if largest > 0.0 || !quantity.title.contains("the server") {
                    (quantity.draw(frame, panel, &quantity.title, Scale::from_zero(largest, quantity.unit), SMALL))
                }
            }
        }
    }
}

/// Returns the name at a line's end; empty in small panels if names are so long that they would leave no room for the line.
pub fn direct_label(series: &[String], place: usize, size: (f64, f64)) -> String {
    let longest = series.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    if size.0 < WIDE.0 && longest > LABEL_LONGEST { String::new() } else { series[place].clone() }
}

/// Returns whether bars in small panels have numbers instead of names, because names would leave no room.
fn has_long_names(series: &[String]) -> bool {
    series.iter().any(|name| name.chars().count() > BAR_NAME_LONGEST)
}

/// Returns the marker and name of each series; nothing if there is only one, or if bars have their names beside them.
pub fn legend(frame: &Frame<'_>) -> Markup {
    let series = &frame.series;
    html! {
        @if series.len() > 1 && frame.axis.is_none() && has_long_names(series) {
            ul.legend {
                @for (place, name) in series.iter().enumerate() {
                    li {
                        svg.key viewBox="0 0 26 12" aria-hidden="true" { g class=(style_class(place)) { rect.bar width="26" height="12" {} } }
                        (place + 1) ": " span title=(name) { (in_short(name, LEGEND_LONGEST)) }
                    }
                }
            }
        }
        @if series.len() > 1 && frame.axis.is_some() {
            ul.legend {
                @for (place, name) in series.iter().enumerate() {
                    li {
                        svg.key viewBox="0 0 26 12" aria-hidden="true" {
                            g class=(style_class(place)) {
                                path.line d="M0 6H26" {}
                                path.marker d=(marker(place, 13.0, 6.0)) {}
                            }
                        }
                        span title=(name) { (in_short(name, LEGEND_LONGEST)) }
                    }
                }
            }
        }
    }
}

/// Returns a level in a table: shortened in its middle if it is long, with the whole level as a title.
pub fn level_cell(level: &str) -> Markup {
    let short = in_short(level, LEVEL_LONGEST);
    html! { @if short == level { th scope="row" { (level) } } @else { th scope="row" title=(level) { (short) } } }
}

/// Returns a folded table: levels first, then these columns.
pub fn folded_table(
    summary: &str,
    cases: &[CaseFinding],
    headings: &[String],
    row: impl Fn(&CaseFinding) -> Vec<String>,
) -> Markup {
    let mut settings: Vec<&String> = Vec::new();
    for setting in cases.iter().flat_map(|case| case.levels.keys()) {
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let level = |levels: &Levels, setting: &str| levels.get(setting).map(show_level).unwrap_or_default();
    html! {
        details {
            summary { (summary) }
            div.scroll {
                table {
                    thead { tr {
                        @for setting in &settings { th { (setting) } }
                        @for heading in headings { th.number { (heading) } }
                    } }
                    tbody {
                        @for case in cases {
                            tr {
                                @for setting in &settings { (level_cell(&level(&case.levels, setting))) }
                                @for field in row(case) { td { (field) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
