//! Draws a plot of lines as inline SVG.
//!
//! Main type: [`Plot`]. Invariant: a plot has a title and a description, and its series differ in marker shape as well as in colour.

use maud::{Markup, html};

pub use super::drawing::px;
use super::drawing::{Way, in_both_forms, name, name_length, whisker};
use super::scale::Scale;

/// A point in a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The value along the x axis.
    pub x: f64,
    /// The value along the y axis.
    pub y: f64,
    /// The ends of the interval around the y value.
    pub interval: Option<[f64; 2]>,
    /// The text shown when the pointer rests on the point; empty for a bend of the line without a marker.
    pub tip: String,
}

/// The way in which the points of a series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stroke {
    /// Joined by a line.
    #[default]
    Solid,
    /// Joined by a dashed line, for calculated values.
    Dashed,
    /// Not joined.
    Unjoined,
}

/// A straight line across the plot.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A vertical line at a value of x, with a band around it and a label at its top.
    Upright(f64, Option<[f64; 2]>, String),
    /// A horizontal line at a value of y, with a label at its left end.
    Level(f64, String),
}

/// A series of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The name, written at the line's end.
    pub label: String,
    /// The number of the colour and marker.
    pub style: usize,
    /// The points, from left to right.
    pub points: Vec<Point>,
    /// A shaded band behind the line: (x, low, high).
    pub band: Vec<(f64, f64, f64)>,
    /// The way in which the points are joined.
    pub stroke: Stroke,
}

/// A plot of lines in a frame of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title, above the plot.
    pub title: String,
    /// A description of the plot, for readers who cannot see it.
    pub description: String,
    /// The size of the drawing, in pixels at its natural size.
    pub size: (f64, f64),
    /// The scale of the x axis, below.
    pub x: Scale,
    /// The name of the x axis.
    pub x_title: String,
    /// The scale of the y axis, at the left.
    pub y: Scale,
    /// The series.
    pub lines: Vec<Line>,
    /// The straight lines behind the series.
    pub marks: Vec<Mark>,
}

/// Returns the names of lines, each with its colour and marker.
pub fn keys<'l>(lines: impl Iterator<Item = &'l Line>) -> Markup {
    html! {
        ul.legend { @for line in lines { li {
            svg.key viewBox="0 0 26 12" aria-hidden="true" {
                g class=(style_class(line.style)) {
                    path.line d="M0 6H26" {}
                    path.marker d=(marker(line.style, 13.0, 6.0)) {}
                }
            }
            (line.label)
        } } }
    }
}

/// The margins around the axes.
struct Room {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The approximate width of a character in pixels; system fonts differ.
const CHARACTER: f64 = 6.6;
/// The approximate width of a character in the bold names of lines.
const CHARACTER_BOLD: f64 = 7.4;
/// The height of the narrow form.
const NARROW_HEIGHT: f64 = 250.0;
/// The least distance between the labels of two lines.
const LABEL_GAP: f64 = 14.0;
/// The distance by which neighbouring series with intervals are moved apart, so that these do not cover one another.
const DODGE: f64 = 2.5;

impl Plot {
    /// Returns the plot as SVG; a broad plot has a second, narrow form too, with its names below it.
    pub fn draw(&self) -> Markup {
        in_both_forms(self.size.0, |width| if width < self.size.0 { self.draw_narrow(width) } else { self.draw_svg() })
    }

    fn draw_narrow(&self, width: f64) -> Markup {
        let unnamed = |line: &Line| Line { label: String::new(), ..line.clone() };
        let lines = self.lines.iter().map(unnamed).collect();
        let narrow = Plot { size: (width, NARROW_HEIGHT), lines, ..self.clone() };
        let named: Vec<&Line> = self.lines.iter().filter(|line| !line.label.is_empty()).collect();
        html! {
            (narrow.draw_svg())
            @if named.len() > 1 { (keys(named.into_iter())) }
        }
    }

