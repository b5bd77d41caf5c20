//! Shows the agents that drove a load together. Item: [`SECTION`].

use maud::{Markup, html};

use super::section::Section;
use super::unit::Unit;
use crate::finding::{AgentsFinding, CaseFinding, HostUse};
use crate::report::factors::show_levels_short;
use crate::units::{show_bytes, show_count, show_number, show_seconds};

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
            @if cases.iter().any(|case| hosts(case).next().is_some()) { (of_hosts(cases)) }
        }
    }
}

/// Returns the agents of a case on other machines, with their numbers, their hosts and the use of these.
fn hosts(case: &CaseFinding) -> impl Iterator<Item = (usize, &str, &HostUse)> {
    let agents = case.agents.iter().flat_map(|agents| (1..).zip(&agents.each));
    agents.filter_map(|(number, agent)| Some((number, agent.host.as_deref()?, agent.host_use.as_ref()?)))
}

fn of_hosts(cases: &[CaseFinding]) -> Markup {
    let cpus = |cpus: Option<f64>| cpus.map_or("-".to_owned(), |cpus| format!("{cpus:.2}"));
    let share = |share: f64| format!("{:.0} %", 100.0 * share);
    html! {
        h3 { "Their hosts in the measured phase" }
        p.about {
            "Each agent watches its own host. Others are all processes there that are not the agent's, a database on the same host among them. Stolen \
             time is what a hypervisor gave to other machines, in the trial in which it was most."
        }
        div.scroll {
            table {
                thead { tr {
                    th { "Case" } th { "Agent" } th { "Host" }
                    @for heading in ["CPUs", "Busy", "CPUs by the agent", "CPUs by others", "Others before", "Stolen", "Memory of the agent", "Received/s", "Sent/s"] {
                        th.number { (heading) }
                    }
                } }
                tbody {
                    @for case in cases {
                        @for (number, host, used) in hosts(case) {
                            tr {
                                th scope="row" { (show_levels_short(&case.levels)) }
                                td { (number) }
                                td { (host) }
                                td.number { (used.cpus) }
                                td.number { (share(used.busy_share)) }
                                td.number { (cpus(Some(used.client_cpus))) }
                                td.number { (cpus(used.others_cpus)) }
                                td.number { (cpus(used.others_cpus_before_most)) }
                                td.number { (share(used.stolen_share_most)) }
                                td.number { (show_bytes(used.client_memory_bytes)) }
                                td.number { (show_bytes(used.received_bytes_per_s)) }
                                td.number { (show_bytes(used.sent_bytes_per_s)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn of_case(case: &CaseFinding, agents: &AgentsFinding) -> Markup {
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |time| Unit::Seconds.show(time));
    html! {
        details open[agents.each.len() <= 16] {
            summary {
                (show_levels_short(&case.levels)) ": " (show_count(agents.each.len() as u64, "agent")) ", begun " (show_seconds(agents.starts_apart_s)) " apart at most"
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
