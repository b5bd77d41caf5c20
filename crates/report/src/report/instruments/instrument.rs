//! Defines the report on one thing measured beside operations and their times, such as freshness or a writer beside the load. Main type: [`Instrument`].

use crate::finding::{CaseFinding, Findings, Note, Verdict};
use crate::report::case_trials::CaseTrials;
use crate::report::contest::Scored;
use crate::study::Study;

/// One thing that is measured: an entry of `INSTRUMENTS`. Its section of the page is an entry of `html::sections::SECTIONS`.
pub struct Instrument {
    /// Puts the results of a case's trials into its finding.
    pub find: fn(&CaseTrials<'_>, &mut CaseFinding),
    /// Returns the verdicts that precede the comparison of alternatives.
    pub verdicts: fn(&Said<'_>) -> Vec<Verdict>,
    /// Returns the verdicts that follow the comparison of alternatives.
    pub later_verdicts: fn(&Said<'_>) -> Vec<Verdict>,
    /// Returns the notes.
    pub notes: fn(&[CaseTrials<'_>]) -> Vec<Note>,
    /// Returns the tables of the text report.
    pub tables: fn(&Findings) -> Vec<TextTable>,
}

impl Instrument {
    /// An instrument that reports nothing.
    pub const SILENT: Instrument = Instrument {
        find: |_, _| (),
        verdicts: |_| Vec::new(),
        later_verdicts: |_| Vec::new(),
        notes: |_| Vec::new(),
        tables: |_| Vec::new(),
    };
}

/// The data from which verdicts are made.
pub struct Said<'a> {
    /// The study.
    pub study: &'a Study,
    /// The trials of each case.
    pub groups: &'a [CaseTrials<'a>],
    /// The figure by which alternatives are compared, for each case that has it.
    pub scored: &'a [Scored<'a>],
}

/// A table of the text report. A table without rows is left out.
#[derive(Debug, Clone, Default)]
pub struct TextTable {
    /// The title above the table.
    pub title: &'static str,
    /// The headings of its columns.
    pub headings: &'static [&'static str],
    /// Its rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
    /// Whether each cell stays on one line, however wide the table becomes.
    pub keeps_lines: bool,
    /// The lines below the table, each with its beginning.
    pub below: Vec<(&'static str, String)>,
}
