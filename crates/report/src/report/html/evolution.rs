//! Shows the tables of schema changes during a load. Item: [`SECTION`].
//!
//! Invariant: nothing is shown if no schema was changed.

use maud::{Markup, html};

use super::section::Section;
use crate::finding::Findings;
use crate::report::instruments::evolution::{CHANGES, OPERATIONS, changes, operations};

/// How long changes took, and the other operations' response times during them and outside of them.
pub const SECTION: Section = Section {
    id: "evolution",
    title: |_| "Schema changes",
    is_shown: |page| !changes(page.findings).is_empty(),
    draw: |page| evolution(page.findings),
};

fn evolution(findings: &Findings) -> Markup {
    let (changes, operations) = (changes(findings), operations(findings));
    html! {
        section #evolution {
            h2 { "Schema changes" }
            p.about {
                "The schema was changed, and changed back, while the load ran. An operation is during a change when its intended \
                 time is, however long it took: a change that does nothing shows no difference. Beside the response times stands \
                 the longest time, of any trial, in which nothing at all was completed."
            }
            (table(&CHANGES, &changes))
            (table(&OPERATIONS, &operations))
        }
    }
}

/// Draws a table whose first column names the case.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { @for heading in headings { th { (heading) } } } }
            tbody { @for row in rows {
                tr { @for (place, cell) in row.iter().enumerate() {
                    @if place == 0 { th { (cell) } } @else { td { (cell) } }
                } }
            } }
        } }
    }
}
