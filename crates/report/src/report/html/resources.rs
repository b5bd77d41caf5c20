//! Shows the activity of machine and processes during the trials. Item: [`SECTION`].

use maud::{Markup, html};

use super::section::{Page, Section};
use super::{figures, unit};
use crate::report::case_trials::CaseTrials;
use crate::units::show_number;

/// The section, shown if the run watched resources.
pub const SECTION: Section = Section {
    id: "resources",
    title: |_| "Resources",
    is_shown: |page| page.cases().iter().any(|case| case.resources.is_some()),
    draw: section,
};

fn section(page: &Page<'_>) -> Markup {
    html! {
        section #resources {
            h2 { "Resources" (page.against()) }
            p.about {
                "Means over the measured phases of all valid trials, of the whole machine unless said otherwise."
                (page.frame.best_panel_remark()) (cost_of_monitoring(page.groups))
            }
            (figures::resources(&page.frame))
            (table(page))
        }
    }
}

fn table(page: &Page<'_>) -> Markup {
    let headings: Vec<String> = figures::RESOURCES.iter().map(|(title, ..)| (*title).to_owned()).collect();
    figures::folded_table("Resources as a table", page.cases(), &headings, |case| {
        let used = case.resources.as_ref();
        let show = |(_, unit, figure): &(_, unit::Unit, fn(&_) -> f64)| {
            used.map_or("-".to_owned(), |used| unit.show(figure(used)))
        };
        figures::RESOURCES.iter().map(show).collect()
    })
}

/// Returns the cost of watching the machine, as a sentence; empty if nothing was watched.
fn cost_of_monitoring(groups: &[CaseTrials<'_>]) -> String {
    let watched = groups
        .iter()
        .flat_map(CaseTrials::valid)
        .filter_map(|trial| Some((trial.resources.as_ref()?.monitor_cpu_s, trial.measured_s)));
    let (cpu_s, measured_s) = watched.fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    if measured_s <= 0.0 {
        return String::new();
    }
    format!(" Watching took {} % of one CPU itself.", show_number(100.0 * cpu_s / measured_s))
}
