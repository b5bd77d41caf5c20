//! Draws horizontal bars as inline SVG, for studies without a ramp for an axis.
//!
//! Main type: [`Bars`]. Invariant: bars start at zero.

use maud::{Markup, html};

use super::drawing::{Way, in_both_forms, name, name_length, whisker};
use super::plot::{px, style_class};
use super::scale::Scale;
use crate::finding::CaseFinding;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The name at the left.
    pub label: String,
    /// The number of the colour.
    pub style: usize,
    /// The length; `None` leaves the row without a bar.
    pub value: Option<f64>,
    /// The ends of the interval around the value.
    pub interval: Option<[f64; 2]>,
    /// The value with its unit, written at the bar's end; without a value, why there is none.
    pub text: String,
}

/// Returns why a case has no bar.
pub fn absent(case: &CaseFinding) -> String {
    if case.valid_trials == 0 { "no valid trial".to_owned() } else { "not known".to_owned() }
}

/// A drawing of bars, one below another.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The title, above the bars.
    pub title: String,
    /// A description of the drawing, for readers who cannot see it.
    pub description: String,
    /// The width of the drawing in pixels; the height follows from the number of bars.
    pub width: f64,
    /// The scale along the bars.
    pub scale: Scale,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// The height of one bar with the space below it.
const ROW: f64 = 30.0;

impl Bars {
    /// Returns the bars as SVG.
    pub fn draw(&self) -> Markup {
        in_both_forms(self.width, |width| self.draw_as_wide_as(width))
    }

    fn draw_as_wide_as(&self, width: f64) -> Markup {
        let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64 * 6.8;
        let names = 12.0 + longest(&mut self.bars.iter().map(|bar| name_length(&bar.label)));
        let right = 14.0 + longest(&mut self.bars.iter().map(|bar| bar.text.chars().count()));
        // If names leave too little room beside them, bars are drawn below them.
        let is_below = names + right > 0.7 * width;
        let (left, row) = if is_below { (2.0, ROW + 16.0) } else { (names, ROW) };
        let (top, bottom) = (28.0, 28.0 + row * self.bars.len() as f64);
        let room = (width - left - right).max(40.0);
        let across = |value: f64| left + self.scale.place(value) * room;
        let fitting = self.scale.labels_with_room(room, 6.6);
        let height = bottom + 26.0;
        html! {
            svg viewBox={ "0 0 " (width) " " (px(height)) } role="img" style={ "max-width:" (width * 1.25) "px" } {
                title { (self.title) }
                desc { (self.description) }
                text.heading x="0" y="14" {
                    (self.title)
                    @if !self.scale.unit.is_empty() { tspan.unit { ", " (self.scale.unit) } }
                }
                g.grid {
                    @for tick in &self.scale.ticks {
                        path d={ "M" (px(across(tick.value))) " " (px(top)) "V" (px(bottom)) } {}
                    }
                }
                g.ticks {
                    @for (tick, _) in self.scale.ticks.iter().zip(&fitting).filter(|(_, fits)| **fits) {
                        text x=(px(across(tick.value))) y=(px(bottom + 16.0)) text-anchor="middle" { (tick.label) }
                    }
                }
                @for (place, bar) in self.bars.iter().enumerate() {
                    @let middle = top + row * (place as f64 + 1.0) - ROW / 2.0;
                    @if is_below {
                        text.row x="0" y=(px(middle - 13.0)) { (name(&bar.label)) }
                    } @else {
                        text.row x=(px(left - 8.0)) y=(px(middle + 4.0)) text-anchor="end" { (name(&bar.label)) }
                    }
                    (draw_bar(bar, middle, &across, &self.scale))
                }
                path.base d={ "M" (px(left)) " " (px(top)) "V" (px(bottom)) } {}
            }
        }
    }
}

fn draw_bar(bar: &Bar, middle: f64, across: &dyn Fn(f64) -> f64, scale: &Scale) -> Markup {
    let Some(value) = bar.value else {
        return html! { text.row x=(px(across(0.0) + 8.0)) y=(px(middle + 4.0)) { (bar.text) } };
    };
    let end = bar.interval.map_or(value, |[_, high]| high.max(value));
    html! {
        g class=(style_class(bar.style)) {
            rect.bar x=(px(across(0.0))) y=(px(middle - 9.0)) width=(px(across(value) - across(0.0))) height="18" rx="2"
                data-t={ (bar.label) ": " (bar.text) } {}
        }
        @if let Some([low, high]) = bar.interval {
            path.over d=(whisker(Way::Level, middle, [across(low), across(high)], [low, high], scale, 4.0)) {}
        }
        text.row x=(px(across(end) + 8.0)) y=(px(middle + 4.0)) { (bar.text) }
    }
}
