//! Answers to a study's question. Main type: [`Verdict`].
//!
//! Invariant: code that shows a verdict decides by its kind, its figures and its parts, never by its words.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Estimate, Outcome};
use crate::trial::Levels;

/// A sentence that answers the study's question, with the figures behind it. As JSON it is an object with `kind`, these figures, whether it
/// decides the question, and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "SaidVerdict")]
pub struct Verdict {
    /// The finding with its figures.
    pub found: Found,
    /// The answer in words.
    pub answer: String,
    /// The evidence for the answer; empty where the answer needs none.
    pub evidence: String,
    /// The punctuation between answer and evidence.
    joint: &'static str,
}

impl Verdict {
    /// Creates a verdict without evidence.
    pub fn new(found: Found, answer: impl Into<String>) -> Self {
        Verdict { found, answer: answer.into(), evidence: String::new(), joint: "" }
    }

    /// Adds the evidence for the answer, after a colon.
    pub fn because(self, evidence: impl Into<String>) -> Self {
        Verdict { evidence: evidence.into(), joint: ": ", ..self }
    }

    /// Adds what follows from the answer, after a semicolon.
    pub fn and(self, evidence: impl Into<String>) -> Self {
        Verdict { evidence: evidence.into(), joint: "; ", ..self }
    }

    /// Puts the alternative or the case that the verdict is about before the answer.
    pub fn about(self, lead: &str) -> Self {
        Verdict { answer: format!("{lead}{}", self.answer), ..self }
    }

    /// Adds a remark at the end.
    pub fn remarked(self, remark: &str) -> Self {
        if self.evidence.is_empty() {
            return self.and(remark);
        }
        Verdict { evidence: format!("{}; {remark}", self.evidence), ..self }
    }

    /// Returns whether the verdict reports that acknowledged records are gone, or that a server did not come back.
    pub fn tells_of_loss(&self) -> bool {
        matches!(self.found, Found::Events { lost: Some(1..), .. } | Found::Events { not_back: 1.., .. })
    }

    /// Returns whether the verdict decides its question.
    pub fn is_decided(&self) -> bool {
        match &self.found {
            Found::NoValidTrial {} => false,
            Found::Events { lost, not_back, .. } => lost.is_some() || *not_back > 0,
            Found::LoadLine { arrival_rate_per_s, outcome, .. } => {
                arrival_rate_per_s.is_some() && !matches!(outcome, Outcome::NotDriven { .. })
            }
            Found::MostLoad { is_decided, .. }
            | Found::Highest { is_decided, .. }
            | Found::Choice { is_decided, .. } => *is_decided,
            Found::Contest { leader, .. } => *leader != Leader::Undecided,
            _ => true,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.answer, self.joint, self.evidence)
    }
}

/// The form of [`Verdict`] in JSON.
#[derive(Serialize, JsonSchema)]
struct SaidVerdict {
    #[serde(flatten)]
    found: Found,
    decides: bool,
    says: String,
}

impl From<Verdict> for SaidVerdict {
    fn from(verdict: Verdict) -> Self {
        SaidVerdict { decides: verdict.is_decided(), says: verdict.to_string(), found: verdict.found }
    }
}

