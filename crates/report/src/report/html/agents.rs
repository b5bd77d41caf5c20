//! Shows the agents that drove a load together. Item: [`SECTION`].

use maud::{Markup, html};

use super::section::Section;
use super::unit::Unit;
use crate::finding::{AgentsFinding, CaseFinding};
use crate::report::factors::show_levels_short;
use crate::units::{show_number, show_seconds};

/// The section, shown if there were agents.
pub const SECTION: Section = Section {
    id: "agents",
    title: |_| "Agents",
    is_shown: |page| page.cases().iter().any(|case| case.agents.is_some()),
    draw: |page| section(page.cases()),
};

fn section(cases: &[CaseFinding]) -> Markup {
    html! {
        section #agents {
            h2 { "Agents, each with its share of the load" }
            p.about {
                "Times of all valid trials of a case together. All agents begin at one time; the warm-up takes up what they begin apart."
            }
            @for case in cases {
                @if let Some(agents) = &case.agents { (of_case(case, agents)) }
            }
        }
    }
}

fn of_case(case: &CaseFinding, agents: &AgentsFinding) -> Markup {
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |time| Unit::Seconds.show(time));
    html! {
        details open[agents.each.len() <= 16] {
            summary {
                (show_levels_short(&case.levels)) ": " (agents.each.len()) " agents, begun " (show_seconds(agents.starts_apart_s)) " apart at most"
            }
            div.scroll {
                table {
                    thead { tr {
                        th { "Agent" } th { "Host" } th.number { "Clients" } th.number { "Completed/s" } th.number { "p50" } th.number { "p99" } th.number { "CPUs" }
                    } }
                    tbody {
                        @for (number, agent) in (1..).zip(&agents.each) {
                            tr {
                                th scope="row" { (number) }
                                td { (agent.host.as_deref().unwrap_or("this machine")) }
                                td.number { (agent.clients) }
                                td.number { (show_number(agent.throughput_per_s)) }
                                td.number { (seconds(agent.response_time_p50_s)) }
                                td.number { (seconds(agent.response_time_p99_s)) }
                                td.number { (format!("{:.2}", agent.cpus)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
