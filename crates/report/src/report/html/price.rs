//! Shows the price of durability: throughput at each level, with the results of failure tests.
//!
//! Item: [`SECTION`]. Invariant: nothing is drawn if all cases survive the same failures, and levels without a test are marked as such.

use maud::{Markup, html};

use super::bars::{Bar, Bars, absent};
use super::drawing::WHISKERS;
use super::figures::{level_cell, throughput_quantity};
use super::plot::style_class;
use super::scale::Scale;
use super::section::{Page, Section};
use crate::finding::CaseFinding;
use crate::report::durability::word;
use crate::report::factors::{show_level, show_levels_short};
use crate::units::show_seconds;

/// The most bars in a drawing.
const CASES_MOST: usize = 40;

/// The width of the drawing.
const WIDTH: f64 = 760.0;

/// The levels with their colours and the failures that they survive.
const LEVELS: [(&str, usize, &str); 4] = [
    ("power-cut", 2, "survives a power cut"),
    ("crash", 4, "survives a killed server, and no power cut"),
    ("none", 1, "survives neither"),
    ("unknown", 7, "not known"),
];

fn colour(case: &CaseFinding) -> usize {
    LEVELS.iter().find(|(level, ..)| *level == case.durability.level).map_or(7, |(_, colour, _)| *colour)
}

/// The drawing with its table, shown if cases survive different failures.
pub const SECTION: Section =
    Section { id: "price", title: |_| "Durability", is_shown: |page| is_shown(page.cases()), draw: section };

fn is_shown(cases: &[CaseFinding]) -> bool {
    let known = |case: &&CaseFinding| case.valid_trials > 0 && case.durability.level != "unknown";
    let mut levels = cases.iter().filter(known).map(|case| case.durability.level.as_str());
    let first = levels.next();
    cases.len() <= CASES_MOST && levels.any(|level| Some(level) != first)
}

fn section(page: &Page<'_>) -> Markup {
    html! {
        section #price {
            h2 { "What durability costs" }
            p.about { "Throughput of each case, coloured by what its acknowledged writes survive; " (WHISKERS) "." }
            (legend(page.cases()))
            (drawn(page.cases()))
            (table(page))
        }
    }
}

fn legend(cases: &[CaseFinding]) -> Markup {
    let is_there = |level: &str| cases.iter().any(|case| case.durability.level == level);
    html! {
        ul.legend {
            @for (_, colour, says) in LEVELS.iter().filter(|(level, ..)| is_there(level)) {
                li class=(style_class(*colour)) { svg viewBox="0 0 26 12" { rect.bar x="0" y="1" width="26" height="10" rx="2" {} } (says) }
            }
        }
    }
}

fn drawn(cases: &[CaseFinding]) -> Markup {
    let quantity = throughput_quantity(cases);
    let bar = |case: &CaseFinding| {
        let figure = (quantity.of)(case);
        Bar {
            label: show_levels_short(&case.levels),
            style: colour(case),
            value: figure.map(|(value, _)| value),
            interval: figure.and_then(|(_, interval)| interval),
            text: figure.map_or_else(|| absent(case), |(value, _)| quantity.unit.show(value)),
        }
    };
    let bars: Vec<Bar> = cases.iter().map(bar).collect();
    let ends = |bar: &Bar| bar.interval.map_or(bar.value.unwrap_or(0.0), |[_, high]| high);
    let scale = Scale::from_zero(bars.iter().map(ends).fold(0.0, f64::max), quantity.unit);
    let description = "Throughput of each case, with what its acknowledged writes survive as its colour".to_owned();
    Bars { title: quantity.title, description, width: WIDTH, scale, bars }.draw()
}

fn table(page: &Page<'_>) -> Markup {
    let cases = page.cases();
    let quantity = throughput_quantity(cases);
    let p99 = |case: &CaseFinding| page.time_finding(case).p99.map_or("-".to_owned(), show_seconds);
    let throughput =
        |case: &CaseFinding| (quantity.of)(case).map_or("-".to_owned(), |(value, _)| quantity.unit.show(value));
    let settings: Vec<&String> = cases.first().map(|case| case.levels.keys().collect()).unwrap_or_default();
    html! {
        div.scroll { table {
            thead { tr {
                @for setting in &settings { th { (setting) } }
                th { "Survives" } th { "Shown here" } th.number { "Throughput" } th.number { "p99" }
            } }
            tbody { @for case in cases { tr {
                @for setting in &settings { (level_cell(&case.levels.get(*setting).map(show_level).unwrap_or_default())) }
                th { (word(&case.durability)) }
                th { (shown(case)) }
                td { (throughput(case)) }
                td { (p99(case)) }
            } } }
        } }
    }
}

/// Formats the results of failure tests of a case.
fn shown(case: &CaseFinding) -> String {
    match &case.durability.proved {
        Some(proved) => format!("{proved} did harm"),
        None => "not tried here".to_owned(),
    }
}