/// The subject of a verdict, with its figures. Rates of a metric are in the metric's own unit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Found {
    /// No trial is valid, so there is nothing to judge.
    NoValidTrial {},
    /// A rehearsal: sizes and repeats were shrunk.
    Rehearsal {},
    /// The load line of a case, or the finding that there is none.
    LoadLine {
        /// Levels of the case.
        levels: Levels,
        /// Quantile of response time, 0..1.
        quantile: f64,
        /// Bound on that quantile.
        below_s: f64,
        /// The arrival rate of the load line; null where there is none.
        arrival_rate_per_s: Option<f64>,
        /// Bracket of the load line.
        ci95_per_s: Option<[f64; 2]>,
        /// How the search ended.
        outcome: Outcome,
    },
    /// The alternative that carries the most load, with all other factors equal.
    MostLoad {
        /// Levels of the other factors.
        levels: Levels,
        /// The alternative with the highest line.
        first: String,
        /// The first alternative compared with each of the others.
        others: Vec<Compared>,
        /// Whether the bracket of the first overlaps no other bracket.
        is_decided: bool,
    },
    /// Alternatives that compete by a figure.
    Contest {
        /// The figure.
        metric: &'static str,
        /// The server setting whose levels the alternatives are, where levels of one setting compete.
        setting: Option<String>,
        /// The alternative with the best mean.
        first: String,
        /// The first alternative compared with each of the others.
        others: Vec<Compared>,
        /// Whether the first is the best.
        leader: Leader,
    },
    /// The server settings that make a difference, and those that make none.
    ServerSettings {
        /// The best level of each setting that makes a difference, with the level it was compared with.
        pay: Vec<Pays>,
        /// Settings that make no difference.
        equal: Vec<String>,
        /// Settings for which the trials do not decide.
        undecided: Vec<String>,
    },
    /// The fastest way to write to the disk beside the load, among those that sync at the same moments.
    DiskFastest {
        /// When the writer syncs.
        sync: &'static str,
        /// Bytes of a block.
        block_bytes: u64,
        /// Bytes written per second.
        written_bytes_per_s: Estimate,
    },
    /// The case in which such a writer slows operations down the most.
    DiskSuffering {
        /// Levels of the case.
        levels: Levels,
        /// Median and 99th percentile of response time in this case.
        response_time_s: [f64; 2],
        /// The same two quantiles without a writer.
        undisturbed_s: [f64; 2],
    },
    /// The case that takes in the most blocks.
    MostTakenIn {
        /// Levels of the case.
        levels: Levels,
        /// Bytes acknowledged per second.
        intake_bytes_per_s: Estimate,
    },
    /// The part of the blocks offered by cameras that is taken in.
    TakenIn {
        /// Levels of the case without the number of cameras.
        levels: Levels,
        /// Number of cameras.
        cameras: u32,
        /// Bytes that the cameras make per second.
        offered_bytes_per_s: f64,
        /// Bytes acknowledged per second.
        intake_bytes_per_s: Estimate,
    },
    /// How fast the recorder answers while blocks are uploaded.
    RecorderAnswers {
        /// The longest time to an answer.
        answer_max_s: f64,
        /// Cases in which the answer took too long.
        late: usize,
        /// Cases in which the recorder was asked.
        cases: usize,
    },
    /// How long schema changes take, and what they cost.
    SchemaChanges {
        /// Levels of the case.
        levels: Levels,
        /// Changes and operations that failed.
        failed: u64,
        /// Throughput with schema changes over throughput without; null where the study has no case without.
        throughput_ratio: Option<f64>,
        /// 95 % interval of that ratio.
        ratio_ci95: Option<[f64; 2]>,
    },
    /// What it costs to throw old readings away while others come in.
    Retention {
        /// Levels of the case.
        levels: Levels,
        /// Steps of the data's time that were retired whole.
        steps: u64,
        /// Mean duration of a step; null where none was retired whole.
        step_took_s: Option<f64>,
        /// Seconds of the data's time that were due and not retired yet at the end of a trial, at most.
        behind_s: f64,
    },
    /// The fate of acknowledged records after events of the server.
    Events {
        /// Levels of the case.
        levels: Levels,
        /// Acknowledged records that are gone; null where they were not counted.
        lost: Option<u64>,
        /// Trials in which acknowledged records are gone.
        trials_with_loss: u64,
        /// Trials in which the records were counted.
        counted: u64,
        /// Trials in which the server did not come back.
        not_back: u64,
    },
    /// The number of sources that a recorder carries.
    SourcesCarried {
        /// Levels of the case without the number of sources.
        levels: Levels,
        /// The largest number of sources that is certainly carried; null where none is.
        carried: Option<f64>,
        /// The largest number of sources that was tried.
        sources: f64,
        /// Records per second that these sources send.
        sent_records_per_s: f64,
        /// Records per second that are stored while the sources send.
        stored_records_per_s: Estimate,
        /// Time from the end of the last source until the remaining records were stored.
        buffer_s: Estimate,
    },
    /// The time until events are seen.
    Seen {
        /// Levels of the case.
        levels: Levels,
        /// 90th percentile of the time until an event is seen.
        seen_p90_s: f64,
        /// Bytes of events written.
        event_bytes_per_s: Estimate,
        /// Sightings lost.
        lost: u64,
        /// Whether this case writes the most bytes among the cases that differ in nothing else.
        is_most: bool,
    },
    /// Published events are seen before they are on a disk.
    Published {},
    /// The levels of a ramp at which a figure is highest.
    Highest {
        /// The figure.
        metric: &'static str,
        /// Name of the alternative; empty where there is one.
        alternative: String,
        /// The setting of the ramp.
        setting: String,
        /// Levels that may be the best one; all of them where it is undecided.
        at: Vec<f64>,
        /// The highest mean.
        mean: f64,
        /// Whether at least one level is excluded.
        is_decided: bool,
    },
    /// The effect of a condition on a figure.
    Condition {
        /// The figure.
        metric: &'static str,
        /// Name of the alternative; empty where there is one.
        alternative: String,
        /// The setting of the condition.
        setting: String,
        /// Its lowest and its highest level.
        between: [f64; 2],
        /// The figure at the highest level over that at the lowest.
        ratio: f64,
        /// 95 % interval of that ratio.
        ratio_ci95: [f64; 2],
    },
    /// Further alternatives along a ramp, which only the plots show.
    MoreInPlots {
        /// The setting of the ramp.
        setting: String,
        /// Number of further alternatives.
        more: usize,
    },
    /// The figure of a case that is not compared with another.
    Figure {
        /// The figure.
        metric: &'static str,
        /// Levels of the case.
        levels: Levels,
        /// Mean over its trials.
        mean: f64,
        /// Number of trials.
        n: usize,
    },
    /// The alternative with the most points.
    Choice {
        /// The alternatives that may be the best one; the first has the highest total.
        may_be: Vec<String>,
        /// Points by which the first is above the next one.
        lead: f64,
        /// Interval of `lead` at 95 % or more; null without repeats.
        lead_ci95: Option<[f64; 2]>,
        /// Write weights between which the first has the highest total; a null end means no limit.
        first_between: (f64, Option<f64>),
        /// Whether the first is certainly the best.
        is_decided: bool,
    },
    /// The growth of response time with the arrival rate.
    Growth {
        /// Levels of the cases without the arrival rate.
        levels: Levels,
        /// The highest rate that the database carries; null where it carries none of them.
        carried_per_s: Option<f64>,
        /// The highest p99 up to that rate, or a lower bound of the p99 of the overloaded case.
        response_time_p99_s: f64,
        /// The lowest rate at which the database falls behind; null where it never did.
        overloaded_at_per_s: Option<f64>,
    },
}

