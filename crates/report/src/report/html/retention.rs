//! Shows the tables of readings that were thrown away while others came in. Item: [`SECTION`].
//!
//! Invariant: nothing is shown where all readings stay.

use maud::{Markup, html};

use super::evolution::table;
use super::section::Section;
use crate::finding::Findings;
use crate::report::instruments::evolution::OPERATIONS;
use crate::report::instruments::retention::{STEPS, operations, steps};

/// How long it took to throw readings away, and the other operations' response times meanwhile and outside.
pub const SECTION: Section = Section {
    id: "retention",
    title: |_| "Old readings",
    is_shown: |page| !steps(page.findings).is_empty(),
    draw: |page| retention(page.findings),
};

fn retention(findings: &Findings) -> Markup {
    let (steps, operations) = (steps(findings), operations(findings));
    html! {
        section #retention {
            h2 { "Old readings" }
            p.about {
                "Old readings were thrown away while others came in, a step of the data's time at once. What was due and still there at the end, "
                "in whole steps of the data's time, says whether that kept up. An operation is during a change when its intended time is, however long it took. \
                 Beside the response times stands the longest time, of any trial, in which nothing at all was completed."
            }
            (table(&STEPS, &steps))
            (table(&OPERATIONS, &operations))
        }
    }
}
