//! What a comparison found: the JSON document of `loadline compare`.
//!
//! Main type: [`Comparisons`]. Invariant: a figure that the evidence does not give is `null`, never 0.

use serde::Serialize;

use super::note::CompareNote;
use crate::statistics::Verdict;

/// How p-values are adjusted for the number of comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Adjustment {
    /// Bonferroni: the probability of any false finding stays below the level, and all intervals hold together.
    Bonferroni,
    /// Holm: the probability of any false finding stays below the level.
    Holm,
    /// Benjamini and Hochberg: the expected share of false findings stays below the level.
    Bh,
}

/// How alternatives are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Level below which an adjusted p counts, in (0, 1).
    pub alpha: f64,
    /// Relative difference that counts as none, in [0, 1).
    pub margin: f64,
    /// How p-values are adjusted.
    pub adjustment: Adjustment,
    /// Seed of the bootstrap of medians.
    pub seed: u64,
}

/// Everything that is said about some samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparisons {
    /// Whether no trial of the runs is invalid; true for summaries.
    pub valid: bool,
    /// Level of the verdicts.
    pub alpha: f64,
    /// Relative difference that counts as none.
    pub margin: f64,
    /// How p-values are adjusted.
    pub adjustment: Adjustment,
    /// Number of p-values that were adjusted together.
    pub family: u64,
    /// Every pair of alternatives in every case.
    pub comparisons: Vec<Comparison>,
    /// Comparisons about which two machines do not agree, by the rule of Lindfors and Lind Oros (KTH 2018, chapter 8).
    pub marks: Vec<Mark>,
    /// Findings of one machine that the other does not confirm, and that the rule does not mark.
    pub unconfirmed: Vec<Unconfirmed>,
    /// Alternatives that were not told apart, by shared letters.
    pub letters: Vec<Letters>,
    /// What a reader should know: what was left out, what differs besides.
    pub notes: Vec<CompareNote>,
}

impl Comparisons {
    /// Whether it was made of published summaries, whose times are in the source's own unit.
    pub fn is_of_summaries(&self) -> bool {
        self.comparisons.iter().all(|comparison| comparison.p_welch_rounding.is_some() || comparison.shift.is_none())
    }
}

/// Two alternatives, a against b.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What else was the same.
    pub case: String,
    /// Where it was measured.
    pub machine: String,
    /// What distinguishes the alternatives; empty for summaries.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub factor: String,
    /// What was measured.
    pub metric: &'static str,
    /// The kind of operation; empty where that is all of them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// First alternative.
    pub a: String,
    /// Second alternative.
    pub b: String,
    /// Mean of a, in the metric's unit.
    pub mean_a: f64,
    /// Mean of b.
    pub mean_b: f64,
    /// Values of a.
    pub n_a: u64,
    /// Values of b.
    pub n_b: u64,
    /// Geometric mean of a over that of b; for summaries mean over mean. Null when one is not above 0.
    pub ratio: Option<f64>,
    /// Its 95 % interval over trials; null for summaries.
    pub ratio_ci95: Option<[f64; 2]>,
    /// The interval that the verdict is read off and that is shown: as much wider as the number of comparisons asks for; null for summaries.
    pub ratio_adjusted: Option<[f64; 2]>,
    /// How they were made: `log t over rounds` where what the trials of a round share was taken out, else `log t`; null for summaries.
    pub ratio_method: Option<&'static str>,
    /// Fieller's 95 % interval of the ratio, which needs no more than summaries.
    pub fieller_ci95: Option<[f64; 2]>,
    /// Median of a over median of b; null for summaries.
    pub median_ratio: Option<f64>,
    /// Its 95 % bootstrap interval; null below ten trials.
    pub median_ratio_ci95: Option<[f64; 2]>,
    /// Hodges-Lehmann shift of a against b, in the metric's unit; null for summaries.
    pub shift: Option<f64>,
    /// Its 95 % interval.
    pub shift_ci95: Option<[f64; 2]>,
    /// Two-sided p of the Mann-Whitney test; null for summaries.
    pub p_mann_whitney: Option<f64>,
    /// Welch's t: mean of a less mean of b over its standard error; null when neither side varies.
    pub t: Option<f64>,
    /// Its degrees of freedom.
    pub df: Option<f64>,
    /// Two-sided p of Welch's test.
    pub p_welch: Option<f64>,
    /// Two-sided p of the pooled t-test.
    pub p_pooled: Option<f64>,
    /// Smallest and largest p of Welch's test for figures that round to the printed ones; null for trials.
    pub p_welch_rounding: Option<[f64; 2]>,
    /// Rounds in which both were measured, when trials are compared round by round; null when they are not.
    pub paired_rounds: Option<u64>,
    /// Two-sided p of the ratio being 1, of the same t as its interval; null for summaries and where nothing varies.
    pub p_ratio: Option<f64>,
    /// The same p where trials are compared round by round; null when they are not.
    pub p_paired: Option<f64>,
    /// `p_ratio` if there is one, else `p_welch`, adjusted for all comparisons of the document.
    pub p_adjusted: Option<f64>,
    /// What the evidence says about a: faster means better, also where less is better.
    #[serde(serialize_with = "as_word")]
    pub verdict: Verdict,
}

impl Comparison {
    /// The p that decides: that of the ratio, for summaries Welch's.
    pub fn deciding_p(&self) -> Option<f64> {
        self.p_ratio.or(self.p_welch)
    }

    /// The interval of the ratio that is shown: the one of the verdict, or Fieller's for summaries.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.ratio_adjusted.or(self.ratio_ci95).or(self.fieller_ci95)
    }
}

fn as_word<S: serde::Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(verdict)
}

/// How two machines do not agree about a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkWord {
    /// Their p differ by more than 50 points; red in the source.
    Contradicts,
    /// The difference has another direction; green.
    Direction,
    /// Both; brown.
    Both,
}

impl std::fmt::Display for MarkWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            MarkWord::Contradicts => "contradicts",
            MarkWord::Direction => "direction",
            MarkWord::Both => "both",
        })
    }
}

/// A comparison about which two machines do not agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// The case.
    pub case: String,
    /// First alternative.
    pub a: String,
    /// Second alternative.
    pub b: String,
    /// How they do not agree.
    pub mark: MarkWord,
    /// What was measured.
    pub metric: &'static str,
    /// The machines.
    pub machines: [String; 2],
    /// Their p of Welch's test.
    pub p_welch: [Option<f64>; 2],
    /// Whether the mark stands however the printed figures were rounded; always true for trials.
    pub certain: bool,
}

/// A finding of one machine that the other does not confirm: its p is below the level on one machine only, and the rule of
/// the marks does not show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unconfirmed {
    /// The case.
    pub case: String,
    /// First alternative.
    pub a: String,
    /// Second alternative.
    pub b: String,
    /// What was measured.
    pub metric: &'static str,
    /// The machine with the finding, then the other.
    pub machines: [String; 2],
    /// Their p of Welch's test.
    pub p_welch: [Option<f64>; 2],
}

/// The alternatives of a case, best first; those that share a letter were not told apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Letters {
    /// The case.
    pub case: String,
    /// Where it was measured.
    pub machine: String,
    /// What was measured.
    pub metric: &'static str,
    /// (alternative, mean, letters)
    pub groups: Vec<(String, f64, String)>,
}
