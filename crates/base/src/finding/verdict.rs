//! What is said about a study's question. Main type: [`Verdict`].
//!
//! Invariant: whoever shows a verdict decides by its kind, its figures and its parts, never by its words.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Estimate, Outcome};
use crate::trial::Levels;

/// A sentence about the question, with what it says as figures. As JSON it is an object with `kind`, these figures, whether it decides, and
/// `says`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "SaidVerdict")]
pub struct Verdict {
    /// What was found.
    pub found: Found,
    /// The answer in words.
    pub answer: String,
    /// What it rests on; empty where the answer says it all.
    pub evidence: String,
    /// What stands between the two.
    joint: &'static str,
}

impl Verdict {
    /// An answer that says it all.
    pub fn new(found: Found, answer: impl Into<String>) -> Self {
        Verdict { found, answer: answer.into(), evidence: String::new(), joint: "" }
    }

    /// The same with what it rests on, behind a colon.
    pub fn because(self, evidence: impl Into<String>) -> Self {
        Verdict { evidence: evidence.into(), joint: ": ", ..self }
    }

    /// The same with what follows from it, behind a semicolon.
    pub fn and(self, evidence: impl Into<String>) -> Self {
        Verdict { evidence: evidence.into(), joint: "; ", ..self }
    }

    /// The same of an alternative, or of a case, that is named first.
    pub fn about(self, lead: &str) -> Self {
        Verdict { answer: format!("{lead}{}", self.answer), ..self }
    }

    /// The same with a remark at its end.
    pub fn remarked(self, remark: &str) -> Self {
        if self.evidence.is_empty() {
            return self.and(remark);
        }
        Verdict { evidence: format!("{}; {remark}", self.evidence), ..self }
    }

    /// Whether it tells of records that were acknowledged and are gone.
    pub fn tells_of_loss(&self) -> bool {
        matches!(self.found, Found::Events { lost: Some(1..), .. } | Found::Events { not_back: 1.., .. })
    }

