//! Elements shared by all drawings: whiskers, names with little room, and a second, narrow form for small screens.
//!
//! Invariant: a whisker whose end lies beyond the scale ends in an arrow, never in a cap; a shortened name has its whole text as a title.

use maud::{Markup, html};

use super::scale::Scale;
use crate::report::factors::in_short;

/// Formats a coordinate with one decimal; whole ones without.
pub fn px(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded == rounded.trunc() { format!("{rounded:.0}") } else { format!("{rounded:.1}") }
}

/// The value for the end of an interval that was cut off at 0; it is drawn as continuing.
pub const CUT_OFF: f64 = f64::NEG_INFINITY;
/// The least width of a drawing that has a narrow form too.
pub const BROAD: f64 = 500.0;
/// The width of the narrow form: about the room on a phone.
pub const NARROW: f64 = 330.0;
/// The longest name in a drawing, in characters.
const NAME_LONGEST: usize = 44;

/// The explanation of whiskers in the lines above figures.
pub const WHISKERS: &str =
    "whiskers are 95 % intervals of the mean, and one that ends in an arrow goes on beyond the figure";

/// Draws the form for wide screens and, if the drawing is broad, the narrow one; styles show one of them.
pub fn in_both_forms(width: f64, draw: impl Fn(f64) -> Markup) -> Markup {
    html! {
        @if width < BROAD { (draw(width)) } @else {
            div.broad { (draw(width)) }
            div.narrow { (draw(NARROW)) }
        }
    }
}

/// The direction of a whisker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Vertical, at a place along the x axis.
    Upright,
    /// Horizontal, at a height.
    Level,
}

/// Returns the path of a whisker. `at` is its place across its direction, `ends` are the coordinates of its low and high end, and `half` is half of a cap.
pub fn whisker(way: Way, at: f64, ends: [f64; 2], interval: [f64; 2], scale: &Scale, half: f64) -> String {
    let point = |along: f64, across: f64| match way {
        Way::Upright => format!("{} {}", px(at + across), px(along)),
        Way::Level => format!("{} {}", px(along), px(at + across)),
    };
    let mut path = format!("M{}L{}", point(ends[0], 0.0), point(ends[1], 0.0));
    for (place, end) in ends.iter().enumerate() {
        // The barbs of an arrow point towards the other end.
        let back = 1.4 * half * (ends[1 - place] - end).signum();
        let barb = if scale.holds(interval[place]) { 0.0 } else { back };
        let first = point(end + barb, -half);
        let last = point(end + barb, half);
        path.push_str(&format!("M{first}L{}L{last}", point(*end, 0.0)));
    }
    path
}

/// Returns a name as text of a drawing: shortened in its middle, with the whole name as a title.
pub fn name(text: &str) -> Markup {
    name_within(text, NAME_LONGEST)
}

/// Returns a name as text of a drawing with at most `most` characters.
pub fn name_within(text: &str, most: usize) -> Markup {
    let short = in_short(text, most);
    html! { (short) @if short != text { title { (text) } } }
}

/// Returns the number of characters that a name takes in a drawing.
pub fn name_length(text: &str) -> usize {
    text.chars().count().min(NAME_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::unit::Unit;

    #[test]
    fn a_whisker_that_goes_on_beyond_the_figure_ends_in_an_arrow() {
        let scale = Scale::from_zero(100.0, Unit::Rate("operations/s"));
        let cap = whisker(Way::Level, 10.0, [20.0, 80.0], [20.0, 80.0], &scale, 5.0);
        assert_eq!(cap, "M20 10L80 10M20 5L20 10L20 15M80 5L80 10L80 15");
        let arrow = whisker(Way::Level, 10.0, [0.0, 80.0], [CUT_OFF, 80.0], &scale, 5.0);
        assert_eq!(arrow, "M0 10L80 10M7 5L0 10L7 15M80 5L80 10L80 15");
        let upright = whisker(Way::Upright, 10.0, [90.0, 0.0], [50.0, 1e9], &scale, 5.0);
        assert_eq!(upright, "M10 90L10 0M5 90L10 90L15 90M5 7L10 0L15 7");
    }

    #[test]
    fn a_shortened_name_has_its_whole_text_as_a_title() {
        let path = format!("/data/{}/runs/first", "x".repeat(80));
        let drawn = name(&path).into_string();
        assert!(drawn.starts_with("/data/x") && drawn.contains(&format!("<title>{path}</title>")), "{drawn}");
        assert_eq!(name("star").into_string(), "star");
    }
}
