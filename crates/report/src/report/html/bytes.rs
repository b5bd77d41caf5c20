//! Draws the disk space of records, in all panels.
//!
//! Item: [`SECTION`]. Invariant: nothing is drawn if no database reports sizes, and a case whose database does not has no bar.

use maud::{Markup, html};

use super::drawing::WHISKERS;
use super::figures::{Quantity, panels};
use super::section::{Page, Section};
use super::unit::Unit;
use crate::finding::CaseFinding;

/// The section, shown if a size is known.
pub const SECTION: Section = Section {
    id: "bytes",
    title: |_| "Bytes",
    is_shown: |page| page.cases().iter().any(|case| case.bytes_per_record.is_some()),
    draw: section,
};

fn section(page: &Page<'_>) -> Markup {
    let of = |case: &CaseFinding| {
        let estimate = case.bytes_per_record.as_ref()?;
        Some((estimate.mean?, estimate.ci95))
    };
    html! {
        section #bytes {
            h2 { "Bytes on the disk" }
            p.about {
                "Tables and indexes together, for each record, right behind the trials, as each database states it; " (WHISKERS)
                ". A database may need less once it has put in order what a trial left."
            }
            (panels(&page.frame, &Quantity { title: "Bytes a record".to_owned(), unit: Unit::Bytes, of: Box::new(of) }))
        }
    }
}
