//! Shows the table of events that happened to the server. Item: [`SECTION`].
//!
//! Invariant: nothing is shown if no event happened.

use maud::{Markup, html};

use super::section::Section;
use crate::finding::Findings;
use crate::report::instruments::events::{HEADINGS, rows};

/// How long the server was away, for how long nothing was answered, and what is gone.
pub const SECTION: Section = Section {
    id: "events",
    title: |_| "Events",
    is_shown: |page| !rows(page.findings).is_empty(),
    draw: |page| events(page.findings),
};

fn events(findings: &Findings) -> Markup {
    let rows = rows(findings);
    html! {
        section #events {
            h2 { "Events" }
            p.about {
                "What happened to the server on purpose while the load ran. It is away until it lets clients in again or goes on, until a replica takes its writes, until all nodes have the same data again after one was cut off, and while its disk is slow or full or its link is cut; the gap in service is the \
                 longest time in which no operation at all was completed that met the event. Records are gone that were acknowledged and are not there \
                 in the end; those that were sent and not answered may be there or not: each of them is looked for, and they count as neither."
            }
            div.scroll { table {
                thead { tr { @for heading in HEADINGS { th { (heading) } } } }
                tbody { @for row in &rows {
                    tr { @for (place, cell) in row.iter().enumerate() {
                        @if place == 0 { th { (cell) } } @else { td { (cell) } }
                    } }
                } }
            } }
        }
    }
}
