//! Shows what a writer beside the load wrote to the disk. Item: [`SECTION`].

use maud::{Markup, html};

use super::drawing::WHISKERS;
use super::figures::{Quantity, folded_table, panels};
use super::frame::Frame;
use super::section::Section;
use super::unit::Unit;
use crate::finding::CaseFinding;

/// The section, shown if there was such a writer.
pub const SECTION: Section = Section {
    id: "disk",
    title: |_| "Written to the disk",
    is_shown: |page| page.cases().iter().any(|case| case.disk_written_bytes_per_s.is_some()),
    draw: |page| section(&page.frame, page.cases()),
};

fn section(frame: &Frame<'_>, cases: &[CaseFinding]) -> Markup {
    let of = |case: &CaseFinding| {
        let Some(estimate) = &case.disk_written_bytes_per_s else {
            // Without a writer nothing is written beside the load, which is not a failure.
            return (case.valid_trials > 0).then_some((0.0, None));
        };
        Some((estimate.mean?, estimate.ci95.map(|[low, high]| [low.max(0.0), high])))
    };
    let quantity = Quantity { title: "Written to the disk".to_owned(), unit: Unit::BytesPerSecond, of: Box::new(of) };
    let headings = ["Written/s", "95 % interval"].map(str::to_owned);
    html! {
        section #disk {
            h2 { "Written to the disk beside the load" }
            p.about { "Mean over trials, with the time of the syncs; " (WHISKERS) "." }
            (panels(frame, &quantity))
            (folded_table("Written to the disk as a table", cases, &headings, |case| {
                let written = case.disk_written_bytes_per_s.as_ref();
                let show = |value: f64| Unit::BytesPerSecond.show(value.max(0.0));
                let interval = written.and_then(|written| written.ci95);
                vec![
                    written.and_then(|written| written.mean).map_or("-".to_owned(), show),
                    interval.map_or("-".to_owned(), |[low, high]| format!("[{}, {}]", show(low), show(high))),
                ]
            }))
        }
    }
}
