//! Shows comparisons as a page of their own, and as sections of a run's report.
//!
//! Main items: [`compare_page`], [`of_run`], [`RATIOS`] and [`P_VALUES`]. Invariant: every figure has a table with its numbers, and a mark is
//! a word as well as a colour.

use maud::{Markup, html};

use super::drawing::WHISKERS;
use super::forest::{Forest, ForestRow};
use super::means::{MeanBar, Means};
use super::page::whole;
use super::plot::style_class;
use super::scale::Scale;
use super::section::Section;
use super::unit::Unit;
use crate::measurement::Measurement;
use crate::metric::{self, Metric};
use crate::report::compare::p_value::show_p;
use crate::report::compare::table::{PTable, legend, tables};
use crate::report::compare::text::{amounts, metric_in_words, show_n, show_ratio, show_verdict};
use crate::report::compare::{
    Adjustment, Comparison, Comparisons, Figures, Options, RunInput, Sample, compare, pairs, runs, within,
};
use crate::report::contest::EQUAL_WITHIN;
use crate::statistics::Verdict;
use crate::statistics::student::t_quantile;
use crate::statistics::verdict::SIGNIFICANCE;
use crate::study::Study;
use crate::units::{Carried, show_number, show_ratio as show_ratio_of};

/// The means of each kind of operation, if there are several kinds.
pub const OPERATIONS: Section = Section {
    id: "operations",
    title: |_| "Operations",
    is_shown: |page| page.operations.is_some() && page.has_cases(),
    draw: |page| page.operations.clone().unwrap_or_default(),
};

/// The ratios of alternatives, if any are compared.
pub const RATIOS: Section = Section {
    id: "ratios",
    title: |_| "Ratios",
    is_shown: |page| page.compared.is_some() && page.has_cases(),
    draw: |page| page.compared.as_ref().map_or_else(Markup::default, ratios),
};

/// The p-values of the same alternatives.
pub const P_VALUES: Section = Section {
    id: "p-values",
    title: |_| "p-values",
    draw: |page| page.compared.as_ref().map_or_else(Markup::default, p_values),
    ..RATIOS
};

/// The most ratios in a forest plot that is not folded.
const FOREST_OPEN_MOST: usize = 120;

/// The most comparisons in a run's report; more would make it several times as long.
const REPORT_MOST: usize = 150;

/// Compares a run's alternatives; `None` if there are more than a report has room for, if nothing was varied, or if a search chose what to measure.
pub fn of_run(study: &Study, machine: &str, measurements: &[Measurement]) -> Option<Comparisons> {
    if study.goal.is_some() {
        return None;
    }
    let run = RunInput { path: "", label: "", machine, study, written: study, measurements };
    let chosen = within(&run, None, runs::usual_metric(&run)).ok()?;
    // Pairs are counted before anything is compared: hundreds of levels make tens of thousands of pairs.
    if pairs(&chosen.samples).len() > REPORT_MOST {
        return None;
    }
    let options =
        Options { alpha: SIGNIFICANCE, margin: EQUAL_WITHIN, adjustment: Adjustment::Bonferroni, seed: study.seed };
    Some(compare(&chosen.samples, &options))
}

/// The longest name of a case beside its bars; longer ones need the whole width.
const CASE_LONGEST: usize = 34;

/// The most means that are drawn.
const MEANS_MOST: usize = 150;

/// Returns the mean response time of each kind of operation by the first factor in which alternatives differ, as in figure 8.1 of the KTH
/// study (2018); `None` if all operations are of one kind, or if there are too many means to draw.
pub fn operations_of_run(study: &Study, machine: &str, measurements: &[Measurement]) -> Option<Markup> {
    let run = RunInput { path: "", label: "", machine, study, written: study, measurements };
    let metric = Metric::named("response_time_mean")?;
    let mut samples = if study.goal.is_some() { return None } else { within(&run, None, metric).ok()?.samples };
    let first = samples.first()?.clone();
    samples.retain(|sample| sample.factor == first.factor);
    let is_mixed = samples.iter().any(|sample| sample.operation != first.operation);
    let about = "From the intended time of an operation to its answer: means over trials; ";
    (is_mixed && samples.len() <= MEANS_MOST).then(|| {
        html! { section #operations {
            h2 { "Mean response time of each kind of operation" }
            p.about { (about) (WHISKERS) "." }
            (means(&samples, None))
        } }
    })
}