    fn draw_svg(&self) -> Markup {
        let (width, height) = self.size;
        let longest = |labels: &mut dyn Iterator<Item = usize>| labels.max().unwrap_or(0) as f64;
        let room = Room {
            left: 14.0 + CHARACTER * longest(&mut self.y.ticks.iter().map(|tick| tick.label.chars().count())),
            right: 14.0 + CHARACTER_BOLD * longest(&mut self.lines.iter().map(|line| name_length(&line.label))),
            top: 26.0,
            bottom: 38.0,
        };
        let across = |value: f64| room.left + self.x.place(value) * (width - room.left - room.right);
        let down = |value: f64| height - room.bottom - self.y.place(value) * (height - room.top - room.bottom);
        html! {
            svg viewBox={ "0 0 " (width) " " (height) } role="img" style={ "max-width:" (width * 1.25) "px" } {
                title { (self.title) }
                desc { (self.description) }
                text.heading x="0" y="14" {
                    (self.title)
                    @if !self.y.unit.is_empty() { tspan.unit { ", " (self.y.unit) } }
                }
                (self.axes(&room, &across, &down))
                @let fitting = self.marks_with_room(&across);
                @for (mark, fits) in self.marks.iter().zip(fitting) { (self.draw_mark(mark, fits, &room, &across, &down)) }
                @for line in &self.lines { (self.draw_line(line, &across, &down)) }
                (self.labels(width - room.right, &down))
            }
        }
    }

    fn axes(&self, room: &Room, across: &dyn Fn(f64) -> f64, down: &dyn Fn(f64) -> f64) -> Markup {
        let (width, height) = self.size;
        let bottom = height - room.bottom;
        let fitting = self.x.labels_with_room(width - room.left - room.right, CHARACTER);
        html! {
            g.grid {
                @for tick in &self.y.ticks {
                    path d={ "M" (px(room.left)) " " (px(down(tick.value))) "H" (px(width - room.right)) } {}
                }
            }
            g.ticks {
                @for tick in &self.y.ticks {
                    text x=(px(room.left - 7.0)) y=(px(down(tick.value) + 4.0)) text-anchor="end" { (tick.label) }
                }
                @for (tick, fits) in self.x.ticks.iter().zip(fitting) {
                    @let at = px(across(tick.value));
                    path d={ "M" (at) " " (px(bottom)) "v4" } {}
                    @if fits { text x=(at) y=(px(bottom + 17.0)) text-anchor="middle" { (tick.label) } }
                }
                text.axis x=(px((room.left + width - room.right) / 2.0)) y=(px(height - 4.0)) text-anchor="middle" {
                    (self.x_title)
                }
            }
            path.base d={ "M" (px(room.left)) " " (px(bottom)) "H" (px(width - room.right)) } {}
        }
    }

    /// Returns whether the label of each vertical mark has room: overlapping texts, or a line through a text, cannot be read. The last mark
    /// takes precedence.
    fn marks_with_room(&self, across: &dyn Fn(f64) -> f64) -> Vec<bool> {
        let uprights = self.marks.iter().map(|mark| match mark {
            Mark::Upright(x, _, label) => Some((across(*x), CHARACTER * label.chars().count() as f64)),
            Mark::Level(..) => None,
        });
        let places: Vec<Option<(f64, f64)>> = uprights.collect();
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let mut fitting = vec![true; places.len()];
        for (number, place) in places.iter().enumerate().rev() {
            let Some((at, length)) = place else { continue };
            let span = (at - 6.0 - length, at - 2.0);
            let is_crossed = places.iter().flatten().any(|(other, _)| *other > span.0 - 2.0 && *other < span.1);
            let is_taken = taken.iter().any(|own| own.0 < span.1 && span.0 < own.1);
            fitting[number] = number + 1 == places.len() || !(is_crossed || is_taken || span.0 < 0.0);
            if fitting[number] {
                taken.push(span);
            }
        }
        fitting
    }

