//! Shows records on their way through a recorder: figure 5.30 of Ruottinen 2015 and a table. Items: [`OF_UPLOADS`], [`OF_RECORDS`].
//!
//! Invariant: nothing is shown if no study asked for it.

use maud::{Markup, html};

use super::figures::{Quantity, panels};
use super::frame::{Frame, Placed};
use super::plot::{Line, Plot, Point, Stroke};
use super::scale::Scale;
use super::section::{Page, Section};
use super::unit::Unit;
use crate::finding::{CaseFinding, Estimate, Findings};
use crate::report::factors::short_setting;
use crate::report::instruments::recorded::{HEADINGS, rows};
use crate::report::instruments::{recorders, uploads};
use crate::units::Carried;

/// The size of each of the two plots.
const SIZE: (f64, f64) = (1000.0, 320.0);
/// The most lines in a plot; with more, each panel is a plot of its own.
const LINES_MOST: usize = 8;

/// The section if the study is about uploads, in front of all others.
pub const OF_UPLOADS: Section = Section {
    id: "recorded",
    title: |_| "Through the recorder",
    is_shown: |page| has_recorded(page) && has_uploads(page),
    draw: |page| section(&page.frame, page.findings),
};

/// The section if the study is about records.
pub const OF_RECORDS: Section = Section { is_shown: |page| has_recorded(page) && !has_uploads(page), ..OF_UPLOADS };

fn has_recorded(page: &Page<'_>) -> bool {
    page.cases().iter().any(|case| case.recorded.is_some())
}

fn has_uploads(page: &Page<'_>) -> bool {
    page.cases().iter().any(|case| case.uploads.is_some())
}

/// Draws what was stored per second while all sources were active, how long the rest took afterwards, and whether everything arrived.
fn section(frame: &Frame<'_>, findings: &Findings) -> Markup {
    let stored = Quantity {
        title: "Stored in the database".to_owned(),
        unit: Unit::Rate("records/s"),
        of: Box::new(|case: &CaseFinding| {
            let estimate = &case.recorded.as_ref()?.stored_per_s;
            Some((estimate.mean?, estimate.ci95))
        }),
    };
    let buffer = Quantity {
        title: "Length of the buffer at the end".to_owned(),
        unit: Unit::Seconds,
        of: Box::new(|case: &CaseFinding| {
            let estimate = &case.recorded.as_ref()?.buffer_s;
            let interval = estimate.ci95.map(|[low, high]| [low.max(0.0), high]);
            Some((estimate.mean?, interval))
        }),
    };
    let recorded = findings.cases.iter().filter_map(|case| case.recorded.as_ref());
    let has_stored = recorded.map(|found| found.stored_per_s.n).sum::<u64>() > 0;
    let sent = |placed: &Placed<'_>| {
        let per_operation = placed.case.records_per_s.mean.zip(placed.case.throughput_per_s.mean);
        let batch = per_operation.map_or(1.0, |(records, operations)| (records / operations).round().max(1.0));
        Some(placed.case.offered_per_s? * batch)
    };
    html! {
        section #recorded {
            h2 { "Through the recorder" }
            (blocks(frame, findings))
            @if has_stored {
                p.about {
                    "Records that became stored per second within the measured phase, and how long it took to store what was left when \
                     the last client had sent its last one. Whiskers are 95 % intervals of the mean. Every record acknowledged was looked \
                     for in the database afterwards."
                }
                (figure(frame, &stored, sent_line(frame, "sent", sent)))
                (figure(frame, &buffer, None))
            }
            (table(&HEADINGS, rows(findings)))
            (each_recorder(recorders::rows(findings)))
        }
    }
}

/// Draws the table of single recorders; nothing if no case has several.
fn each_recorder(rows: Vec<Vec<String>>) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    html! {
        p.about {
            "What each of several recorders stored per second within the measured phase. Recorders that share a stream store the records of the parts that they \
             had, whichever recorder took these records in."
        }
        (table(&recorders::HEADINGS, rows))
    }
}

