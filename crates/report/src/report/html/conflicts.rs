//! Shows the table of conflicts between transactions. Item: [`SECTION`].
//!
//! Invariant: nothing is shown if no operation was sent again and no node counted conflicts.

use maud::{Markup, html};

use super::section::Section;
use crate::finding::Findings;
use crate::report::instruments::conflicts::{HEADINGS, rows};

/// How often operations were sent again, and what nodes refused.
pub const SECTION: Section = Section {
    id: "conflicts",
    title: |_| "Conflicts",
    is_shown: |page| !rows(page.findings).is_empty(),
    draw: |page| conflicts(page.findings),
};

fn conflicts(findings: &Findings) -> Markup {
    html! {
        section #conflicts {
            h2 { "Conflicts" }
            p.about {
                "How often an operation was sent again because its transaction had lost against another one. It counts as one operation, whose response time includes all attempts. Nodes of a cluster \
                 count what they refused or interrupted over the whole trial, its warm-up included; what was interrupted may have been carried out later by the node itself."
            }
            div.scroll { table {
                thead { tr { @for heading in HEADINGS { th { (heading) } } } }
                tbody { @for row in rows(findings) {
                    tr { @for (place, cell) in row.iter().enumerate() {
                        @if place == 0 { th { (cell) } } @else { td { (cell) } }
                    } }
                } }
            } }
        }
    }
}
