//! Writes comparisons as text for a terminal: p-values per pair and machine, then ratios with their verdicts, then totals.
//!
//! Main function: [`text`]. Invariant: a verdict is never shown without its ratio, the interval if there is one, and n.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::outcome::{Adjustment, Comparison, Comparisons};
use super::p_value::show_p;
use super::table::{PTable, legend, tables};
use crate::metric::{LOAD_LINE, Metric};
use crate::report::terminal::WIDTH;
use crate::statistics::Verdict;
use crate::units::{self, Carried, show_number};

/// The most pairs of alternatives that are shown side by side, or one by one.
const PAIRS_MOST: usize = 6;

/// Returns the text of all comparisons. It ends with a line break.
pub fn text(found: &Comparisons) -> String {
    let mut out = String::new();
    if !found.valid {
        out.push_str("INVALID: trials are invalid; their figures are left out of everything below.\n\n");
    }
    for table in tables(found).iter().filter(|table| table.pairs.len() <= PAIRS_MOST) {
        out.push_str(&format!("{}\n{}\n", heading(table), p_table(table)));
    }
    let legend = legend(found);
    legend.iter().for_each(|(word, means)| out.push_str(&format!("  {word:<12} {means}\n")));
    if found.marks.iter().any(|mark| !mark.certain) {
        out.push_str("  ?            the mark depends on how the printed figures were rounded\n");
    }
    if !legend.is_empty() {
        out.push('\n');
    }
    out.push_str(&ratios(found));
    out.push('\n');
    for line in amounts(found) {
        out.push_str(&format!("- {line}\n"));
    }
    if found.letters.iter().any(|letters| letters.groups.len() > 2) {
        out.push_str("\nBest first; alternatives that share a letter were not told apart\n");
        out.push_str(&letters(found));
    }
    if !found.notes.is_empty() {
        out.push_str("\nNotes\n");
    }
    found.notes.iter().for_each(|note| out.push_str(&format!("- {note}\n")));
    out
}

/// Describes a metric, and which direction is better: `throughput (operations per second, more is better)`.
pub fn metric_in_words(name: &str) -> String {
    let metric = Metric::named(name).unwrap_or(&LOAD_LINE);
    format!("{name} ({}, {} is better)", metric.title, if metric.more_is_better { "more" } else { "less" })
}

fn heading(table: &PTable<'_>) -> String {
    let what = table.metric.map_or(String::new(), |metric| format!(" of {}", metric_in_words(metric)));
    let by = if table.factor.is_empty() { String::new() } else { format!(", by {}", table.factor) };
    format!("p{what}{by}, on {}\n(how likely equals differ as much by chance; Welch's t-test)", table.machine)
}

fn p_table(table: &PTable<'_>) -> String {
    let mut heading = vec!["case".to_owned()];
    heading.extend((table.metric.is_none()).then(|| "metric".to_owned()));
    let texts = heading.len();
    heading.extend(table.pairs.iter().map(|(a, b)| format!("{a} - {b}")));
    let row = |row: &super::table::Row<'_>| {
        let mut cells = vec![row.case.to_owned()];
        cells.extend(table.metric.is_none().then(|| row.metric.to_owned()));
        cells.extend(row.cells.iter().map(|cell| match cell {
            None => "-".to_owned(),
            Some((comparison, None)) => show_p(comparison.p_welch),
            Some((comparison, Some(mark))) => {
                let doubt = if mark.is_certain { "" } else { "?" };
                format!("{}{doubt} {}", mark.word, show_p(comparison.p_welch))
            }
        }));
        cells
    };
    ruled(heading, table.rows.iter().map(row), texts)
}

