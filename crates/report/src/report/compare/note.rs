//! Notes that qualify comparisons. Main type: [`CompareNote`].

use serde::Serialize;

use super::p_value::show_p;
use crate::said::said;

/// A note that qualifies comparisons. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum CompareNote {
    /// Sizes and repeats of a run were shrunk.
    #[error("rehearsal: figures are not to be quoted")]
    Rehearsal {},
    /// Some trials are invalid.
    #[error("{run}: {invalid} of {all} trials are invalid and left out")]
    Invalid {
        /// The name of the run.
        run: String,
        /// The number of invalid trials.
        invalid: usize,
        /// The number of all trials.
        all: usize,
    },
    /// Some cases have too few trials.
    #[error("{run}: fewer than two valid trials with {metric}, and so not compared: {}", some_of(cases))]
    TooFewTrials {
        /// The name of the run.
        run: String,
        /// The metric, in words.
        metric: &'static str,
        /// The names of the cases.
        cases: Vec<String>,
    },
    /// The queries of a case found nothing.
    #[error("{run}: queries found nothing with {case}; it is not compared")]
    FoundNothing {
        /// The name of the run.
        run: String,
        /// The name of the case.
        case: String,
    },
    /// A case was overloaded.
    #[error("{run}: {case} was overloaded, where response times grow with the length of the trial; it is not compared")]
    Overloaded {
        /// The name of the run.
        run: String,
        /// The name of the case.
        case: String,
    },
    /// The queries of an alternative have a different answer.
    #[error("{factor} = {level} is not compared with {other} ({case}): {why}")]
    Unlike {
        /// The setting in which the alternatives differ.
        factor: String,
        /// The alternative.
        level: String,
        /// The alternative with which it is not compared.
        other: String,
        /// The name of the case.
        case: String,
        /// The reason, with the rows that their queries returned.
        why: String,
    },
    /// Some cases exist in only one of two runs.
    #[error("not compared: {}", some_of(cases))]
    OnlyInOne {
        /// The cases, each with its run.
        cases: Vec<String>,
    },
    /// Two runs differ in further settings.
    #[error("the runs differ in settings too: {}", settings.join("; "))]
    SettingsDiffer {
        /// The settings with both values.
        settings: Vec<String>,
    },
    /// Two runs were measured one after the other.
    #[error("the runs were not interleaved: what changed on the machine between them counts as a difference")]
    NotInterleaved {},
    /// No test decides some comparisons.
    #[error("{comparisons} comparisons have no p-value, because neither side varies; they are undecided")]
    NothingVaries {
        /// The number of such comparisons.
        comparisons: usize,
    },
    /// The level of a series of trials changed during the run.
    #[error(
        "{case}, {variant} on {machine}: the level changed after {after} of {all} trials (p = {}); its trials are not of one kind, and a \
         difference may be the change",
        show_p(Some(*p))
    )]
    LevelChanged {
        /// The name of the case.
        case: String,
        /// The alternative.
        variant: String,
        /// The machine or run on which it was measured.
        machine: String,
        /// The number of trials before the change.
        after: usize,
        /// The number of all of its trials.
        all: usize,
        /// The probability that chance alone produces such a change.
        p: f64,
    },
    /// The summaries do not say which direction is better.
    #[error(
        "more is taken to be better, as for {metric}; where less is, give --metric response_time_mean or a column metric"
    )]
    MoreIsBetter {
        /// The metric that is assumed.
        metric: &'static str,
    },
}

said!(CompareNote);

/// Formats the first four items of a list, and the number of the others.
pub(super) fn some_of(texts: &[String]) -> String {
    let shown = texts.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
    if texts.len() > 4 { format!("{shown}; and {} more", texts.len() - 4) } else { shown }
}
