//! Records on their way through a recorder: figure 5.30 of Ruottinen 2015 and a table. Main function: [`section`].
//!
//! Invariant: nothing is shown where no study asked for it.

use maud::{Markup, html};

use super::figures::{Quantity, panels};
use super::frame::Frame;
use super::unit::Unit;
use crate::finding::{CaseFinding, Estimate, Findings};
use crate::report::recorded::{HEADINGS, rows};
use crate::report::uploads;

/// Whether there is something to show.
pub fn is_shown(findings: &Findings) -> bool {
    findings.cases.iter().any(|case| case.recorded.is_some())
}

/// What was stored per second while all sources were active, how long the rest took afterwards, and whether all arrived.
pub fn section(frame: &Frame<'_>, findings: &Findings) -> Markup {
    if !is_shown(findings) {
        return html! {};
    }
    let stored = Quantity {
        title: "Stored in the database".to_owned(),
        unit: Unit::Rate("records/s"),
        of: Box::new(|case: &CaseFinding| {
            let estimate = &case.recorded.as_ref()?.stored_per_s;
            Some((estimate.mean?, estimate.ci95))
        }),
    };
    let buffer = Quantity {
        title: "Length of the buffer".to_owned(),
        unit: Unit::Seconds,
        of: Box::new(|case: &CaseFinding| Some((case.recorded.as_ref()?.buffer_s.mean?, None))),
    };
    html! {
        section #recorded {
            h2 { "Through the recorder" }
            p.about {
                "Records that became stored per second within the measured phase, and how long it took to store what was left when the \
                 last source had ended. Every record acknowledged was looked for in the database afterwards."
            }
            (panels(frame, &stored))
            (panels(frame, &buffer))
            (blocks(frame, findings))
            (table(&HEADINGS, rows(findings)))
        }
    }
}

/// What was taken in of blocks, and what came over the network meanwhile; nothing where none were uploaded.
fn blocks(frame: &Frame<'_>, findings: &Findings) -> Markup {
    if findings.cases.iter().all(|case| case.uploads.is_none()) {
        return html! {};
    }
    let estimated =
        |estimate: &Estimate| Some((8.0 * estimate.mean?, estimate.ci95.map(|ends| ends.map(|end| 8.0 * end))));
    let intake = Quantity {
        title: "Blocks taken in".to_owned(),
        unit: Unit::Rate("bit/s"),
        of: Box::new(move |case: &CaseFinding| estimated(&case.uploads.as_ref()?.intake_bytes_per_s)),
    };
    let network = Quantity {
        title: "Received from the network".to_owned(),
        unit: Unit::Rate("bit/s"),
        of: Box::new(move |case: &CaseFinding| estimated(&case.uploads.as_ref()?.received_bytes_per_s)),
    };
    let answer = Quantity {
        title: "Longest answer of the recorder".to_owned(),
        unit: Unit::Seconds,
        of: Box::new(|case: &CaseFinding| Some((case.uploads.as_ref()?.answer_max_s, None))),
    };
    html! {
        (panels(frame, &intake))
        (panels(frame, &network))
        (panels(frame, &answer))
        (table(&uploads::HEADINGS, uploads::rows(findings)))
    }
}

fn table(headings: &[&str], rows: Vec<Vec<String>>) -> Markup {
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
