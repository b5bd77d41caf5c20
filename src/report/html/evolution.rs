//! The tables of schema changes during a load. Main function: [`evolution`].
//!
//! Invariant: nothing is shown where no schema was changed.

use maud::{Markup, html};

use crate::finding::Findings;
use crate::report::evolution::{CHANGES, OPERATIONS, changes, operations};

/// How long changes took, and the other operations' response times during them and outside of them.
pub fn evolution(findings: &Findings) -> Markup {
    let (changes, operations) = (changes(findings), operations(findings));
    html! {
        @if !changes.is_empty() {
            section #evolution {
                h2 { "Schema changes" }
                p.about {
                    "A field was added, written to some records, and removed again while the load ran. Response times of the other \
                     operations: those whose time met that of a change, and all others. Whoever takes long meets a change more \
                     often: where changes are as short as operations, that alone makes those during them longer."
                }
                (table(&CHANGES, &changes))
                (table(&OPERATIONS, &operations))
            }
        }
    }
}

fn table(headings: &[&str], rows: &[Vec<String>]) -> Markup {
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
