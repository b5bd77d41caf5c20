//! Shows each kind of operation of each case with its own times, and the statements behind their numbers.
//!
//! Item: [`SECTION`]. Invariant: a quantile with fewer than ten operations beyond it is marked.

use maud::{Markup, html};

use super::section::{Page, Section};
use crate::finding::{CaseFinding, OperationFinding};
use crate::report::factors::show_levels;
use crate::report::statements;
use crate::units::{show_number, show_seconds};

/// The most characters of a statement.
const STATEMENT_MOST: usize = 400;
/// The number of operations beyond a quantile below which it is marked.
const BEYOND_LEAST: f64 = 10.0;
/// The mark behind a quantile of too few operations.
pub const FEW: &str = " †";

/// The section, shown if a case has several kinds of operation, or one is a statement of the study's own.
pub const SECTION: Section = Section { id: "kinds", title: |_| "Kinds of operation", is_shown, draw: section };

fn is_shown(page: &Page<'_>) -> bool {
    let has_several = || page.cases().iter().any(|case| case.operations.len() > 1);
    page.has_cases() && (has_several() || !statements::listed(page.study, STATEMENT_MOST).is_empty())
}

fn section(page: &Page<'_>) -> Markup {
    let statements = statements::listed(page.study, STATEMENT_MOST);
    html! {
        section #kinds {
            h2 { "Kinds of operation" }
            p.about { "Each kind on its own, all valid trials together." (few_remark()) }
            @if !statements.is_empty() {
                dl { @for (name, text) in &statements { dt { (name) } dd { code { (text) } } } }
            }
            details {
                summary { "Kinds of operation as a table" }
                div.scroll { table {
                    thead { tr {
                        th { "Case" } th { "Operation" }
                        @for heading in ["Completed", "Failed", "Empty", "Mean", "p50", "p90", "p99", "p99.9", "Largest"] { th.number { (heading) } }
                    } }
                    tbody { @for case in page.cases() { (rows(case)) } }
                } }
            }
        }
    }
}

fn rows(case: &CaseFinding) -> Markup {
    html! {
        @for (kind, operation) in &case.operations {
            tr {
                th { (show_levels(&case.levels)) }
                th { (kind) }
                td { (show_number(operation.count as f64)) }
                td { (show_number(operation.failed as f64)) }
                td { (operation.empty.map_or("-".to_owned(), |empty| show_number(empty as f64))) }
                @for text in times(case, operation) { td { (text) } }
            }
        }
    }
}

fn times(case: &CaseFinding, operation: &OperationFinding) -> Vec<String> {
    let times = operation.times(case.time_kind());
    let count = operation.count;
    let plain = |time: Option<f64>| time.map_or("-".to_owned(), show_seconds);
    let quantile = |time: Option<f64>, q: f64| show_quantile(time, q, count);
    vec![
        plain(times.mean),
        quantile(times.p50, 0.5),
        quantile(times.p90, 0.9),
        quantile(times.p99, 0.99),
        quantile(times.p999, 0.999),
        plain(times.max),
    ]
}

/// Formats a quantile of `count` operations, marked if fewer than ten lie beyond it.
pub fn show_quantile(time: Option<f64>, quantile: f64, count: u64) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let mark = if (count as f64) * (1.0 - quantile) < BEYOND_LEAST - 1e-9 { FEW } else { "" };
    format!("{}{mark}", show_seconds(time))
}

/// Returns the explanation of the mark.
pub fn few_remark() -> &'static str {
    " A quantile marked † has fewer than ten operations beyond it: it is one of the slowest, and may be another next time."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_operations_are_marked() {
        assert_eq!(show_quantile(Some(0.00123), 0.999, 9_999), "1.23 ms †");
        assert_eq!(show_quantile(Some(0.00123), 0.999, 10_000), "1.23 ms");
        assert_eq!(show_quantile(Some(0.00123), 0.9, 99), "1.23 ms †");
        assert_eq!(show_quantile(None, 0.9, 99), "-");
    }
}