    fn draw_mark(
        &self,
        mark: &Mark,
        has_room: bool,
        room: &Room,
        across: &dyn Fn(f64) -> f64,
        down: &dyn Fn(f64) -> f64,
    ) -> Markup {
        let (width, height) = self.size;
        let (top, bottom) = (room.top, height - room.bottom);
        html! {
            g.mark {
                @match mark {
                    Mark::Upright(x, band, label) => {
                        @if let Some([low, high]) = band {
                            @let (left, right) = (across(*low), across(*high));
                            rect x=(px(left)) y=(px(top)) width=(px((right - left).max(1.0))) height=(px(bottom - top)) {}
                        }
                        path d={ "M" (px(across(*x))) " " (px(top)) "V" (px(bottom)) } {}
                        @if has_room { text x=(px(across(*x) - 6.0)) y=(px(top + 12.0)) text-anchor="end" { (label) } }
                    }
                    Mark::Level(y, label) => {
                        path d={ "M" (px(room.left)) " " (px(down(*y))) "H" (px(width - room.right)) } {}
                        text x=(px(room.left + 6.0)) y=(px(down(*y) - 5.0)) { (label) }
                    }
                }
            }
        }
    }

    fn draw_line(&self, line: &Line, across: &dyn Fn(f64) -> f64, down: &dyn Fn(f64) -> f64) -> Markup {
        let place = self.lines.iter().position(|other| std::ptr::eq(other, line)).unwrap_or(0) as f64;
        let intervals = self.lines.iter().flat_map(|line| &line.points).any(|point| point.interval.is_some());
        let dodge = if intervals && self.lines.iter().all(|line| line.stroke == Stroke::Solid) { DODGE } else { 0.0 };
        let across = |value: f64| across(value) + (place - (self.lines.len() as f64 - 1.0) / 2.0) * dodge;
        let mut path = String::new();
        for point in &line.points {
            let step = if path.is_empty() { 'M' } else { 'L' };
            path.push_str(&format!("{step}{} {}", px(across(point.x)), px(down(point.y))));
        }
        let edge = |ends: &mut dyn Iterator<Item = (f64, f64)>| {
            ends.map(|(x, y)| format!("{} {}", px(across(x)), px(down(y)))).collect::<Vec<_>>().join("L")
        };
        let upper = edge(&mut line.band.iter().map(|(x, _, high)| (*x, *high)));
        let lower = edge(&mut line.band.iter().rev().map(|(x, low, _)| (*x, *low)));
        html! {
            g class=(style_class(line.style)) {
                @if !line.band.is_empty() { path.band d={ "M" (upper) "L" (lower) "Z" } {} }
                @match line.stroke {
                    Stroke::Solid => path.line d=(path) {},
                    Stroke::Dashed => path.line.dashed d=(path) {},
                    Stroke::Unjoined => {}
                }
                @for point in &line.points {
                    @if let Some([low, high]) = point.interval {
                        @let ends = [down(low), down(high)];
                        path.whisker d=(whisker(Way::Upright, across(point.x), ends, [low, high], &self.y, 5.0)) {}
                    }
                }
                @for point in line.points.iter().filter(|point| !point.tip.is_empty()) {
                    path.marker data-t=(point.tip) d=(marker(line.style, across(point.x), down(point.y))) {}
                }
            }
        }
    }