    /// Whether it decides anything.
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

/// What a verdict is about, with its figures. Rates of a metric are in the metric's own unit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Found {
    /// There is nothing to judge.
    NoValidTrial {},
    /// Sizes and repeats were shrunk.
    Rehearsal {},
    /// The load line of a case, or that there is none.
    LoadLine {
        /// Levels of the case.
        levels: Levels,
        /// Quantile of response time, 0..1.
        quantile: f64,
        /// Bound on it.
        below_s: f64,
        /// The line; null where there is none.
        arrival_rate_per_s: Option<f64>,
        /// Its bracket.
        ci95_per_s: Option<[f64; 2]>,
        /// How the search ended.
        outcome: Outcome,
    },
    /// Which alternative carries the most load, where the others are equal.
    MostLoad {
        /// Levels of the other factors.
        levels: Levels,
        /// The alternative with the highest line.
        first: String,
        /// It against each of the others.
        others: Vec<Compared>,
        /// Whether no bracket meets that of the first.
        is_decided: bool,
    },
    /// Alternatives that compete in a figure.
    Contest {
        /// The figure.
        metric: &'static str,
        /// The setting of the server that they are levels of, where that is what competes.
        setting: Option<String>,
        /// The alternative with the best mean.
        first: String,
        /// It against each of the others.
        others: Vec<Compared>,
        /// Whether it is the best.
        leader: Leader,
    },
    /// Which settings of the server make a difference.
    ServerSettings {
        /// The best level of each that does, with what it was compared with.
        pay: Vec<Pays>,
        /// Those that make none.
        equal: Vec<String>,
        /// Those of which it is not known.
        undecided: Vec<String>,
    },
    /// The fastest way to write to the disk beside the load, of those that sync alike.
    DiskFastest {
        /// When it syncs.
        sync: &'static str,
        /// Bytes of a block.
        block_bytes: u64,
        /// Bytes written per second.
        written_bytes_per_s: Estimate,
    },
    /// What operations suffer most from such a writer.
    DiskSuffering {
        /// Levels of the case.
        levels: Levels,
        /// Median and 99th percentile of response time in it.
        response_time_s: [f64; 2],
        /// The same without a writer.
        undisturbed_s: [f64; 2],
    },
    /// Where most blocks are taken in.
    MostTakenIn {
        /// Levels of the case.
        levels: Levels,
        /// Bytes that are acknowledged.
        intake_bytes_per_s: Estimate,
    },
    /// How much of what cameras offer is taken in.
    TakenIn {
        /// Levels of the case without the number of cameras.
        levels: Levels,
        /// Cameras.
        cameras: u32,
        /// Bytes that they make.
        offered_bytes_per_s: f64,
        /// Bytes that are acknowledged.
        intake_bytes_per_s: Estimate,
    },
    /// Whether the recorder answers while blocks are uploaded.
    RecorderAnswers {
        /// The longest time that it took.
        answer_max_s: f64,
        /// Cases in which it took too long.
        late: usize,
        /// Cases in which it was asked.
        cases: usize,
    },
    /// What schema changes take and cost.
    SchemaChanges {
        /// Levels of the case.
        levels: Levels,
        /// Changes and operations that failed.
        failed: u64,
        /// Throughput over that without changes; null where the study has none without.
        throughput_ratio: Option<f64>,
        /// Its 95 % interval.
        ratio_ci95: Option<[f64; 2]>,
    },
    /// What became of what was acknowledged when something happened to the server.
    Events {
        /// Levels of the case.
        levels: Levels,
        /// Records that were acknowledged and are gone; null where they were not counted.
        lost: Option<u64>,
        /// Trials in which some are gone.
        trials_with_loss: u64,
        /// Trials in which they were counted.
        counted: u64,
        /// Trials in which the server did not come back.
        not_back: u64,
    },
    /// How many sources a recorder carries.
    SourcesCarried {
        /// Levels of the case without the number of sources.
        levels: Levels,
        /// The most that are certainly carried; null where none are.
        carried: Option<f64>,
        /// The most that were tried.
        sources: f64,
        /// What these send.
        sent_records_per_s: f64,
        /// What is stored of it at once.
        stored_records_per_s: Estimate,
        /// How long the rest takes after the last one ended.
        buffer_s: Estimate,
    },
    /// How soon events are seen.
    Seen {
        /// Levels of the case.
        levels: Levels,
        /// Within which time 90 % of them are.
        seen_p90_s: f64,
        /// Bytes of events written.
        event_bytes_per_s: Estimate,
        /// Sightings that were lost.
        lost: u64,
        /// Whether this is the case with the most bytes of those that differ in nothing else.
        is_most: bool,
    },
    /// What is published is seen before it is on a disk.
    Published {},
    /// At which levels of a ramp a figure is highest.
    Highest {
        /// The figure.
        metric: &'static str,
        /// Name of the alternative; empty where there is one.
        alternative: String,
        /// The ramp's setting.
        setting: String,
        /// Levels that may be the best one; all of them where it is undecided.
        at: Vec<f64>,
        /// The highest mean.
        mean: f64,
        /// Whether a level can be left out.
        is_decided: bool,
    },
    /// What a condition does to a figure.
    Condition {
        /// The figure.
        metric: &'static str,
        /// Name of the alternative; empty where there is one.
        alternative: String,
        /// The condition's setting.
        setting: String,
        /// From its lowest to its highest level.
        between: [f64; 2],
        /// The figure at the highest over that at the lowest.
        ratio: f64,
        /// Its 95 % interval.
        ratio_ci95: [f64; 2],
    },
    /// More alternatives along a ramp than are told.
    MoreInPlots {
        /// The ramp's setting.
        setting: String,
        /// How many.
        more: usize,
    },
    /// The figure of a case that is compared with nothing.
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
    /// Which alternative has the most points.
    Choice {
        /// The alternatives that may be the best one; the first has the highest total.
        may_be: Vec<String>,
        /// Points by which the first is above the next one.
        lead: f64,
        /// Its interval at 95 % or more; null without repeats.
        lead_ci95: Option<[f64; 2]>,
        /// Write weights between which it has the highest total; null is no limit.
        first_between: (f64, Option<f64>),
        /// Whether it is certainly the best one.
        is_decided: bool,
    },
    /// How response time grows with the arrival rate.
    Growth {
        /// Levels of the cases without the arrival rate.
        levels: Levels,
        /// The highest rate that the database carries; null where it carries none of them.
        carried_per_s: Option<f64>,
        /// The highest p99 up to that rate, or a lower bound of that of the overloaded case.
        response_time_p99_s: f64,
        /// The lowest rate at which it falls behind; null where it never did.
        overloaded_at_per_s: Option<f64>,
    },
}

impl Found {
    /// The alternatives that are held against each other by ratios; empty where none are.
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

/// What the first of several alternatives is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leader {
    /// Better than every other one.
    Best,
    /// Equal to some, and better than the others.
    Equal,
    /// Not told apart from some.
    Undecided,
}

/// The first of several alternatives against another one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// The other alternative.
    pub name: String,
    /// The first over it; null where they could not be compared.
    pub ratio: Option<f64>,
    /// The interval that is judged.
    pub ratio_interval: Option<[f64; 2]>,
    /// How the two are told apart.
    pub told: Told,
}

/// How two alternatives are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// One is certainly better.
    Apart,
    /// They are certainly equal.
    Equal,
    /// Neither.
    Undecided,
}

/// A setting of the server that makes a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pays {
    /// Its best level.
    pub level: String,
    /// A level that is certainly worse.
    pub over: String,
    /// The first over the second.
    pub ratio: f64,
    /// The interval that is judged.
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
