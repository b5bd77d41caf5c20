//! Shows queries: the execution time per client, in small multiples, and the databases' plans.
//!
//! Items: [`EXECUTION_TIME`], [`PLANS`]. Invariant: a plan is shown as the database reported it.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::figures::{self, Quantity};
use super::section::{Page, Section};
use super::unit::Unit;
use crate::finding::CaseFinding;
use crate::metric::Metric;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::report::instruments::plans::{Plans, plans_of, sentences};
use crate::statistics::summary::{mean, t_interval};
use crate::units::{Carried, show_number, show_seconds};

/// The execution time per client in all panels, with response times beside it in the table, shown if the study has queries.
pub const EXECUTION_TIME: Section = Section {
    id: "execution-time",
    title: |_| "Execution time",
    is_shown: |page| {
        page.has_cases() && page.groups.iter().any(|group| !group.case.settings.workload.queries.is_empty())
    },
    draw: execution_time,
};

/// The plans by query, and the layouts between which they differ, shown if plans were kept.
pub const PLANS: Section = Section {
    id: "plans",
    title: |_| "Plans",
    is_shown: |page| page.groups.iter().flat_map(CaseTrials::valid).any(|trial| !trial.plans.is_empty()),
    draw: |page| plans(page.groups),
};

fn execution_time(page: &Page<'_>) -> Markup {
    let Some(metric) = Metric::named("execution_time") else { return html! {} };
    let values: BTreeMap<&str, Vec<f64>> = page
        .groups
        .iter()
        .map(|group| (group.case.id.as_str(), group.valid().filter_map(|trial| metric.of(trial)).collect()))
        .collect();
    let estimate = |case: &CaseFinding| {
        let values: &[f64] = values.get(case.id.as_str()).map_or(&[], Vec::as_slice);
        let interval = t_interval(values, 0.95).map(|interval| [interval.low, interval.high]);
        Some((mean(values)?, interval))
    };
    let quantity = Quantity { title: "Execution time".to_owned(), unit: Unit::Seconds, of: Box::new(estimate) };
    let headings =
        ["Execution time per client", "95 % interval", "Response time, mean", "p50", "p90", "p99", "Rows of a query"];
    let headings = headings.map(str::to_owned);
    let show = |time: Option<f64>| time.map_or("-".to_owned(), show_seconds);
    html! {
        section #execution-time {
            h2 { "Execution time per client" }
            p.about {
                "The time that all queries of a trial took, divided by their number. Clients that are answered at the same time share it, so that it falls as long as the database can \
                 serve more of them at once; the response time of each, in the table, does not. The whiskers are 95 % intervals of \
                 the mean over trials."
            }
            (figures::panels(&page.frame, &quantity))
            (figures::folded_table("Execution and response times as a table", page.cases(), &headings, |case| {
                let estimate = estimate(case);
                let interval = estimate.and_then(|(_, interval)| interval);
                let carried = Carried::by(interval);
                let interval = interval.map(|ends| carried.show_ends(ends, show_seconds));
                let response = page.time_finding(case);
                let of = [response.mean, response.p50, response.p90, response.p99].map(show);
                let rows = case.rows_of_queries().map_or("-".to_owned(), show_number);
                let time = [estimate.map_or("-".to_owned(), |(mean, _)| carried.show(mean, show_seconds)), interval.unwrap_or("-".to_owned())];
                time.into_iter().chain(of).chain([rows]).collect()
            }))
        }
    }
}

fn plans(groups: &[CaseTrials<'_>]) -> Markup {
    let plans = plans_of(groups);
    html! {
        section #plans {
            h2 { "Plans" }
            p.about {
                "How the database says that it executes each query, tables in the order in which it visits them. Plans are compared \
                 without names of tables and numbers of rows."
            }
            ul.notes { @for sentence in sentences(&plans) { li { (sentence) } } }
            details {
                summary { "All plans" }
                @for Plans { levels, by_layout, .. } in &plans {
                    h3 { (show_levels(levels)) }
                    dl {
                        @for (layouts, lines) in by_layout {
                            dt { strong { (layouts) } }
                            @for line in lines { dd { code { (line) } } }
                        }
                    }
                }
            }
        }
    }
}
