//! The result of a comparison: the JSON document of `loadline compare`.
//!
//! Main type: [`Comparisons`]. Invariant: a figure that the evidence does not provide is `null`, never 0.

use serde::Serialize;

use super::note::CompareNote;
use crate::statistics::Verdict;

/// The method of adjusting p-values for the number of comparisons.
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

/// The options by which alternatives are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The level below which an adjusted p counts, in (0, 1).
    pub alpha: f64,
    /// The relative difference that counts as none, in [0, 1).
    pub margin: f64,
    /// The method of adjusting p-values.
    pub adjustment: Adjustment,
    /// The seed of the bootstrap of medians.
    pub seed: u64,
}

/// The complete result of comparing samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparisons {
    /// Whether all trials of the runs are valid; true for summaries.
    pub valid: bool,
    /// The level of the verdicts.
    pub alpha: f64,
    /// The relative difference that counts as none.
    pub margin: f64,
    /// The method of adjusting p-values.
    pub adjustment: Adjustment,
    /// The number of p-values that were adjusted together.
    pub family: u64,
    /// Every pair of alternatives in every case.
    pub comparisons: Vec<Comparison>,
    /// Comparisons in which two machines disagree, by the rule of Lindfors and Lind Oros (KTH 2018, chapter 8).
    pub marks: Vec<Mark>,
    /// Findings of one machine that the other does not confirm, and that the rule does not mark.
    pub unconfirmed: Vec<Unconfirmed>,
    /// Groups of alternatives that could not be distinguished, by shared letters.
    pub letters: Vec<Letters>,
    /// Notes on what was left out, and on further differences.
    pub notes: Vec<CompareNote>,
}

impl Comparisons {
    /// Returns whether the document is based on published summaries, whose times are in the source's own unit.
    pub fn is_of_summaries(&self) -> bool {
        self.comparisons.iter().all(|comparison| comparison.p_welch_rounding.is_some() || comparison.shift.is_none())
    }
}

/// A comparison of two alternatives, a against b.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The case: what both alternatives have in common.
    pub case: String,
    /// The machine, or the run, of the measurement.
    pub machine: String,
    /// The setting in which the alternatives differ; empty for summaries.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub factor: String,
    /// The metric that is compared.
    pub metric: &'static str,
    /// The kind of operation; empty for all kinds together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// The first alternative.
    pub a: String,
    /// The second alternative.
    pub b: String,
    /// The mean of a, in the metric's unit.
    pub mean_a: f64,
    /// The mean of b, in the metric's unit.
    pub mean_b: f64,
    /// The number of values of a.
    pub n_a: u64,
    /// The number of values of b.
    pub n_b: u64,
    /// The geometric mean of a divided by that of b; for summaries the ratio of means. Null if one is not above 0.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio over trials; null for summaries.
    pub ratio_ci95: Option<[f64; 2]>,
    /// The interval that is shown and that decides the verdict, widened for the number of comparisons; null for summaries.
    pub ratio_adjusted: Option<[f64; 2]>,
    /// The method of both intervals: `log t over rounds` if effects shared by the trials of a round were removed, else `log t`; null for summaries.
    pub ratio_method: Option<&'static str>,
    /// Fieller's 95 % interval of the ratio, which is computed from summaries alone.
    pub fieller_ci95: Option<[f64; 2]>,
    /// The median of a divided by the median of b; null for summaries.
    pub median_ratio: Option<f64>,
    /// The 95 % bootstrap interval of the ratio of medians; null below ten trials.
    pub median_ratio_ci95: Option<[f64; 2]>,
    /// The Hodges-Lehmann shift of a against b, in the metric's unit; null for summaries.
    pub shift: Option<f64>,
    /// The 95 % interval of the shift.
    pub shift_ci95: Option<[f64; 2]>,
    /// The two-sided p of the Mann-Whitney test; null for summaries.
    pub p_mann_whitney: Option<f64>,
    /// Welch's t: the mean of a minus the mean of b, divided by its standard error; null if neither side varies.
    pub t: Option<f64>,
    /// The degrees of freedom of Welch's t.
    pub df: Option<f64>,
    /// The two-sided p of Welch's test.
    pub p_welch: Option<f64>,
    /// The two-sided p of the pooled t-test.
    pub p_pooled: Option<f64>,
    /// The smallest and the largest p of Welch's test for figures that round to the printed ones; null for trials.
    pub p_welch_rounding: Option<[f64; 2]>,
    /// The number of rounds in which both were measured, if trials are compared round by round; otherwise null.
    pub paired_rounds: Option<u64>,
    /// The two-sided p of the ratio being 1, by the same t as its interval; null for summaries, and if nothing varies.
    pub p_ratio: Option<f64>,
    /// The same p if trials are compared round by round; otherwise null.
    pub p_paired: Option<f64>,
    /// `p_ratio` if there is one, else `p_welch`, adjusted for all comparisons of the document.
    pub p_adjusted: Option<f64>,
    /// The verdict on a: faster means better, also for metrics of which less is better.
    #[serde(serialize_with = "as_word")]
    pub verdict: Verdict,
}

impl Comparison {
    /// Returns the p that decides: that of the ratio, or Welch's for summaries.
    pub fn deciding_p(&self) -> Option<f64> {
        self.p_ratio.or(self.p_welch)
    }

    /// Returns the interval of the ratio that is shown: the one of the verdict, or Fieller's for summaries.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.ratio_adjusted.or(self.ratio_ci95).or(self.fieller_ci95)
    }
}

fn as_word<S: serde::Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(verdict)
}

/// The kind of disagreement of two machines about a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkWord {
    /// The p differ by more than 50 percentage points; red in the source.
    Contradicts,
    /// The differences have opposite directions; green in the source.
    Direction,
    /// Both disagreements; brown in the source.
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

/// A comparison about which two machines disagree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// The name of the case.
    pub case: String,
    /// The first alternative.
    pub a: String,
    /// The second alternative.
    pub b: String,
    /// The kind of disagreement.
    pub mark: MarkWord,
    /// The metric that is compared.
    pub metric: &'static str,
    /// The two machines.
    pub machines: [String; 2],
    /// The p of Welch's test on each machine.
    pub p_welch: [Option<f64>; 2],
    /// Whether the mark holds however the printed figures were rounded; always true for trials.
    pub certain: bool,
}

/// A finding of one machine that the other does not confirm: p is below the level on only one machine, and the rule of the marks does not
/// mark it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unconfirmed {
    /// The name of the case.
    pub case: String,
    /// The first alternative.
    pub a: String,
    /// The second alternative.
    pub b: String,
    /// The metric that is compared.
    pub metric: &'static str,
    /// The machine with the finding, then the other.
    pub machines: [String; 2],
    /// The p of Welch's test on each machine.
    pub p_welch: [Option<f64>; 2],
}

/// The alternatives of a case, best first; those that share a letter could not be distinguished.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Letters {
    /// The name of the case.
    pub case: String,
    /// The machine, or the run, of the measurement.
    pub machine: String,
    /// The metric that is compared.
    pub metric: &'static str,
    /// The alternatives, each as (alternative, mean, letters).
    pub groups: Vec<(String, f64, String)>,
}
