//! Draws means with their intervals as inline SVG, the alternatives of each case side by side, as in figure 8.1 of the KTH study (2018).
//!
//! Main type: [`Means`]. Invariant: bars start at zero, and every bar shows its value.

use maud::{Markup, html};

use super::drawing::{Way, in_both_forms, name, name_length, name_within, whisker};
use super::plot::{px, style_class};
use super::scale::Scale;

/// The bar of one alternative.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanBar {
    /// The number of the colour.
    pub style: usize,
    /// The name of the alternative, for the tip.
    pub name: String,
    /// The length of the bar.
    pub mean: f64,
    /// The ends of the interval around the mean.
    pub interval: Option<[f64; 2]>,
    /// The value, written at the bar's end.
    pub text: String,
}

/// Bars grouped by case.
#[derive(Debug, Clone, PartialEq)]
pub struct Means {
    /// The title, above the bars.
    pub title: String,
    /// The scale along the bars.
    pub scale: Scale,
    /// The name of each case with its bars, from top to bottom.
    pub cases: Vec<(String, Vec<MeanBar>)>,
}

const WIDTH: f64 = 520.0;
/// The height of one bar, and the space between cases.
const BAR: f64 = 15.0;
const GAP: f64 = 9.0;
/// The approximate width of a character in pixels.
const CHARACTER: f64 = 6.8;

impl Means {
    /// Returns the bars as SVG.
    pub fn draw(&self) -> Markup {
        in_both_forms(WIDTH, |width| self.draw_as_wide_as(width))
    }

    fn draw_as_wide_as(&self, width: f64) -> Markup {
        let bars = || self.cases.iter().flat_map(|(_, bars)| bars);
        let names = 12.0 + CHARACTER * self.cases.iter().map(|(case, _)| name_length(case)).max().unwrap_or(0) as f64;
        let right = 14.0 + CHARACTER * bars().map(|bar| bar.text.chars().count()).max().unwrap_or(0) as f64;
        // If names leave too little room beside them, bars are drawn below them.
        let is_below = names + right > 0.6 * width;
        let (left, title) = if is_below { (2.0, 18.0) } else { (names, 0.0) };
        let room = (width - left - right).max(40.0);
        let across = |value: f64| left + self.scale.place(value) * room;
        let fitting = self.scale.labels_with_room(room, 6.6);
        let mut tops = Vec::new();
        let mut bottom = 28.0;
        for (_, bars) in &self.cases {
            tops.push(bottom + GAP / 2.0 + title);
            bottom += title + BAR * bars.len() as f64 + GAP;
        }
        html! {
            svg viewBox={ "0 0 " (px(width)) " " (px(bottom + 24.0)) } role="img" style={ "max-width:" (width * 1.25) "px" } {
                title { (self.title) }
                desc { "Means with 95 % intervals, a bar for each alternative in each case." }
                text.heading x="0" y="14" {
                    (name_within(&self.title, (width / 7.4) as usize))
                    @if !self.scale.unit.is_empty() { tspan.unit { ", " (self.scale.unit) } }
                }
                g.grid {
                    @for tick in &self.scale.ticks {
                        path d={ "M" (px(across(tick.value))) " 28V" (px(bottom)) } {}
                    }
                }
                g.ticks {
                    @for (tick, _) in self.scale.ticks.iter().zip(&fitting).filter(|(_, fits)| **fits) {
                        text x=(px(across(tick.value))) y=(px(bottom + 16.0)) text-anchor="middle" { (tick.label) }
                    }
                }
                @for ((case, bars), top) in self.cases.iter().zip(&tops) {
                    @if is_below {
                        text.row x="0" y=(px(top - 5.0)) { (name(case)) }
                    } @else {
                        text.row x=(px(left - 8.0)) y=(px(top + BAR * bars.len() as f64 / 2.0 + 4.0)) text-anchor="end" { (name(case)) }
                    }
                    @for (place, bar) in bars.iter().enumerate() {
                        (draw_bar(bar, top + BAR * place as f64, &across, &self.scale))
                    }
                }
                path.base d={ "M" (px(left)) " 28V" (px(bottom)) } {}
            }
        }
    }
}

fn draw_bar(bar: &MeanBar, top: f64, across: &dyn Fn(f64) -> f64, scale: &Scale) -> Markup {
    let middle = top + BAR / 2.0;
    let end = bar.interval.map_or(bar.mean, |[_, high]| high.max(bar.mean));
    html! {
        g class=(style_class(bar.style)) {
            rect.bar x=(px(across(0.0))) y=(px(top + 1.0)) width=(px(across(bar.mean) - across(0.0))) height=(px(BAR - 2.0))
                data-t={ (bar.name) ": " (bar.text) } {}
        }
        @if let Some([low, high]) = bar.interval {
            path.over d=(whisker(Way::Level, middle, [across(low), across(high)], [low, high], scale, 3.0)) {}
        }
        text x=(px(across(end) + 6.0)) y=(px(middle + 4.0)) { (bar.text) }
    }
}
