//! What records take on the disk, tables and indexes together: a line of text for each case.
//!
//! Main function: [`rows`]. Invariant: cases whose databases do not tell are left out, and many cases are left to the page.

use crate::finding::{CaseFinding, Findings};
use crate::report::factors::show_levels_short;
use crate::units::show_bytes;

/// Headings of [`rows`].
pub const HEADINGS: [&str; 3] = ["Case", "a record", "trials"];

/// More cases than this are drawn on the page only.
const CASES_MOST: usize = 24;

/// The rows of the table; none where nothing is known, or of too many cases.
pub fn rows(findings: &Findings) -> Vec<Vec<String>> {
    if findings.cases.len() > CASES_MOST {
        return Vec::new();
    }
    let row = |case: &CaseFinding| {
        let estimate = case.bytes_per_record.as_ref()?;
        let [mean, n] = [estimate.mean.map(show_bytes)?, estimate.n.to_string()];
        Some(vec![show_levels_short(&case.levels), mean, n])
    };
    findings.cases.iter().filter_map(row).collect()
}