/// Returns the page of `loadline compare`.
pub fn compare_page(title: &str, samples: &[Sample], found: &Comparisons) -> String {
    let header = html! {
        p.over { "loadline compare" }
        h1 { (title) }
    };
    let main = html! {
        @if !found.valid {
            div.box.bad { h2 { "There are invalid trials" } "Their figures are left out of everything below." }
        }
        div class={ "box verdict" @if !is_decided(found) { " open" } } {
            ul { @for line in amounts(found) { li { (line) } } }
            @if !found.notes.is_empty() { ul.notes { @for note in &found.notes { li { (note) } } } }
        }
        section #means {
            h2 { "Means" }
            p.about { "Means over trials; " (WHISKERS) "." }
            (means(samples, Some(found)))
        }
        (ratios(found))
        (p_values(found))
        (letters(found))
    };
    let footer = html! {
        "Made by loadline " (env!("CARGO_PKG_VERSION")) ". Intervals are 95 % intervals."
    };
    whole(&format!("{} - loadline compare", title), &header, &main, &footer)
}

/// Returns whether any two alternatives were distinguished, or found equal.
fn is_decided(found: &Comparisons) -> bool {
    found.comparisons.iter().any(|one| one.verdict != Verdict::Undecided)
}

fn ratios(found: &Comparisons) -> Markup {
    let tables = tables(found);
    let many = found.comparisons.len() > FOREST_OPEN_MOST;
    let forests = html! {
        div.wide { @for table in &tables { @for metric in metrics(table) { (forest(table, metric, found)) } } }
    };
    html! {
        section #ratios {
            h2 { "Ratios of alternatives" }
            p.about {
                "One alternative over the other with the interval that its verdict is read off"
                @if found.comparisons.iter().any(|one| one.ratio_ci95.is_none()) { " (from published means and standard deviations, by Fieller's theorem)" }
                ". Triangles upwards are faster, downwards slower, squares equal within ±"
                (show_number((found.margin * 1e4).round() / 100.0)) " % (the grey zone), circles undecided; faster means better, also \
                where less is better. Intervals and p-values here hold together for all " (found.family) " comparisons of this section; a sentence above about the same \
                 pair allows for the comparisons that it is one of, so that its interval is another."
                @if found.comparisons.iter().any(|one| one.paired_rounds.is_some()) {
                    " Trials are compared round by round where rounds allow it, so that what a round's trials share does not count."
                }
            }
            @if many { details { summary { (found.comparisons.len()) " ratios" } (forests) } } @else { (forests) }
            (ratio_table(found))
        }
    }
}

fn p_values(found: &Comparisons) -> Markup {
    let tables = tables(found);
    html! {
        section.p #p-values {
            h2 { "p-values" }
            p.about {
                "How likely two equal alternatives differ as much by chance: the two-sided p of Welch's t-test for each pair, not adjusted; \
                 bold where below " (show_number((found.alpha * 1e4).round() / 100.0)) " %. With two machines, colours and words say \
                where they do not agree."
            }
            div.tables { @for table in &tables { div { (p_table(table, found)) } } }
            ul.marks {
                @for (word, means) in legend(found) { li { strong { (word) } ": " (means) } }
                @if found.marks.iter().any(|mark| !mark.certain) { li { "?: the mark depends on how the printed figures were rounded" } }
            }
        }
    }
}

fn place_of(table: &PTable<'_>) -> String {
    let by = if table.factor.is_empty() { String::new() } else { format!(" by {}", table.factor) };
    let metric = table.metric.map_or("all metrics".to_owned(), metric_in_words);
    format!("{metric}{by}, {}", table.machine)
}

