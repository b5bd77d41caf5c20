//! Notes that qualify scores. Main type: [`ScoreNote`].

use serde::Serialize;

use crate::said::said;

/// A note that qualifies a choice. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum ScoreNote {
    /// Sizes and repeats of a run were shrunk.
    #[error("rehearsal: figures are not to be quoted")]
    Rehearsal {},
    /// Totals have no interval.
    #[error("a value rests on a single trial, so totals have no interval: repeat every case to have one")]
    SingleTrials {},
    /// The writes of an open loop are not the throughput of an alternative.
    #[error(
        "{run}: writing in an open loop is left out: its throughput is what was offered, not what an alternative can do"
    )]
    OpenLoop {
        /// The name of the run.
        run: String,
    },
    /// Not every change of places is listed.
    #[error(
        "of {count} alternatives only the weights at which the first one changes are listed, and the first {listed} places"
    )]
    Many {
        /// The number of alternatives.
        count: usize,
        /// The number of ranks that are listed.
        listed: usize,
    },
    /// Some alternative lacks a case.
    #[error("a case of {of} is left out ({case}): {} has no valid trial", without.join(", "))]
    CaseLeftOut {
        /// The part of the score: `writing` or `reading`.
        of: &'static str,
        /// The case that is left out.
        case: String,
        /// The alternatives without a valid trial of it.
        without: Vec<String>,
    },
}

said!(ScoreNote);
