//! Draws a forest plot as inline SVG: ratios of alternatives with their intervals, one below another, around the line of no difference.
//!
//! Main type: [`Forest`]. Invariant: the scale is logarithmic with 1 in its middle, so that twice and half are equally far from it.

use maud::{Markup, html};

use super::drawing::{Way, in_both_forms, name, name_length, name_within, whisker};
use super::plot::{marker, px, style_class};
use super::scale::Scale;
use crate::statistics::Verdict;

/// The row of one ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    /// The compared alternatives, written at the left.
    pub label: String,
    /// The ratio; `None` leaves the row without a mark.
    pub ratio: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<[f64; 2]>,
    /// The verdict, which decides colour and shape.
    pub verdict: Verdict,
    /// The text at the right.
    pub text: String,
}

/// A plot of ratios, one below another.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// The title, above the rows.
    pub title: String,
    /// The relative difference that counts as none: a zone around 1.
    pub margin: f64,
    /// The ratios, from top to bottom.
    pub rows: Vec<ForestRow>,
}

const WIDTH: f64 = 1000.0;
/// The height of one row.
const ROW: f64 = 22.0;
/// The height of a line of text above a row.
const LINE: f64 = 16.0;
/// The approximate width of a character in pixels.
const CHARACTER: f64 = 6.8;
/// The least width for ratios.
const ROOM_LEAST: f64 = 260.0;

impl Forest {
    /// Returns the plot as SVG.
    pub fn draw(&self) -> Markup {
        in_both_forms(WIDTH, |width| self.draw_as_wide_as(width))
    }

    fn draw_as_wide_as(&self, least: f64) -> Markup {
        let is_narrow = least < WIDTH;
        let ends = self.rows.iter().flat_map(|row| row.interval.into_iter().flatten().chain(row.ratio));
        let scale = Scale::of_ratios(ends.chain([1.0 + self.margin]));
        let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
        let right = 16.0 + CHARACTER * longest(&mut self.rows.iter().map(|row| row.text.chars().count()));
        let left = 14.0 + CHARACTER * longest(&mut self.rows.iter().map(|row| name_length(&row.label)));
        // On a narrow screen, the alternatives and the figures are above their marks, each on its own line.
        let (left, right, above) = if is_narrow { (8.0, 8.0, 2.0 * LINE) } else { (left, right, 0.0) };
        let width = least.max(left + right + if is_narrow { 0.0 } else { ROOM_LEAST });
        let row_height = ROW + above;
        let (top, bottom) = (28.0, 28.0 + row_height * self.rows.len() as f64);
        let room = width - left - right;
        let across = |value: f64| left + scale.place(value) * room;
        let fitting = scale.labels_with_room(room, 6.6);
        let zone = (across(1.0 - self.margin), across(1.0 + self.margin));
        html! {
            svg viewBox={ "0 0 " (px(width)) " " (px(bottom + 24.0)) } role="img" style={ "max-width:" (width * 1.25) "px" } {
                title { (self.title) }
                desc { "Ratios of alternatives with the intervals that verdicts are read off, on a logarithmic scale; the zone around 1 is what counts as equal." }
                text.heading x="0" y="14" { (name_within(&self.title, (width / 7.4) as usize)) }
                @if self.margin > 0.0 {
                    rect.zone x=(px(zone.0)) y=(px(top)) width=(px(zone.1 - zone.0)) height=(px(bottom - top)) {}
                }
                g.grid {
                    @for (tick, _) in scale.ticks.iter().zip(&fitting).filter(|(_, fits)| **fits) {
                        path d={ "M" (px(across(tick.value))) " " (px(top)) "V" (px(bottom)) } {}
                    }
                }
                path.one d={ "M" (px(across(1.0))) " " (px(top)) "V" (px(bottom)) } {}
                g.ticks {
                    @for (tick, _) in scale.ticks.iter().zip(&fitting).filter(|(_, fits)| **fits) {
                        text x=(px(across(tick.value))) y=(px(bottom + 16.0)) text-anchor="middle" { (tick.label) }
                    }
                }
                @for (place, row) in self.rows.iter().enumerate() {
                    @let middle = top + row_height * (place as f64 + 1.0) - ROW / 2.0;
                    @if is_narrow {
                        text.row x="0" y=(px(middle - ROW / 2.0 - LINE)) { (name(&row.label)) }
                        text.row x="0" y=(px(middle - ROW / 2.0)) { (row.text) }
                    } @else {
                        text.row x=(px(left - 8.0)) y=(px(middle + 4.0)) text-anchor="end" { (name(&row.label)) }
                        text.row x=(px(width - right + 14.0)) y=(px(middle + 4.0)) { (row.text) }
                    }
                    (draw_row(row, middle, &across, &scale))
                }
            }
        }
    }
}

fn draw_row(row: &ForestRow, middle: f64, across: &dyn Fn(f64) -> f64, scale: &Scale) -> Markup {
    let (colour, shape) = match row.verdict {
        Verdict::Faster => (2, 2),
        Verdict::Slower => (1, 4),
        Verdict::Equal => (0, 1),
        Verdict::Undecided => (7, 0),
    };
    html! {
        g class=(style_class(colour)) {
            @if let Some([low, high]) = row.interval {
                path.whisker d=(whisker(Way::Level, middle, [across(low), across(high)], [low, high], scale, 4.0)) {}
            }
            @if let Some(ratio) = row.ratio {
                path.marker data-t={ (row.label) ": " (row.text) } d=(marker(shape, across(ratio), middle)) {}
            }
        }
    }
}
