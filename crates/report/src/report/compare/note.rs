//! What a reader should know about a comparison. Main type: [`CompareNote`].

use serde::Serialize;

use super::p_value::show_p;
use crate::said::said;

/// Something that qualifies comparisons. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum CompareNote {
    /// Sizes and repeats of a run were shrunk.
    #[error("rehearsal: figures are not to be quoted")]
    Rehearsal {},
    /// Invalid trials.
    #[error("{run}: {invalid} of {all} trials are invalid and left out")]
    Invalid {
        /// The run.
        run: String,
        /// Such trials.
        invalid: usize,
        /// All trials.
        all: usize,
    },
    /// Cases with too few trials.
    #[error("{run}: fewer than two valid trials with {metric}, and so not compared: {}", some_of(cases))]
    TooFewTrials {
        /// The run.
        run: String,
        /// What is compared, in words.
        metric: &'static str,
        /// Names of the cases.
        cases: Vec<String>,
    },
    /// A case whose queries found nothing.
    #[error("{run}: queries found nothing with {case}; it is not compared")]
    FoundNothing {
        /// The run.
        run: String,
        /// The case.
        case: String,
    },
    /// A case that was overloaded.
    #[error("{run}: {case} was overloaded, where response times grow with the length of the trial; it is not compared")]
    Overloaded {
        /// The run.
        run: String,
        /// The case.
        case: String,
    },
    /// An alternative that answers something else.
    #[error("{factor} = {level} is not compared with {other} ({case}): {why}")]
    Unlike {
        /// What distinguishes the alternatives.
        factor: String,
        /// The alternative.
        level: String,
        /// The one that it is not compared with.
        other: String,
        /// The case.
        case: String,
        /// Why, with the rows that their queries gave.
        why: String,
    },
    /// Cases that one of two runs has alone.
    #[error("not compared: {}", some_of(cases))]
    OnlyInOne {
        /// The cases, each with its run.
        cases: Vec<String>,
    },
    /// Settings in which two runs differ besides.
    #[error("the runs differ in settings too: {}", settings.join("; "))]
    SettingsDiffer {
        /// The settings with both values.
        settings: Vec<String>,
    },
    /// Two runs were measured one after the other.
    #[error("the runs were not interleaved: what changed on the machine between them counts as a difference")]
    NotInterleaved {},
    /// Comparisons that no test decides.
    #[error("{comparisons} comparisons have no p-value, because neither side varies; they are undecided")]
    NothingVaries {
        /// Such comparisons.
        comparisons: usize,
    },
    /// A series of trials that are not of one kind.
    #[error(
        "{case}, {variant} on {machine}: the level changed after {after} of {all} trials (p = {}); its trials are not of one kind, and a \
         difference may be the change",
        show_p(Some(*p))
    )]
    LevelChanged {
        /// The case.
        case: String,
        /// The alternative.
        variant: String,
        /// Where it was measured.
        machine: String,
        /// Trials before the change.
        after: usize,
        /// All of its trials.
        all: usize,
        /// How often chance alone does so.
        p: f64,
    },
    /// Summaries that do not say which way is better.
    #[error(
        "more is taken to be better, as for {metric}; where less is, give --metric response_time_mean or a column metric"
    )]
    MoreIsBetter {
        /// The metric that is taken.
        metric: &'static str,
    },
}

said!(CompareNote);

/// The first four of a list, and how many more there are.
pub(super) fn some_of(texts: &[String]) -> String {
    let shown = texts.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
    if texts.len() > 4 { format!("{shown}; and {} more", texts.len() - 4) } else { shown }
}
