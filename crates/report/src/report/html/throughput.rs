//! Shows the throughput of all cases. Item: [`SECTION`].

use maud::{Markup, html};

use super::drawing::WHISKERS;
use super::figures;
use super::section::{Page, Section};
use crate::report::durability;
use crate::report::terminal::show_settled;
use crate::units::show_number;

/// The section, shown for every run with a case.
pub const SECTION: Section =
    Section { id: "throughput", title: |_| "Throughput", is_shown: |page| page.has_cases(), draw: section };

fn section(page: &Page<'_>) -> Markup {
    html! {
        section #throughput {
            h2 { "Throughput" (page.against()) }
            p.about { "Mean over trials; " (WHISKERS) "." }
            (figures::throughput(&page.frame, page.cases()))
            (table(page))
        }
    }
}

fn table(page: &Page<'_>) -> Markup {
    let headings =
        ["Operations/s", "95 % interval", "Records/s", "95 % interval", "Survives", "n", "Invalid", "Settled"];
    figures::folded_table("Throughput as a table", page.cases(), &headings.map(str::to_owned), |case| {
        let mut row = Vec::new();
        for estimate in [&case.throughput_per_s, &case.records_per_s] {
            row.push(estimate.show_mean(show_number));
            row.push(estimate.show_interval().unwrap_or("-".to_owned()));
        }
        row.push(durability::word(&case.durability).to_owned());
        row.extend([case.valid_trials.to_string(), (case.trials - case.valid_trials).to_string()]);
        row.push(show_settled(case, page.study.repeat.rule).to_owned());
        row
    })
}