impl Found {
    /// Returns the alternatives that are compared with each other by ratios; empty where none are.
    pub fn compared(&self) -> Vec<&str> {
        let told = |others: &[Compared]| others.iter().any(|other| other.ratio.is_some());
        match self {
            Found::Contest { first, others, .. } | Found::MostLoad { first, others, .. } if told(others) => {
                std::iter::once(first).chain(others.iter().map(|other| &other.name)).map(String::as_str).collect()
            }
            Found::ServerSettings { pay, .. } => {
                pay.iter().flat_map(|pays| [&pays.level, &pays.over]).map(String::as_str).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The standing of the first of several alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leader {
    /// Better than every other alternative.
    Best,
    /// Equal to some alternatives, and better than the others.
    Equal,
    /// Not told apart from some alternatives.
    Undecided,
}

/// The comparison of the first of several alternatives with another one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// The other alternative.
    pub name: String,
    /// The first over the other; null where they could not be compared.
    pub ratio: Option<f64>,
    /// The interval that decides.
    pub ratio_interval: Option<[f64; 2]>,
    /// The outcome of the comparison.
    pub told: Told,
}

/// The outcome of comparing two alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// One is certainly better.
    Apart,
    /// They are certainly equal.
    Equal,
    /// Neither is certain.
    Undecided,
}

/// A setting of the server that makes a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pays {
    /// The best level of the setting.
    pub level: String,
    /// A level that is certainly worse.
    pub over: String,
    /// The best level over the worse one.
    pub ratio: f64,
    /// The interval that decides.
    pub ratio_interval: [f64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_an_object_with_its_kind_its_figures_and_its_sentence() {
        let other =
            Compared { name: "wide".to_owned(), ratio: Some(1.5), ratio_interval: Some([1.4, 1.6]), told: Told::Apart };
        let (first, leader) = ("star".to_owned(), Leader::Best);
        let found = Found::Contest { metric: "throughput", setting: None, first, others: vec![other], leader };
        assert_eq!(found.compared(), ["star", "wide"]);
        let verdict = Verdict::new(found, "star is fastest").because("1.5 × wide").remarked("both survive a crash");
        let told = serde_json::to_value(&verdict).unwrap();
        assert_eq!(
            (&told["kind"], &told["leader"], &told["decides"]),
            (&"contest".into(), &"best".into(), &true.into())
        );
        assert_eq!(told["says"], "star is fastest: 1.5 × wide; both survive a crash");
        assert_eq!(told["others"][0]["told"], "apart");
        assert!(!Verdict::new(Found::NoValidTrial {}, "no verdict").is_decided());
    }
}
