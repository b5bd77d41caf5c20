//! Shows times that another tool states without a histogram, as a table.
//!
//! Main function: [`table`]. Invariant: quantiles of several trials are shown as the range that they span, and never averaged.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::imported::{StatedTimes, TimeKind};
use crate::report::case_trials::{CaseTrials, estimate};
use crate::report::factors::show_levels;
use crate::units::show_seconds;

/// The row of one kind of operation of one case.
struct Row<'a> {
    case: String,
    kind: &'a str,
    trials: Vec<&'a StatedTimes>,
}

/// Returns the table; empty if no times are stated.
pub fn table(groups: &[CaseTrials<'_>], time: TimeKind, begins: &str) -> Markup {
    let rows = rows(groups, time);
    // Quantiles are in millionths, so that equal ones are one column.
    let quantiles: BTreeSet<u64> = rows
        .iter()
        .flat_map(|row| &row.trials)
        .flat_map(|times| &times.quantiles)
        .map(|(q, _)| (q * 1e6) as u64)
        .collect();
    html! {
        @if !rows.is_empty() {
            p.about {
                (begins) ", as the tool states it: the mean over trials with its 95 % interval, and the smallest and the largest of \
                 the trials' percentiles. Percentiles of all trials together would need histograms."
            }
            div.scroll { table {
                thead { tr {
                    th { "Case" }
                    th { "Operation" }
                    th.number { "n" }
                    th.number { "Mean" }
                    th.number { "95 % interval" }
                    @for quantile in &quantiles { th.number { "p" (*quantile as f64 / 1e4) } }
                    th.number { "Largest" }
                } }
                tbody {
                    @for row in &rows {
                        @let means = estimate(&row.trials.iter().filter_map(|times| times.mean_s).collect::<Vec<_>>());
                        tr {
                            th scope="row" { (row.case) }
                            th { (row.kind) }
                            td { (row.trials.len()) }
                            td { (means.show_mean(show_seconds)) }
                            td { (means.ci95.map_or("-".to_owned(), |ends| means.carried().show_ends(ends, show_seconds))) }
                            @for quantile in &quantiles { td { (range(row.trials.iter().filter_map(|times| times.quantile_s(*quantile as f64 / 1e6)))) } }
                            td { (row.trials.iter().filter_map(|times| times.max_s).reduce(f64::max).map_or("-".to_owned(), show_seconds)) }
                        }
                    }
                }
            } }
        }
    }
}

fn rows<'a>(groups: &'a [CaseTrials<'_>], time: TimeKind) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for group in groups {
        let case = show_levels(&group.case.levels);
        for trial in group.valid() {
            for (kind, operation) in &trial.operations {
                let Some(times) = operation.stated.get(&time) else { continue };
                match rows.iter_mut().find(|row| row.case == case && row.kind == kind) {
                    Some(row) => row.trials.push(times),
                    None => rows.push(Row { case: case.clone(), kind, trials: vec![times] }),
                }
            }
        }
    }
    rows
}

/// Formats `1.20 ms`, or `1.20 ms to 1.50 ms`.
fn range(values: impl Iterator<Item = f64> + Clone) -> String {
    match (values.clone().reduce(f64::min), values.reduce(f64::max)) {
        (Some(low), Some(high)) if show_seconds(low) == show_seconds(high) => show_seconds(low),
        (Some(low), Some(high)) => format!("{} to {}", show_seconds(low), show_seconds(high)),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_trials_are_a_range() {
        assert_eq!(range([0.001, 0.002].into_iter()), "1 ms to 2 ms");
        assert_eq!(range([0.001].into_iter()), "1 ms");
        assert_eq!(range(std::iter::empty()), "-");
    }
}