    /// Returns the lines' names at their right ends, moved apart where they would overlap.
    fn labels(&self, right: f64, down: &dyn Fn(f64) -> f64) -> Markup {
        let mut places: Vec<(f64, &Line)> = self
            .lines
            .iter()
            .filter(|line| !line.label.is_empty())
            .filter_map(|line| Some((down(line.points.last()?.y), line)))
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = self.size.1 - 42.0;
        for place in 1..places.len() {
            places[place].0 = places[place].0.max(places[place - 1].0 + LABEL_GAP);
        }
        let mut limit = lowest;
        for place in places.iter_mut().rev() {
            place.0 = place.0.min(limit);
            limit = place.0 - LABEL_GAP;
        }
        html! {
            @for (y, line) in places {
                text class={ "label " (style_class(line.style)) } x=(px(right + 8.0)) y=(px(y + 4.0)) { (name(&line.label)) }
            }
        }
    }
}

/// The number of colours; further series repeat them with other markers.
const COLOURS: usize = 8;

/// Returns the class that gives a series its colour.
pub fn style_class(style: usize) -> String {
    format!("c{}", style % COLOURS)
}

/// Returns the outline of a series' marker around a point.
pub fn marker(style: usize, x: f64, y: f64) -> String {
    let (x_text, y_text) = (px(x), px(y));
    match style % 7 {
        0 => format!("M{} {y_text}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", px(x - 4.0)),
        1 => format!("M{} {}h7v7h-7z", px(x - 3.5), px(y - 3.5)),
        2 => format!("M{x_text} {}l4.6 8h-9.2z", px(y - 5.0)),
        3 => format!("M{x_text} {}l5 5l-5 5l-5 -5z", px(y - 5.0)),
        4 => format!("M{x_text} {}l4.6 -8h-9.2z", px(y + 5.0)),
        5 => format!("M{} {}l8 8m0 -8l-8 8", px(x - 4.0), px(y - 4.0)),
        _ => format!("M{} {y_text}h10m-5 -5v10", px(x - 5.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::unit::Unit;

    fn line(label: &str, style: usize, y: f64) -> Line {
        let point = |x: f64, y: f64| Point { x, y, interval: Some([y - 1.0, y + 1.0]), tip: format!("{label} {x}") };
        Line {
            label: label.to_owned(),
            style,
            points: vec![point(1.0, y), point(16.0, y)],
            band: Vec::new(),
            stroke: Stroke::Solid,
        }
    }

    #[test]
    fn labels_of_lines_that_end_together_do_not_overlap() {
        let plot = Plot {
            title: "a < b".to_owned(),
            description: "two lines".to_owned(),
            size: (400.0, 200.0),
            x: Scale::of_levels(&[1.0, 16.0]),
            x_title: "clients".to_owned(),
            y: Scale::from_zero(100.0, Unit::Rate("operations/s")),
            lines: vec![line("wide", 0, 50.0), line("star", 1, 50.0), line("json", 2, 51.0)],
            marks: vec![Mark::Level(60.0, "bound".to_owned()), Mark::Upright(8.0, Some([7.0, 9.0]), "line".to_owned())],
        };
        let drawn = plot.draw().into_string();
        assert!(drawn.contains("a &lt; b") && drawn.contains("role=\"img\""));
        let heights: Vec<f64> = drawn
            .split("class=\"label ")
            .skip(1)
            .map(|rest| rest.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), 3);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_GAP - 0.11), "{heights:?}");
    }

    #[test]
    fn labels_of_marks_that_stand_close_are_left_out_but_for_the_last() {
        let mark = |x: f64| Mark::Upright(x, None, format!("{x:.2}"));
        let plot = Plot {
            title: "marks".to_owned(),
            description: "marks".to_owned(),
            size: (400.0, 200.0),
            x: Scale::to_end(1.0, Unit::Share),
            x_title: "weight".to_owned(),
            y: Scale::from_zero(100.0, Unit::Rate("points")),
            lines: Vec::new(),
            marks: [0.01, 0.30, 0.33, 0.8, 0.81].map(mark).to_vec(),
        };
        let shown = plot.marks_with_room(&|value| 400.0 * value);
        assert_eq!(shown, [false, true, false, false, true]);
    }

    #[test]
    fn neighbouring_series_have_different_markers() {
        let shapes: std::collections::BTreeSet<String> = (0..7).map(|style| marker(style, 0.0, 0.0)).collect();
        assert_eq!(shapes.len(), 7);
    }
}
