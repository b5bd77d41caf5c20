//! Writes the page of a scoring: the verdict, the points, and how the ranking depends on the weight of writing.
//!
//! Main function: [`page`]. Invariant: as in the report, the page is self-contained and every plot has a table with its numbers.

use maud::{Markup, html};

use super::page::whole;
use super::plot::{Line, Mark, Plot, Point, Stroke};
use super::scale::{Scale, Tick};
use super::unit::Unit;
use crate::report::score::{AlternativeFinding, ScoreFinding, from_best, remarks, show_span};
use crate::units::show_number;

/// The weights that are written under the axis.
const WEIGHTS: [f64; 7] = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0];

/// The top of the plot: ten points, and room for the names of marks.
const HIGHEST: f64 = 11.5;

/// Returns the whole page; `source` is the origin of the evidence.
pub fn page(finding: &ScoreFinding, source: &str) -> String {
    let verdict = &finding.verdict;
    let header = html! {
        p.over { (source) }
        h1 { "Score" }
        p.question { "Which alternative, when writing weighs " (show_number(finding.write_weight)) " times as much as reading?" }
    };
    let main = html! {
        div class={ "box verdict" @if !verdict.is_decided() { " open" } } {
            p.first { strong { (verdict.answer) } (verdict.evidence) }
            @if !remarks(finding).is_empty() { ul.notes { @for remark in remarks(finding) { li { (remark) } } } }
        }
        section #points {
            h2 { "Points" }
            p.about {
                "At most 10 for writing and 10 for reading. Writing: in proportion to the mean throughput, the highest has \
                 10. Reading: per case the shortest execution time has 10 and the others less by what they take longer; \
                 then the mean over the cases of a query, and over queries."
            }
            (points(finding))
        }
        section #sensitivity {
            h2 { "Sensitivity to the weight of writing" }
            p.about {
                "Points per unit of weight, (weight × writing + reading) / (weight + 1): at the left reading alone counts, at \
                 the right writing alone. Alternatives change places where their lines cross."
                @if finding.alternatives.iter().any(|one| one.total_ci95.is_some()) { " Whiskers are intervals of the totals, at 95 % or more; what decides is a total's distance from the best other one." }
            }
            div.wide { (plot(finding)) }
            (rankings(finding))
        }
        section #queries {
            h2 { "Points by query" }
            (queries(finding))
        }
    };
    let footer = html! {
        "Made by loadline " (env!("CARGO_PKG_VERSION")) "."
    };
    whole("Score - loadline", &header, &main, &footer)
}

fn ranked(finding: &ScoreFinding) -> impl Iterator<Item = &AlternativeFinding> {
    finding.ranking.iter().filter_map(|name| finding.alternatives.iter().find(|one| one.name == *name))
}

fn points(finding: &ScoreFinding) -> Markup {
    let has_intervals = finding.alternatives.iter().any(|one| one.from_best_ci95.is_some());
    html! {
        div.scroll { table {
            thead { tr {
                th { "Alternative" }
                th.number { "Writing" }
                th.number { "Writing × " (show_number(finding.write_weight)) }
                th.number { "Reading" }
                th.number { "Total" }
                @if has_intervals { th.number { "From the best other (95 %)" } }
            } }
            tbody {
                @for one in ranked(finding) {
                    tr {
                        th scope="row" { (one.name) }
                        td { (format!("{:.2}", one.writing)) }
                        td { (format!("{:.2}", one.writing * finding.write_weight)) }
                        td { (format!("{:.2}", one.reading)) }
                        td { strong { (format!("{:.2}", one.total)) } }
                        @if has_intervals { td { (from_best(one)) } }
                    }
                }
            }
        } }
    }
}

/// Draws lines from reading alone to writing alone; the x axis is the share of writing in the total weight.
fn plot(finding: &ScoreFinding) -> Markup {
    let share = |weight: f64| weight / (1.0 + weight);
    let chosen = share(finding.write_weight);
    let line = |(place, one): (usize, &AlternativeFinding)| {
        let end = |x: f64, y: f64| Point { x, y, interval: None, tip: String::new() };
        let scale = 1.0 + finding.write_weight;
        let here = Point {
            x: chosen,
            y: one.total / scale,
            interval: one.total_ci95.map(|ends| ends.map(|end| end / scale)),
            tip: format!("{}, weight {}: total {:.2}", one.name, show_number(finding.write_weight), one.total),
        };
        let points = vec![end(0.0, one.reading), here, end(1.0, one.writing)];
        Line { label: one.name.clone(), style: place, points, band: Vec::new(), stroke: Stroke::Solid }
    };
    let mut x = Scale::to_end(1.0, Unit::Share);
    x.unit = String::new();
    let tick = |weight: &f64| Tick { value: share(*weight), label: weight.to_string() };
    x.ticks = WEIGHTS.iter().map(tick).chain([Tick { value: 1.0, label: "only writing".to_owned() }]).collect();
    let mut y = Scale::to_end(HIGHEST, Unit::Rate("points"));
    y.ticks = (0..=5).map(|step| f64::from(step) * 2.0).map(|value| Tick { value, label: value.to_string() }).collect();
    let mut weights: Vec<f64> = finding.break_even.iter().map(|change| change.write_weight).collect();
    weights.sort_by(f64::total_cmp);
    // If two marks would overlap, one is left out; the table below has all.
    let changes = weights.into_iter().map(|weight| Mark::Upright(share(weight), None, format!("{weight:.2}")));
    let own = Mark::Upright(chosen, None, format!("weight {}", show_number(finding.write_weight)));
    Plot {
        title: "Points by weight of writing".to_owned(),
        description: "A line per alternative from its points for reading to its points for writing.".to_owned(),
        size: (1000.0, 380.0),
        x,
        x_title: "weight of writing".to_owned(),
        y,
        lines: finding.alternatives.iter().enumerate().map(line).collect(),
        marks: changes.chain([own]).collect(),
    }
    .draw()
}

fn rankings(finding: &ScoreFinding) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "Weight of writing" } th { "Ranking" } } }
            tbody {
                @for span in &finding.rankings {
                    tr { th scope="row" { (show_span(span, &finding.rankings)) } td.text { (span.ranking.join(" > ")) } }
                }
            }
        } }
    }
}

fn queries(finding: &ScoreFinding) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "Query" } @for one in &finding.alternatives { th.number { (one.name) } } } }
            tbody {
                @for query in finding.alternatives.first().into_iter().flat_map(|one| one.queries.keys()) {
                    tr {
                        th scope="row" { (query) }
                        @for one in &finding.alternatives { td { (one.queries.get(query).map_or("-".to_owned(), |value| format!("{value:.2}"))) } }
                    }
                }
            }
        } }
    }
}