/// Returns the metrics of a table, in its order.
fn metrics(table: &PTable<'_>) -> Vec<&'static str> {
    let mut metrics: Vec<&'static str> = Vec::new();
    for row in &table.rows {
        if !metrics.contains(&row.metric) {
            metrics.push(row.metric);
        }
    }
    metrics
}

/// Draws the ratios of one metric: better is left of 1 for a time, and right of 1 for a rate.
fn forest(table: &PTable<'_>, metric: &'static str, found: &Comparisons) -> Markup {
    let row = |(case, comparison): (&str, &Comparison)| ForestRow {
        label: format!("{case}: {} / {}", comparison.a, comparison.b),
        ratio: comparison.ratio,
        interval: comparison.interval(),
        verdict: comparison.verdict,
        text: format!("{} {}", show_ratio(comparison), comparison.verdict),
    };
    let cells =
        table.rows.iter().filter(|row| row.metric == metric).flat_map(|row| {
            row.cells.iter().flatten().map(|(comparison, _)| (row.case, *comparison)).collect::<Vec<_>>()
        });
    let title = place_of(&PTable { metric: Some(metric), ..table.clone() });
    Forest { title, margin: found.margin, rows: cells.map(row).collect() }.draw()
}

fn ratio_table(found: &Comparisons) -> Markup {
    let optional = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let ratio_of = |ratio: Option<f64>, ends: Option<[f64; 2]>| {
        ratio.map_or("-".to_owned(), |ratio| {
            let (shown, ends) = show_ratio_of(ratio, ends, 3);
            format!("{shown} {ends}").trim_end().to_owned()
        })
    };
    html! {
        details {
            summary { "Ratios as a table" }
            div.scroll { table {
                thead { tr {
                    th { "Case" } th { "Machine" } th { "a" } th { "b" }
                    @for heading in ["Ratio of means", "From means alone", "Ratio of medians", "n", "t", "df", "p Welch", "p pooled", "p paired", "p Mann-Whitney", "p adjusted"] {
                        th.number { (heading) }
                    }
                    th { "a is" }
                } }
                tbody { @for one in &found.comparisons { tr {
                    th scope="row" { (one.case) } th { (one.machine) } th { (one.a) } th { (one.b) }
                    td { (show_ratio(one)) }
                    td { (one.fieller_ci95.map_or(String::new(), |ends| show_ratio_of(1.0, Some(ends), 3).1)) }
                    td { (ratio_of(one.median_ratio, one.median_ratio_ci95)) }
                    td { (show_n(one)) }
                    td { (optional(one.t)) }
                    td { (one.df.map_or("-".to_owned(), |df| format!("{df:.1}"))) }
                    @for p in [one.p_welch, one.p_pooled, one.p_paired, one.p_mann_whitney, one.p_adjusted] { td { (show_p(p)) } }
                    td.text { (show_verdict(one.verdict, found.margin)) }
                } } }
            } }
        }
    }
}

fn p_table(table: &PTable<'_>, found: &Comparisons) -> Markup {
    let class = |comparison: &Comparison, word: &str| {
        let is_found = comparison.p_welch.is_some_and(|p| p < found.alpha);
        format!("{}{word}", if is_found { "found " } else { "" })
    };
    html! {
        h3 { (place_of(table)) }
        div.scroll { table {
            thead { tr {
                th { "Case" }
                @if table.metric.is_none() { th { "Metric" } }
                @for (a, b) in &table.pairs { th.number { (a) " - " (b) } }
            } }
            tbody { @for row in &table.rows { tr {
                th scope="row" { (row.case) }
                @if table.metric.is_none() { th { (row.metric) } }
                @for cell in &row.cells {
                    @match cell {
                        None => td { "-" },
                        Some((comparison, None)) => td class=(class(comparison, "")) { (show_p(comparison.p_welch)) },
                        Some((comparison, Some(mark))) => td class=(class(comparison, mark.word)) {
                            (show_p(comparison.p_welch))
                            small { (mark.word) @if !mark.is_certain { "?" } }
                        },
                    }
                }
            } } }
        } }
    }
}

/// Draws the means of all alternatives, a panel for each kind of operation on each machine; the table leaves out what was not compared.
fn means(samples: &[Sample], found: Option<&Comparisons>) -> Markup {
    let mut variants: Vec<&str> = Vec::new();
    let mut panels: Vec<&Sample> = Vec::new();
    let is_panel = |x: &Sample, y: &Sample| {
        (&x.machine, &x.factor, &x.operation, x.metric.name) == (&y.machine, &y.factor, &y.operation, y.metric.name)
    };
    for sample in samples {
        if !variants.contains(&sample.variant.as_str()) {
            variants.push(&sample.variant);
        }
        if !panels.iter().any(|known| is_panel(known, sample)) {
            panels.push(sample);
        }
    }
    // The panels of different machines for one operation stand side by side.
    panels.sort_by_key(|panel| {
        panels_first(samples, |other| other.operation == panel.operation && other.metric.name == panel.metric.name)
    });
    let has_long_names = samples.iter().any(|sample| sample.case.chars().count() > CASE_LONGEST);
    html! {
        ul.legend {
            @for (style, name) in variants.iter().enumerate() {
                li { svg.key viewBox="0 0 26 12" aria-hidden="true" { g class=(style_class(style)) { rect.bar width="26" height="12" {} } } (name) }
            }
        }
        div class=(if has_long_names { "wide" } else { "pairs" }) {
            @for panel in &panels { (means_panel(panel, samples.iter().filter(|sample| is_panel(panel, sample)), &variants)) }
        }
        (means_table(samples, found))
    }
}

fn panels_first(samples: &[Sample], is_own: impl Fn(&Sample) -> bool) -> usize {
    samples.iter().position(is_own).unwrap_or(0)
}

fn interval_of(sample: &Sample) -> [f64; 2] {
    let of = sample.summary();
    let n = of.n as f64;
    let half = t_quantile(0.975, n - 1.0) * of.sd / n.sqrt();
    [of.mean - half, of.mean + half]
}

/// Formats a mean in the metric's unit; published means are in the source's own unit.
fn show_mean(sample: &Sample, value: f64) -> String {
    match sample.figures {
        Figures::Summary(_) => show_number(value),
        Figures::Trials(_) => sample.metric.show(value),
    }
}

fn means_panel<'s>(panel: &Sample, own: impl Iterator<Item = &'s Sample>, variants: &[&str]) -> Markup {
    let own: Vec<&Sample> = own.collect();
    let largest = own.iter().map(|sample| interval_of(sample)[1].max(sample.summary().mean)).fold(0.0, f64::max);
    let unit = match panel.figures {
        Figures::Summary(_) => Unit::Rate(""),
        Figures::Trials(_) => unit_of(panel.metric),
    };
    let mut cases: Vec<(String, Vec<MeanBar>)> = Vec::new();
    for sample in &own {
        let mean = sample.summary().mean;
        let bar = MeanBar {
            style: variants.iter().position(|name| *name == sample.variant).unwrap_or(0),
            name: sample.variant.clone(),
            mean,
            interval: Some(interval_of(sample)),
            text: Carried::by(Some(interval_of(sample))).show(mean, |value| show_mean(sample, value)),
        };
        match cases.iter_mut().find(|(case, _)| *case == sample.case) {
            Some((_, bars)) => bars.push(bar),
            None => cases.push((sample.case.clone(), vec![bar])),
        }
    }
    let what = if panel.operation.is_empty() { panel.metric.title } else { panel.operation.as_str() };
    Means { title: format!("{what}, {}", panel.machine), scale: Scale::from_zero(largest, unit), cases }.draw()
}