fn ratios(found: &Comparisons) -> String {
    let adjusted = match found.adjustment {
        Adjustment::Bonferroni => "adjusted",
        Adjustment::Holm => "Holm",
        Adjustment::Bh => "BH",
    };
    let several = |of: fn(&Comparison) -> &str| found.comparisons.windows(2).any(|two| of(&two[0]) != of(&two[1]));
    let has_machines = several(|comparison| &comparison.machine);
    let mut heading: Vec<String> = if has_machines { vec!["machine".to_owned()] } else { Vec::new() };
    heading.extend(["case", "a", "b"].map(str::to_owned));
    let texts = heading.len();
    let level = show_number((100.0 - found.alpha * 100.0).max(0.0));
    let of_summaries = found.comparisons.iter().all(|comparison| comparison.ratio_adjusted.is_none());
    let interval = match (of_summaries, found.family > 1) {
        (true, _) => "[95 %, each alone]".to_owned(),
        (_, true) => format!("[{level} %, all together]"),
        _ => format!("[{level} %]"),
    };
    heading.push(format!("ratio a / b {interval}"));
    heading.extend(["n", "p, Welch"].map(str::to_owned));
    let has_rounds = found.comparisons.iter().any(|comparison| comparison.paired_rounds.is_some());
    heading.extend(has_rounds.then(|| "p, rounds".to_owned()));
    heading.extend([format!("p, {adjusted}"), "a is".to_owned()]);
    let row = |comparison: &Comparison| {
        let mut cells = if has_machines { vec![comparison.machine.clone()] } else { Vec::new() };
        cells.extend([comparison.case.clone(), comparison.a.clone(), comparison.b.clone()]);
        cells.push(show_ratio(comparison));
        cells.push(show_n(comparison));
        cells.push(show_p(comparison.p_welch));
        cells.extend(has_rounds.then(|| show_p(comparison.p_paired)));
        cells.push(show_p(comparison.p_adjusted));
        cells.push(show_verdict(comparison.verdict, found.margin));
        cells
    };
    ruled(heading, found.comparisons.iter().map(row), texts)
}

/// Formats `1.24 [1.20, 1.28]`.
pub fn show_ratio(comparison: &Comparison) -> String {
    match (comparison.ratio, comparison.interval()) {
        (None, _) => "-".to_owned(),
        (Some(ratio), interval) => {
            let (shown, ends) = units::show_ratio(ratio, interval, 3);
            format!("{shown} {ends}").trim_end().to_owned()
        }
    }
}

/// Formats `12 rounds`, or `12 + 11`.
pub fn show_n(comparison: &Comparison) -> String {
    match comparison.paired_rounds {
        Some(rounds) => format!("{rounds} rounds"),
        None => format!("{} + {}", comparison.n_a, comparison.n_b),
    }
}

/// Formats `faster`, or `equal within ±5 %`.
pub fn show_verdict(verdict: Verdict, margin: f64) -> String {
    match verdict {
        Verdict::Equal => format!("equal within ±{} %", show_number((margin * 1e4).round() / 100.0)),
        other => other.to_string(),
    }
}

