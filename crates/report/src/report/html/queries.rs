//! Queries: the time that executing one takes per client, small multiples of it, and the databases' plans.
//!
//! Main functions: [`execution_time`], [`plans`]. Invariant: a plan is shown as the database told it.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::figures::{self, Quantity};
use super::frame::Frame;
use super::unit::Unit;
use crate::finding::{CaseFinding, TimeFinding};
use crate::metric::Metric;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::report::plans::{Plans, plans_of};
use crate::statistics::summary::{mean, t_interval};
use crate::units::{Carried, show_number, show_seconds};

/// Whether the study asks queries.
pub fn is_shown(groups: &[CaseTrials<'_>]) -> bool {
    groups.iter().any(|group| !group.case.settings.workload.queries.is_empty())
}

/// Whether plans were kept.
pub fn has_plans(groups: &[CaseTrials<'_>]) -> bool {
    groups.iter().flat_map(CaseTrials::valid).any(|trial| !trial.plans.is_empty())
}

/// Execution time per client in all panels, with response times beside it in the table; nothing for studies without queries.
pub fn execution_time(
    frame: &Frame<'_>,
    cases: &[CaseFinding],
    groups: &[CaseTrials<'_>],
    times: &dyn Fn(&CaseFinding) -> TimeFinding,
) -> Markup {
    let Some(metric) = Metric::named("execution_time").filter(|_| is_shown(groups)) else { return html! {} };
    let values: BTreeMap<&str, Vec<f64>> = groups
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
            (figures::panels(frame, &quantity))
            (figures::folded_table("Execution and response times as a table", cases, &headings, |case| {
                let estimate = estimate(case);
                let interval = estimate.and_then(|(_, interval)| interval);
                let carried = Carried::by(interval);
                let interval = interval.map(|ends| carried.show_ends(ends, show_seconds));
                let response = times(case);
                let of = [response.mean, response.p50, response.p90, response.p99].map(show);
                let rows = case.rows_of_queries().map_or("-".to_owned(), show_number);
                let time = [estimate.map_or("-".to_owned(), |(mean, _)| carried.show(mean, show_seconds)), interval.unwrap_or("-".to_owned())];
                time.into_iter().chain(of).chain([rows]).collect()
            }))
        }
    }
}

/// The plans, query by query, and between which layouts they differ; nothing where none were kept.
pub fn plans(groups: &[CaseTrials<'_>]) -> Markup {
    let plans = plans_of(groups);
    if plans.is_empty() {
        return html! {};
    }
    html! {
        section #plans {
            h2 { "Plans" }
            p.about {
                "How the database says that it executes each query, tables in the order in which it visits them. Plans are compared \
                 without names of tables and numbers of rows."
            }
            ul.notes { @for plan in &plans { li { (plan.sentence()) } } }
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
