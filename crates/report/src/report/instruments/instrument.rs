//! What a report says of one thing that is measured beside operations and their times, such as freshness or a writer beside the load. Main type: [`Instrument`].

use crate::finding::{CaseFinding, Findings, Note, Verdict};
use crate::report::case_trials::CaseTrials;
use crate::report::contest::Scored;
use crate::study::Study;

/// One thing that is measured: a line of `INSTRUMENTS`. Its section of the page is a line of `html::sections::SECTIONS`.
pub struct Instrument {
    /// Puts what the trials of a case say into its finding.
    pub find: fn(&CaseTrials<'_>, &mut CaseFinding),
    /// What is said before alternatives are compared.
    pub verdicts: fn(&Said<'_>) -> Vec<Verdict>,
    /// What is said behind their comparison.
    pub later_verdicts: fn(&Said<'_>) -> Vec<Verdict>,
    /// What is noted.
    pub notes: fn(&[CaseTrials<'_>]) -> Vec<Note>,
    /// Its tables in the text.
    pub tables: fn(&Findings) -> Vec<TextTable>,
}

impl Instrument {
    /// One of which nothing is said.
    pub const SILENT: Instrument = Instrument {
        find: |_, _| (),
        verdicts: |_| Vec::new(),
        later_verdicts: |_| Vec::new(),
        notes: |_| Vec::new(),
        tables: |_| Vec::new(),
    };
}

/// What verdicts are made from.
pub struct Said<'a> {
    /// The study.
    pub study: &'a Study,
    /// The trials of each case.
    pub groups: &'a [CaseTrials<'a>],
    /// The figure by which alternatives are compared, of each case that has it.
    pub scored: &'a [Scored<'a>],
}

/// A table of the text. One without rows is left out.
#[derive(Debug, Clone, Default)]
pub struct TextTable {
    /// What stands above it.
    pub title: &'static str,
    /// Headings of its columns.
    pub headings: &'static [&'static str],
    /// Its rows, as long as the headings.
    pub rows: Vec<Vec<String>>,
    /// Whether cells stay in one line each, however wide the table becomes.
    pub keeps_lines: bool,
    /// Lines below it, each with what it begins with.
    pub below: Vec<(&'static str, String)>,
}