/// Returns sentences with the number of each verdict per pair of alternatives, and the basis of the figures.
pub fn amounts(found: &Comparisons) -> Vec<String> {
    let mut pairs: Vec<(&str, &str, &str)> = Vec::new();
    for comparison in &found.comparisons {
        let pair = (comparison.metric, comparison.a.as_str(), comparison.b.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let mut lines: Vec<String> = if pairs.len() <= PAIRS_MOST {
        pairs.iter().map(|(metric, a, b)| amount(found, metric, a, b)).collect()
    } else {
        let mut metrics: Vec<&str> = pairs.iter().map(|(metric, ..)| *metric).collect();
        metrics.dedup();
        metrics.iter().map(|metric| overall(found, metric)).collect()
    };
    let paired = found.comparisons.iter().filter(|comparison| comparison.paired_rounds.is_some()).count();
    if paired > 0 {
        lines.push(format!(
            "{paired} of {} comparisons are made round by round, so that what a round's trials share does not count",
            found.comparisons.len()
        ));
    }
    let name = match found.adjustment {
        Adjustment::Bonferroni => "Bonferroni",
        Adjustment::Holm => "Holm",
        Adjustment::Bh => "Benjamini and Hochberg",
    };
    let level = show_number((found.alpha * 1e4).round() / 100.0);
    lines.push(match found.family {
        0 | 1 => format!("verdict at the {level} % level"),
        family => format!(
            "verdicts at the {level} % level, p and intervals adjusted for all {family} comparisons together ({name})"
        ),
    });
    lines
}

/// Returns the number of each verdict in a metric, whatever the alternatives.
fn overall(found: &Comparisons, metric: &str) -> String {
    let own: Vec<&Comparison> = found.comparisons.iter().filter(|comparison| comparison.metric == metric).collect();
    let is_decided = |one: &&&Comparison| matches!(one.verdict, Verdict::Faster | Verdict::Slower);
    let count = |verdict| own.iter().filter(|comparison| comparison.verdict == verdict).count();
    format!(
        "{} comparisons in {metric}: one is faster in {}, {} in {}, undecided in {}",
        own.len(),
        own.iter().filter(is_decided).count(),
        show_verdict(Verdict::Equal, found.margin),
        count(Verdict::Equal),
        count(Verdict::Undecided)
    )
}

/// Returns the number of each verdict on a pair in a metric; the whole evidence if there is only one comparison.
fn amount(found: &Comparisons, metric: &str, a: &str, b: &str) -> String {
    let own: Vec<&Comparison> = found
        .comparisons
        .iter()
        .filter(|comparison| (comparison.metric, &*comparison.a, &*comparison.b) == (metric, a, b))
        .collect();
    if let [only] = own[..] {
        let p = show_p(only.p_adjusted);
        let p = if p.starts_with('<') { p } else { format!("= {p}") };
        let against = match only.verdict {
            Verdict::Faster | Verdict::Slower => {
                format!("{a} is {} than {b}", only.verdict)
            }
            Verdict::Equal => format!("{a} and {b} are {}", show_verdict(only.verdict, found.margin)),
            Verdict::Undecided => format!("undecided whether {a} or {b} is better"),
        };
        return format!("{against} in {metric}: ratio {}, n = {}, p {p}", show_ratio(only), show_n(only));
    }
    let count = |verdict| own.iter().filter(|comparison| comparison.verdict == verdict).count();
    let words = [Verdict::Faster, Verdict::Slower, Verdict::Equal, Verdict::Undecided];
    let counts = words.map(|verdict| (count(verdict), show_verdict(verdict, found.margin)));
    let told: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{word} in {count}")).collect();
    format!("{a} against {b} in {metric}, {} comparisons: {}", own.len(), told.join(", "))
}

fn letters(found: &Comparisons) -> String {
    let several = found.letters.windows(2).any(|two| two[0].machine != two[1].machine);
    let mut heading = if several { vec!["machine".to_owned()] } else { Vec::new() };
    heading.extend(["case".to_owned(), "alternatives".to_owned()]);
    let texts = heading.len();
    let row = |letters: &super::outcome::Letters| {
        let metric = Metric::named(letters.metric).unwrap_or(&LOAD_LINE);
        // Published times are in the source's own unit.
        let unit = |mean: f64| if found.is_of_summaries() { show_number(mean) } else { metric.show(mean) };
        let show = |mean: f64| Carried::by(None).show(mean, unit);
        let groups = letters.groups.iter().map(|(name, mean, letters)| format!("{name} {} {letters}", show(*mean)));
        let mut cells = if several { vec![letters.machine.clone()] } else { Vec::new() };
        cells.extend([letters.case.clone(), groups.collect::<Vec<_>>().join("   ")]);
        cells
    };
    ruled(heading, found.letters.iter().map(row), texts)
}

/// Formats a table whose first columns are text and whose others are figures.
fn ruled(heading: Vec<String>, rows: impl Iterator<Item = Vec<String>>, texts: usize) -> String {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table
        .load_style(TableStyle::new().header_separator(line).bottom_border(line))
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH).set_header(heading);
    table.add_rows(rows);
    table.column_iter_mut().skip(texts).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt() + "\n"
}
