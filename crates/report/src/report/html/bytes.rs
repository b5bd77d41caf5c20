//! What records take on the disk, in all panels.
//!
//! Main function: [`section`]. Invariant: nothing is drawn where no database tells, and a case whose database does not has no bar.

use maud::{Markup, html};

use super::drawing::WHISKERS;
use super::figures::{Quantity, panels};
use super::frame::Frame;
use super::unit::Unit;
use crate::finding::{CaseFinding, Findings};

/// Whether something is known.
pub fn is_shown(findings: &Findings) -> bool {
    findings.cases.iter().any(|case| case.bytes_per_record.is_some())
}

/// The pictures; nothing where nothing is known.
pub fn section(frame: &Frame<'_>, findings: &Findings) -> Markup {
    let of = |case: &CaseFinding| {
        let estimate = case.bytes_per_record.as_ref()?;
        Some((estimate.mean?, estimate.ci95))
    };
    html! {
        @if is_shown(findings) {
            section #bytes {
                h2 { "Bytes on the disk" }
                p.about {
                    "Tables and indexes together, for each record, right behind the trials, as each database states it; " (WHISKERS)
                    ". A database may need less once it has put in order what a trial left."
                }
                (panels(frame, &Quantity { title: "Bytes a record".to_owned(), unit: Unit::Bytes, of: Box::new(of) }))
            }
        }
    }
}