/// Draws the intake of blocks, and what came over the network meanwhile; nothing if none were uploaded.
fn blocks(frame: &Frame<'_>, findings: &Findings) -> Markup {
    if findings.cases.iter().all(|case| case.uploads.is_none()) {
        return html! {};
    }
    let estimated =
        |estimate: &Estimate| Some((8.0 * estimate.mean?, estimate.ci95.map(|ends| ends.map(|end| 8.0 * end))));
    let intake = Quantity {
        title: "Blocks taken in".to_owned(),
        unit: Unit::BitsPerSecond,
        of: Box::new(move |case: &CaseFinding| estimated(&case.uploads.as_ref()?.intake_bytes_per_s)),
    };
    let network = Quantity {
        title: "Received from the network".to_owned(),
        unit: Unit::BitsPerSecond,
        of: Box::new(move |case: &CaseFinding| estimated(&case.uploads.as_ref()?.received_bytes_per_s)),
    };
    let answer = Quantity {
        title: "Longest answer of the recorder".to_owned(),
        unit: Unit::Seconds,
        of: Box::new(|case: &CaseFinding| Some((case.uploads.as_ref()?.answer_max_s, None))),
    };
    let offered = |placed: &Placed<'_>| Some(8.0 * placed.case.uploads.as_ref()?.offered_bytes_per_s?);
    html! {
        p.about {
            "Blocks that were acknowledged, without headers, in bits per second; an upload over an edge of the measured phase counts with the \
             share of its time within it. Whiskers are 95 % intervals of the mean. Every block acknowledged was looked for afterwards."
        }
        (figure(frame, &intake, sent_line(frame, "offered", offered)))
        (panels(frame, &network))
        (panels(frame, &answer))
        (table(&uploads::HEADINGS, uploads::rows(findings)))
    }
}

fn table(headings: &[&str], rows: Vec<Vec<String>>) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { @for heading in headings { th { (heading) } } } }
            tbody { @for row in rows {
                tr { @for (place, cell) in row.iter().enumerate() {
                    @if place == 0 { th { (cell) } } @else { td { (cell) } }
                } }
            } }
        } }
    }
}

/// Draws a quantity in one plot with a line for each series of each panel, and the rate sent if clients send at a rate of their own.
fn figure(frame: &Frame<'_>, quantity: &Quantity<'_>, sent: Option<Line>) -> Markup {
    let lines = frame.series.len() * frame.panels.len();
    let Some(axis) = frame.axis.as_ref().filter(|_| lines <= LINES_MOST) else { return panels(frame, quantity) };
    let mut drawn: Vec<Line> = (0..frame.panels.len())
        .flat_map(|panel| (0..frame.series.len()).map(move |series| (series, panel)))
        .enumerate()
        .map(|(style, (series, panel))| line(frame, quantity, &axis.setting, (series, panel), style))
        .filter(|line| !line.points.is_empty())
        .collect();
    if let Some(sent) = sent {
        drawn.push(Line { style: drawn.len(), ..sent });
    }
    let top = |point: &Point| point.interval.map_or(point.y, |[_, high]| high.max(point.y));
    let largest = drawn.iter().flat_map(|line| &line.points).map(top).fold(0.0, f64::max);
    let plot = Plot {
        title: quantity.title.clone(),
        description: format!("{} against {}, a line for each alternative.", quantity.title, axis.setting),
        size: SIZE,
        x: Scale::of_levels(&frame.levels()),
        x_title: axis.setting.clone(),
        y: Scale::from_zero(largest, quantity.unit),
        lines: drawn,
        marks: Vec::new(),
    };
    html! { div.wide { (plot.draw()) } }
}

fn line(frame: &Frame<'_>, quantity: &Quantity<'_>, axis: &str, (series, panel): (usize, usize), style: usize) -> Line {
    let names = [&frame.series[series], &frame.panels[panel]].map(|name| setting_in_short(name));
    let label = names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
    let lead = if label.is_empty() { String::new() } else { format!("{label}, ") };
    let points = frame.line(series, panel).into_iter().filter_map(|placed| {
        let (y, interval) = (quantity.of)(placed.case)?;
        let carried = Carried::by(interval);
        let show = |value: f64| quantity.unit.show(value);
        let shown = interval.map_or(String::new(), |ends| format!(" {}", carried.show_ends(ends, show)));
        let (name, n) = (short_setting(axis), placed.case.valid_trials);
        let tip = format!("{lead}{name} {}: {}{shown}, n = {n}", placed.x, carried.show(y, show));
        Some(Point { x: placed.x, y, interval, tip })
    });
    Line { points: points.collect(), label, style, band: Vec::new(), stroke: Stroke::Solid }
}

/// Formats `recorder.writers = 3` as `writers 3`.
fn setting_in_short(name: &str) -> String {
    match name.split_once(" = ") {
        Some((setting, level)) if !level.contains(" = ") => format!("{} {level}", short_setting(setting)),
        _ => name.to_owned(),
    }
}

/// Returns the rate at which the clients sent, if it does not depend on the answers.
fn sent_line(frame: &Frame<'_>, label: &str, sent_per_s: impl Fn(&Placed<'_>) -> Option<f64>) -> Option<Line> {
    let mut points: Vec<Point> = Vec::new();
    for placed in &frame.cases {
        // A case without a valid trial has no rate.
        let Some(y) = sent_per_s(placed) else { continue };
        if points.iter().all(|known| known.x != placed.x) {
            points.push(Point { x: placed.x, y, interval: None, tip: String::new() });
        }
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    (!points.is_empty()).then(|| Line {
        label: label.to_owned(),
        style: 0,
        points,
        band: Vec::new(),
        stroke: Stroke::Dashed,
    })
}