fn unit_of(metric: &Metric) -> Unit {
    match metric.unit {
        metric::Unit::Seconds => Unit::Seconds,
        metric::Unit::Share | metric::Unit::Percent => Unit::Share,
        metric::Unit::Bytes => Unit::Bytes,
        metric::Unit::BytesPerSecond | metric::Unit::MegabytesPerSecond | metric::Unit::BitsPerSecond => {
            Unit::BytesPerSecond
        }
        metric::Unit::Count(_) => Unit::Rate(""),
    }
}

fn means_table(samples: &[Sample], found: Option<&Comparisons>) -> Markup {
    let is_compared = |sample: &&Sample| {
        let is_own = |one: &Comparison| {
            one.case == sample.case && one.machine == sample.machine && [&one.a, &one.b].contains(&&sample.variant)
        };
        found.is_none_or(|found| found.comparisons.iter().any(is_own))
    };
    html! {
        details {
            summary { "Means as a table" }
            div.scroll { table {
                thead { tr {
                    th { "Case" } th { "Machine" } th { "Alternative" }
                    @for heading in ["Mean", "95 % interval", "Standard deviation", "n"] { th.number { (heading) } }
                } }
                tbody { @for sample in samples.iter().filter(is_compared) {
                    @let (of, ends) = (sample.summary(), interval_of(sample));
                    @let (carried, show) = (Carried::by(Some(ends)), |value: f64| show_mean(sample, value));
                    tr {
                        th scope="row" { (sample.case) } th { (sample.machine) } th { (sample.variant) }
                        td { (carried.show(of.mean, show)) }
                        td { (carried.show_ends(ends, show)) }
                        td { (carried.show(of.sd, show)) }
                        td { (of.n) }
                    }
                } }
            } }
        }
    }
}

fn letters(found: &Comparisons) -> Markup {
    html! {
        @if found.letters.iter().any(|letters| letters.groups.len() > 2) {
            section #letters {
                h2 { "What can be told apart" }
                p.about { "The alternatives of each case, best first; those that share a letter were not told apart." }
                div.scroll { table {
                    thead { tr { th { "Case" } th { "Machine" } th { "Metric" } th { "Alternatives" } } }
                    tbody { @for letters in &found.letters { tr {
                        th scope="row" { (letters.case) } th { (letters.machine) } th { (letters.metric) }
                        td.text { @for (name, _, group) in &letters.groups { (name) " " sup { (group) } "  " } }
                    } } }
                } }
            }
        }
    }
}
